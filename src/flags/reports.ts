import { clusterConfig, type ClusterConfig, nodePortRange } from './shared.ts';
import {
  Flags,
  oneOf,
  ConfigError,
  address,
  wholeNumber,
  list,
  optional,
  textOf,
  yesOrNo,
  cidrOf,
} from './readers.ts';
import type { ParsedCidr } from '../objects/address.ts';

/** The configuration of `servicenet audit`: validated, frozen. */
export interface AuditConfig {
  readonly cluster: ClusterConfig;
  readonly nodePorts: ReturnType<typeof nodePortRange>;
  readonly output: 'table' | 'json';
}

/** Checks the flags of `servicenet audit`. @throws {ConfigError} naming the flag and what it takes. */
export function auditConfig(options: Readonly<Record<string, unknown>>): AuditConfig {
  const flags = new Flags(options);
  return Object.freeze({
    cluster: clusterConfig(flags),
    nodePorts: flags.read('serviceNodePortRange', nodePortRange),
    output: flags.read('output', oneOf(['table', 'json'])),
  });
}

/** Options of the proxy that translates Services; undefined: those of the cluster. */
export interface TraceProxyFlags {
  readonly clusterCidrs: readonly ParsedCidr[] | undefined;
  readonly masqueradeAll: boolean | undefined;
  readonly nodePortAddresses: 'primary' | readonly ParsedCidr[] | undefined;
}

/** The configuration of `servicenet trace`: validated, frozen. */
export interface TraceConfig {
  readonly cluster: ClusterConfig;
  readonly namespace: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly proxy: TraceProxyFlags;
  /** The addresses of the machine `outside`. */
  readonly outsideAddresses: readonly string[];
  /** Whether to open a real connection too, in the cluster network of an `up`. */
  readonly check: boolean;
  readonly output: 'table' | 'wide' | 'json';
  /** One connection, or all pairs of Pods within the namespace. */
  readonly subject:
    | { readonly kind: 'connection'; readonly source: string; readonly destination: string }
    | { readonly kind: 'matrix'; readonly port: number };
}

/** Checks the arguments of `servicenet trace`. @throws {ConfigError} naming the flag and what it takes. */
export function traceConfig(
  options: Readonly<Record<string, unknown>>,
  operands: readonly string[],
): TraceConfig {
  const flags = new Flags(options);
  const cluster = clusterConfig(flags);
  const protocol = flags.read('protocol', oneOf(['TCP', 'UDP', 'SCTP']));
  const check = flags.read('check', yesOrNo);
  if (check && protocol !== 'TCP') throw new ConfigError('--check opens connections by TCP alone');
  if (check && cluster.kind !== 'kubeconfig') {
    throw new ConfigError('--check finds the cluster network by the kubeconfig of up: not --server');
  }
  return Object.freeze({
    cluster,
    namespace: flags.read('namespace', textOf()),
    protocol,
    check,
    proxy: {
      clusterCidrs: flags.read('clusterCidr', optional(list))?.map((text) => cidrOf('--cluster-cidr', text)),
      masqueradeAll: flags.read('masqueradeAll', optional(yesOrNo)),
      nodePortAddresses: nodePortAddresses(flags.read('nodeportAddresses', optional(list))),
    },
    outsideAddresses: flags.read('outsideAddress', list).map((text) => address(text)),
    output: flags.read('output', oneOf(['table', 'wide', 'json'])),
    subject: subject(flags, operands),
  });
}

function subject(flags: Flags, operands: readonly string[]): TraceConfig['subject'] {
  const port = flags.read('port', optional(wholeNumber(1, 65_535)));
  if (flags.read('matrix', yesOrNo)) {
    if (flags.read('check', yesOrNo)) throw new ConfigError('--check is for one connection: not --matrix');
    if (operands.length > 0) throw new ConfigError('--matrix takes no source and no destination');
    if (port === undefined) throw new ConfigError('--matrix: give the port with --port');
    return { kind: 'matrix', port };
  }
  const [source, destination] = operands;
  if (source === undefined || destination === undefined || operands.length > 2) {
    throw new ConfigError('give a source and a destination, such as pod/shop/cart svc/shop/catalog:80');
  }
  if (port !== undefined) throw new ConfigError('--port is for --matrix: a destination has its own (:80)');
  return { kind: 'connection', source, destination };
}

function nodePortAddresses(given: readonly string[] | undefined): TraceProxyFlags['nodePortAddresses'] {
  if (given === undefined) return undefined;
  if (given.length === 1 && given[0] === 'primary') return 'primary';
  return given.map((text) => cidrOf('--nodeport-addresses', text));
}

/** The configuration of `servicenet top`: validated, frozen. */
export interface TopConfig {
  readonly cluster: ClusterConfig;
  /** Only the Services and Events of this namespace; undefined: of all. */
  readonly namespace: string | undefined;
}

/** Checks the flags of `servicenet top`. @throws {ConfigError} naming the flag and what it takes. */
export function topConfig(options: Readonly<Record<string, unknown>>): TopConfig {
  const flags = new Flags(options);
  return Object.freeze({
    cluster: clusterConfig(flags),
    namespace: flags.read('namespace', optional(textOf())),
  });
}
