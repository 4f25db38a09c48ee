/** A Pod's further interfaces, as lines for `ip -batch`. PURE. */
import type { PlannedInterface } from '../../network/attachments/interface-plan.ts';
import { addAddress, lanInterface, otherDefaultRouteLines } from '../lan.ts';

/**
 * In the namespace of the node: makes the interface in that of the Pod. It goes with the Pod's.
 *
 * @param pod the name of the Pod's namespace.
 * @param port of the node, for an interface on a bridge: at most 15 bytes, of this interface alone.
 */
export function interfaceLines(
  { name, mac, mtu, below }: PlannedInterface,
  pod: string,
  port: string,
): readonly string[] {
  const size = mtu === undefined ? '' : ` mtu ${mtu}`;
  if (below.kind === 'macvlan') {
    const { master = lanInterface, mode } = below;
    return [
      `link add link ${master} name ${name} address ${mac}${size} netns ${pod} type macvlan mode ${mode}`,
    ];
  }
  const { bridge, addresses } = below;
  return [
    `link add name ${port}${size} type veth peer name ${name} address ${mac}${size} netns ${pod}`,
    `link set ${port} master ${bridge} up`,
    // It may have it already.
    ...addresses.map(
      ({ family, address, prefixLength }) =>
        `address replace ${address}/${prefixLength} dev ${bridge}${family === 'IPv6' ? ' nodad' : ''}`,
    ),
  ];
}

/** In the namespace of the node, before {@link interfaceLines}: fails where there is the bridge already. */
export function bridgeLines(bridge: string): readonly string[] {
  return [`link add name ${bridge} type bridge`];
}

/**
 * In the namespace of the Pod, behind {@link interfaceLines}.
 *
 * @param ranges of the cluster, CIDRs, which stay behind `eth0`.
 * @param node its addresses.
 */
export function addressLines(
  { name, addresses, routes, defaultGateways }: PlannedInterface,
  ranges: readonly string[],
  node: readonly string[],
): readonly string[] {
  return [
    `link set ${name} up`,
    ...addresses.map(({ address, prefixLength }) => addAddress(`${address}/${prefixLength}`, name)),
    ...routes.map(({ destination, gateway }) =>
      gateway === undefined
        ? `route add ${destination} dev ${name}`
        : `route add ${destination} via ${gateway} dev ${name}`,
    ),
    ...[...defaultGateways.values()].flatMap((gateway) =>
      otherDefaultRouteLines(name, gateway, ranges, node),
    ),
  ];
}
