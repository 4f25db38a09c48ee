import { z } from 'zod';
import { clusterConfig, type ClusterConfig, clusterFlags, parseFlags } from './flags.ts';

/** The flags of `servicenet top`, as commander gives them. */
const flags = z.object({ ...clusterFlags, namespace: z.string().min(1).optional() });

/** The configuration of `servicenet top`: validated, frozen. */
export interface TopConfig {
  readonly cluster: ClusterConfig;
  /** Only the Services and Events of this namespace; undefined: of all. */
  readonly namespace: string | undefined;
}

/** Checks the flags of `servicenet top`. @throws {ConfigError} naming the flag and what it takes. */
export function topConfig(options: Readonly<Record<string, unknown>>): TopConfig {
  const parsed = parseFlags(flags, options);
  return Object.freeze({ cluster: clusterConfig(parsed), namespace: parsed.namespace });
}
