import { z } from 'zod';
import { clusterConfig, type ClusterConfig, clusterFlags, parseFlags } from './flags.ts';
import { nodePortRange } from './service-ranges.ts';

/** The flags of `servicenet audit`, as commander gives them. */
const flags = z.object({
  ...clusterFlags,
  serviceNodePortRange: z.string(),
  output: z.enum(['table', 'json']),
});

/** The configuration of `servicenet audit`: validated, frozen. */
export interface AuditConfig {
  readonly cluster: ClusterConfig;
  readonly nodePorts: ReturnType<typeof nodePortRange>;
  readonly output: 'table' | 'json';
}

/** Checks the flags of `servicenet audit`. @throws {ConfigError} naming the flag and what it takes. */
export function auditConfig(options: Readonly<Record<string, unknown>>): AuditConfig {
  const parsed = parseFlags(flags, options);
  return Object.freeze({
    cluster: clusterConfig(parsed),
    nodePorts: nodePortRange(parsed.serviceNodePortRange),
    output: parsed.output,
  });
}
