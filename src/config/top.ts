import { clusterConfig, type ClusterConfig } from './common-flags.ts';
import { Flags, optional, textOf } from './flags.ts';

/** The configuration of `servicenet top`: validated, frozen. */
export interface TopConfig {
  readonly cluster: ClusterConfig;
  /** Only the Services and Events of this namespace; undefined: of all. */
  readonly namespace: string | undefined;
}

/** Checks the flags of `servicenet top`. @throws {ConfigError} naming the flag and what it takes. */
export function topConfig(options: Readonly<Record<string, unknown>>): TopConfig {
  const flags = new Flags(options);
  return Object.freeze({
    cluster: clusterConfig(flags),
    namespace: flags.read('namespace', optional(textOf())),
  });
}
