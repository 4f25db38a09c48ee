import { type ObjectKey, keyOf } from '../../objects/meta.ts';
import type {
  DestinationKind,
  Destination,
  DestinationOwner,
  ForwardingPlan,
  NodePlan,
  ServicePlan,
  Problem,
} from './forwarding-plan.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import { planNode, type ForwardingNode, type ForwardingOptions } from './node-plan.ts';
import { serviceOfSlice } from './endpoints.ts';
import { planService } from './service-plan.ts';

/** Keeps the plan of a node up to date, one Service at a time. Pure. */

/** A Service's wish to answer on one address and port. */
export interface Claim {
  readonly service: ObjectKey;
  /** `metadata.creationTimestamp`, RFC 3339 in UTC. */
  readonly created: string;
  readonly kind: DestinationKind;
}

const precedence: Record<DestinationKind, number> = {
  clusterIP: 0,
  loadBalancerIP: 1,
  externalIP: 2,
  nodePort: 3,
};

/**
 * The Services that claim one address and port. kube-proxy lets the order of a Go map decide between them, sync by
 * sync; here exactly one has it. What the cluster allocated goes before what users wrote, so that an external IP never
 * takes over another Service's address: cluster IPs, then load balancer IPs, then external IPs. Between equals the
 * older Service has it, then the one whose key is first, so that a new Service takes traffic from none.
 */
export class DestinationClaims {
  readonly #claims = new Map<ObjectKey, Claim>();
  /** Undefined where the owner has gone: the next is looked for when it is asked for, not after each removal. */
  #owner: Claim | undefined;

  constructor(first: Claim) {
    this.#owner = first;
    this.#claims.set(first.service, first);
  }

  /** @throws {Error} where no Service takes part. */
  get owner(): Claim {
    if (this.#owner === undefined) {
      for (const claim of this.#claims.values()) {
        if (this.#owner === undefined || goesBefore(claim, this.#owner)) this.#owner = claim;
      }
    }
    if (this.#owner === undefined) throw new Error('no Service claims it');
    return this.#owner;
  }

  /** The number of Services with claims. */
  get size(): number {
    return this.#claims.size;
  }

  services(): Iterable<ObjectKey> {
    return this.#claims.keys();
  }

  /** Adds a Service that is not part of it. */
  add(claim: Claim): void {
    this.#claims.set(claim.service, claim);
    if (this.#owner !== undefined && goesBefore(claim, this.#owner)) this.#owner = claim;
  }

  remove(service: ObjectKey): void {
    this.#claims.delete(service);
    if (this.#owner?.service === service) this.#owner = undefined;
  }
}

function goesBefore(a: Claim, b: Claim): boolean {
  if (a.kind !== b.kind) return precedence[a.kind] < precedence[b.kind];
  if (a.created !== b.created) return a.created < b.created;
  return a.service < b.service;
}

/** A Service as it is now. */
export interface ServiceInput {
  readonly key: ObjectKey;
  /** Undefined: there is none of this name. */
  readonly service: Service | undefined;
  readonly slices: readonly EndpointSlice[];
}

/** The effect of a change on the plan of one Service; undefined: it has none. The two differ. */
export interface ServiceChange {
  readonly key: ObjectKey;
  readonly before: ServicePlan | undefined;
  readonly after: ServicePlan | undefined;
}

/** The claims that a change touches, and the Service that had each destination before it. */
type FormerOwners = Map<DestinationClaims, ObjectKey>;

function recordOwner(touched: FormerOwners, claims: DestinationClaims): void {
  if (!touched.has(claims)) touched.set(claims, claims.owner.service);
}

/** The whole plan from scratch. */
export function planForwarding(...given: Parameters<typeof planForwardingSteps>): ForwardingPlan {
  const steps = planForwardingSteps(...given);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Services that are planned in one step. */
const servicesOfStep = 100;

/** The same in steps, so that it may be done in slices of time. */
export function* planForwardingSteps(
  services: readonly Service[],
  slices: readonly EndpointSlice[],
  node: ForwardingNode,
  options: ForwardingOptions,
): Generator<undefined, ForwardingPlan, undefined> {
  const byService = new Map<ObjectKey, EndpointSlice[]>();
  for (const slice of slices) {
    const key = serviceOfSlice(slice);
    if (key === undefined) continue;
    const group = byService.get(key);
    if (group === undefined) byService.set(key, [slice]);
    else group.push(slice);
  }
  const planner = new ForwardingPlanner(node, options);
  for (let from = 0; from < services.length; from += servicesOfStep) {
    yield;
    const inputs = services.slice(from, from + servicesOfStep).map((service) => {
      const key = keyOf(service);
      return { key, service, slices: byService.get(key) ?? [] };
    });
    planner.apply(inputs);
  }
  return planner.plan;
}

/**
 * The plan of a node, changed Service by Service. Each Service is planned on its own ({@link planService}); between
 * Services it is decided which has an address and port that several claim ({@link DestinationClaims}).
 */
export class ForwardingPlanner {
  #options: ForwardingOptions;
  #node: NodePlan;
  /** Each Service planned as if there were no other. */
  readonly #wanted = new Map<ObjectKey, ServicePlan>();
  /** By destination key: the one Service that claims it, or the claims of several. */
  readonly #claims = new Map<string, Claim | DestinationClaims>();
  readonly #services = new Map<ObjectKey, ServicePlan>();
  readonly #destinations = new Map<string, DestinationOwner>();
  readonly #clusterIPs = new Map<string, number>();

  constructor(node: ForwardingNode, options: ForwardingOptions) {
    this.#options = options;
    this.#node = planNode(node, options);
  }

  /** The plan as it is now: a view, which later changes alter. */
  get plan(): ForwardingPlan {
    return {
      node: this.#node,
      services: this.#services,
      destinations: this.#destinations,
      clusterIPs: this.#clusterIPs,
    };
  }

  /** Takes over what changed in the node or the options. True: then every Service has to be applied again. */
  setNode(node: ForwardingNode, options = this.#options): boolean {
    const planned = planNode(node, options);
    if (jsonEqual(planned, this.#node)) return false;
    this.#node = planned;
    this.#options = options;
    return true;
  }

  /**
   * Plans the Services given, and those that contend with them for an address.
   *
   * @returns the plans that changed, theirs or others'; empty when none did.
   */
  apply(inputs: readonly ServiceInput[]): ServiceChange[] {
    const affected = new Set<ObjectKey>();
    const touched: FormerOwners = new Map();
    for (const input of inputs) {
      affected.add(input.key);
      this.#withdraw(input.key, touched);
      this.#claim(input, touched);
    }
    // Those that do not have it name the Service that does.
    for (const [claims, former] of touched) {
      if (claims.owner.service === former) continue;
      for (const key of claims.services()) affected.add(key);
    }
    const changes: ServiceChange[] = [];
    for (const key of affected) {
      const before = this.#services.get(key);
      const after = this.#resolve(key);
      if (!jsonEqual(before, after)) changes.push({ key, before, after });
    }
    for (const { before } of changes) if (before !== undefined) this.#remove(before);
    for (const { after } of changes) if (after !== undefined) this.#add(after);
    return changes;
  }

  /** Takes back what a Service claimed. */
  #withdraw(key: ObjectKey, touched: FormerOwners): void {
    const old = this.#wanted.get(key);
    if (old === undefined) return;
    this.#wanted.delete(key);
    for (const port of old.ports) {
      for (const destination of port.destinations) this.#withdrawOne(key, destination, touched);
    }
  }

  #withdrawOne(service: ObjectKey, { key }: Destination, touched: FormerOwners): void {
    const held = this.#claims.get(key);
    if (!(held instanceof DestinationClaims)) {
      this.#claims.delete(key);
      return;
    }
    recordOwner(touched, held);
    held.remove(service);
    if (held.size === 1) this.#claims.set(key, held.owner);
  }

  /** Plans a Service and claims its addresses and ports. */
  #claim({ key, service, slices }: ServiceInput, touched: FormerOwners): void {
    if (service === undefined) return;
    const plan = planService(service, slices, this.#node, this.#options);
    if (plan === undefined) return;
    this.#wanted.set(key, plan);
    const created = service.metadata.creationTimestamp ?? '';
    for (const port of plan.ports) {
      for (const destination of port.destinations) {
        this.#claimOne({ service: key, created, kind: destination.kind }, destination, touched);
      }
    }
  }

  #claimOne(claim: Claim, { key }: Destination, touched: FormerOwners): void {
    const held = this.#claims.get(key);
    if (held === undefined) {
      this.#claims.set(key, claim);
      return;
    }
    const claims = held instanceof DestinationClaims ? held : new DestinationClaims(held);
    if (claims !== held) this.#claims.set(key, claims);
    recordOwner(touched, claims);
    claims.add(claim);
  }

  /** The plan of a Service without the destinations that another one has. */
  #resolve(key: ObjectKey): ServicePlan | undefined {
    const wanted = this.#wanted.get(key);
    if (wanted === undefined) return undefined;
    const lost: Problem[] = [];
    for (const { destinations } of wanted.ports) {
      for (const destination of destinations) {
        const owner = this.#ownerOf(destination, key);
        if (owner === key) continue;
        const message = `${destination.kind} ${destination.key} belongs to ${owner}`;
        lost.push({ reason: 'DestinationConflict', kind: 'Service', key, message });
      }
    }
    if (lost.length === 0) return wanted;
    const ports = wanted.ports.map((port) => ({
      ...port,
      destinations: port.destinations.filter((destination) => this.#ownerOf(destination, key) === key),
    }));
    return { ...wanted, ports, problems: [...wanted.problems, ...lost] };
  }

  /** The owner of a destination that a Service claims. */
  #ownerOf(destination: Destination, claimant: ObjectKey): ObjectKey {
    const held = this.#claims.get(destination.key);
    return held instanceof DestinationClaims ? held.owner.service : claimant;
  }

  #remove(plan: ServicePlan): void {
    this.#services.delete(plan.key);
    for (const { clusterIP, destinations } of plan.ports) {
      for (const { key } of destinations) this.#destinations.delete(key);
      const left = (this.#clusterIPs.get(clusterIP) ?? 0) - 1;
      if (left > 0) this.#clusterIPs.set(clusterIP, left);
      else this.#clusterIPs.delete(clusterIP);
    }
  }

  #add(plan: ServicePlan): void {
    this.#services.set(plan.key, plan);
    for (const port of plan.ports) {
      const { clusterIP, destinations } = port;
      for (const destination of destinations) this.#destinations.set(destination.key, { port, destination });
      this.#clusterIPs.set(clusterIP, (this.#clusterIPs.get(clusterIP) ?? 0) + 1);
    }
  }
}
