import { AddressRange, AllocationError } from '../../allocation/address-range.ts';
import {
  readWhereaboutsRange,
  type WhereaboutsRange,
  type WrittenRange,
} from '../../allocation/whereabouts.ts';
import { addressBits, formatAddress, parseAddress, parseCidr, type IPFamily } from '../../objects/address.ts';
import { isRecord, at, listAt, recordAt, textAt, textsAt } from '../../objects/json.ts';

/** Why a Pod's networks cannot be attached: its sandbox cannot be made. The message is what multus and plugins say. */
export class AttachmentError extends Error {
  override readonly name = 'AttachmentError';
  /** Of a further Event of the Pod, that multus itself sends. */
  readonly reason: 'NoNetworkFound' | undefined;

  constructor(message: string, reason?: 'NoNetworkFound') {
    super(message);
    this.reason = reason;
  }
}

/** The source of an attachment's addresses: the `ipam` block of a configuration (CNI's IPAM plugins, whereabouts). */

/** A route of an attachment. */
export interface AttachmentRoute {
  /** A CIDR, canonical. */
  readonly destination: string;
  /** Canonical; absent: on the link. */
  readonly gateway?: string;
}

/** An address of an attachment. */
export interface AttachmentAddress {
  readonly family: IPFamily;
  /** Canonical. */
  readonly address: string;
  /** 0 to 32, or 0 to 128. */
  readonly prefixLength: number;
}

/** A range of the plugin `host-local`; of each set of them an interface gets one address. */
export interface HostLocalRange {
  readonly usable: AddressRange;
  readonly prefixLength: number;
  /** Not given. */
  readonly gateway: bigint;
}

/** The `ipam` block of a configuration. */
export type Ipam =
  /** No addresses: an interface of the link layer alone. */
  | { readonly type: 'none' }
  | {
      readonly type: 'static';
      readonly addresses: readonly AttachmentAddress[];
      readonly routes: readonly AttachmentRoute[];
    }
  | {
      readonly type: 'host-local';
      readonly sets: readonly (readonly HostLocalRange[])[];
      readonly routes: readonly AttachmentRoute[];
    }
  | {
      readonly type: 'whereabouts';
      readonly ranges: readonly WhereaboutsRange[];
      /** An address is given once in all ranges that have it. */
      readonly overlapping: boolean;
      /** "" without a name. */
      readonly networkName: string;
      readonly routes: readonly AttachmentRoute[];
    }
  /** `dhcp` and others: no addresses are given here. */
  | { readonly type: 'other'; readonly plugin: string };

/**
 * Reads the `ipam` block of a plugin's configuration.
 *
 * @param plugin the configuration of the plugin that makes the interface.
 * @throws {AttachmentError}
 */
export function readIpam(plugin: unknown): Ipam {
  const block = at(plugin, 'ipam');
  const type = textAt(block, 'type');
  if (block !== undefined && block !== null && !isRecord(block)) {
    throw new AttachmentError('failed to load netconf: json: cannot unmarshal ipam');
  }
  switch (type) {
    case '':
      return { type: 'none' };
    case 'static':
      return readStatic(block);
    case 'host-local':
      return { type: 'host-local', sets: readSets(block), routes: readRoutes(block) };
    case 'whereabouts':
      return readWhereabouts(block);
    default:
      return { type: 'other', plugin: type };
  }
}

function readStatic(block: unknown): Ipam {
  const addresses = listAt(block, 'addresses').map((item) => {
    const text = textAt(item, 'address');
    return readAddress(text, `the 'address' field is expected to be in CIDR notation, got: '${text}'`);
  });
  return { type: 'static', addresses, routes: readRoutes(block) };
}

/** @param failure the message for a text that is no CIDR. @throws {AttachmentError} */
export function readAddress(text: string, failure: string): AttachmentAddress {
  const cidr = parseCidr(text);
  const address = parseAddress(text.slice(0, Math.max(0, text.indexOf('/'))));
  if (cidr === undefined || address === undefined) throw new AttachmentError(failure);
  return { family: address.family, address: address.canonical, prefixLength: cidr.prefixLength };
}

/** `routes` of any IPAM plugin. @throws {AttachmentError} */
function readRoutes(block: unknown): readonly AttachmentRoute[] {
  return listAt(block, 'routes').map((route) => {
    const text = textAt(route, 'dst');
    const destination = parseCidr(text);
    if (destination === undefined) throw new AttachmentError(`invalid CIDR address: ${text}`);
    const via = textAt(route, 'gw');
    if (via === '') return { destination: destination.canonical };
    return { destination: destination.canonical, gateway: readGateway(via) };
  });
}

function readGateway(text: string): string {
  const gateway = parseAddress(text);
  if (gateway === undefined) throw new AttachmentError(`invalid IP address: ${text}`);
  return gateway.canonical;
}

/** `ranges`, or the members of one range beside them, which come first. */
function readSets(block: unknown): readonly (readonly HostLocalRange[])[] {
  const written = listAt(block, 'ranges').map((set) => listAt({ set }, 'set'));
  const own = textAt(block, 'subnet') === '' ? [] : [[block]];
  const sets = [...own, ...written].map((set) => set.map((range: unknown) => readHostLocalRange(range)));
  if (sets.length === 0) throw new AttachmentError('no IP ranges specified');
  for (const set of sets) {
    if (set.length === 0) throw new AttachmentError('empty range set');
    if (new Set(set.map(({ usable }) => usable.family)).size > 1) {
      throw new AttachmentError('mixed address families');
    }
  }
  return sets;
}

/** host-local's `Range.Canonicalize`. */
function readHostLocalRange(range: unknown): HostLocalRange {
  const text = textAt(range, 'subnet');
  const subnet = parseCidr(text);
  if (subnet === undefined) throw new AttachmentError(`invalid CIDR address: ${text}`);
  const { family, network, prefixLength, canonical } = subnet;
  const hostBits = addressBits(family) - prefixLength;
  if (hostBits < 2) throw new AttachmentError(`Network ${canonical} too small to allocate from`);
  if (subnet.hostBitsSet) {
    throw new AttachmentError(
      `Network has host bits set. For a subnet mask of length ${prefixLength} the network address is ${formatAddress(family, network)}`,
    );
  }
  const broadcast = network + (1n << BigInt(hostBits)) - 1n;
  const within = (member: string, otherwise: bigint): bigint => {
    const written = textAt(range, member);
    if (written === '') return otherwise;
    const address = parseAddress(written);
    if (address?.family !== family || address.value < network || address.value > broadcast) {
      throw new AttachmentError(`${member} ${written} not in network ${canonical}`);
    }
    return address.value;
  };
  const gateway = within('gateway', network + 1n);
  const first = within('rangeStart', network + 1n);
  const last = within('rangeEnd', family === 'IPv4' ? broadcast - 1n : broadcast);
  if (last < first) throw new AttachmentError(`rangeEnd of ${canonical} comes before its rangeStart`);
  return { usable: new AddressRange(family, first, last, canonical), prefixLength, gateway };
}

/** `pkg/config` LoadIPAMConfig. */
function readWhereabouts(block: unknown): Ipam {
  const written = listAt(block, 'ipRanges').map((range) => writtenRange(range));
  if (textAt(block, 'range') !== '') written.unshift(writtenRange(block));
  if (textAt(block, 'node_slice_size') !== '') {
    throw new AttachmentError('node_slice_size is set: node slices are not supported');
  }
  const gateway = textAt(block, 'gateway');
  if (gateway !== '' && parseAddress(gateway) === undefined) {
    throw new AttachmentError(`couldn't parse gateway IP: ${gateway}`);
  }
  try {
    return {
      type: 'whereabouts',
      ranges: written.map((range) => readWhereaboutsRange(range)),
      overlapping: at(block, 'enable_overlapping_ranges') !== false,
      networkName: textAt(block, 'network_name'),
      routes: readRoutes(block),
    };
  } catch (error) {
    if (!(error instanceof AllocationError)) throw error;
    throw new AttachmentError(error.message);
  }
}

function writtenRange(value: unknown): WrittenRange {
  return {
    range: textAt(value, 'range'),
    rangeStart: textAt(value, 'range_start'),
    rangeEnd: textAt(value, 'range_end'),
    exclude: textsAt(value, 'exclude'),
  };
}

/** The resolver settings of a network (`dns` of a plugin's configuration, and of its `ipam` block). */
export function readDNS(plugin: unknown): Readonly<Record<string, unknown>> {
  const own = recordAt(plugin, 'dns');
  return Object.keys(own).length > 0 ? own : recordAt(plugin, 'ipam', 'dns');
}

/** Hardware addresses of Pods' further interfaces. */

/** 48 bits; Infiniband's are longer, which no interface of a Pod has here. */
const forms =
  /^(?:[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2})$/i;

/** Reads an address in one of the forms of Go's `net.ParseMAC`. @returns lower case with colons; undefined for no address. */
export function parseMac(text: string): string | undefined {
  if (!forms.test(text)) return undefined;
  return withColons(text.toLowerCase().replaceAll(/[^0-9a-f]/g, ''));
}

/**
 * The address of an interface that nothing else chooses one for: the same whenever it is asked for, so that a restart
 * changes none. Locally administered, unicast.
 *
 * @param uid of the Pod.
 */
export function macOf(uid: string, interfaceName: string): string {
  const hash = fnv1a(`${uid}/${interfaceName}`);
  const first = ((hash >> 40n) & 0xfcn) | 0x02n;
  const value = (first << 40n) | (hash & 0xff_ffff_ffffn);
  return withColons(value.toString(16).padStart(12, '0'));
}

/** FNV-1a, folded from 64 bits to 48: its last characters change the low bits alone. */
function fnv1a(text: string): bigint {
  let hash = 0xcbf2_9ce4_8422_2325n;
  for (let i = 0; i < text.length; i++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(i))) * 0x100_0000_01b3n);
  }
  return BigInt.asUintN(48, hash ^ (hash >> 16n));
}

function withColons(digits: string): string {
  return digits.match(/../g)?.join(':') ?? '';
}
