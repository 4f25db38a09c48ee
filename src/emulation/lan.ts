/** The addresses of the simulated network, and the links between its machines, as lines for `ip -batch`. */
import { type IPFamily, parseAddress, parseCidr } from '../objects/address.ts';

/** One address of each family that the cluster has. */
export type Addresses = readonly string[];

/** Node n has the address with position n of its pod CIDR (`controllers/nodes/plan.ts`): all of them are in here. */
const lan = {
  IPv4: { cidr: '172.18.0.0/15', prefixLength: 15, controlPlane: '172.19.255.1', outside: '172.19.255.2' },
  IPv6: {
    cidr: 'fd00:172:18::/64',
    prefixLength: 64,
    controlPlane: 'fd00:172:18::ffff:1',
    outside: 'fd00:172:18::ffff:2',
  },
} as const;

/** The interface of every machine on the LAN. */
export const lanInterface = 'eth0';

/** The router of every Pod is its node, by the same addresses everywhere: none of the pod CIDR is lost to it. */
const podRouter = { IPv4: '169.254.1.1', IPv6: 'fe80::1' } as const;

/** The machine where the API server listens and `up` dials from. */
export function controlPlaneAddresses(families: readonly IPFamily[]): Addresses {
  return families.map((family) => lan[family].controlPlane);
}

/** The ranges of all machines. */
export function lanCidrs(families: readonly IPFamily[]): readonly string[] {
  return families.map((family) => lan[family].cidr);
}

/** A machine on the LAN that is no node. */
export function outsideAddresses(families: readonly IPFamily[]): Addresses {
  return families.map((family) => lan[family].outside);
}

/** The first of some ranges that has addresses of the LAN, which only machines can have. */
export function overlappingLan(cidrs: readonly string[]): string | undefined {
  return cidrs.find((text) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) return false;
    const own = parseCidr(lan[cidr.family].cidr);
    if (own === undefined) return false;
    const shared = Math.min(cidr.prefixLength, own.prefixLength);
    const hostBits = BigInt((cidr.family === 'IPv4' ? 32 : 128) - shared);
    return cidr.network >> hostBits === own.network >> hostBits;
  });
}

/** The switch of the LAN, with the control plane at it; for the first namespace. */
export function lanLines(families: readonly IPFamily[]): readonly string[] {
  return [
    'link set lo up',
    'link add lan type bridge',
    'link set lan up',
    ...controlPlaneAddresses(families).map((address) => addAddress(onLan(address), 'lan')),
    'netns add outside',
    ...portLines('outside', 'outside', outsideAddresses(families)),
  ];
}

/** In the namespace `outside`. It reaches the cluster by {@link wayIn}. */
export function outsideLines(families: readonly IPFamily[]): readonly string[] {
  return machineLines(outsideAddresses(families));
}

/** Plugs a namespace into the LAN: its interface is `eth0`. */
export function portLines(namespace: string, port: string, addresses: Addresses): readonly string[] {
  return [
    `link add ${port} type veth peer name eth0 netns ${namespace} address ${hardwareAddress(addresses)}`,
    `link set ${port} master lan up`,
  ];
}

/**
 * The hardware address, made from the first address: a machine that gets the address of another one is reached at
 * once by those that knew the other.
 */
function hardwareAddress([address = '']: Addresses): string {
  const value = BigInt.asUintN(32, parseAddress(address)?.value ?? 0n);
  const bytes = value.toString(16).padStart(8, '0').match(/../g) ?? [];
  // 02: chosen locally, of one machine.
  return ['02', '42', ...bytes].join(':');
}

/**
 * In the namespace of a node. What has no other route goes to the control plane, which forwards nothing: without a
 * route, connections of the node itself to cluster IPs would fail before nftables sees them. What is for no Pod of the
 * node, because it has gone, is refused at once: clients would wait for minutes.
 */
export function nodeLines(addresses: Addresses, podCIDRs: readonly string[]): readonly string[] {
  const families = addresses.map(familyOf);
  return [
    ...machineLines(addresses),
    ...controlPlaneAddresses(families).map((gateway) => `route replace default via ${gateway}`),
    ...podCIDRs.map((cidr) => `route replace unreachable ${cidr}`),
  ];
}

function machineLines(addresses: Addresses): readonly string[] {
  return [
    'link set lo up',
    'link set eth0 up',
    ...addresses.map((address) => addAddress(onLan(address), 'eth0')),
  ];
}

/** From any other machine on the LAN to the Pods of a node. */
export function podRouteLines(podCIDRs: readonly string[], node: Addresses): readonly string[] {
  return podCIDRs.flatMap((cidr) => {
    const next = ofFamily(node, familyOf(cidr));
    return next === undefined ? [] : [`route replace ${cidr} via ${next}`];
  });
}

/**
 * The routes of `outside`, or of the control plane to Services: by one node. `closed` are ranges without a route from
 * outside of the cluster.
 */
export function wayIn(node: Addresses, closed: readonly string[]): readonly string[] {
  return [
    ...node.map((address) => `route replace default via ${address}`),
    ...closed.map((cidr) => `route replace unreachable ${cidr}`),
  ];
}

/** A Pod's namespace and its link to the node, in the first namespace. */
export function podLinkLines(pod: string, node: string, link: string): readonly string[] {
  return [`netns add ${pod}`, `link add eth0 netns ${pod} type veth peer name ${link} netns ${node}`];
}

/** In the namespace of a Pod. */
export function podLines(addresses: Addresses): readonly string[] {
  return [
    'link set lo up',
    'link set eth0 up',
    ...addresses.flatMap((address) => {
      const router = podRouter[familyOf(address)];
      const toRouter = familyOf(address) === 'IPv4' ? [`route add ${router} dev eth0 scope link`] : [];
      return [
        addAddress(`${address}/${familyOf(address) === 'IPv4' ? 32 : 128}`, 'eth0'),
        ...toRouter,
        `route add default via ${router} dev eth0`,
      ];
    }),
  ];
}

/**
 * In the namespace of a Pod whose default route goes by another interface: the cluster and the node are still reached by
 * `eth0`.
 *
 * @param ranges of the cluster, CIDRs.
 */
export function otherDefaultRouteLines(
  device: string,
  gateway: string,
  ranges: readonly string[],
  node: Addresses,
): readonly string[] {
  const family = familyOf(gateway);
  const router = podRouter[family];
  const isOfCluster = ofFamily(node, family) !== undefined;
  return [
    ...[...ranges, ...node]
      .filter((destination) => familyOf(destination) === family)
      .map((destination) => `route replace ${destination} via ${router} dev eth0`),
    // An attempt that failed has taken it away already.
    ...(isOfCluster
      ? ['replace', 'delete'].map((verb) => `route ${verb} default via ${router} dev eth0`)
      : []),
    `route replace ${gateway} dev ${device}`,
    `route add default via ${gateway} dev ${device}`,
  ];
}

/** In the namespace of the Pod's node. Pods see the node by its own address. */
export function nodeSideLines(link: string, pod: Addresses, node: Addresses): readonly string[] {
  return [
    `link set ${link} up`,
    ...pod.flatMap((address) => {
      const family = familyOf(address);
      const source = ofFamily(node, family);
      return [
        // Of scope link, so that it is never chosen as the source of other packets.
        `${addAddress(family === 'IPv4' ? `${podRouter.IPv4}/32` : `${podRouter.IPv6}/64`, link)} scope link`,
        `route replace ${address} dev ${link}${source === undefined ? '' : ` src ${source}`}`,
      ];
    }),
  ];
}

function onLan(address: string): string {
  return `${address}/${lan[familyOf(address)].prefixLength}`;
}

/** Duplicates are impossible here: an IPv6 address can be used at once. */
export function addAddress(address: string, device: string): string {
  return `address add ${address} dev ${device}${familyOf(address) === 'IPv6' ? ' nodad' : ''}`;
}

function ofFamily(addresses: Addresses, family: IPFamily): string | undefined {
  return addresses.find((address) => familyOf(address) === family);
}

function familyOf(text: string): IPFamily {
  return (parseAddress(text) ?? parseCidr(text))?.family ?? 'IPv4';
}
