import type { ObjectKey } from '../../objects/meta.ts';
import { addressBits, parseCidr } from '../../objects/address.ts';

/**
 * The JSON that `nft -j` reads and prints (`libnftables-json(5)`), as far as we use it. Everything goes to nft in this
 * form: a value can be odd, but it never becomes a command.
 */

/** `ip` or `ip6`: one table for each. */
export type NftFamily = 'ip' | 'ip6';

/** Ours alone, in both families. */
export const tableName = 'servicenet';

/** A part of an element's key or value: an address, a name of the kernel's (`tcp`), a port, a mark. */
export type Atom = string | number;

/** An expression or a statement in JSON. */
export type NftExpression =
  string | number | null | readonly NftExpression[] | { readonly [key: string]: NftExpression };

export type Command = Readonly<Record<string, NftExpression>>;

/** A field of a packet. */
export const field = {
  sourceAddress: (family: NftFamily): NftExpression => ({ payload: { protocol: family, field: 'saddr' } }),
  destinationAddress: (family: NftFamily): NftExpression => ({
    payload: { protocol: family, field: 'daddr' },
  }),
  destinationPort: { payload: { protocol: 'th', field: 'dport' } },
  protocol: { meta: { key: 'l4proto' } },
  packetMark: { meta: { key: 'mark' } },
  connectionMark: { ct: { key: 'mark' } },
} as const;

export function concat(...parts: readonly NftExpression[]): NftExpression {
  return { concat: parts };
}

/** The statement `<left> == <right>`, or another operator. */
export function match(
  left: NftExpression,
  right: NftExpression,
  op: '==' | '!=' | 'in' = '==',
): NftExpression {
  return { match: { op, left, right } };
}

export function assign(key: NftExpression, value: NftExpression): NftExpression {
  return { mangle: { key, value } };
}

export function goto(target: string): NftExpression {
  return { goto: { target } };
}

export function jump(target: string): NftExpression {
  return { jump: { target } };
}

/** Jumps by the verdict map; continues without an element for the packet. */
export function verdictOf(key: NftExpression, map: string): NftExpression {
  return { vmap: { key, data: `@${map}` } };
}

export function addRule(family: NftFamily, chain: string, ...expr: readonly NftExpression[]): Command {
  return { add: { rule: { family, table: tableName, chain, expr } } };
}

export function addChain(family: NftFamily, name: string): Command {
  return { add: { chain: { family, table: tableName, name } } };
}

/** The type of a key's or value's part; `address` is the table's family's. */
type Part = 'address' | 'inet_proto' | 'inet_service' | 'mark';

interface SetDefinition {
  readonly key: readonly Part[];
  /** A map: to what. Otherwise it is a set. */
  readonly value?: readonly Part[] | 'verdict';
  /** Elements may be prefixes. */
  readonly interval?: true;
  /** Packets add elements, with a timeout each. */
  readonly timeout?: true;
}

/** Elements of a set that packets fill: beyond, clients draw anew each time. About 100 bytes each. */
const clientLimit = 1 << 20;

const serviceIP = ['address', 'inet_proto', 'inet_service'] as const;
const nodePort = ['inet_proto', 'inet_service'] as const;
const endpoint = ['address', 'inet_service'] as const;

/**
 * The sets and maps that hold what changes with Services: the rules around them never change. What is called
 * `…-ips` is keyed by the packet's destination, what is called `…-node-ports` by its protocol and port alone.
 */
export const setDefinitions = {
  /** → the chain that picks an endpoint. */
  'service-ips': { key: serviceIP, value: 'verdict' },
  'node-ports': { key: nodePort, value: 'verdict' },

  /** The same for destinations that treat sources in different ways. */
  'service-ips-from-pods': { key: serviceIP, value: 'verdict' },
  'service-ips-from-node': { key: serviceIP, value: 'verdict' },
  'service-ips-from-others': { key: serviceIP, value: 'verdict' },
  'node-ports-from-pods': { key: nodePort, value: 'verdict' },
  'node-ports-from-node': { key: nodePort, value: 'verdict' },
  'node-ports-from-others': { key: nodePort, value: 'verdict' },

  /** Destination and slot → endpoint. Slots go from 0 to one less than there are endpoints. */
  'cluster-endpoints': { key: [...serviceIP, 'mark'], value: endpoint },
  'local-endpoints': { key: [...serviceIP, 'mark'], value: endpoint },
  'node-port-cluster-endpoints': { key: [...nodePort, 'mark'], value: endpoint },
  'node-port-local-endpoints': { key: [...nodePort, 'mark'], value: endpoint },

  /**
   * Destination and slot → the mark of the endpoint (`endpoint-mark.ts`), for Service ports with session affinity: their
   * endpoints are filed under these marks above, instead of slots.
   */
  'cluster-endpoint-marks': { key: [...serviceIP, 'mark'], value: ['mark'] },
  'local-endpoint-marks': { key: [...serviceIP, 'mark'], value: ['mark'] },
  'node-port-cluster-endpoint-marks': { key: [...nodePort, 'mark'], value: ['mark'] },
  'node-port-local-endpoint-marks': { key: [...nodePort, 'mark'], value: ['mark'] },
  /** Clients and the endpoints that they keep. The kernel fills it. */
  affinity: { key: ['address', 'mark'], timeout: true },

  /** → reject or drop, for connections that no chain above has led to an endpoint. */
  'refused-service-ips': { key: serviceIP, value: 'verdict' },
  'refused-node-ports': { key: nodePort, value: 'verdict' },

  /** Destinations that only some sources may connect to, and these sources. */
  'restricted-service-ips': { key: serviceIP },
  'allowed-sources': { key: [...serviceIP, 'address'], interval: true },

  /** Every cluster IP: other ports of it are rejected. */
  'cluster-ips': { key: ['address'] },
  /** Packets to these ranges that are no Service's are dropped. */
  'service-cidrs': { key: ['address'], interval: true },
  /** The addresses of node ports; unused if they answer at every address of the node. */
  'node-port-ips': { key: ['address'] },
  /** Sources that are Pods, where they are known by address. */
  'pod-cidrs': { key: ['address'], interval: true },
  /** Local endpoints, twice: a connection from such an address to itself is masqueraded. */
  'hairpin-ips': { key: ['address', 'address'] },
} as const satisfies Record<string, SetDefinition>;

export type SetName = Exclude<keyof typeof setDefinitions, 'affinity'>;

/** The maps whose values are addresses and ports. */
export const endpointMaps = [
  'cluster-endpoints',
  'local-endpoints',
  'node-port-cluster-endpoints',
  'node-port-local-endpoints',
] as const satisfies readonly SetName[];

/** Those that we fill, in the order in which elements are added: endpoints come before the verdicts that lead to them. */
export const setNames: readonly SetName[] = [
  ...endpointMaps,
  ...(['cluster-endpoint-marks', 'local-endpoint-marks'] as const),
  ...(['node-port-cluster-endpoint-marks', 'node-port-local-endpoint-marks'] as const),
  ...(['hairpin-ips', 'allowed-sources', 'restricted-service-ips'] as const),
  ...(['pod-cidrs', 'node-port-ips', 'cluster-ips', 'service-cidrs'] as const),
  ...(['service-ips-from-pods', 'service-ips-from-node', 'service-ips-from-others', 'service-ips'] as const),
  ...(['node-ports-from-pods', 'node-ports-from-node', 'node-ports-from-others', 'node-ports'] as const),
  ...(['refused-service-ips', 'refused-node-ports'] as const),
];

/** With the one that packets fill. */
export const allSetNames: readonly string[] = [...setNames, 'affinity'];

export function isNftMap(name: SetName): boolean {
  return 'value' in setDefinitions[name];
}

/** Whether keys begin with a destination: an address, protocol and port, or a protocol and node port. */
export function ofDestinations(name: SetName): boolean {
  const { key }: SetDefinition = setDefinitions[name];
  return key.includes('inet_service');
}

/** Which part of a key is a protocol; -1: none. */
export function protocolIndex(name: SetName): number {
  const { key }: SetDefinition = setDefinitions[name];
  return key.indexOf('inet_proto');
}

/** Whether elements may be prefixes. */
export function hasRanges(name: SetName): boolean {
  const { interval }: SetDefinition = setDefinitions[name];
  return interval === true;
}

/** Whether values are chains, or verdicts. */
export function isVerdictMap(name: SetName): boolean {
  const { value }: SetDefinition = setDefinitions[name];
  return value === 'verdict';
}

/** The command that makes a set, or a map to verdicts or marks. */
export function addSet(family: NftFamily, name: keyof typeof setDefinitions): Command {
  const { key, value, interval, timeout }: SetDefinition = setDefinitions[name];
  const types = key.map((part) => typeOf(family, part));
  const common = {
    family,
    table: tableName,
    name,
    type: types.length === 1 ? (types[0] ?? '') : types,
    ...(interval === true ? { flags: ['interval'] } : {}),
    ...(timeout === true ? { flags: ['timeout'], size: clientLimit } : {}),
  };
  if (value === undefined) return { add: { set: common } };
  return { add: { map: { ...common, map: value === 'verdict' ? value : typesText(family, value) } } };
}

/**
 * Makes the table with its maps to endpoints only. This alone is text: up to nft 1.0.9, JSON cannot declare maps to
 * concatenations.
 */
export function tableText(family: NftFamily): string {
  const maps = endpointMaps.map((name) => {
    const { key, value } = setDefinitions[name];
    const type = `${typesText(family, key)} : ${typesText(family, value)}`;
    return `add map ${family} ${tableName} ${name} { type ${type}; }\n`;
  });
  return `add table ${family} ${tableName}\n${maps.join('')}`;
}

function typesText(family: NftFamily, parts: readonly Part[]): string {
  return parts.map((part) => typeOf(family, part)).join(' . ');
}

function typeOf(family: NftFamily, part: Part): string {
  if (part !== 'address') return part;
  return family === 'ip' ? 'ipv4_addr' : 'ipv6_addr';
}

/** An element of one of our sets or maps, of one family. */
export interface Element {
  readonly set: SetName;
  readonly key: readonly KeyPart[];
  /** In maps: where it leads. */
  readonly value?: ElementValue;
  /** The Service that it belongs to, if it is one's alone. */
  readonly service?: ObjectKey;
}

/** An atom, a protocol by its name, or in sets of intervals a prefix as `address/length`. */
export type KeyPart = Atom;

export type ElementValue = EndpointValue | MarkValue | { readonly goto: string } | 'drop';

/** An endpoint's address and port. */
export type EndpointValue = readonly [string, number];

/** The mark of an endpoint. */
export type MarkValue = readonly [number];

/** The key of an element in its set. */
function keyText(key: readonly KeyPart[]): string {
  return key.join(' ');
}

/** Equal for equal values. */
export function valueText(value: ElementValue | undefined): string {
  if (value === undefined || value === 'drop') return value ?? '';
  return 'goto' in value ? value.goto : value.join(' ');
}

/** A key in nft's JSON. */
export function keyExpression(key: readonly KeyPart[]): NftExpression {
  const parts = key.map(partExpression);
  return parts.length === 1 ? (parts[0] ?? null) : { concat: parts };
}

/** A chain that records a packet and drops it, where drops are recorded. */
export const droppedChain = 'dropped';

/** A value in nft's JSON. @param recordsDrops whether the table has {@link droppedChain}. */
export function valueExpression(value: ElementValue, recordsDrops = false): NftExpression {
  if (value === 'drop') return recordsDrops ? goto(droppedChain) : { drop: null };
  return 'goto' in value ? { goto: { target: value.goto } } : keyExpression(value);
}

/**
 * Protocols of Services, by the numbers of IANA: for each name of one, nft opens and reads `/etc/protocols`, which takes
 * it as long as the rest of what it does for an element.
 */
const protocolNumbers: ReadonlyMap<string, number> = new Map([
  ['tcp', 6],
  ['udp', 17],
  ['sctp', 132],
]);

const protocolNames: ReadonlyMap<number, string> = new Map(
  Array.from(protocolNumbers, ([name, number]) => [number, name]),
);

/** The name of a protocol of Services, as keys have it; undefined: it is another one. */
export function protocolName(number: number): string | undefined {
  return protocolNames.get(number);
}

function partExpression(part: KeyPart): NftExpression {
  if (typeof part === 'number') return part;
  const protocol = protocolNumbers.get(part);
  if (protocol !== undefined) return protocol;
  const slash = part.indexOf('/');
  if (slash === -1) return part;
  return { prefix: { addr: part.slice(0, slash), len: Number(part.slice(slash + 1)) } };
}

export function isEndpointValue(value: ElementValue | undefined): value is EndpointValue {
  return Array.isArray(value) && value.length === 2;
}

export function isMarkValue(value: ElementValue | undefined): value is MarkValue {
  return Array.isArray(value) && value.length === 1;
}

/** The change of one element. Maps cannot replace: that is a deletion and an addition in one transaction. */
export interface ElementChange {
  readonly kind: 'add' | 'replace' | 'delete';
  /** As it is to be, or as it was where it goes. */
  readonly element: Element;
}

/** Elements by {@link elementText}. */
export type ElementsByText = Map<string, Element>;

/** @param elements none twice. */
export function byText(elements: Iterable<Element>): ElementsByText {
  const found: ElementsByText = new Map();
  for (const element of elements) found.set(elementText(element), element);
  return found;
}

/** The changes from one state to the other. @param before is emptied. @param after no element twice. */
export function difference(before: ElementsByText, after: Iterable<Element>): readonly ElementChange[] {
  const changes: ElementChange[] = [];
  const isNew = before.size === 0;
  for (const element of after) {
    const text = isNew ? '' : elementText(element);
    const former = before.get(text);
    before.delete(text);
    if (former === undefined) changes.push({ kind: 'add', element });
    else if (valueText(former.value) !== valueText(element.value)) changes.push({ kind: 'replace', element });
  }
  for (const element of before.values()) changes.push({ kind: 'delete', element });
  before.clear();
  return changes;
}

/** The key of an element in the table. */
export function elementText({ set, key }: Element): string {
  return `${set} ${keyText(key)}`;
}

/**
 * The same addresses without ranges that lie in others: an interval set of nft refuses these. A range of one address is
 * written as the address, as nft lists it.
 *
 * @param cidrs of one family, in canonical form.
 */
export function disjointRanges(cidrs: readonly string[]): readonly string[] {
  const parsed = cidrs
    .flatMap((cidr) => parseCidr(cidr) ?? [])
    .toSorted((a, b) => a.prefixLength - b.prefixLength);
  const kept: typeof parsed = [];
  for (const range of parsed) {
    const bits = addressBits(range.family);
    const isCovered = kept.some(({ network, prefixLength }) => {
      const hostBits = BigInt(bits - prefixLength);
      return network >> hostBits === range.network >> hostBits;
    });
    if (!isCovered) kept.push(range);
  }
  return kept.map(({ canonical, family, prefixLength }) =>
    prefixLength === addressBits(family) ? canonical.slice(0, canonical.indexOf('/')) : canonical,
  );
}
