import { Machine } from './machine.ts';
import type { Maker } from './gate.ts';
import { Sandbox } from './sandbox.ts';

/** The addresses of a machine, one of each family. */
export interface Addresses {
  readonly IPv4: string;
  readonly IPv6: string;
}

/** A machine and where it is. */
export interface Located {
  readonly machine: Machine;
  readonly addresses: Addresses;
  /** The words before a program that is to run there. */
  readonly enter: readonly string[];
}

/**
 * A cluster's network, of namespaces:
 *
 *      outside              node-1                    node-2
 *      192.0.2.2            192.0.2.11                192.0.2.12
 *      2001:db8::2          2001:db8::b               2001:db8::c
 *         │                    │                         │
 *     ════╧════════════════════╧═════════ LAN ═══════════╧════
 *
 *      Pods of node-1: 10.244.1.2, 10.244.1.3 …, fd00:244:1::2 …, routed by their node
 *
 * `outside` sends 10.96.0.0/16, 203.0.113.0/24 and fd00:96::/112 (Services) to node-1, and knows no Pods. Nodes have it as
 * their default router, but it forwards nothing.
 */
export interface TestNetwork {
  readonly outside: Located;
  /** A node or a Pod. */
  at(name: string): Located;
  /** Runs lines of sh where the LAN's switch is; its port to a machine is `lan-NAME`. @throws {Error} when one fails. */
  script(lines: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** How a node's Pods are joined: each by a link of its own (plugin ptp), or by a bridge (plugin bridge, flannel). */
type PodLinks = 'routed' | 'bridged';

/** @param nodes the names of each node's Pods. */
export async function startNetwork(
  maker: Maker,
  nodes: Readonly<Record<string, readonly string[]>>,
  links: PodLinks = 'routed',
): Promise<TestNetwork> {
  const sandbox = await Sandbox.open(maker);
  try {
    const addresses = new Map<string, Addresses>([['outside', onLan(2)]]);
    const lines = [
      'ip link set lo up',
      'ip link add lan type bridge',
      'ip link set lan up',
      ...machineOnLan('outside', onLan(2)),
    ];
    Object.entries(nodes).forEach(([node, pods], index) => {
      const number = index + 1;
      addresses.set(node, onLan(10 + number));
      lines.push(...machineOnLan(node, onLan(10 + number)), ...forwards(node));
      if (links === 'bridged') lines.push(...bridgeOf(node, number));
      pods.forEach((pod, position) => {
        const own = inPodRange(number, position + 2);
        addresses.set(pod, own);
        const podLines = links === 'bridged' ? podOnBridge : podOf;
        lines.push(...podLines(node, number, pod, own));
      });
    });
    Object.keys(nodes).forEach((node, from) => {
      Object.keys(nodes).forEach((_, to) => {
        if (from !== to) lines.push(...routeToPods(node, to + 1));
      });
    });
    const via = onLan(11);
    lines.push(
      `ip -n outside route add 10.96.0.0/16 via ${via.IPv4}`,
      `ip -n outside route add 203.0.113.0/24 via ${via.IPv4}`,
      `ip -n outside -6 route add fd00:96::/112 via ${via.IPv6}`,
    );
    await sandbox.script(lines);
    const located = new Map<string, Located>();
    await Promise.all(
      [...addresses].map(async ([name, own]) => {
        const enter = sandbox.enter(name);
        located.set(name, { machine: await Machine.start(name, enter), addresses: own, enter });
      }),
    );
    const at = (name: string): Located => {
      const found = located.get(name);
      if (found === undefined) throw new Error(`there is no machine ${name}`);
      return found;
    };
    const script = (inside: readonly string[]): Promise<void> => sandbox.script(inside);
    return { outside: at('outside'), at, script, close: () => sandbox.close() };
  } catch (error) {
    await sandbox.close();
    throw error;
  }
}

function onLan(host: number): Addresses {
  return { IPv4: `192.0.2.${host}`, IPv6: `2001:db8::${host.toString(16)}` };
}

function inPodRange(node: number, host: number): Addresses {
  return { IPv4: `10.244.${node}.${host}`, IPv6: `fd00:244:${node}::${host.toString(16)}` };
}

function machineOnLan(name: string, { IPv4, IPv6 }: Addresses): readonly string[] {
  return [
    `ip netns add ${name}`,
    `ip link add lan-${name} type veth peer name eth0 netns ${name}`,
    `ip link set lan-${name} master lan up`,
    `ip -n ${name} link set lo up`,
    `ip -n ${name} link set eth0 up`,
    `ip -n ${name} address add ${IPv4}/24 dev eth0`,
    `ip -n ${name} address add ${IPv6}/64 dev eth0 nodad`,
  ];
}

function forwards(node: string): readonly string[] {
  const set = (name: string, value: number): string => `echo ${value} > /proc/sys/net/${name}`;
  const { IPv4, IPv6 } = onLan(2);
  return [
    `ip netns exec ${node} sh -c '${set('ipv4/ip_forward', 1)}; ${set('ipv6/conf/all/forwarding', 1)}'`,
    // Tests provoke more refusals than a node sends by default.
    `ip netns exec ${node} sh -c '${set('ipv4/icmp_ratelimit', 0)}; ${set('ipv6/icmp/ratelimit', 0)}'`,
    // A node has a default route. This one ends there: `outside` forwards nothing.
    `ip -n ${node} route add default via ${IPv4}`,
    `ip -n ${node} -6 route add default via ${IPv6}`,
  ];
}

/** A Pod at a link of its own, as with the CNI plugin ptp: everything goes by its node. */
function podOf(node: string, number: number, pod: string, { IPv4, IPv6 }: Addresses): readonly string[] {
  const gateway = inPodRange(number, 1);
  return [
    `ip netns add ${pod}`,
    `ip link add eth0 netns ${pod} type veth peer name ${pod} netns ${node}`,
    `ip -n ${pod} link set lo up`,
    `ip -n ${pod} link set eth0 up`,
    `ip -n ${node} link set ${pod} up`,
    `ip -n ${node} address add ${gateway.IPv4}/32 dev ${pod}`,
    `ip -n ${node} address add ${gateway.IPv6}/128 dev ${pod} nodad`,
    `ip -n ${node} route add ${IPv4}/32 dev ${pod}`,
    `ip -n ${node} -6 route add ${IPv6}/128 dev ${pod}`,
    `ip -n ${pod} address add ${IPv4}/32 dev eth0`,
    `ip -n ${pod} address add ${IPv6}/128 dev eth0 nodad`,
    `ip -n ${pod} route add ${gateway.IPv4} dev eth0`,
    `ip -n ${pod} -6 route add ${gateway.IPv6} dev eth0`,
    `ip -n ${pod} route add default via ${gateway.IPv4}`,
    `ip -n ${pod} -6 route add default via ${gateway.IPv6}`,
  ];
}

function bridgeOf(node: string, number: number): readonly string[] {
  const gateway = inPodRange(number, 1);
  return [
    `ip -n ${node} link add cni0 type bridge`,
    `ip -n ${node} link set cni0 up`,
    `ip -n ${node} address add ${gateway.IPv4}/24 dev cni0`,
    `ip -n ${node} address add ${gateway.IPv6}/64 dev cni0 nodad`,
  ];
}

/** A Pod at its node's bridge: Pods of one node reach each other without its routing. */
function podOnBridge(
  node: string,
  number: number,
  pod: string,
  { IPv4, IPv6 }: Addresses,
): readonly string[] {
  const gateway = inPodRange(number, 1);
  return [
    `ip netns add ${pod}`,
    `ip link add eth0 netns ${pod} type veth peer name ${pod} netns ${node}`,
    `ip -n ${pod} link set lo up`,
    `ip -n ${pod} link set eth0 up`,
    `ip -n ${node} link set ${pod} master cni0 up`,
    // As flannel's configuration has it: a Pod gets back what it sends to itself by a Service.
    `ip -n ${node} link set ${pod} type bridge_slave hairpin on`,
    `ip -n ${pod} address add ${IPv4}/24 dev eth0`,
    `ip -n ${pod} address add ${IPv6}/64 dev eth0 nodad`,
    `ip -n ${pod} route add default via ${gateway.IPv4}`,
    `ip -n ${pod} -6 route add default via ${gateway.IPv6}`,
  ];
}

function routeToPods(from: string, to: number): readonly string[] {
  const next = onLan(10 + to);
  return [
    `ip -n ${from} route add 10.244.${to}.0/24 via ${next.IPv4}`,
    `ip -n ${from} -6 route add fd00:244:${to}::/64 via ${next.IPv6}`,
  ];
}
