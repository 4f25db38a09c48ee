import type { Labels } from '../../objects/selectors/label-selector.ts';
import {
  controllerOf,
  isFinished,
  isNodeReady,
  isPodTerminating,
  lastingPorts,
  podRequestsInUse,
  type ResourceAmounts,
} from '../../objects/pods.ts';
import type { Node, Pod, PodAffinityTerm } from '../../objects/types/core.generated.ts';

/** A node and its Pods. */
export interface NodeCandidate {
  readonly node: Node;
  readonly isReady: boolean;
  /** The number of Pods, bound or assumed. */
  readonly pods: number;
  /** How much of a resource they request, in billionths as in quantities. */
  requested(resource: string): bigint;
  /** How many of them are of a group ({@link spreadGroup}). */
  count(group: string): number;
  /** Host ports that they have. */
  hostPorts(): readonly UsedHostPort[];
  readonly neighbours: Iterable<Neighbour>;
  /** Those with anti-affinity of their own. */
  readonly withAntiAffinity: Iterable<Neighbour>;
  /** The node as it would be without its Pods of a lower priority; undefined: it has none. */
  withoutBelow(priority: number): NodeCandidate | undefined;
}

/** A port of the node that a container takes; of `hostIP` alone unless that is empty. */
export interface UsedHostPort {
  readonly protocol: string;
  readonly hostPort: number;
  readonly hostIP: string;
}

/** A Pod on a node, as affinity and spread read it. */
export interface Neighbour {
  readonly namespace: string;
  readonly labels: Labels;
  /** It is being deleted. */
  readonly isTerminating: boolean;
  /** Its own required anti-affinity. */
  readonly antiAffinity: readonly PodAffinityTerm[];
}

/** The group of Pods that are spread: of one controller, or with the same labels. */
export function spreadGroup(pod: Pod): string {
  const { namespace = '', labels = {} } = pod.metadata;
  const controller = controllerOf(pod);
  if (controller !== undefined) return controller.uid;
  return JSON.stringify([namespace, ...Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** The host ports of a Pod. With `hostNetwork`, the API server has filled them in. */
export function hostPortsOf({ spec }: Pod): readonly UsedHostPort[] {
  return lastingPorts(spec).flatMap(({ protocol = 'TCP', hostPort = 0, hostIP = '' }) =>
    hostPort === 0 ? [] : [{ protocol, hostPort, hostIP: hostIP === '0.0.0.0' ? '' : hostIP }],
  );
}

/** True where two Pods want the same port of their node. */
export function hostPortsCollide(a: Pod, b: Pod): boolean {
  const taken = hostPortsOf(b);
  return hostPortsOf(a).some((port) => taken.some((other) => collide(port, other)));
}

/** `HostPortInfo.CheckConflict`: no address stands for all of them. */
export function collide(a: UsedHostPort, b: UsedHostPort): boolean {
  const isSamePort = a.hostPort === b.hostPort && a.protocol === b.protocol;
  return isSamePort && (a.hostIP === b.hostIP || a.hostIP === '' || b.hostIP === '');
}

/** The priority of a Pod, which admission has taken from its class. */
export function priorityOf({ spec }: Pod): number {
  return spec.priority ?? 0;
}

function sameAmounts(a: ResourceAmounts, b: ResourceAmounts): boolean {
  return a.size === b.size && [...a].every(([name, amount]) => b.get(name) === amount);
}

/** The remembered parts of a Pod, so that the Pod itself can be collected. */
interface Seat extends Neighbour {
  readonly node: string;
  readonly group: string;
  readonly priority: number;
  readonly requests: ResourceAmounts;
  readonly hostPorts: readonly UsedHostPort[];
  labels: Labels;
  isTerminating: boolean;
}

/** The Pods of one node. */
class Occupied {
  readonly seats = new Set<Seat>();
  readonly #withAntiAffinity = new Set<Seat>();
  readonly #groups = new Map<string, number>();
  /** Their requests together, in billionths. */
  readonly #requested = new Map<string, bigint>();
  #candidate: NodeCandidate | undefined;

  constructor(seats: Iterable<Seat> = []) {
    for (const seat of seats) this.add(seat);
  }

  add(seat: Seat): void {
    this.seats.add(seat);
    if (seat.antiAffinity.length > 0) this.#withAntiAffinity.add(seat);
    this.#count(seat, 1);
  }

  remove(seat: Seat): void {
    this.#withAntiAffinity.delete(seat);
    if (this.seats.delete(seat)) this.#count(seat, -1);
  }

  #count({ group, requests }: Seat, sign: 1 | -1): void {
    const members = (this.#groups.get(group) ?? 0) + sign;
    if (members === 0) this.#groups.delete(group);
    else this.#groups.set(group, members);
    for (const [name, amount] of requests) {
      this.#requested.set(name, (this.#requested.get(name) ?? 0n) + BigInt(sign) * amount);
    }
  }

  /** The same object while the node is the same: a Pod is compared with all of them. */
  candidate(node: Node): NodeCandidate {
    if (this.#candidate?.node !== node) this.#candidate = this.#read(node);
    return this.#candidate;
  }

  #read(node: Node): NodeCandidate {
    const { seats } = this;
    return {
      node,
      isReady: isNodeReady(node),
      get pods() {
        return seats.size;
      },
      requested: (resource) => this.#requested.get(resource) ?? 0n,
      hostPorts: () => [...seats].flatMap(({ hostPorts }) => hostPorts),
      count: (group) => this.#groups.get(group) ?? 0,
      neighbours: seats,
      withAntiAffinity: this.#withAntiAffinity,
      withoutBelow: (priority) => {
        const stay = [...seats].filter((seat) => seat.priority >= priority);
        return stay.length === seats.size ? undefined : new Occupied(stay).candidate(node);
      },
    };
  }
}

/** The Pods on each node, including Pods just bound that the cache does not show yet. */
export class Occupancy {
  readonly #seats = new Map<string, Seat>();
  readonly #byNode = new Map<string, Occupied>();

  /** Records the node of a Pod as the cache shows it. A Pod that is not bound there keeps its assumed node. */
  observe(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    if (isFinished(pod)) this.leave(uid);
    else if (pod.spec.nodeName !== undefined && pod.spec.nodeName !== '') this.take(pod, pod.spec.nodeName);
  }

  /** Assumes a Pod on a node before it is bound. */
  take(pod: Pod, node: string): void {
    const { uid = '', namespace = '', labels = {} } = pod.metadata;
    const isTerminating = isPodTerminating(pod);
    const present = this.#seats.get(uid);
    const requests = podRequestsInUse(pod);
    if (present?.node === node && sameAmounts(present.requests, requests)) {
      present.labels = labels;
      present.isTerminating = isTerminating;
      return;
    }
    if (present !== undefined) this.leave(uid);
    const seat: Seat = {
      ...{ node, namespace, labels, isTerminating, group: spreadGroup(pod), priority: priorityOf(pod) },
      ...{ requests, hostPorts: hostPortsOf(pod) },
      antiAffinity: pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [],
    };
    this.#seats.set(uid, seat);
    this.#on(node).add(seat);
  }

  #on(node: string): Occupied {
    let there = this.#byNode.get(node);
    if (there === undefined) this.#byNode.set(node, (there = new Occupied()));
    return there;
  }

  /** True for a Pod that has a node, assumed or bound. */
  has(uid: string): boolean {
    return this.#seats.has(uid);
  }

  /** Removes a Pod that is gone or could not be bound. */
  leave(uid: string): void {
    const seat = this.#seats.get(uid);
    if (seat === undefined) return;
    this.#seats.delete(uid);
    this.#byNode.get(seat.node)?.remove(seat);
  }

  /** Forgets a node that is gone, unless it still has Pods. */
  forget(node: string): void {
    if (this.#byNode.get(node)?.seats.size === 0) this.#byNode.delete(node);
  }

  /** A node with its occupancy, as the planner reads it. */
  candidate(node: Node): NodeCandidate {
    return this.#on(node.metadata.name ?? '').candidate(node);
  }
}
