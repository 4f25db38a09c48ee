import type {
  ForwardingPlan,
  PlannedEndpoint,
  ServicePlan,
  ServicePortPlan,
} from '../../network/forwarding/forwarding-plan.ts';
import type { ObjectKey } from '../../objects/key.ts';
import { pushAll } from '../../objects/lists.ts';
import type { IPFamily } from '../../objects/address.ts';
import { byText, difference, type ElementChange, type ElementsByText, elementText } from './difference.ts';
import type { Element } from './elements.ts';
import type { PickChain } from './pick-chain.ts';
import { portElements, type ProgrammedPort, sharedElements } from './port-elements.ts';
import { assignSlots } from './slots.ts';

/** A Service as it is in the kernel, in one family. */
export interface ProgrammedService {
  readonly plan: ServicePlan;
  readonly ports: readonly ProgrammedPort[];
}

/** What has to be done to the kernel, and what is there afterwards. */
export interface Step {
  readonly changes: readonly ElementChange[];
  /** Chains to which the new elements lead, by name. */
  readonly chains: ReadonlyMap<string, PickChain>;
  /** What changes in the mirror: undefined where a Service goes. */
  readonly services: ReadonlyMap<ObjectKey, ProgrammedService | undefined>;
}

/** Services with 10 endpoints each make 1.3 MB of JSON: seven transactions. */
const servicesInStep = 1000;

/** The slots of a Service port's endpoints before a change: cluster's and local's. */
export type FormerSlots = (port: ServicePortPlan) => {
  readonly cluster: readonly PlannedEndpoint[];
  readonly local: readonly PlannedEndpoint[];
};

/**
 * The mirror of what one table holds for Services: not its elements, but what they follow from. Elements that several
 * Service ports have are counted.
 */
export class Programmed {
  readonly #family: IPFamily;
  readonly #services = new Map<ObjectKey, ProgrammedService>();
  readonly #shared = new Map<string, number>();

  constructor(family: IPFamily) {
    this.#family = family;
  }

  /**
   * What leads from the mirror to the plan.
   *
   * @param touched the Services whose plans may have changed; default all.
   */
  next(
    plan: ForwardingPlan,
    touched: Iterable<ObjectKey> = new Set([...plan.services.keys(), ...this.#services.keys()]),
  ): Step {
    const services = new Map<ObjectKey, ProgrammedService | undefined>();
    for (const key of touched) {
      const service = plan.services.get(key);
      const held = this.#services.get(key);
      if (service !== held?.plan) services.set(key, service && this.#program(service, slotsOf(held)));
    }
    const chains = new Map<string, PickChain>();
    const before: Element[] = [];
    const after: Element[] = [];
    const shared = new Map<string, { readonly element: Element; more: number }>();
    for (const [key, service] of services) {
      for (const port of this.#services.get(key)?.ports ?? []) {
        pushAll(before, portElements(port).elements);
        for (const element of sharedElements(port)) countOne(shared, element, -1);
      }
      for (const port of service?.ports ?? []) {
        const needed = portElements(port);
        pushAll(after, needed.elements);
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
   * What leads from an empty table to the plan, in steps: 10,000 Services with all of their elements at once would take
   * 100 MiB for a moment. The mirror is to be empty, and each step to be committed before the next.
   */
  *fill(plan: ForwardingPlan): Generator<Step> {
    let batch: ObjectKey[] = [];
    for (const key of plan.services.keys()) {
      batch.push(key);
      if (batch.length < servicesInStep) continue;
      yield this.next(plan, batch);
      batch = [];
    }
    if (batch.length > 0) yield this.next(plan, batch);
  }

  /**
   * What leads from what was read in the kernel to the plan. The mirror is to be empty.
   *
   * @param actual is emptied.
   * @param former the slots as they are in the kernel.
   * @param others elements that the table is to have beside those of Services.
   */
  fromKernel(
    plan: ForwardingPlan,
    actual: ElementsByText,
    former: FormerSlots,
    others: readonly Element[],
  ): Step {
    const services = new Map<ObjectKey, ProgrammedService>();
    const chains = new Map<string, PickChain>();
    const shared = new Map<string, Element>();
    for (const [key, service] of plan.services) {
      const programmed = this.#program(service, former);
      services.set(key, programmed);
      for (const port of programmed.ports) {
        for (const element of sharedElements(port)) shared.set(elementText(element), element);
      }
    }
    const desired = function* (): Generator<Element> {
      yield* others;
      yield* shared.values();
      for (const { ports } of services.values()) {
        for (const port of ports) {
          const needed = portElements(port);
          for (const [name, chain] of needed.chains) chains.set(name, chain);
          yield* needed.elements;
        }
      }
    };
    return { changes: difference(actual, desired()), chains, services };
  }

  /** Takes over what was done. */
  commit({ services }: Step): void {
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
      ports: ports.map((port) => {
        const { cluster, local } = former(port);
        return {
          port,
          clusterSlots: assignSlots(cluster, port.clusterEndpoints),
          localSlots: assignSlots(local, port.localEndpoints),
        };
      }),
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

/** The slots that a Service has in the mirror. */
function slotsOf(held: ProgrammedService | undefined): FormerSlots {
  return (port) => {
    const known = held?.ports.find((other) => other.port.id === port.id);
    return { cluster: known?.clusterSlots ?? [], local: known?.localSlots ?? [] };
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
