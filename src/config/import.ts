import { clusterConfig, type ClusterConfig } from './common-flags.ts';
import { Flags, oneOf, optional, text } from './flags.ts';
import { ConfigError } from './errors.ts';

const sources = ['metallb', 'cilium', 'kube-vip'] as const;

/** A load balancer whose pools can be read. */
export type ImportSource = (typeof sources)[number];

/** The configuration of `servicenet import`: validated, frozen. */
export interface ImportConfig {
  readonly cluster: ClusterConfig;
  readonly source: ImportSource;
  /** `namespace/name` of the ConfigMap of kube-vip, or of MetalLB before 0.13; undefined: as they have it. */
  readonly configMap: string | undefined;
}

/** Checks the flags of `servicenet import`. @throws {ConfigError} naming the flag and what it takes. */
export function importConfig(options: Readonly<Record<string, unknown>>): ImportConfig {
  const flags = new Flags(options);
  const configMap = flags.read('configMap', optional(text));
  if (configMap !== undefined && !/^[^/]+\/[^/]+$/.test(configMap))
    throw new ConfigError('--config-map: must be namespace/name');
  return Object.freeze({
    cluster: clusterConfig(flags),
    source: flags.read('source', oneOf(sources)),
    configMap,
  });
}
