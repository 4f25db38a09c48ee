import { parseAddress, type IPFamily } from '../../objects/address.ts';
import {
  droppedChain,
  type Element,
  type ElementValue,
  type KeyPart,
  protocolName,
  protocolIndex,
  type SetName,
  setNames,
  type ElementsByText,
  elementText,
  type EndpointValue,
  isEndpointValue,
  isMarkValue,
  valueText,
  isVerdictMap,
  ofDestinations,
} from './elements.ts';
import {
  type Destination,
  destinationKey,
  type DestinationOwner,
  type ForwardingPlan,
  type PlannedEndpoint,
  type Protocol,
  type ServicePortPlan,
  type TrafficPolicy,
} from '../../network/forwarding/forwarding-plan.ts';
import { protocolOf } from '../../network/forwarding/endpoints.ts';
import type { UdpDestination } from '../../network/forwarding/stale-flows.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { endpointMarks, endpointMarksMap, endpointsMap, addVerdicts, policiesOf } from './port-elements.ts';

/**
 * Reads the elements in what `nft -j list set` and `list map` print, piece by piece: as a whole, the listing of 10,000
 * Services would take 100 MiB, and 150 ms to parse.
 */
export class ListingReader {
  readonly #each: (element: Element) => void;
  /** The unread text: from the start of an element on, or from somewhere between two arrays of elements. */
  #rest = '';
  /** The set whose array of elements this is in; undefined: none. */
  #set: SetName | undefined;
  #named: string | undefined;

  /** @param each is called for every element of our sets. */
  constructor(each: (element: Element) => void) {
    this.#each = each;
  }

  /**
   * Takes the next piece of the text.
   *
   * @throws {Error} for elements of a kind that we never write.
   */
  read(piece: string): void {
    this.#rest += piece;
    for (;;) {
      const isDone = this.#set === undefined ? this.#skipToElements() : this.#readElements(this.#set);
      if (isDone) return;
    }
  }

  /** @returns true: the text has ended before any elements. */
  #skipToElements(): boolean {
    const text = this.#rest;
    for (const { 0: found, 1: name, index } of text.matchAll(/"name": "([^"]*)"|"elem": \[/g)) {
      if (name === undefined) this.#set = setNames.find((set) => set === this.#named);
      else this.#named = name;
      if (this.#set === undefined) continue;
      this.#rest = text.slice(index + found.length);
      return false;
    }
    this.#rest = text.slice(-maxMarkLength);
    return true;
  }

  /** @returns true: the text has ended before the elements. */
  #readElements(set: SetName): boolean {
    const text = this.#rest;
    let start = 0;
    let depth = 0;
    let inText = false;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === quote) inText = !inText; // Addresses and names of chains have no quotes in them.
      if (inText) continue;
      if (code === openBrace || code === openBracket) depth++;
      else if (code === closeBrace || code === closeBracket) depth--;
      if ((code === comma && depth === 0) || depth < 0) {
        if (i > start) this.#each(toElement(set, JSON.parse(text.slice(start, i))));
        start = i + 1;
      }
      if (depth < 0) {
        this.#rest = text.slice(start);
        this.#set = undefined;
        this.#named = undefined;
        return false;
      }
    }
    this.#rest = text.slice(start);
    return true;
  }
}

/** Characters: longer than a name of ours with what is around it. */
const maxMarkLength = 100;

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** An element as nft writes it: a key, or `[key, value]`. */
function toElement(set: SetName, json: unknown): Element {
  const pair: unknown[] | undefined = Array.isArray(json) ? json : undefined;
  if (pair === undefined) return { set, key: toKey(set, json) };
  return { set, key: toKey(set, pair[0]), value: toValue(pair[1]) };
}

function toKey(set: SetName, json: unknown): readonly KeyPart[] {
  const protocolAt = protocolIndex(set);
  return toParts(json).map((part, index) =>
    index === protocolAt && typeof part === 'number' ? (protocolName(part) ?? part) : part,
  );
}

function toParts(json: unknown): readonly KeyPart[] {
  const parts: unknown = member(json, 'concat');
  return Array.isArray(parts) ? parts.map(toPart) : [toPart(json)];
}

function toPart(json: unknown): KeyPart {
  if (typeof json === 'number') return json;
  if (typeof json === 'string') return canonical(json);
  const prefix = member(json, 'prefix');
  const address = member(prefix, 'addr');
  const length = member(prefix, 'len');
  if (typeof address === 'string' && typeof length === 'number') return `${canonical(address)}/${length}`;
  throw unknownElement(json);
}

/** The C library shortens IPv6 addresses in another way than RFC 5952 here and there. */
function canonical(text: string): string {
  return text.includes(':') ? (parseAddress(text)?.canonical ?? text) : text;
}

function toValue(json: unknown): ElementValue {
  if (member(json, 'drop') === null) return 'drop';
  const target = member(member(json, 'goto'), 'target');
  if (target === droppedChain) return 'drop';
  if (typeof target === 'string') return { goto: target };
  const [first, second] = toParts(json);
  if (typeof first === 'string' && typeof second === 'number') return [first, second];
  if (typeof first === 'number' && second === undefined) return [first];
  throw unknownElement(json);
}

function member(json: unknown, name: string): unknown {
  return typeof json === 'object' && json !== null ? Reflect.get(json, name) : undefined;
}

function unknownElement(json: unknown): Error {
  return new Error(`an element that is not ours: ${JSON.stringify(json).slice(0, 200)}`);
}

/**
 * The contents of the kernel, compared with a plan while they are listed. Most elements refer to endpoints, and are
 * only counted if the plan has the same. Slots are taken from the kernel, so that a restart need not change them.
 */
export class ListedTable {
  /** Elements that are no Service's of the plan, or that several may have. */
  readonly others: ElementsByText = new Map();
  readonly #plan: ForwardingPlan;
  readonly #family: IPFamily;
  readonly #ofServices = new Map<ObjectKey, Element[]>();
  readonly #ports = new Map<ServicePortPlan, ListedPort>();

  constructor(plan: ForwardingPlan, family: IPFamily) {
    this.#plan = plan;
    this.#family = family;
  }

  /** @param element as listed; the kernel lists each element once, and a second call would count it twice. */
  add(element: Element): void {
    const owner = ofDestinations(element.set) ? this.#ownerOf(element.key) : undefined;
    if (owner === undefined) {
      this.others.set(elementText(element), element);
      return;
    }
    const { port } = owner;
    let listed = this.#ports.get(port);
    if (listed === undefined) this.#ports.set(port, (listed = new ListedPort(port)));
    if (listed.isRoute(element, owner.destination)) {
      listed.routes++;
      return;
    }
    const own = { ...element, service: port.service };
    const kept = this.#ofServices.get(port.service);
    if (kept === undefined) this.#ofServices.set(port.service, [own]);
    else kept.push(own);
  }

  /** The elements of a Service's destinations without {@link routes}. */
  ofService(key: ObjectKey): readonly Element[] {
    return this.#ofServices.get(key) ?? [];
  }

  /** The endpoints of a Service port by their slots in the kernel, as far as they are known. */
  slots(port: ServicePortPlan, of: TrafficPolicy): readonly (PlannedEndpoint | undefined)[] {
    return this.#ports.get(port)?.slots(of) ?? [];
  }

  /** The number of elements of a Service port that refer to its endpoints, or refuse, as in the plan. */
  routes(port: ServicePortPlan): number {
    return this.#ports.get(port)?.routes ?? 0;
  }

  /** The UDP destinations among {@link others}: those of Services that went while no agent ran. */
  formerDestinations(): readonly UdpDestination[] {
    const found = new Map<string, UdpDestination>();
    for (const { set, key } of this.others.values()) {
      const { address, protocol, port } = destinationOf(key);
      if (!ofDestinations(set) || protocol !== 'UDP') continue;
      found.set(`${address} ${port}`, { family: this.#family, address, port });
    }
    return [...found.values()];
  }

  /** The Service port whose destination a key begins with. */
  #ownerOf(key: readonly KeyPart[]): DestinationOwner | undefined {
    const { address, protocol, port } = destinationOf(key);
    if (protocol === undefined) return undefined;
    return this.#plan.destinations.get(destinationKey(this.#family, protocol, address, port));
  }
}

/** The destination that a key begins with, in sets {@link ofDestinations}. */
function destinationOf(key: readonly KeyPart[]): {
  readonly address: string | undefined;
  readonly protocol: Protocol | undefined;
  readonly port: number;
} {
  const [address, protocol, port] = typeof key[1] === 'number' ? [undefined, ...key] : key;
  return {
    address: address?.toString(),
    protocol: protocolOf(String(protocol).toUpperCase()),
    port: Number(port),
  };
}

/** The Service port whose endpoints the elements of a map refer to, and the key. */
interface EndpointList {
  readonly policy: TrafficPolicy;
  readonly leadsTo: 'endpoint' | 'mark';
}

/** The maps whose elements end with a slot or a mark. */
const endpointLists: ReadonlyMap<SetName, EndpointList> = new Map(
  (['Cluster', 'Local'] as const).flatMap((policy) =>
    (['service-ips', 'node-ports'] as const).flatMap((by): [SetName, EndpointList][] => [
      [endpointsMap(by, policy), { policy, leadsTo: 'endpoint' }],
      [endpointMarksMap(by, policy), { policy, leadsTo: 'mark' }],
    ]),
  ),
);

class ListedPort {
  /** Elements that are as the plan has them. */
  routes = 0;
  readonly #port: ServicePortPlan;
  #cluster: ListedSlots | undefined;
  #local: ListedSlots | undefined;

  constructor(port: ServicePortPlan) {
    this.#port = port;
  }

  slots(of: TrafficPolicy): readonly (PlannedEndpoint | undefined)[] {
    return (of === 'Cluster' ? this.#cluster : this.#local)?.slots ?? [];
  }

  /** Whether the plan has an element as it is. A slot that is free is taken over. */
  isRoute(element: Element, destination: Destination): boolean {
    const list = endpointLists.get(element.set);
    if (list === undefined) return this.#isVerdict(element, destination);
    return policiesOf(destination).includes(list.policy) && this.#isEndpoint(element, list);
  }

  #isVerdict({ set, value }: Element, destination: Destination): boolean {
    if (!isVerdictMap(set)) return false;
    const port = this.#port;
    const [clusterSlots, localSlots] = [port.clusterEndpoints, port.localEndpoints];
    const wanted: Element[] = [];
    addVerdicts({ port, clusterSlots, localSlots }, destination, wanted, new Map());
    const same = wanted.find((other) => other.set === set);
    return same !== undefined && valueText(same.value) === valueText(value);
  }

  #isEndpoint({ key, value }: Element, { policy, leadsTo }: EndpointList): boolean {
    const port = this.#port;
    const slots =
      policy === 'Cluster'
        ? (this.#cluster ??= new ListedSlots(port.id, port.clusterEndpoints))
        : (this.#local ??= new ListedSlots(port.id, port.localEndpoints));
    const number = key.at(-1);
    if (port.affinitySeconds === undefined) {
      return isEndpointValue(value) && slots.takeOver(number, slots.find(value));
    }
    if (leadsTo === 'mark') return isMarkValue(value) && slots.takeOver(number, slots.marked(value[0]));
    return isEndpointValue(value) && isSame(slots.marked(number), value);
  }
}

class ListedSlots {
  readonly slots: (PlannedEndpoint | undefined)[];
  readonly #portId: string;
  readonly #endpoints: readonly PlannedEndpoint[];
  #byMark: ReadonlyMap<number, PlannedEndpoint> | undefined;

  constructor(portId: string, endpoints: readonly PlannedEndpoint[]) {
    this.#portId = portId;
    this.#endpoints = endpoints;
    this.slots = Array.from(endpoints, () => undefined);
  }

  /** Gives an endpoint the slot that it has in the kernel. @returns false: the slot or the endpoint has another. */
  takeOver(slot: string | number | undefined, endpoint: PlannedEndpoint | undefined): boolean {
    if (endpoint === undefined || typeof slot !== 'number' || slot >= this.#endpoints.length) return false;
    if (this.slots[slot] === endpoint) return true;
    if (this.slots[slot] !== undefined || this.slots.includes(endpoint)) return false;
    this.slots[slot] = endpoint;
    return true;
  }

  /** The endpoint with a mark. */
  marked(mark: string | number | undefined): PlannedEndpoint | undefined {
    if (this.#byMark === undefined) {
      const marks = endpointMarks(this.#portId, this.#endpoints);
      this.#byMark = new Map(Array.from(marks, ([endpoint, mark]) => [mark, endpoint]));
    }
    return typeof mark === 'number' ? this.#byMark.get(mark) : undefined;
  }

  /** The endpoint with an address and port. They are sorted by these. */
  find([address, port]: EndpointValue): PlannedEndpoint | undefined {
    let low = 0;
    let high = this.#endpoints.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const endpoint = this.#endpoints[middle];
      if (endpoint === undefined) return undefined;
      if (isSame(endpoint, [address, port])) return endpoint;
      const isBefore = endpoint.address === address ? endpoint.port < port : endpoint.address < address;
      if (isBefore) low = middle + 1;
      else high = middle - 1;
    }
    return undefined;
  }
}

function isSame(endpoint: PlannedEndpoint | undefined, [address, port]: EndpointValue): boolean {
  return endpoint?.address === address && endpoint.port === port;
}
