import type { Labels } from '../../objects/labels/label-requirement.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { type ResourceAmounts, podResources } from '../../objects/pod-resources.ts';
import { isFinished } from '../../objects/pods.ts';
import { type UsedHostPort, hostPortsOf, type NodeCandidate, type Neighbour, spreadGroup } from './plan.ts';

/** The remembered parts of a Pod, so that the Pod itself can be collected. */
interface Seat extends Neighbour {
  readonly node: string;
  readonly group: string;
  readonly requests: ResourceAmounts;
  readonly hostPorts: readonly UsedHostPort[];
  labels: Labels;
}

/** The Pods of one node. */
interface Occupied {
  readonly seats: Set<Seat>;
  readonly groups: Map<string, number>;
  /** Their requests together, in billionths. */
  readonly requested: Map<string, bigint>;
  hostPorts: UsedHostPort[];
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
    const present = this.#seats.get(uid);
    if (present?.node === node) {
      present.labels = labels;
      return;
    }
    if (present !== undefined) this.leave(uid);
    const requests = podResources(pod, 'requests');
    const hostPorts = hostPortsOf(pod);
    const seat: Seat = { node, group: spreadGroup(pod), requests, hostPorts, namespace, labels };
    this.#seats.set(uid, seat);
    let there = this.#byNode.get(node);
    if (there === undefined) {
      there = { seats: new Set(), groups: new Map(), requested: new Map(), hostPorts: [] };
      this.#byNode.set(node, there);
    }
    there.seats.add(seat);
    pushAll(there.hostPorts, seat.hostPorts);
    there.groups.set(seat.group, (there.groups.get(seat.group) ?? 0) + 1);
    for (const [name, amount] of requests)
      there.requested.set(name, (there.requested.get(name) ?? 0n) + amount);
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
    const there = this.#byNode.get(seat.node);
    if (there === undefined) return;
    there.seats.delete(seat);
    for (const [name, amount] of seat.requests) {
      there.requested.set(name, (there.requested.get(name) ?? 0n) - amount);
    }
    if (seat.hostPorts.length > 0) {
      there.hostPorts = there.hostPorts.filter((port) => !seat.hostPorts.includes(port));
    }
    const left = (there.groups.get(seat.group) ?? 1) - 1;
    if (left === 0) there.groups.delete(seat.group);
    else there.groups.set(seat.group, left);
  }

  /** The Pods on a node. */
  podsOn(node: string): Iterable<Neighbour> {
    return this.#byNode.get(node)?.seats ?? [];
  }

  /** A node with its occupancy, as the planner reads it. */
  candidate(node: Node): NodeCandidate {
    const there = this.#byNode.get(node.metadata.name ?? '');
    return {
      node,
      pods: there?.seats.size ?? 0,
      requested: (resource) => there?.requested.get(resource) ?? 0n,
      hostPorts: there?.hostPorts ?? [],
      count: (group) => there?.groups.get(group) ?? 0,
    };
  }
}
