import {
  type Flags,
  oneOf,
  optional,
  serverUrl,
  textOf,
  ConfigError,
  yesOrNo,
  WrongValue,
  list,
  text,
} from './readers.ts';
import { isQualifiedName, isDNS1123Label } from '../objects/names.ts';
import { parseServiceCidr, type ServiceCidr } from '../allocation/address-range.ts';

/** Flags that several commands have. */

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** The level and the format of the log. */
export interface LogConfig {
  readonly logLevel: (typeof logLevels)[number];
  readonly logFormat: 'json' | 'pretty';
}

/**
 * `--log-level` and `--log-format`.
 * @param isTerminal whether standard error is one: then logs are pretty by default.
 */
export function logConfig(flags: Flags, isTerminal: boolean): LogConfig {
  const format = flags.read('logFormat', optional(oneOf(['json', 'pretty'])));
  return {
    logLevel: flags.read('logLevel', oneOf(logLevels)),
    logFormat: format ?? (isTerminal ? 'pretty' : 'json'),
  };
}

/** Where an API server is, as the flags say it: by kubeconfig, or directly. */
export type ClusterConfig =
  | { readonly kind: 'kubeconfig'; readonly path?: string; readonly context?: string }
  | {
      readonly kind: 'endpoint';
      readonly url: string;
      readonly tokenFile?: string;
      /** A file. */
      readonly certificateAuthority?: string;
    };

/** How to reach the API server. @throws {ConfigError} for flags that contradict each other. */
export function clusterConfig(flags: Flags): ClusterConfig {
  const given = optional(textOf());
  const kubeconfig = flags.read('kubeconfig', given);
  const context = flags.read('context', given);
  const server = flags.read('server', optional(serverUrl));
  const tokenFile = flags.read('tokenFile', given);
  const certificateAuthority = flags.read('certificateAuthority', given);
  if (server === undefined) {
    if (tokenFile !== undefined || certificateAuthority !== undefined) {
      throw new ConfigError('--token-file and --certificate-authority require --server');
    }
    return {
      kind: 'kubeconfig',
      ...(kubeconfig === undefined ? {} : { path: kubeconfig }),
      ...(context === undefined ? {} : { context }),
    };
  }
  if (kubeconfig !== undefined || context !== undefined) {
    throw new ConfigError('--server cannot be used with --kubeconfig or --context');
  }
  return {
    kind: 'endpoint',
    url: server,
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
  };
}

/** Which Services are served, and how they are read. */
export interface LoadBalancerSettings {
  readonly loadBalancerClass: string;
  /** Services without a class too. */
  readonly isDefaultClass: boolean;
  /** Other load balancers' annotations count. */
  readonly compat: boolean;
}

/** The flags of every command that reads Services as the load balancer does. */
export function loadBalancerSettings(flags: Flags): LoadBalancerSettings {
  return {
    loadBalancerClass: flags.read('lbClass', className),
    isDefaultClass: flags.read('defaultClass', yesOrNo),
    compat: flags.read('compat', yesOrNo),
  };
}

/** A class that the API accepts in `spec.loadBalancerClass`. */
function className(value: unknown): string {
  const name = textOf()(value);
  const [problem] = isQualifiedName(name);
  if (problem !== undefined) throw new WrongValue(problem);
  return name;
}

/** Which networks Pods may name in their annotation. */
export interface AttachmentSettings {
  /** Only those of their own namespace, and of these namespaces. */
  readonly namespaceIsolation: boolean;
  readonly nonIsolatedNamespaces: readonly string[];
}

/** Multus' defaults. */
export const defaultAttachmentSettings: AttachmentSettings = {
  namespaceIsolation: false,
  nonIsolatedNamespaces: ['default'],
};

/** The flags of every command that attaches networks. */
export function attachmentSettings(flags: Flags): AttachmentSettings {
  return {
    namespaceIsolation: flags.read('namespaceIsolation', yesOrNo),
    nonIsolatedNamespaces: flags.read('globalNamespaces', namespaceNames),
  };
}

function namespaceNames(value: unknown): readonly string[] {
  const names = list(value);
  for (const name of names) {
    const [problem] = isDNS1123Label(name);
    if (problem !== undefined) throw new WrongValue(`${name}: ${problem}`);
  }
  return names;
}

const minAddresses = 8n;
const minIpv6Prefix = 64;

/** `--service-cluster-ip-range`: one CIDR, or two of different families, primary first. @throws {WrongValue} */
export function readServiceCidrs(value: unknown): readonly [ServiceCidr, ...ServiceCidr[]] {
  const [primary, secondary, ...more] = text(value)
    .split(',')
    .map((part) => serviceCidr(part.trim()));
  if (primary === undefined || more.length > 0) throw new WrongValue('must be one or two CIDRs');
  if (secondary === undefined) return [primary];
  if (secondary.range.family === primary.range.family) {
    throw new WrongValue('two CIDRs must be of different families');
  }
  return [primary, secondary];
}

function serviceCidr(given: string): ServiceCidr {
  const cidr = parseServiceCidr(given);
  if (cidr === undefined) {
    throw new WrongValue(`${JSON.stringify(given)} is not a CIDR such as 10.0.0.0/24 or fd00::/112`);
  }
  if (cidr.range.size < minAddresses) {
    throw new WrongValue(`${given} is too small: at least ${minAddresses} addresses are needed`);
  }
  if (cidr.range.family === 'IPv6' && Number(given.split('/')[1]) < minIpv6Prefix) {
    throw new WrongValue(`${given} is too large: an IPv6 range is at most a /${minIpv6Prefix}`);
  }
  return cidr;
}

/** `--service-node-port-range`: `first-last` or `first+count`, both ends included. @throws {WrongValue} */
export function nodePortRange(value: unknown): { readonly first: number; readonly last: number } {
  const given = text(value);
  const match = /^(\d{1,5})([-+])(\d{1,5})$/.exec(given.trim());
  const [, from = '', sign = '', to = ''] = match ?? [];
  const first = Number(from);
  const last = sign === '+' ? first + Number(to) : Number(to);
  if (match === null || first < 1 || last > 65535 || last < first) {
    throw new WrongValue(`${JSON.stringify(given)} is not a port range such as 30000-32767`);
  }
  return { first, last };
}
