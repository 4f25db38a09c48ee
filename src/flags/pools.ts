import {
  clusterConfig,
  type ClusterConfig,
  type LoadBalancerSettings,
  loadBalancerSettings,
} from './shared.ts';
import { Flags, oneOf, texts, ConfigError, optional, text } from './readers.ts';

/** The configuration of `servicenet pools`: validated, frozen. */
export interface PoolsConfig {
  readonly cluster: ClusterConfig;
  readonly settings: LoadBalancerSettings;
  readonly output: 'table' | 'json';
}

/** The configuration of `servicenet pools plan`: at least one file or one name. */
export interface PoolsPlanConfig extends PoolsConfig {
  /** YAML or JSON with AddressPools that are to be made or changed; `-` is standard input. */
  readonly files: readonly string[];
  /** Names of pools that are to go. */
  readonly deleted: readonly string[];
}

/** Checks the flags of `servicenet pools`. @throws {ConfigError} naming the flag and what it takes. */
export function poolsConfig(options: Readonly<Record<string, unknown>>): PoolsConfig {
  return Object.freeze(read(new Flags(options)));
}

/** Checks the flags of `servicenet pools plan`. @throws {ConfigError} naming the flag and what it takes. */
export function poolsPlanConfig(options: Readonly<Record<string, unknown>>): PoolsPlanConfig {
  const flags = new Flags(options);
  const files = flags.read('filename', texts);
  const deleted = flags.read('delete', texts);
  if (files.length + deleted.length === 0) {
    throw new ConfigError('--filename: give a file with AddressPools, or names of pools with --delete');
  }
  return Object.freeze({ ...read(flags), files, deleted });
}

function read(flags: Flags): PoolsConfig {
  return {
    cluster: clusterConfig(flags),
    settings: loadBalancerSettings(flags),
    output: flags.read('output', oneOf(['table', 'json'])),
  };
}

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
