import {
  type BindAddress,
  bindAddress,
  boolean,
  ConfigError,
  cidr,
  type Flag,
  group,
  list,
  nonEmpty,
  oneOf,
  optional,
  serverUrl,
  type Table,
  text,
  type Values,
  wholeNumber,
  WrongValue,
} from './readers.ts';
import type { ParsedCidr } from '../objects/address.ts';
import { isQualifiedName, isDNS1123Label } from '../objects/names.ts';
import { parseServiceCidr, type ServiceCidr } from '../allocation/address-range.ts';
import { logFormats, logLevels } from '../telemetry/log-words.ts';

/** Flags that several commands have. */

/** `--log-level`, with its default, and `--log-format`, whose default depends on the terminal (`commands/program.ts`). */
export function logFlags(level: (typeof logLevels)[number]) {
  return {
    logLevel: {
      flag: '--log-level <level>',
      about: 'lowest level to log',
      default: level,
      ...oneOf(...logLevels),
    },
    logFormat: {
      flag: '--log-format <format>',
      about: 'log format (default: pretty on a terminal, else json)',
      ...oneOf(...logFormats),
    },
  } satisfies Table;
}

/** The level and the format of the log. */
export type LogConfig = Values<ReturnType<typeof logFlags>>;

/** `--metrics-bind-address`. */
export function metricsAddress(
  defaultAddress: string,
  about = 'serve /healthz, /readyz and /metrics on this address; 0 for none',
): Flag<BindAddress | undefined> {
  return {
    flag: '--metrics-bind-address <address>',
    about,
    default: defaultAddress,
    read: bindAddress,
  };
}

/** `--output` of commands that print a report. */
export const outputFlag = {
  flag: '-o, --output <format>',
  about: 'output format',
  default: 'table',
  ...oneOf('table', 'json'),
};

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

const clusterTable = {
  kubeconfig: {
    flag: '--kubeconfig <file>',
    about: 'kubeconfig file (default: $KUBECONFIG, ~/.kube/config, then the service account of the Pod)',
    read: optional(nonEmpty),
  },
  context: { flag: '--context <name>', about: 'kubeconfig context to use', read: optional(nonEmpty) },
  server: {
    flag: '--server <url>',
    about: 'URL of the API server, instead of a kubeconfig',
    read: optional(serverUrl),
  },
  tokenFile: {
    flag: '--token-file <file>',
    about: 'file with the bearer token for --server',
    read: optional(nonEmpty),
  },
  certificateAuthority: {
    flag: '--certificate-authority <file>',
    about: 'file with the CA of --server, in PEM format',
    read: optional(nonEmpty),
  },
} satisfies Table;

/** Flags that say which cluster a command connects to. */
export const clusterFlags = group(clusterTable, clusterConfig);

/** {@link clusterFlags} of commands that people use beside an `up`. */
export const reportedClusterFlags = group(
  {
    ...clusterTable,
    kubeconfig: {
      ...clusterTable.kubeconfig,
      about:
        'kubeconfig file (default: $KUBECONFIG, that of a running servicenet up, ~/.kube/config, then the service account of the Pod)',
    },
  },
  clusterConfig,
);

/** How to reach the API server. @throws {ConfigError} for flags that contradict each other. */
function clusterConfig(flags: Values<typeof clusterTable>): ClusterConfig {
  const { kubeconfig, context, server, tokenFile, certificateAuthority } = flags;
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

/** What the load balancer of `up` reads, and that of commands without flags. */
export const usualLoadBalancer = {
  ...{ loadBalancerClass: 'servicenet.dev/load-balancer', isDefaultClass: true, compat: true },
};

const loadBalancerTable = {
  loadBalancerClass: {
    flag: '--lb-class <class>',
    about: 'serve Services of this loadBalancerClass',
    default: usualLoadBalancer.loadBalancerClass,
    read: className,
  },
  isDefaultClass: {
    flag: '--default-class',
    about: 'also serve Services without a class',
    negated: 'leave Services without a class to another load balancer',
    default: usualLoadBalancer.isDefaultClass,
    read: boolean,
  },
  compat: {
    flag: '--compat',
    about: 'also read the annotations of MetalLB, kube-vip, PureLB and Cilium',
    negated: 'read only the annotations of servicenet.dev',
    default: usualLoadBalancer.compat,
    read: boolean,
  },
} satisfies Table;

/** The flags of every command that reads Services as the load balancer does. */
export const loadBalancerFlags = group(loadBalancerTable, (values) => values);

/** A class that the API accepts in `spec.loadBalancerClass`. */
function className(value: unknown): string {
  const name = nonEmpty(value);
  const [problem] = isQualifiedName(name);
  if (problem !== undefined) throw new WrongValue(problem);
  return name;
}

const attachmentTable = {
  namespaceIsolation: {
    flag: '--namespace-isolation',
    about: 'attach Pods only to networks of their own namespace',
    default: false,
    read: boolean,
  },
  nonIsolatedNamespaces: {
    flag: '--global-namespaces <list>',
    isList: true,
    about: 'with --namespace-isolation: namespaces whose networks all Pods may name',
    default: 'default',
    read: namespaceNames,
  },
} satisfies Table;

/** Which networks Pods may name in their annotation (multus' `namespaceIsolation`, `globalNamespaces`). */
export type AttachmentSettings = Values<typeof attachmentTable>;

/** The flags of every command that attaches networks. */
export const attachmentFlags = group(attachmentTable, (values) => values);

/** Multus' defaults. */
export const defaultAttachmentSettings: AttachmentSettings = {
  namespaceIsolation: attachmentTable.namespaceIsolation.default,
  nonIsolatedNamespaces: namespaceNames(attachmentTable.nonIsolatedNamespaces.default),
};

function namespaceNames(value: unknown): readonly string[] {
  const names = list(value);
  for (const name of names) {
    const [problem] = isDNS1123Label(name);
    if (problem !== undefined) throw new WrongValue(`${name}: ${problem}`);
  }
  return names;
}

/** `--allocation`. @param about what it means for the command. */
export function allocationFlag(about: string) {
  return {
    flag: '--allocation <who>',
    about,
    default: 'server',
    ...oneOf('server', 'controller'),
  };
}

/** `--service-node-port-range`. @param about whose range. */
export function nodePortRangeFlag(about: string) {
  return {
    flag: '--service-node-port-range <range>',
    about,
    default: '30000-32767',
    read: nodePortRange,
  };
}

/** Processes of one command: more than cores take memory for nothing. */
export const workersFlag = {
  flag: '--workers <number>',
  about: 'processes that share the ports, one for each core that is to be used; more than 1 needs Linux',
  default: '1',
  read: wholeNumber(1, 64),
} satisfies Flag<number>;

/** kube-proxy's `--nodeport-addresses`: CIDRs, or `primary`, the InternalIPs of the Node object. */
export function nodePortAddresses(given: readonly string[]): 'primary' | readonly ParsedCidr[] {
  if (given.length === 1 && given[0] === 'primary') return 'primary';
  return given.map(cidr);
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
  const parsed = parseServiceCidr(given);
  if (parsed === undefined) {
    throw new WrongValue(`${JSON.stringify(given)} is not a CIDR such as 10.0.0.0/24 or fd00::/112`);
  }
  if (parsed.range.size < minAddresses) {
    throw new WrongValue(`${given} is too small: at least ${minAddresses} addresses are needed`);
  }
  if (parsed.range.family === 'IPv6' && Number(given.split('/')[1]) < minIpv6Prefix) {
    throw new WrongValue(`${given} is too large: an IPv6 range is at most a /${minIpv6Prefix}`);
  }
  return parsed;
}

/** A range of ports, both ends included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** `--service-node-port-range`: `first-last` or `first+count`, both ends included. @throws {WrongValue} */
export function nodePortRange(value: unknown): PortRange {
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
