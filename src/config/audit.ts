import { clusterConfig, type ClusterConfig } from './common-flags.ts';
import { Flags, oneOf } from './flags.ts';
import { nodePortRange } from './service-ranges.ts';

/** The configuration of `servicenet audit`: validated, frozen. */
export interface AuditConfig {
  readonly cluster: ClusterConfig;
  readonly nodePorts: ReturnType<typeof nodePortRange>;
  readonly output: 'table' | 'json';
}

/** Checks the flags of `servicenet audit`. @throws {ConfigError} naming the flag and what it takes. */
export function auditConfig(options: Readonly<Record<string, unknown>>): AuditConfig {
  const flags = new Flags(options);
  return Object.freeze({
    cluster: clusterConfig(flags),
    nodePorts: flags.read('serviceNodePortRange', nodePortRange),
    output: flags.read('output', oneOf(['table', 'json'])),
  });
}
