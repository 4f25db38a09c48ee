import { z } from 'zod';
import { clusterConfig, type ClusterConfig, clusterFlags, parseFlags } from './flags.ts';
import { loadBalancerFlags, type LoadBalancerSettings, loadBalancerSettings } from './load-balancer.ts';
import { ConfigError } from './service-ranges.ts';

const output = z.enum(['table', 'json']);

/** The flags of `servicenet pools`, as commander gives them. */
const poolsFlags = z.object({ ...clusterFlags, ...loadBalancerFlags, output });

/** The flags of `servicenet pools plan`. */
const planFlags = z.object({
  ...poolsFlags.shape,
  filename: z.array(z.string()).default([]),
  delete: z.array(z.string()).default([]),
});

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
  return Object.freeze(read(parseFlags(poolsFlags, options)));
}

/** Checks the flags of `servicenet pools plan`. @throws {ConfigError} naming the flag and what it takes. */
export function poolsPlanConfig(options: Readonly<Record<string, unknown>>): PoolsPlanConfig {
  const parsed = parseFlags(planFlags, options);
  const { filename: files, delete: deleted } = parsed;
  if (files.length + deleted.length === 0) {
    throw new ConfigError('--filename: name a file with AddressPools, or pools to --delete');
  }
  return Object.freeze({ ...read(parsed), files, deleted });
}

function read(parsed: z.infer<typeof poolsFlags>): PoolsConfig {
  return { cluster: clusterConfig(parsed), settings: loadBalancerSettings(parsed), output: parsed.output };
}
