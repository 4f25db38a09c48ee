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
  texts,
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
    about: 'print who reaches whom among the workloads of the namespace, and who decides',
    default: false,
    read: boolean,
  },
  by: {
    flag: '--by <what>',
    about: 'what a row of --matrix is; -o wide is --by pod',
    default: 'workload',
    ...oneOf('workload', 'pod'),
  },
  /** YAML or JSON with NetworkPolicies that are to be made or changed; `-` is standard input. */
  files: {
    flag: '-f, --filename <files...>',
    about:
      'of --matrix: files with new or changed NetworkPolicies, - for standard input: print which cells they would change; nothing is written',
    read: texts,
  },
  deleted: {
    flag: '--delete <names...>',
    about: 'of --matrix: names of NetworkPolicies that such a plan deletes',
    read: texts,
  },
  port: {
    flag: '--port <number>',
    about: 'port of --matrix (default: those to which Services lead, and those that containers declare)',
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
export interface TraceConfig extends Omit<TraceFlags, 'matrix' | 'by' | 'port' | 'files' | 'deleted'> {
  /** One connection, or who reaches whom in the namespace. */
  readonly subject:
    { readonly kind: 'connection'; readonly source: string; readonly destination: string } | MatrixSubject;
}

interface MatrixSubject {
  readonly kind: 'matrix';
  /** Undefined: those of Services and containers. */
  readonly port: number | undefined;
  readonly by: 'workload' | 'pod';
  /** What NetworkPolicies would change; undefined: how it is. */
  readonly plan: { readonly files: readonly string[]; readonly deleted: readonly string[] } | undefined;
}

/** Checks the arguments of `servicenet trace`. @throws {ConfigError} naming the flag and what it takes. */
export function traceConfig(given: Given, operands: readonly string[]): TraceConfig {
  const { matrix, by, port, files, deleted, ...flags } = readFlags(traceFlags, given);
  if (flags.check && flags.protocol !== 'TCP') {
    throw new ConfigError('--check opens connections by TCP alone');
  }
  if (flags.check && flags.cluster.kind !== 'kubeconfig') {
    throw new ConfigError('--check finds the cluster network by the kubeconfig of up: not --server');
  }
  if (matrix && !['table', 'wide', 'json'].includes(flags.output))
    throw new ConfigError('--matrix: -o is table, wide or json');
  const isPlan = files.length + deleted.length > 0;
  if (!matrix) {
    if (isPlan) throw new ConfigError('--filename and --delete plan policies: give --matrix too');
    if (by !== 'workload') throw new ConfigError('--by is for --matrix');
    return Object.freeze({ ...flags, subject: connectionSubject(port, operands) });
  }
  if (flags.check) throw new ConfigError('--check is for one connection: not --matrix');
  if (operands.length > 0) throw new ConfigError('--matrix takes no source and no destination');
  const subject: MatrixSubject = {
    ...{ kind: 'matrix', port, by: flags.output === 'wide' ? 'pod' : by },
    plan: isPlan ? { files, deleted } : undefined,
  };
  return Object.freeze({ ...flags, subject });
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
