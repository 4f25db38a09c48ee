import type {
  PlannedEndpoint,
  ForwardingPlan,
  ServicePlan,
  ServicePortPlan,
  TrafficPolicy,
} from '../../network/forwarding/forwarding-plan.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { pushAll } from '../../objects/lists.ts';
import type { IPFamily } from '../../objects/address.ts';
import { byText, difference, type ElementChange, elementText, type Element } from './elements.ts';
import type { ListedTable } from './listed-table.ts';
import {
  type ServiceChain,
  type ProgrammedPort,
  routeElements,
  sharedElements,
  sourceRangeElements,
} from './port-elements.ts';

/**
 * The slots of a Service port's endpoints: `slots[i]` gets the connections that draw i. Endpoints that stay keep their
 * slots as far as these exist still, and the others take those that are free, so that removing one endpoint of many
 * changes two slots at most.
 *
 * @param previous the slots until now, as far as they are known.
 * @param endpoints without duplicates. The result is this very list where it has their order already.
 */
export function assignSlots(
  previous: readonly (PlannedEndpoint | undefined)[],
  endpoints: readonly PlannedEndpoint[],
): readonly PlannedEndpoint[] {
  if (previous.length === 0 || isInOrder(previous, endpoints)) return endpoints;
  const unplaced = new Map(endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
  const kept = endpoints.map((_, slot) => {
    const key = previous[slot] === undefined ? undefined : endpointKey(previous[slot]);
    const endpoint = key === undefined ? undefined : unplaced.get(key);
    if (endpoint !== undefined && key !== undefined) unplaced.delete(key);
    return endpoint;
  });
  const rest = unplaced.values();
  return kept.map((endpoint) => endpoint ?? next(rest));
}

function isInOrder(
  previous: readonly (PlannedEndpoint | undefined)[],
  endpoints: readonly PlannedEndpoint[],
): boolean {
  return endpoints.every((endpoint, slot) => {
    const former = previous[slot];
    return former?.address === endpoint.address && former.port === endpoint.port;
  });
}

function endpointKey({ address, port }: PlannedEndpoint): string {
  return `${address} ${port}`;
}

function next(endpoints: Iterator<PlannedEndpoint, undefined>): PlannedEndpoint {
  const { value } = endpoints.next();
  if (value === undefined) throw new Error('an endpoint is in the list twice');
  return value;
}

/** A Service as it is in the kernel, in one family. */
export interface ProgrammedService {
  readonly plan: ServicePlan;
  readonly ports: readonly ProgrammedPort[];
}

/** The changes for the kernel, and its contents afterwards. */
export interface ProgrammingStep {
  readonly changes: readonly ElementChange[];
  /** Chains to which the new elements lead, by name. */
  readonly chains: ReadonlyMap<string, ServiceChain>;
  /** What {@link ProgrammedServices.commit} takes over: undefined for a deleted Service. */
  readonly services: ReadonlyMap<ObjectKey, ProgrammedService | undefined>;
}

/** Few: what is there while nft works outlives the young generation, and is collected late. */
const servicesInStep = 20;

/** The slots of a Service port's endpoints before a change, as far as they are known. */
type FormerSlots = (port: ServicePortPlan, of: TrafficPolicy) => readonly (PlannedEndpoint | undefined)[];

/**
 * What one table holds for Services: not its elements, but the plans and slots that they follow from. An element that
 * several Service ports have is counted, and goes with the last of them.
 */
export class ProgrammedServices {
  readonly #family: IPFamily;
  readonly #services = new Map<ObjectKey, ProgrammedService>();
  readonly #shared = new Map<string, number>();

  constructor(family: IPFamily) {
    this.#family = family;
  }

  /**
   * The changes from what the table holds to the plan.
   *
   * @param touched the Services whose plans may have changed; default all.
   */
  next(
    plan: ForwardingPlan,
    touched: Iterable<ObjectKey> = new Set([...plan.services.keys(), ...this.#services.keys()]),
  ): ProgrammingStep {
    const services = new Map<ObjectKey, ProgrammedService | undefined>();
    for (const key of touched) {
      const service = plan.services.get(key);
      const held = this.#services.get(key);
      if (service !== held?.plan) services.set(key, service && this.#program(service, slotsOf(held)));
    }
    const chains = new Map<string, ServiceChain>();
    const before: Element[] = [];
    const after: Element[] = [];
    const shared = new Map<string, { readonly element: Element; more: number }>();
    for (const [key, service] of services) {
      for (const port of this.#services.get(key)?.ports ?? []) {
        pushAll(before, routeElements(port).elements);
        pushAll(before, sourceRangeElements(port));
        for (const element of sharedElements(port)) countOne(shared, element, -1);
      }
      for (const port of service?.ports ?? []) {
        const needed = routeElements(port);
        pushAll(after, needed.elements);
        pushAll(after, sourceRangeElements(port));
        for (const element of sharedElements(port)) countOne(shared, element, 1);
        for (const [name, chain] of needed.chains) chains.set(name, chain);
      }
    }
    for (const [text, { element, more }] of shared) {
      const held = this.#shared.get(text) ?? 0;
      if (held > 0) before.push(element);
      if (held + more > 0) after.push(element);
    }
    return { changes: difference(byText(before), after), chains, services };
  }

  /**
   * Takes over a table that another process has written: the changes from what was listed in the kernel to the plan, in
   * steps, because all elements of 10,000 Services at once would take 100 MiB. Where an element is missing that leads to
   * an endpoint, all of its Service port's are added: nft takes those that are there without an error. Nothing may be
   * programmed before, and each step is to be committed before the next is asked for.
   *
   * @param listed by comparison with the same plan. Its other elements are taken out of it.
   * @param others elements that the table is to have beside those of Services. They come last, because addresses in
   *   Service ranges that are no Service's are dropped.
   */
  *adopt(plan: ForwardingPlan, listed: ListedTable, others: readonly Element[]): Generator<ProgrammingStep> {
    let batch: ServicePlan[] = [];
    for (const service of plan.services.values()) {
      batch.push(service);
      if (batch.length < servicesInStep) continue;
      yield this.#adoptStep(batch, listed);
      batch = [];
    }
    yield this.#adoptStep(batch, listed);
    yield { changes: difference(listed.others, others), chains: new Map(), services: new Map() };
  }

  #adoptStep(batch: readonly ServicePlan[], listed: ListedTable): ProgrammingStep {
    const services = new Map<ObjectKey, ProgrammedService>();
    const chains = new Map<string, ServiceChain>();
    const before: Element[] = [];
    const after: Element[] = [];
    const shared = new Set<string>();
    for (const plan of batch) {
      const service = this.#program(plan, (port, of) => listed.slots(port, of));
      services.set(plan.key, service);
      pushAll(before, listed.ofService(plan.key));
      for (const port of service.ports) {
        const needed = routeElements(port);
        if (listed.routes(port.port) !== needed.elements.length) pushAll(after, needed.elements);
        pushAll(after, sourceRangeElements(port));
        for (const [name, chain] of needed.chains) chains.set(name, chain);
        for (const element of sharedElements(port)) {
          const text = elementText(element);
          if (this.#shared.has(text) || shared.has(text)) continue;
          shared.add(text);
          if (!listed.others.delete(text)) after.push(element);
        }
      }
    }
    return { changes: difference(byText(before), after), chains, services };
  }

  /** Takes over a step, once it is to be written. */
  commit({ services }: ProgrammingStep): void {
    for (const [key, service] of services) {
      this.#countShared(this.#services.get(key), -1);
      this.#countShared(service, 1);
      if (service === undefined) this.#services.delete(key);
      else this.#services.set(key, service);
    }
  }

  #program(plan: ServicePlan, former: FormerSlots): ProgrammedService {
    const ports = plan.ports.filter(({ family }) => family === this.#family);
    return {
      plan,
      ports: ports.map((port) => ({
        port,
        clusterSlots: assignSlots(former(port, 'Cluster'), port.clusterEndpoints),
        localSlots: assignSlots(former(port, 'Local'), port.localEndpoints),
      })),
    };
  }

  #countShared(service: ProgrammedService | undefined, by: number): void {
    for (const port of service?.ports ?? []) {
      for (const element of sharedElements(port)) {
        const text = elementText(element);
        const count = (this.#shared.get(text) ?? 0) + by;
        if (count > 0) this.#shared.set(text, count);
        else this.#shared.delete(text);
      }
    }
  }
}

/** The slots that a Service has in the table. */
function slotsOf(held: ProgrammedService | undefined): FormerSlots {
  return ({ id }, of) => {
    const known = held?.ports.find(({ port }) => port.id === id);
    return (of === 'Cluster' ? known?.clusterSlots : known?.localSlots) ?? [];
  };
}

function countOne(
  counts: Map<string, { readonly element: Element; more: number }>,
  element: Element,
  by: 1 | -1,
): void {
  const text = elementText(element);
  const held = counts.get(text);
  if (held === undefined) counts.set(text, { element, more: by });
  else held.more += by;
}
