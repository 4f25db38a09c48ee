import { parseAddress, type ParsedCidr } from '../objects/address.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../objects/names.ts';
import {
  type BindAddress,
  bindAddress,
  boolean,
  cidr,
  ConfigError,
  duration,
  type Given,
  group,
  nonEmpty,
  nonEmptyList,
  oneOf,
  optional,
  readFlags,
  readValue,
  type Table,
  text,
  type Values,
  wholeNumber,
  WrongValue,
  wholeSeconds,
} from './readers.ts';
import { clusterFlags, logFlags, metricsAddress, nodePortAddresses } from './shared.ts';

/** The features of the node agent. */
const features = ['proxy', 'announce', 'policy', 'egress'] as const;

const detectLocalTable = {
  mode: {
    flag: '--detect-local-mode <mode>',
    about:
      'how Pods of this node are recognised: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
    default: 'ClusterCIDR',
    read: oneOf('ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix').read,
  },
  cidrs: {
    flag: '--cluster-cidr <cidrs>',
    about: 'ranges of Pod addresses, for ClusterCIDR',
    read: optional(text),
  },
  bridge: {
    flag: '--pod-bridge-interface <name>',
    about: 'bridge of the Pods, for BridgeInterface',
    read: optional(text),
  },
  prefix: {
    flag: '--pod-interface-name-prefix <prefix>',
    about: "how names of Pods' interfaces begin, for InterfaceNamePrefix",
    read: optional(text),
  },
} satisfies Table;

/** The detection of the node's own Pods (kube-proxy's `--detect-local-mode`). */
export type DetectLocal =
  | { readonly mode: 'ClusterCIDR'; readonly cidrs: readonly ParsedCidr[] }
  | { readonly mode: 'NodeCIDR' }
  | { readonly mode: 'BridgeInterface'; readonly interface: string }
  | { readonly mode: 'InterfaceNamePrefix'; readonly prefix: string };

/** As large as a number of connections may be (an `int` of the kernel). */
const maxConnections = 999_999_999;

/** kube-proxy's flags `--conntrack-…`; 0 leaves what the kernel has. */
const conntrackTable = {
  maxPerCore: {
    flag: '--conntrack-max-per-core <count>',
    about: 'connections that the kernel remembers, for each CPU core; 0 to leave it as it is',
    default: '32768',
    read: wholeNumber(0, maxConnections),
  },
  min: {
    flag: '--conntrack-min <count>',
    about: 'connections that the kernel remembers, at least',
    default: '131072',
    read: wholeNumber(0, maxConnections),
  },
  tcpTimeoutEstablishedSeconds: {
    flag: '--conntrack-tcp-timeout-established <duration>',
    about: 'how long an idle TCP connection is remembered; 0s to leave it as it is',
    default: '24h',
    read: wholeSeconds,
  },
  tcpTimeoutCloseWaitSeconds: {
    flag: '--conntrack-tcp-timeout-close-wait <duration>',
    about: 'how long a TCP connection in CLOSE_WAIT is remembered; 0s to leave it as it is',
    default: '1h',
    read: wholeSeconds,
  },
  tcpBeLiberal: {
    flag: '--conntrack-tcp-be-liberal',
    about: 'let packets pass that are outside the TCP window',
    default: false,
    read: boolean,
  },
  udpTimeoutSeconds: {
    flag: '--conntrack-udp-timeout <duration>',
    about: 'how long a UDP flow without answers is remembered; 0s to leave it as it is',
    default: '0s',
    read: wholeSeconds,
  },
  udpTimeoutStreamSeconds: {
    flag: '--conntrack-udp-timeout-stream <duration>',
    about: 'how long a UDP flow with answers is remembered; 0s to leave it as it is',
    default: '0s',
    read: wholeSeconds,
  },
} satisfies Table;

function within(value: number, least: number, most: number, unit: string): number {
  if (value >= least && value <= most) return value;
  throw new WrongValue(`must be from ${least}${unit} to ${most}${unit}`);
}

/** The lifetimes of announced addresses. */
const leaseTable = {
  leaseSeconds: {
    flag: '--lease-duration <duration>',
    about:
      'how long announced addresses stay without a renewal of the Lease of their agent; others take over 0.5s later',
    default: '2s',
    read: (value) => within(wholeSeconds(value), 2, 60, 's'),
  },
  renewEveryMs: {
    flag: '--lease-renew-interval <duration>',
    about: 'time between renewals of the Lease of an agent that announces',
    default: '600ms',
    read: (value) => within(duration(value), 200, 20_000, 'ms'),
  },
  graceSeconds: {
    flag: '--lease-grace <duration>',
    about:
      'how much longer addresses stay that no other node can announce; no more than --restart-grace counts',
    default: '30s',
    read: wholeSeconds,
  },
} satisfies Table;

/** How addresses of LoadBalancer Services are announced. */
const announceTable = {
  leaseNamespace: {
    flag: '--lease-namespace <name>',
    about: 'where agents that announce keep their Leases',
    default: 'servicenet-system',
    read: namespace,
  },
  onAPILoss: {
    flag: '--on-api-loss <what>',
    about: 'what becomes of announced addresses while the API server answers no agent: hold or withdraw',
    default: 'hold',
    read: oneOf('hold', 'withdraw').read,
  },
  restartGraceSeconds: {
    flag: '--restart-grace <duration>',
    about: 'how long addresses stay after an orderly end that no other node can announce',
    default: '120s',
    read: wholeSeconds,
  },
  lease: group(leaseTable, (times) => {
    if (times.renewEveryMs * 3 > times.leaseSeconds * 1000)
      throw new ConfigError('--lease-renew-interval: give a third of --lease-duration at most');
    return times;
  }),
  heartbeatPort: {
    flag: '--heartbeat-port <port>',
    about: 'UDP port of heartbeats between agents that announce',
    default: '10262',
    read: wholeNumber(1, 65_535),
  },
  on: {
    flag: '--announce-on <what>',
    about:
      'announce on a macvlan of each interface, or on the interface itself, for Wi-Fi and switches that take one MAC address a port: macvlan or interface',
    default: 'macvlan',
    read: oneOf('macvlan', 'interface').read,
  },
  arping: {
    flag: '--arping',
    about: 'announce anew by the program arping, which needs NET_RAW',
    default: false,
    read: boolean,
  },
} satisfies Table;

/** Flows for `servicenet flows`. */
const flowsTable = {
  address: {
    flag: '--flows-bind-address <address>',
    about:
      'tell the flows of this node on this address, by TLS, to whom the API server lets get /flows; 0 for none',
    default: '0',
    read: ipBindAddress,
  },
  namespace: {
    flag: '--flows-namespace <name>',
    about: 'where agents that tell flows say how they are reached, in a ConfigMap each',
    default: 'servicenet-system',
    read: namespace,
  },
} satisfies Table;

/** The flags of `servicenet node`. Those that kube-proxy has too mean the same. */
export const nodeFlags = {
  cluster: clusterFlags,
  /** As it is given; {@link nodeConfig} finds the name. */
  nodeName: {
    flag: '--node-name <name>',
    about: 'name of the Node object (default: $NODE_NAME, then the host name)',
    read: optional(nonEmpty),
  },
  features: {
    flag: '--features <list>',
    isList: true,
    about:
      'what to do on the node: proxy, forward the traffic of Services; announce, answer for the addresses of load balancers; policy, enforce NetworkPolicies; egress, with announce: let Pods leave by the addresses of EgressIPs',
    default: 'proxy',
    read: featureList,
  },
  detectLocal: group(detectLocalTable, detectLocal),
  masqueradeAll: {
    flag: '--masquerade-all',
    about: 'masquerade all traffic to cluster IPs',
    default: false,
    read: boolean,
  },
  nodePortAddresses: {
    flag: '--nodeport-addresses <cidrs>',
    isList: true,
    about: 'addresses of the node at which node ports answer: CIDRs, or primary for its InternalIPs',
    default: 'primary',
    read: (value) => nodePortAddresses(nonEmptyList(value)),
  },
  healthz: {
    flag: '--healthz-bind-address <address>',
    about: 'tell load balancers and the kubelet the health of the node on this address; 0 for none',
    default: '0.0.0.0:10256',
    read: ipBindAddress,
  },
  metrics: metricsAddress(
    '127.0.0.1:10249',
    'serve /healthz, /readyz, /metrics and /proxyMode on this address; 0 for none',
  ),
  minSyncMs: {
    flag: '--min-sync-period <duration>',
    about: 'least time between two writes into the kernel',
    default: '50ms',
    read: duration,
  },
  fullSyncMs: {
    flag: '--sync-period <duration>',
    about: 'time between full comparisons with the kernel',
    default: '1h',
    read: positiveDuration,
  },
  markMask: {
    flag: '--mark-mask <mask>',
    about: 'bits of the packet mark that the agent may use',
    default: '0x0fffc000',
    read: markMask,
  },
  besideOtherProxies: {
    flag: '--beside-other-proxies',
    about: 'start although another Service proxy is at work on the node',
    default: false,
    read: boolean,
  },
  besideOtherEngines: {
    flag: '--beside-other-engines',
    about: 'start although another policy engine is at work on the node',
    default: false,
    read: boolean,
  },
  conntrack: group(conntrackTable, (values) => values),
  announce: group(announceTable, (values) => values),
  flows: group(flowsTable, (values) => values),
  /** Another one where /proc/sys is read-only. */
  sysctlFolder: {
    flag: '--sysctl-folder <path>',
    about: 'where kernel parameters are',
    default: '/proc/sys',
    read: nonEmpty,
  },
  initOnly: {
    flag: '--init-only',
    about: 'set the kernel parameters of --conntrack-…, then exit: for a privileged init container',
    default: false,
    read: boolean,
  },
  cleanup: {
    flag: '--cleanup',
    about: 'remove all that the agents of --features wrote into the kernel, then exit',
    default: false,
    read: boolean,
  },
  ...logFlags('info'),
} satisfies Table;

/** The configuration of `servicenet node`. */
export interface NodeConfig extends Values<typeof nodeFlags> {
  readonly nodeName: string;
}

/**
 * Checks the flags of `servicenet node`.
 *
 * @param machine `NODE_NAME` names the node where `--node-name` does not; else the host name does, as in kube-proxy.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function nodeConfig(
  given: Given,
  machine: { readonly environment: Readonly<Record<string, string | undefined>>; readonly hostname: string },
): NodeConfig {
  const flags = readFlags(nodeFlags, given);
  return Object.freeze({
    ...flags,
    nodeName: nodeName(flags.nodeName ?? machine.environment['NODE_NAME'], machine.hostname),
  });
}

/** A host name that is no valid Node name passes: `--cleanup` and `--init-only` need no Node. */
function nodeName(given: string | undefined, hostname: string): string {
  const name = (given ?? hostname).trim().toLowerCase();
  const [fault] = isDNS1123Subdomain(name);
  if (given === undefined || fault === undefined) return name;
  throw new ConfigError(`--node-name: "${given}" is not the name of a Node: ${fault}`);
}

/** Unlike the port of metrics, it is opened by the node's Host, which takes addresses and no names. */
function ipBindAddress(value: unknown): BindAddress | undefined {
  const address = bindAddress(value);
  if (address === undefined || address.host === '' || parseAddress(address.host) !== undefined)
    return address;
  throw new WrongValue(`"${address.host}" is not an IP address`);
}

function namespace(value: unknown): string {
  const name = text(value);
  const [fault] = isDNS1123Label(name);
  if (fault === undefined) return name;
  throw new WrongValue(`"${name}" is not the name of a namespace: ${fault}`);
}

/** Each feature once. Egress addresses are on their nodes as announced addresses are. */
function featureList(value: unknown): readonly (typeof features)[number][] {
  const found = [...new Set(nonEmptyList(value).map(feature))];
  if (!found.includes('egress') || found.includes('announce')) return found;
  throw new WrongValue('egress needs announce, which announces its addresses');
}

function feature(name: string): (typeof features)[number] {
  const found = features.find((known) => known === name);
  if (found === undefined) throw new WrongValue(`"${name}" is not one of ${features.join(', ')}`);
  return found;
}

/** As in kube-proxy, a flag of another mode is not looked at. */
function detectLocal({ mode, cidrs, bridge, prefix }: Values<typeof detectLocalTable>): DetectLocal {
  switch (mode) {
    case 'ClusterCIDR':
      return { mode, cidrs: readValue('--cluster-cidr', clusterCidrs, cidrs) };
    case 'NodeCIDR':
      return { mode };
    case 'BridgeInterface':
      return { mode, interface: readValue('--pod-bridge-interface', interfaceName, bridge) };
    case 'InterfaceNamePrefix':
      return { mode, prefix: readValue('--pod-interface-name-prefix', interfaceName, prefix) };
  }
}

function clusterCidrs(value: string | undefined): readonly ParsedCidr[] {
  return value === undefined ? [] : nonEmptyList(value).map(cidr);
}

/** IFNAMSIZ of the kernel: 15 bytes and an end. */
const maxInterfaceName = 15;

/** The name of an interface, or its beginning. */
function interfaceName(value: unknown): string {
  const name = nonEmpty(value);
  const isName = /^[A-Za-z0-9._-]+$/.test(name) && !/^\.{1,2}$/.test(name);
  if (isName && name.length <= maxInterfaceName) return name;
  throw new WrongValue(`must be the name of an interface: up to ${maxInterfaceName} of A-Z a-z 0-9 . _ -`);
}

function positiveDuration(value: unknown): number {
  const milliseconds = duration(value);
  if (milliseconds > 0) return milliseconds;
  throw new WrongValue('must be greater than 0');
}

/** One bit is enough for Services; see `node/nftables/marks.ts`. */
function markMask(value: unknown): number {
  const given = text(value);
  const mask = /^0x[0-9a-fA-F]{1,8}$/.test(given) ? Number(given) : 0;
  if (mask > 0) return mask;
  throw new WrongValue('must be a mask in hexadecimal, such as 0x0fffc000');
}
