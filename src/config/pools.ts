import { clusterConfig, type ClusterConfig } from './common-flags.ts';
import { Flags, oneOf, texts } from './flags.ts';
import { type LoadBalancerSettings, loadBalancerSettings } from './load-balancer.ts';
import { ConfigError } from './errors.ts';

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
