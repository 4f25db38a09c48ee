import {
  type Destination,
  destinationKey,
  type DestinationOwner,
  type ForwardingPlan,
  type PlannedEndpoint,
  type ServicePortPlan,
  type TrafficPolicy,
} from '../../network/forwarding/forwarding-plan.ts';
import { protocolOf } from '../../network/forwarding/port.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/key.ts';
import { type ElementsByText, elementText } from './difference.ts';
import {
  type Element,
  type EndpointValue,
  isEndpointValue,
  isMarkValue,
  type KeyPart,
  valueText,
} from './elements.ts';
import { endpointMarks } from './endpoint-mark.ts';
import { endpointMarksMap, endpointsMap } from './pick-chain.ts';
import { addVerdicts, policiesOf } from './port-elements.ts';
import { isVerdictMap, ofDestinations, type SetName } from './sets.ts';

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

  /** @param element none twice. */
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

  /** The Service port whose destination a key begins with. */
  #ownerOf(key: readonly KeyPart[]): DestinationOwner | undefined {
    const [address, protocol, port] = typeof key[1] === 'number' ? [undefined, ...key] : key;
    const known = protocolOf(String(protocol).toUpperCase());
    if (known === undefined) return undefined;
    const name = destinationKey(this.#family, known, address?.toString(), Number(port));
    return this.#plan.destinations.get(name);
  }
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
    if (leadsTo === 'mark') return isMarkValue(value) && slots.takeOver(number, slots.marked(value[0]));
    if (!isEndpointValue(value)) return false;
    if (port.affinitySeconds === undefined) return slots.takeOver(number, slots.find(value));
    return isSame(slots.marked(number), value);
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
