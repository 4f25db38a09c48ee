import { type AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { maxRangeSize, readPool } from '../../controllers/load-balancer/pools.ts';
import { parseCidr, type ParsedAddress, parseStrictAddress } from '../../objects/address.ts';
import { isRecord, isStringList, isStringMap } from '../../objects/json.ts';
import { compileLabelSelector } from '../../objects/selectors/labels.ts';
import type { LabelSelector } from '../../objects/meta.ts';
import { errorMessage } from '../../objects/status.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { AddressPool, AddressPoolSpec, BGPPeer, BGPPeerSpec } from '../../objects/types/servicenet.ts';
import { parseDuration } from '../../objects/formats/time.ts';

/** Reads the values that the configurations of other load balancers have in common. */

/** Most entries of `spec.addresses` and `spec.exclude` of an AddressPool (deploy/crds). */
export const maxEntries = 256;

/**
 * CIDRs, ranges and single addresses as entries of an AddressPool. The host bits of CIDRs are cleared, as other load
 * balancers do. Entries that an AddressPool cannot have are left out, with a note.
 *
 * @param owner the name of the pool, for the notes.
 */
export function importedAddresses(owner: string, texts: readonly string[], notes: string[]): string[] {
  const taken: string[] = [];
  for (const text of texts) {
    const range = readForeignRange(text.trim());
    if (typeof range === 'string') notes.push(`${owner}: ${JSON.stringify(text)} not imported: ${range}`);
    else if (taken.length === maxEntries) {
      notes.push(`${owner}: ${range.text} not imported: a pool has at most ${maxEntries} entries`);
    } else taken.push(range.text);
  }
  return taken;
}

/** The range, or why it is not imported. */
function readForeignRange(text: string): AddressRange | string {
  const range = text.includes('/')
    ? networkOf(text)
    : parseAddressRange(text.includes('-') ? text : `${text}-${text}`);
  if (range === undefined)
    return 'it is neither an address, a CIDR nor a range that ends behind its beginning';
  if (range.size === 1n && range.first === 0n) {
    return 'it asks DHCP for addresses, which has no counterpart';
  }
  if (range.size > maxRangeSize[range.family]) {
    return `a pool's ${range.family} range is at most a /${range.family === 'IPv4' ? 8 : 64}`;
  }
  return range;
}

/** A CIDR with its host bits cleared. */
function networkOf(text: string): AddressRange | undefined {
  const cidr = parseCidr(text);
  if (cidr === undefined || cidr.leadingZeros || cidr.ipv4Mapped) return undefined;
  return parseAddressRange(cidr.canonical);
}

/** The objects in a list; other values are left out. */
export function objectsAt(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter((item) => isRecord(item)) : [];
}

/** True for a meta/v1 LabelSelector. */
function isLabelSelector(value: unknown): value is LabelSelector {
  if (!isRecord(value)) return false;
  const { matchLabels, matchExpressions } = value;
  if (matchLabels !== undefined && !isStringMap(matchLabels)) return false;
  if (matchExpressions === undefined) return true;
  return (
    Array.isArray(matchExpressions) &&
    matchExpressions.every(
      (item) =>
        isRecord(item) &&
        typeof item['key'] === 'string' &&
        typeof item['operator'] === 'string' &&
        (item['values'] === undefined || isStringList(item['values'])),
    )
  );
}

/** The LabelSelectors in a list, see {@link readSelector}. */
export function selectorsAt(value: unknown): LabelSelector[] {
  return Array.isArray(value) ? value.map((item: unknown) => readSelector(item)) : [];
}

/** The LabelSelector; an invalid one if the value is none, so that its pool is not imported. */
export function readSelector(value: unknown): LabelSelector {
  if (!isLabelSelector(value))
    return { matchExpressions: [{ key: '', operator: 'a selector that cannot be read' }] };
  const { matchLabels, matchExpressions } = value;
  return {
    ...(matchLabels === undefined ? {} : { matchLabels }),
    ...(matchExpressions === undefined
      ? {}
      : {
          matchExpressions: matchExpressions.map(({ key, operator, values }) => ({
            key,
            operator,
            ...(values === undefined ? {} : { values }),
          })),
        }),
  };
}

/** Why the API would refuse a selector; undefined: it would not. */
export function selectorProblem(selector: LabelSelector): string | undefined {
  try {
    compileLabelSelector(selector);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

/** Adds a note about the fields of an object that are not imported. */
export function noteOthers(
  name: string,
  object: Readonly<Record<string, unknown>>,
  known: readonly string[],
  notes: string[],
): void {
  const others = Object.keys(object).filter((field) => !known.includes(field));
  if (others.length > 0) notes.push(`${name}: ${others.join(', ')} not imported`);
}

/** The result of an import. */
export interface Imported {
  readonly pools: readonly AddressPool[];
  readonly peers: readonly BGPPeer[];
  /** Notes for the user about what was not imported or was changed: sentences. */
  readonly notes: readonly string[];
}

/** The label with the name of a namespace, which every namespace has. */
const namespaceNameLabel = 'kubernetes.io/metadata.name';

/** A pool of another load balancer: its name there, and its spec as an AddressPool. */
export interface ForeignPool {
  readonly name: string;
  readonly spec: AddressPoolSpec;
}

function poolObject(name: string, spec: AddressPoolSpec): AddressPool {
  return { apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool', metadata: { name }, spec };
}

/**
 * AddressPools with valid, unique names. Pools without an address are left out with a note, and so are pools with an
 * invalid selector, because without it they would serve all Services.
 */
export function asPools(pools: readonly ForeignPool[], notes: string[]): AddressPool[] {
  const names = new Set<string>();
  return pools.flatMap(({ name, spec }) => {
    if ((spec.addresses ?? []).length === 0) {
      notes.push(`${name}: not imported: it has no addresses that a pool can have`);
      return [];
    }
    const [problem] = [spec.namespaceSelector, spec.serviceSelector].flatMap(
      (selector) => (selector === undefined ? undefined : selectorProblem(selector)) ?? [],
    );
    if (problem !== undefined) {
      notes.push(`${name}: not imported: ${problem}`);
      return [];
    }
    const taken = freeName(name, names);
    names.add(taken);
    if (taken !== name) notes.push(`${JSON.stringify(name)} was renamed to ${taken}`);
    return [poolObject(taken, spec)];
  });
}

function withoutOuterDashes(label: string): string {
  const words = label.split('-');
  const first = words.findIndex((word) => word !== '');
  return words.slice(first, words.findLastIndex((word) => word !== '') + 1).join('-');
}

/** Most characters of a name before a number is appended. */
const maxNameLength = 253 - 8;

/** The name as a DNS subdomain (RFC 1123) that is not in `names`; what has no character of one is called `otherwise`. */
function freeName(name: string, names: ReadonlySet<string>, otherwise = 'pool'): string {
  const labels = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .slice(0, maxNameLength)
    .split('.')
    .map((label) => withoutOuterDashes(label))
    .filter((label) => label !== '');
  const base = labels.length === 0 ? otherwise : labels.join('.');
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? base : `${base}-${number}`;
    if (!names.has(candidate)) return candidate;
  }
}

/** Selects namespaces by their names. */
export function namespacesNamed(names: readonly string[]): LabelSelector {
  return { matchExpressions: [{ key: namespaceNameLabel, operator: 'In', values: [...names] }] };
}

/**
 * Adds pools without autoAssign for the addresses of Services that no other pool contains, so that they are kept. Notes
 * the classes of Services that the controller has to serve.
 *
 * @param presentPools the AddressPools of the cluster.
 */
export function keepingAssigned(
  { pools, peers, notes }: Imported,
  services: readonly Service[],
  presentPools: readonly AddressPool[],
): Imported {
  const read = [...pools, ...presentPools].map((object) => readPool(object).pool);
  const within = (ranges: readonly AddressRange[], { family, value }: ParsedAddress): boolean =>
    ranges.some((range) => range.contains(family, value));
  const isPooled = (address: ParsedAddress): boolean =>
    read.some(({ ranges, excluded }) => within(ranges, address) && !within(excluded, address));
  const outside = new Map<string, ParsedAddress>();
  const classes = new Map<string, number>(); // class -> its Services
  const namespacesOf = new Map<string, Set<string>>(); // address -> the namespaces of its Services
  for (const { metadata, spec, status } of services) {
    if (spec.type !== 'LoadBalancer') continue;
    const { loadBalancerClass = '' } = spec;
    if (loadBalancerClass !== '') classes.set(loadBalancerClass, (classes.get(loadBalancerClass) ?? 0) + 1);
    for (const { ip } of status.loadBalancer?.ingress ?? []) {
      const parsed = ip === undefined ? undefined : parseStrictAddress(ip);
      if (parsed === undefined) continue;
      if (!isPooled(parsed)) outside.set(parsed.canonical, parsed);
      const sharing = namespacesOf.get(parsed.canonical) ?? new Set<string>();
      namespacesOf.set(parsed.canonical, sharing.add(metadata.namespace ?? ''));
    }
  }
  const shared = [...namespacesOf].filter(([, names]) => names.size > 1);
  const moreNotes = [
    ...[...classes].map(
      ([name, count]) =>
        `${count === 1 ? '1 Service has' : `${count} Services have`} the loadBalancerClass ${name}: run the controller with --lb-class=${name} to serve them`,
    ),
    ...shared.map(([address, names]) => {
      const list = [...names].sort().join(', ');
      return `${address} is shared by Services of the namespaces ${list}: annotate them with servicenet.dev/sharing-namespaces, which names the other namespaces, or all but one lose it`;
    }),
  ];
  if (outside.size === 0) return { pools, peers, notes: [...notes, ...moreNotes] };
  const addresses = [...outside.values()]
    .map(({ canonical, family }) => `${canonical}/${family === 'IPv4' ? 32 : 128}`)
    .sort();
  const count = `${outside.size} ${outside.size === 1 ? 'address' : 'addresses'}`;
  const keeping: ForeignPool[] = [];
  for (let first = 0; first < addresses.length; first += maxEntries) {
    const some = addresses.slice(first, first + maxEntries);
    const number = keeping.length === 0 ? '' : `-${keeping.length + 1}`;
    keeping.push({ name: `imported-addresses${number}`, spec: { addresses: some, autoAssign: false } });
  }
  const present = new Set([...presentPools, ...pools].map(({ metadata }) => metadata.name ?? ''));
  const kept = keeping.map(({ name, spec }) => poolObject(freeName(name, present), spec));
  const names = kept.map(({ metadata }) => metadata.name).join(', ');
  return {
    pools: [...pools, ...kept],
    peers,
    notes: [
      ...notes,
      `${count} in use would be given by no pool; ${names} ${kept.length === 1 ? 'keeps' : 'keep'} them`,
      ...moreNotes,
    ],
  };
}

/** A router in the configuration of another load balancer; values are not checked. */
export interface ForeignPeer {
  readonly name: string;
  readonly myASN: unknown;
  readonly peerASN: unknown;
  readonly peerAddress: unknown;
  readonly peerPort?: unknown;
  readonly sourceAddress?: unknown;
  readonly routerID?: unknown;
  /** A duration in Go's syntax. */
  readonly holdTime?: unknown;
  readonly nodeSelector?: LabelSelector | undefined;
  readonly gracefulRestart?: unknown;
}

/** BGPPeers, and the names that they have got. */
export interface ImportedPeers {
  readonly peers: readonly BGPPeer[];
  /** By their foreign names, of those that were imported. */
  readonly names: ReadonlyMap<string, string>;
}

/** BGPPeers with valid, unique names; what the API would refuse is left out with a note. */
export function asPeers(foreign: readonly ForeignPeer[], notes: string[]): ImportedPeers {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const peers = foreign.flatMap((peer): BGPPeer[] => {
    const spec = specOf(peer, notes);
    if (typeof spec === 'string') {
      notes.push(`${peer.name}: not imported: ${spec}`);
      return [];
    }
    const name = freeName(peer.name, taken, 'peer');
    taken.add(name);
    names.set(peer.name, name);
    if (name !== peer.name) notes.push(`${JSON.stringify(peer.name)} was renamed to ${name}`);
    return [{ apiVersion: 'servicenet.dev/v1alpha1', kind: 'BGPPeer', metadata: { name }, spec }];
  });
  return { peers, names };
}

/** Text: why it cannot be a BGPPeer. */
function specOf(peer: ForeignPeer, notes: string[]): BGPPeerSpec | string {
  const { name, myASN, peerASN, nodeSelector, gracefulRestart } = peer;
  if (!isASN(myASN) || !isASN(peerASN)) return 'it has no AS numbers that a peer can have';
  const address = addressOf(peer.peerAddress);
  if (address === undefined) return 'its address is none of another machine';
  if (nodeSelector !== undefined) {
    const problem = selectorProblem(nodeSelector);
    if (problem !== undefined) return problem;
  }
  const source = addressOf(peer.sourceAddress);
  if (isGiven(peer.sourceAddress) && source?.family !== address.family)
    return 'its source address is none of the family of its address';
  const routerID = addressOf(peer.routerID);
  if (isGiven(peer.routerID) && routerID?.family !== 'IPv4')
    notes.push(`${name}: the router ID ${JSON.stringify(peer.routerID)} not imported: it is no IPv4 address`);
  const port = peer.peerPort;
  return {
    ...{ myASN, peerASN, peerAddress: address.canonical },
    ...(typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 0xffff && port !== 179
      ? { peerPort: port }
      : {}),
    ...(source === undefined ? {} : { sourceAddress: source.canonical }),
    ...(routerID?.family === 'IPv4' ? { routerID: routerID.canonical } : {}),
    ...holdTimeOf(peer, notes),
    ...(typeof gracefulRestart === 'boolean' ? { gracefulRestart } : {}),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
  };
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** 23456 and 65535 are reserved (RFC 6793, RFC 7300). */
function isASN(value: unknown): value is number {
  return (
    typeof value === 'number' &&
    Number.isInteger(value) &&
    value >= 1 &&
    value <= 0xffff_ffff &&
    value !== 23456 &&
    value !== 65535
  );
}

/** An address of a machine on a network; link-local ones would need an interface. */
function addressOf(value: unknown): ReturnType<typeof parseStrictAddress> {
  const parsed = typeof value === 'string' ? parseStrictAddress(value) : undefined;
  if (parsed === undefined || parsed.value === 0n) return undefined;
  const { family, value: bits } = parsed;
  const isLoopback = family === 'IPv4' ? bits >> 24n === 127n : bits === 1n;
  const isLinkLocal = family === 'IPv4' ? bits >> 16n === 0xa9fen : bits >> 118n === 0x3fan;
  return isLoopback || isLinkLocal ? undefined : parsed;
}

function holdTimeOf({ name, holdTime }: ForeignPeer, notes: string[]): Pick<BGPPeerSpec, 'holdTime'> {
  if (!isGiven(holdTime)) return {};
  const ms = typeof holdTime === 'string' ? parseDuration(holdTime) : undefined;
  const seconds = ms === undefined ? 0 : Math.round(ms / 1000);
  if (seconds >= 3 && seconds <= 0xffff) return { holdTime: `${seconds}s` };
  notes.push(`${name}: the hold time ${JSON.stringify(holdTime)} not imported: it is not from 3s to 65535s`);
  return {};
}
