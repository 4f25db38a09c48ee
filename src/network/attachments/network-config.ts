import { isRecord, type JsonRecord, parseRecord, at, listAt, numberAt, textAt } from '../../objects/json.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/openshift.ts';
import { egressRouterPlugin, readEgressRouter } from '../egress/egress-router.ts';
import { AttachmentError, type Ipam, readDNS, readIpam, type AttachmentAddress } from './ipam.ts';
import { parseAddressRange } from '../../allocation/address-range.ts';
import { type IPFamily, parseAddress, parseCidr } from '../../objects/address.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import { type AnnouncedPool, isPooled, poolOf } from '../announcing/assigned-addresses.ts';

/** The configuration of a network: CNI's JSON, of one plugin or of a list (multus `pkg/types/conf.go`, CNI's specification). */

/** The plugin that makes the interface: that of a configuration of one, the first of a list. */
export interface InterfacePlugin {
  /** `macvlan`, `bridge` … */
  readonly type: string;
  /** The node's interface below; absent: that of the node's default route. */
  readonly master?: string;
  /** Of `bridge`: the node's bridge. */
  readonly bridge?: string;
  /** Of `macvlan`: `bridge`, `private`, `vepa` or `passthru`; of `ipvlan`: `l2` … */
  readonly mode?: string;
  /** Of `bridge` and `vlan`: 1 to 4094. */
  readonly vlan?: number;
  readonly mtu?: number;
  /** Of `bridge`: the bridge gets the gateway's address. */
  readonly isGateway: boolean;
  /** Of `bridge`: the Pod's default route goes over the bridge, which is the gateway. */
  readonly isDefaultGateway: boolean;
  readonly ipam: Ipam;
  readonly dns: JsonRecord;
  /** All members, for plugins that have others. */
  readonly written: JsonRecord;
}

/** A network that can be attached. */
export interface NetworkConfig {
  /** Its own, else that of the NetworkAttachmentDefinition. */
  readonly name: string;
  readonly plugin: InterfacePlugin;
  /** Types of the plugins behind it: `tuning`, `portmap`, … */
  readonly chained: readonly string[];
}

/** The folder in which multus finds the configuration of a NetworkAttachmentDefinition without one. */
const confDir = '/etc/cni/multus/net.d';

/**
 * Reads a network's configuration.
 *
 * @throws {AttachmentError} for one that multus or the plugin would fail with.
 */
export function readNetworkConfig({ metadata, spec }: NetworkAttachmentDefinition): NetworkConfig {
  const text = spec?.config ?? '';
  // There are no files of nodes here.
  if (text === '') {
    throw new AttachmentError(`GetCNIConfig: err in GetCNIConfigFromFile: No networks found in ${confDir}`);
  }
  const config = parseRecord(text);
  if (config === undefined) {
    throw new AttachmentError(
      'GetCNIConfig: err in getCNIConfigFromSpec: failed to unmarshal Spec.Config: invalid JSON',
    );
  }
  const own = textAt(config, 'name');
  const name = own === '' ? (metadata.name ?? '') : own;
  const isList = textAt(config, 'type') === '';
  const plugins = isList ? listAt(config, 'plugins') : [config];
  const [first, ...rest] = plugins;
  if (first === undefined) {
    throw new AttachmentError(
      `LoadDelegateNetConf: delegate must have the 'type' or 'plugin' field, or plugins that have it`,
    );
  }
  return { name, plugin: readPlugin(first), chained: rest.map((plugin) => textAt(plugin, 'type')) };
}

function readPlugin(written: unknown): InterfacePlugin {
  const type = textAt(written, 'type');
  if (!isRecord(written) || type === '') {
    throw new AttachmentError(`LoadDelegateNetConfList: a plugin delegate must have the 'type' field`);
  }
  const mtu = numberAt(written, 'mtu');
  const vlan = numberAt(written, 'vlan') || numberAt(written, 'vlanId');
  const text = (member: 'master' | 'bridge' | 'mode'): object => {
    const found = textAt(written, member);
    return found === '' ? {} : { [member]: found };
  };
  return {
    type,
    ...text('master'),
    ...text('bridge'),
    ...text('mode'),
    ...(vlan === 0 ? {} : { vlan }),
    ...(mtu === 0 ? {} : { mtu }),
    isDefaultGateway: at(written, 'isDefaultGateway') === true,
    isGateway: at(written, 'isGateway') === true || at(written, 'isDefaultGateway') === true,
    ipam: type === egressRouterPlugin ? routerAddresses(written) : readIpam(written),
    dns: readDNS(written),
    written,
  };
}

/** The plugin has its address beside `ipam`, and the Pod's default route. */
function routerAddresses(written: JsonRecord): Ipam {
  const router = readEgressRouter(written);
  if ('problem' in router) throw new AttachmentError(router.problem);
  const { family, address, prefixLength, gateway } = router;
  const destination = family === 'IPv4' ? '0.0.0.0/0' : '::/0';
  return {
    type: 'static',
    addresses: [{ family, address, prefixLength }],
    routes: [{ destination, gateway }],
  };
}

/** The gateways that a network's configuration names, each with the prefix length of the network that it is in. PURE. */

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
 * The gateways of all networks of macvlan, which are on the LANs of the nodes, without those that a Pod can be given there
 * (whereabouts gives a range's gateway away unless `exclude` has it): an address has one owner.
 *
 * @param taken ranges whose addresses have other owners, CIDRs: gateways in them are left out.
 */
export function lanGateways(
  definitions: Iterable<NetworkAttachmentDefinition>,
  taken: readonly string[],
): readonly LanGateway[] {
  const ranges = taken.flatMap((text) => parseAddressRange(text) ?? []);
  const networks = [...definitions].flatMap((definition) => {
    const plugin = pluginOf(definition);
    if (plugin === undefined || !['macvlan', egressRouterPlugin].includes(plugin.type)) return [];
    return [
      { plugin, master: plugin.master ?? (textAt(plugin.written, 'interfaceArgs', 'master') || undefined) },
    ];
  });
  return networks.flatMap(({ plugin, master }) =>
    writtenGateways(plugin.written)
      .filter(({ family, address }) => {
        const value = parseAddress(address)?.value;
        return (
          value !== undefined &&
          !ranges.some((range) => range.contains(family, value)) &&
          !networks.some((other) => gives(other.plugin.ipam, family, value))
        );
      })
      .map((gateway) => ({ ...gateway, master })),
  );
}

/**
 * What has the address of a gateway, or may get it: a Service or a pool, in words; undefined: nothing.
 *
 * @param pools they may give what they have to a Service at any time.
 */
export function ownerAmongServices(
  { address }: AttachmentAddress,
  pools: readonly AnnouncedPool[],
  services: Iterable<Service>,
): string | undefined {
  const parsed = parseAddress(address);
  if (parsed === undefined) return undefined;
  for (const service of services) {
    const { metadata, spec, status } = service;
    const has = [
      ...(status.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip),
      ...(spec.externalIPs ?? []),
    ];
    if (has.some((each) => parseAddress(each)?.canonical === parsed.canonical)) {
      return `the Service ${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
    }
  }
  return isPooled(parsed, pools) ? `the AddressPool ${poolOf(parsed, pools)?.name ?? ''}` : undefined;
}

/** Whether a Pod can be given an address. host-local never gives a gateway. */
function gives(ipam: Ipam, family: IPFamily, value: bigint): boolean {
  switch (ipam.type) {
    case 'static':
      return ipam.addresses.some(
        (each) => parseAddress(each.address)?.value === value && each.family === family,
      );
    case 'whereabouts':
      return ipam.ranges.some(
        ({ usable, excludes }) =>
          usable.contains(family, value) && !excludes.some((exclude) => exclude.contains(family, value)),
      );
    default:
      return false;
  }
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
