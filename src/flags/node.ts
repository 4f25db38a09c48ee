import { hostname } from 'node:os';
import { parseAddress, type ParsedCidr } from '../objects/address.ts';
import { clusterConfig, type ClusterConfig, type LogConfig, logConfig } from './shared.ts';
import {
  bindAddress,
  duration,
  Flags,
  wholeNumber,
  oneOf,
  optional,
  someList,
  text,
  textOf,
  yesOrNo,
  cidrOf,
} from './readers.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../objects/names.ts';
import { ConfigError, WrongValue } from './readers.ts';

/** The features of the node agent; `--features`. */
const features = ['proxy', 'announce', 'policy', 'egress'] as const;

/** The detection of the node's own Pods (kube-proxy's `--detect-local-mode`). */
export type DetectLocal =
  | { readonly mode: 'ClusterCIDR'; readonly cidrs: readonly ParsedCidr[] }
  | { readonly mode: 'NodeCIDR' }
  | { readonly mode: 'BridgeInterface'; readonly interface: string }
  | { readonly mode: 'InterfaceNamePrefix'; readonly prefix: string };

/** kube-proxy's flags `--conntrack-…`; times in seconds. 0 leaves what the kernel has. */
export interface ConntrackConfig {
  readonly maxPerCore: number;
  readonly min: number;
  readonly tcpTimeoutEstablished: number;
  readonly tcpTimeoutCloseWait: number;
  readonly tcpBeLiberal: boolean;
  readonly udpTimeout: number;
  readonly udpTimeoutStream: number;
}

/** How addresses of LoadBalancer Services are announced. */
export interface AnnounceConfig {
  /** Where the agents keep their Leases. */
  readonly leaseNamespace: string;
  readonly onAPILoss: 'hold' | 'withdraw';
  /** Seconds. */
  readonly restartGrace: number;
  readonly heartbeatPort: number;
  readonly on: 'macvlan' | 'interface';
  readonly arping: boolean;
}

/** The configuration of `servicenet node`: validated, frozen. Flags that kube-proxy has too mean the same. */
export interface NodeConfig extends LogConfig {
  readonly cluster: ClusterConfig;
  /** The name of the Node object. */
  readonly nodeName: string;
  readonly features: readonly (typeof features)[number][];
  readonly detectLocal: DetectLocal;
  readonly masqueradeAll: boolean;
  /** `primary`: the InternalIPs of the Node object. */
  readonly nodePortAddresses: 'primary' | readonly ParsedCidr[];
  /** Where the process answers `/readyz`, `/metrics` and `/proxyMode`; undefined: nowhere. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
  /** Where the node answers `/healthz` and `/livez`; undefined: nowhere. */
  readonly healthz: { readonly host: string; readonly port: number } | undefined;
  /** Milliseconds. */
  readonly minSyncPeriod: number;
  /** Milliseconds. */
  readonly syncPeriod: number;
  /** The bits of the packet mark that the agent may use. */
  readonly markMask: number;
  readonly besideOtherProxies: boolean;
  readonly besideOtherEngines: boolean;
  readonly conntrack: ConntrackConfig;
  readonly announce: AnnounceConfig;
  /** The folder of kernel parameters: another one where /proc/sys is read-only. */
  readonly sysctlFolder: string;
  /** Set the kernel parameters, and end. */
  readonly initOnly: boolean;
  /** Take away all that the agent made, and end. */
  readonly cleanup: boolean;
}

/**
 * Checks the flags of `servicenet node`.
 *
 * @param isTerminal whether standard error is one: then logs are pretty by default.
 * @param environment `NODE_NAME` names the node where `--node-name` does not; else the host name does, as in kube-proxy.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function nodeConfig(
  options: Readonly<Record<string, unknown>>,
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): NodeConfig {
  const flags = new Flags(options);
  return Object.freeze({
    cluster: clusterConfig(flags),
    nodeName: nodeName(flags, environment['NODE_NAME']),
    features: featureList(flags.read('features', someList)),
    detectLocal: detectLocal(flags),
    masqueradeAll: flags.read('masqueradeAll', yesOrNo),
    nodePortAddresses: nodePortAddresses(flags.read('nodeportAddresses', someList)),
    metrics: flags.read('metricsBindAddress', bindAddress),
    healthz: healthzAddress(flags),
    minSyncPeriod: flags.read('minSyncPeriod', duration),
    syncPeriod: syncPeriod(flags.read('syncPeriod', duration)),
    markMask: markMask(flags.read('markMask', text)),
    besideOtherProxies: flags.read('besideOtherProxies', yesOrNo),
    besideOtherEngines: flags.read('besideOtherEngines', yesOrNo),
    conntrack: conntrack(flags),
    announce: announce(flags),
    sysctlFolder: flags.read('sysctlFolder', textOf()),
    initOnly: flags.read('initOnly', yesOrNo),
    cleanup: flags.read('cleanup', yesOrNo),
    ...logConfig(flags, isTerminal),
  });
}

/** A host name that is no valid Node name passes: `--cleanup` and `--init-only` need no Node. */
function nodeName(flags: Flags, fromEnvironment: string | undefined): string {
  const given = flags.read('nodeName', optional(textOf())) ?? fromEnvironment;
  const name = (given ?? hostname()).trim().toLowerCase();
  const [fault] = isDNS1123Subdomain(name);
  if (given === undefined || fault === undefined) return name;
  throw new ConfigError(`--node-name: "${given}" is not the name of a Node: ${fault}`);
}

/** Unlike the port of metrics, it is opened by the node's Host, which takes addresses and no names. */
function healthzAddress(flags: Flags): NodeConfig['healthz'] {
  const address = flags.read('healthzBindAddress', bindAddress);
  if (address === undefined || address.host === '' || parseAddress(address.host) !== undefined)
    return address;
  throw new ConfigError(`--healthz-bind-address: "${address.host}" is not an IP address`);
}

/** As large as a number of connections may be (an `int` of the kernel). */
const maxConnections = 999_999_999;

/** A duration without a fraction of a second: in seconds. */
function seconds(value: unknown): number {
  const milliseconds = duration(value);
  if (milliseconds % 1000 === 0) return milliseconds / 1000;
  throw new WrongValue('must be whole seconds');
}

function conntrack(flags: Flags): ConntrackConfig {
  return {
    maxPerCore: flags.read('conntrackMaxPerCore', wholeNumber(0, maxConnections)),
    min: flags.read('conntrackMin', wholeNumber(0, maxConnections)),
    tcpTimeoutEstablished: flags.read('conntrackTcpTimeoutEstablished', seconds),
    tcpTimeoutCloseWait: flags.read('conntrackTcpTimeoutCloseWait', seconds),
    tcpBeLiberal: flags.read('conntrackTcpBeLiberal', yesOrNo),
    udpTimeout: flags.read('conntrackUdpTimeout', seconds),
    udpTimeoutStream: flags.read('conntrackUdpTimeoutStream', seconds),
  };
}

function namespace(value: unknown): string {
  const name = text(value);
  const [fault] = isDNS1123Label(name);
  if (fault === undefined) return name;
  throw new WrongValue(`"${name}" is not the name of a namespace: ${fault}`);
}

function announce(flags: Flags): AnnounceConfig {
  return {
    leaseNamespace: flags.read('leaseNamespace', namespace),
    onAPILoss: flags.read('onApiLoss', oneOf(['hold', 'withdraw'])),
    restartGrace: flags.read('restartGrace', seconds),
    heartbeatPort: flags.read('heartbeatPort', wholeNumber(1, 65_535)),
    on: flags.read('announceOn', oneOf(['macvlan', 'interface'])),
    arping: flags.read('arping', yesOrNo),
  };
}

/** Egress addresses are on their nodes as announced addresses are. */
function featureList(names: readonly string[]): NodeConfig['features'] {
  const found = names.map(feature);
  if (!found.includes('egress') || found.includes('announce')) return found;
  throw new ConfigError('--features: egress needs announce, which announces its addresses');
}

function feature(name: string): (typeof features)[number] {
  const found = features.find((known) => known === name);
  if (found === undefined)
    throw new ConfigError(`--features: "${name}" is not one of ${features.join(', ')}`);
  return found;
}

function detectLocal(flags: Flags): DetectLocal {
  const mode = flags.read(
    'detectLocalMode',
    oneOf(['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix']),
  );
  switch (mode) {
    case 'ClusterCIDR': {
      const given = flags.read('clusterCidr', optional(someList)) ?? [];
      return { mode, cidrs: given.map((cidr) => cidrOf('--cluster-cidr', cidr)) };
    }
    case 'NodeCIDR':
      return { mode };
    case 'BridgeInterface':
      return { mode, interface: interfaceName(flags, 'podBridgeInterface') };
    case 'InterfaceNamePrefix':
      return { mode, prefix: interfaceName(flags, 'podInterfaceNamePrefix') };
  }
}

/** IFNAMSIZ of the kernel: 15 bytes and an end. */
const maxInterfaceName = 15;

function interfaceName(flags: Flags, name: 'podBridgeInterface' | 'podInterfaceNamePrefix'): string {
  const value = flags.read(name, textOf());
  const isName = /^[A-Za-z0-9._-]+$/.test(value) && !/^\.{1,2}$/.test(value);
  if (isName && value.length <= maxInterfaceName) return value;
  const flag = name === 'podBridgeInterface' ? '--pod-bridge-interface' : '--pod-interface-name-prefix';
  throw new ConfigError(
    `${flag}: must be the name of an interface: up to ${maxInterfaceName} of A-Z a-z 0-9 . _ -`,
  );
}

function nodePortAddresses(given: readonly string[]): NodeConfig['nodePortAddresses'] {
  if (given.length === 1 && given[0] === 'primary') return 'primary';
  return given.map((cidr) => cidrOf('--nodeport-addresses', cidr));
}

function syncPeriod(milliseconds: number): number {
  if (milliseconds > 0) return milliseconds;
  throw new ConfigError('--sync-period: must be greater than 0');
}

/** One bit is enough for Services; see `node/nftables/marks.ts`. */
function markMask(value: string): number {
  const mask = /^0x[0-9a-fA-F]{1,8}$/.test(value) ? Number(value) : 0;
  if (mask > 0) return mask;
  throw new ConfigError('--mark-mask: must be a mask in hexadecimal, such as 0x0fffc000');
}
