import {
  address,
  boolean,
  cidr,
  ConfigError,
  type Given,
  group,
  list,
  nonEmpty,
  oneOf,
  optional,
  readFlags,
  type Table,
  type Values,
  wholeNumber,
} from './readers.ts';
import {
  loadBalancerFlags,
  reportedClusterFlags,
  nodePortAddresses,
  nodePortRangeFlag,
  outputFlag,
} from './shared.ts';

/** The flags of `servicenet audit`. */
export const auditFlags = {
  cluster: reportedClusterFlags,
  nodePorts: nodePortRangeFlag("the API server's range of node ports"),
  output: outputFlag,
} satisfies Table;

/** The configuration of `servicenet audit`. */
export type AuditConfig = Values<typeof auditFlags>;

/** Checks the flags of `servicenet audit`. @throws {ConfigError} naming the flag and what it takes. */
export function auditConfig(given: Given): AuditConfig {
  return readFlags(auditFlags, given);
}

const traceProxyTable = {
  clusterCidrs: {
    flag: '--cluster-cidr <cidrs>',
    about: "ranges of Pods (default: kube-proxy's, then those of the Nodes)",
    read: optional((value) => list(value).map(cidr)),
  },
  masqueradeAll: {
    flag: '--masquerade-all',
    about: "as the flag of kube-proxy (default: kube-proxy's, then off)",
    read: optional(boolean),
  },
  nodePortAddresses: {
    flag: '--nodeport-addresses <cidrs>',
    isList: true,
    about: "CIDRs, or primary (default: kube-proxy's, then primary)",
    read: optional((value) => nodePortAddresses(list(value))),
  },
} satisfies Table;

/** Options of the proxy that translates Services; undefined: those of the cluster. */
export const traceProxyFlags = group(traceProxyTable, (values) => values);

/** The flags of `servicenet trace`. */
export const traceFlags = {
  cluster: reportedClusterFlags,
  namespace: {
    flag: '-n, --namespace <name>',
    about: 'namespace of names without one, and of --matrix',
    default: 'default',
    read: nonEmpty,
  },
  protocol: {
    flag: '--protocol <protocol>',
    about: 'protocol',
    default: 'TCP',
    ...oneOf('TCP', 'UDP', 'SCTP'),
  },
  /** In the cluster network of an `up`. */
  check: {
    flag: '--check',
    about:
      'open a real connection in the cluster network of up too, and say where it differs; then 2 also says that',
    default: false,
    read: boolean,
  },
  matrix: {
    flag: '--matrix',
    about: 'print which workloads of the namespace reach which; -o wide: which Pods',
    default: false,
    read: boolean,
  },
  port: {
    flag: '--port <number>',
    about: 'port of --matrix (default: those to which Services lead)',
    read: optional(wholeNumber(1, 65_535)),
  },
  /** The addresses of the machine `outside`. */
  outsideAddresses: {
    flag: '--outside-address <addresses>',
    about:
      'addresses of a machine outside, one of each family (default: 203.0.113.1 and 2001:db8::1, or the next that are free)',
    read: optional((value) => list(value).map(address)),
  },
  proxy: traceProxyFlags,
  output: {
    ...outputFlag,
    about: 'output format; tree, and mermaid, dot or svg as a picture of the way',
    ...oneOf('table', 'wide', 'json', 'tree', 'mermaid', 'dot', 'svg'),
  },
} satisfies Table;

type TraceFlags = Values<typeof traceFlags>;

/** The configuration of `servicenet trace`. */
export interface TraceConfig extends Omit<TraceFlags, 'matrix' | 'port'> {
  /** One connection, or all pairs of Pods within the namespace, at the ports of Services unless one is given. */
  readonly subject:
    | { readonly kind: 'connection'; readonly source: string; readonly destination: string }
    | { readonly kind: 'matrix'; readonly port: number | undefined };
}

/** Checks the arguments of `servicenet trace`. @throws {ConfigError} naming the flag and what it takes. */
export function traceConfig(given: Given, operands: readonly string[]): TraceConfig {
  const { matrix, port, ...flags } = readFlags(traceFlags, given);
  if (flags.check && flags.protocol !== 'TCP') {
    throw new ConfigError('--check opens connections by TCP alone');
  }
  if (flags.check && flags.cluster.kind !== 'kubeconfig') {
    throw new ConfigError('--check finds the cluster network by the kubeconfig of up: not --server');
  }
  if (matrix && !['table', 'wide', 'json'].includes(flags.output))
    throw new ConfigError('--matrix: -o is table, wide or json');
  const subject = matrix ? matrixSubject(flags.check, port, operands) : connectionSubject(port, operands);
  return Object.freeze({ ...flags, subject });
}

function matrixSubject(
  check: boolean,
  port: number | undefined,
  operands: readonly string[],
): TraceConfig['subject'] {
  if (check) throw new ConfigError('--check is for one connection: not --matrix');
  if (operands.length > 0) throw new ConfigError('--matrix takes no source and no destination');
  return { kind: 'matrix', port };
}

function connectionSubject(port: number | undefined, operands: readonly string[]): TraceConfig['subject'] {
  const [source, destination] = operands;
  if (source === undefined || destination === undefined || operands.length > 2) {
    throw new ConfigError('give a source and a destination, such as pod/shop/cart svc/shop/catalog:80');
  }
  if (port !== undefined) throw new ConfigError('--port is for --matrix: a destination has its own (:80)');
  return { kind: 'connection', source, destination };
}

/** The flags of `servicenet top`. */
export const topFlags = {
  cluster: reportedClusterFlags,
  namespace: {
    flag: '-n, --namespace <name>',
    about: 'show only this namespace, of what has one',
    read: optional(nonEmpty),
  },
  settings: loadBalancerFlags,
} satisfies Table;

/** The configuration of `servicenet top`. */
export type TopConfig = Values<typeof topFlags>;

/** Checks the flags of `servicenet top`. @throws {ConfigError} naming the flag and what it takes. */
export function topConfig(given: Given): TopConfig {
  return readFlags(topFlags, given);
}
