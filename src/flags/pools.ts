import { isDNS1123Subdomain } from '../objects/names.ts';
import {
  ConfigError,
  type Given,
  oneOf,
  optional,
  readFlags,
  readValue,
  type Table,
  text,
  texts,
  type Values,
  WrongValue,
} from './readers.ts';
import { clusterFlags, loadBalancerFlags, outputFlag, reportedClusterFlags } from './shared.ts';

/** The flags of `servicenet pools`. */
export const poolsFlags = {
  cluster: reportedClusterFlags,
  settings: loadBalancerFlags,
  output: outputFlag,
} satisfies Table;

/** The configuration of `servicenet pools`. */
export type PoolsConfig = Values<typeof poolsFlags>;

/** Checks the flags of `servicenet pools`. @throws {ConfigError} naming the flag and what it takes. */
export function poolsConfig(given: Given): PoolsConfig {
  return readFlags(poolsFlags, given);
}

/** The flags of `servicenet pools plan`. */
export const poolsPlanFlags = {
  cluster: reportedClusterFlags,
  settings: loadBalancerFlags,
  /** YAML or JSON with AddressPools that are to be made or changed; `-` is standard input. */
  files: {
    flag: '-f, --filename <files...>',
    about: 'files with new or changed AddressPools, in YAML or JSON; - for standard input',
    read: texts,
  },
  deleted: { flag: '--delete <names...>', about: 'names of AddressPools to delete', read: texts },
  output: outputFlag,
} satisfies Table;

/** The configuration of `servicenet pools plan`: at least one file or one name. */
export type PoolsPlanConfig = Values<typeof poolsPlanFlags>;

/** Checks the flags of `servicenet pools plan`. @throws {ConfigError} naming the flag and what it takes. */
export function poolsPlanConfig(given: Given): PoolsPlanConfig {
  const flags = readFlags(poolsPlanFlags, given);
  if (flags.files.length + flags.deleted.length === 0) {
    throw new ConfigError('--filename: give a file with AddressPools, or names of pools with --delete');
  }
  return flags;
}

/** Load balancers whose pools can be read, and Ingresses: the operand of `servicenet import`. */
export const importSources = ['metallb', 'cilium', 'kube-vip', 'ingress'] as const;

export type ImportSource = (typeof importSources)[number];

/** The flags of `servicenet import`. */
export const importFlags = {
  cluster: clusterFlags,
  configMap: {
    flag: '--config-map <namespace/name>',
    about:
      "ConfigMap of kube-vip's cloud provider (default: kube-system/kubevip), or of MetalLB before 0.13 (default: metallb-system/config)",
    read: optional(configMap),
  },
  gatewayClass: {
    flag: '--gateway-class <name>',
    about: 'of ingress: the GatewayClass of the Gateways',
    default: 'servicenet',
    read: subdomain,
  },
  gatewayNamespace: {
    flag: '--gateway-namespace <name>',
    about:
      'of ingress: the namespace of the Gateways (default: that of their Ingresses, or "default" where these are in several)',
    read: optional(subdomain),
  },
} satisfies Table;

/** The configuration of `servicenet import`. */
export interface ImportConfig extends Values<typeof importFlags> {
  readonly source: ImportSource;
}

/** Checks the flags of `servicenet import` and its operand. @throws {ConfigError} naming the flag and what it takes. */
export function importConfig(given: Given, [source]: readonly string[]): ImportConfig {
  return Object.freeze({
    ...readFlags(importFlags, given),
    source: readValue('source', oneOf(...importSources).read, source),
  });
}

function configMap(value: unknown): string {
  const key = text(value);
  if (!/^[^/]+\/[^/]+$/.test(key)) throw new WrongValue('must be namespace/name');
  return key;
}

function subdomain(value: unknown): string {
  const name = text(value);
  const [fault] = isDNS1123Subdomain(name);
  if (fault !== undefined) throw new WrongValue(`must be a name: ${fault}`);
  return name;
}
