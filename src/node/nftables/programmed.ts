import type { ForwardingPlan, PlannedEndpoint, ServicePlan, ServicePortPlan } from '../../network/forwarding/forwarding-plan.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/service.ts';
import { difference, type ElementChange, elementText } from './difference.ts';
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

/** The slots of a Service port's endpoints before a change: cluster's and local's. */
export type FormerSlots = (
  port: ServicePortPlan,
) => { readonly cluster: readonly PlannedEndpoint[]; readonly local: readonly PlannedEndpoint[] };

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

  /** What leads from the mirror to the plan. Plans that are the same object as before are not looked at. */
  next(plan: ForwardingPlan): Step {
    const services = this.#changed(plan, false);
    const chains = new Map<string, PickChain>();
    const before: Element[] = [];
    const after: Element[] = [];
    const shared = new Map<string, { readonly element: Element; more: number }>();
    for (const [key, service] of services) {
      for (const port of this.#services.get(key)?.ports ?? []) {
        before.push(...portElements(port).elements);
        for (const element of sharedElements(port)) countOne(shared, element, -1);
      }
      for (const port of service?.ports ?? []) {
        const needed = portElements(port);
        after.push(...needed.elements);
        for (const element of sharedElements(port)) countOne(shared, element, 1);
        for (const [name, chain] of needed.chains) chains.set(name, chain);
      }
    }
    for (const [text, { element, more }] of shared) {
      const held = this.#shared.get(text) ?? 0;
      if (held > 0) before.push(element);
      if (held + more > 0) after.push(element);
    }
    return { changes: difference(before, after), chains, services };
  }

  /**
   * What leads from what was read in the kernel to the plan, whatever the mirror says.
   *
   * @param former the slots as they are in the kernel.
   * @param others elements that the table is to have beside those of Services.
   */
  fromKernel(
    plan: ForwardingPlan,
    actual: Iterable<Element>,
    former: FormerSlots,
    others: readonly Element[],
  ): Step {
    const services = this.#changed(plan, true, former);
    const chains = new Map<string, PickChain>();
    const desired = function* (): Generator<Element> {
      yield* others;
      for (const service of services.values()) {
        for (const port of service?.ports ?? []) {
          const needed = portElements(port);
          for (const [name, chain] of needed.chains) chains.set(name, chain);
          yield* needed.elements;
          yield* sharedElements(port);
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

  #changed(
    plan: ForwardingPlan,
    all: boolean,
    former?: FormerSlots,
  ): Map<ObjectKey, ProgrammedService | undefined> {
    const changed = new Map<ObjectKey, ProgrammedService | undefined>();
    for (const [key, service] of plan.services) {
      const held = this.#services.get(key);
      if (all || held?.plan !== service) changed.set(key, this.#program(service, held, former));
    }
    for (const key of this.#services.keys()) if (!plan.services.has(key)) changed.set(key, undefined);
    return changed;
  }

  #program(plan: ServicePlan, held: ProgrammedService | undefined, former?: FormerSlots): ProgrammedService {
    const ports = plan.ports.filter(({ family }) => family === this.#family);
    return {
      plan,
      ports: ports.map((port) => {
        const known = held?.ports.find((other) => other.port.id === port.id);
        const { cluster, local } = former?.(port) ?? {
          cluster: known?.clusterSlots ?? [],
          local: known?.localSlots ?? [],
        };
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
