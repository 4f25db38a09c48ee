/** The gateways that a network's configuration names, each with the prefix length of the network that it is in. PURE. */
import { parseAddressRange } from '../../allocation/address-range.ts';
import { type IPFamily, parseAddress, parseCidr } from '../../objects/address.ts';
import { at, listAt, textAt } from '../../objects/read.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/attachments.ts';
import { egressRouterPlugin } from '../egress/egress-router.ts';
import { AttachmentError } from './errors.ts';
import type { AttachmentAddress } from './ipam.ts';
import { type InterfacePlugin, readNetworkConfig } from './network-config.ts';

/**
 * Gateways that are written in the configuration of a plugin, in the network that they are a gateway of; those of no
 * network in it are left out: nothing could reach them.
 *
 * @param written the plugin's configuration.
 */
export function writtenGateways(written: unknown): readonly AttachmentAddress[] {
  const ipam = at(written, 'ipam');
  const ranges = listAt(ipam, 'ranges').flatMap((set) => listAt({ set }, 'set'));
  const addresses = listAt(ipam, 'addresses');
  const gateways = [
    ...[ipam, ...ranges, ...addresses].map((block) => textAt(block, 'gateway')),
    ...listAt(ipam, 'routes').map((route) => textAt(route, 'gw')),
    textAt(written, 'ip', 'gateway'),
  ];
  const networks = [
    ...[ipam, ...listAt(ipam, 'ipRanges')].map((block) => networkOf(textAt(block, 'range'))),
    ...[ipam, ...ranges].map((block) => textAt(block, 'subnet')),
    ...addresses.map((block) => textAt(block, 'address')),
    ...listAt(written, 'ip', 'addresses').map(String),
  ].flatMap((text) => parseCidr(text) ?? []);
  const found = new Map<string, AttachmentAddress>();
  for (const text of gateways) {
    const gateway = parseAddress(text);
    const network = networks.find(
      ({ family, network: first, prefixLength }) =>
        gateway !== undefined &&
        family === gateway.family &&
        networkStart(family, gateway.value, prefixLength) === first,
    );
    if (gateway === undefined || network === undefined) continue;
    const { family, canonical: address } = gateway;
    found.set(address, { family, address, prefixLength: network.prefixLength });
  }
  return [...found.values()];
}

/** whereabouts' `A-B/len` is about the network of `B/len`. */
function networkOf(range: string): string {
  return range.slice(range.indexOf('-') + 1);
}

/** The first address of the network that an address is in. */
export function networkStart(family: IPFamily, value: bigint, prefixLength: number): bigint {
  const hostBits = BigInt((family === 'IPv4' ? 32 : 128) - prefixLength);
  return (value >> hostBits) << hostBits;
}

/** A gateway on a LAN of the nodes. */
export interface LanGateway extends AttachmentAddress {
  /** The node's interface; absent: that of its default route. */
  readonly master: string | undefined;
}

/**
 * The gateways of all networks of macvlan, which are on the LANs of the nodes.
 *
 * @param taken ranges whose addresses have other owners, CIDRs: gateways in them are left out.
 */
export function lanGateways(
  definitions: Iterable<NetworkAttachmentDefinition>,
  taken: readonly string[],
): readonly LanGateway[] {
  const ranges = taken.flatMap((text) => parseAddressRange(text) ?? []);
  return [...definitions].flatMap((definition) => {
    const plugin = pluginOf(definition);
    if (plugin === undefined || !['macvlan', egressRouterPlugin].includes(plugin.type)) return [];
    const master = plugin.master ?? (textAt(plugin.written, 'interfaceArgs', 'master') || undefined);
    return writtenGateways(plugin.written)
      .filter(({ family, address }) => {
        const value = parseAddress(address)?.value;
        return value !== undefined && !ranges.some((range) => range.contains(family, value));
      })
      .map((gateway) => ({ ...gateway, master }));
  });
}

/** Undefined for a network that no Pod can be attached to: these say so. */
function pluginOf(definition: NetworkAttachmentDefinition): InterfacePlugin | undefined {
  try {
    return readNetworkConfig(definition).plugin;
  } catch (error) {
    if (error instanceof AttachmentError) return undefined;
    throw error;
  }
}
