import { z } from 'zod';
import { clusterConfig, type ClusterConfig, clusterFlags, parseFlags } from './flags.ts';

const sources = ['metallb', 'cilium', 'kube-vip'] as const;

/** A load balancer whose pools can be read. */
export type ImportSource = (typeof sources)[number];

/** The flags and the argument of `servicenet import`. */
const flags = z.object({
  ...clusterFlags,
  source: z.enum(sources, { error: `wants one of ${sources.join(', ')}` }),
  configMap: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, 'wants namespace/name')
    .optional(),
});

/** The configuration of `servicenet import`: validated, frozen. */
export interface ImportConfig {
  readonly cluster: ClusterConfig;
  readonly source: ImportSource;
  /** `namespace/name` of the ConfigMap of kube-vip, or of MetalLB before 0.13; undefined: as they have it. */
  readonly configMap: string | undefined;
}

/** Checks the flags of `servicenet import`. @throws {ConfigError} naming the flag and what it takes. */
export function importConfig(options: Readonly<Record<string, unknown>>): ImportConfig {
  const parsed = parseFlags(flags, options);
  return Object.freeze({
    cluster: clusterConfig(parsed),
    source: parsed.source,
    configMap: parsed.configMap,
  });
}
