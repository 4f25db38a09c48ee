import type { Labels } from '../../objects/label-requirement.ts';
import type { Node, Pod } from '../../objects/core.generated.ts';
import { isFinished } from '../../objects/pods.ts';
import { type Candidate, type Neighbour, spreadGroup } from './plan.ts';

/** What is remembered of a Pod: to hold on to the Pod would keep a version of it in memory that no cache has. */
interface Seat extends Neighbour {
  readonly node: string;
  readonly group: string;
  labels: Labels;
}

/** Who is on which node, those included that were just bound and that the cache does not show there yet. */
export class Occupancy {
  readonly #seats = new Map<string, Seat>();
  readonly #byNode = new Map<string, { seats: Set<Seat>; groups: Map<string, number> }>();

  /** Notes where a Pod is, as the cache shows it. One that is not bound there keeps the seat it was promised. */
  observe(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    if (isFinished(pod)) this.leave(uid);
    else if (pod.spec.nodeName !== undefined && pod.spec.nodeName !== '') this.take(pod, pod.spec.nodeName);
  }

  /** Promises a seat to a Pod. */
  take(pod: Pod, node: string): void {
    const { uid = '', namespace = '', labels = {} } = pod.metadata;
    const present = this.#seats.get(uid);
    if (present?.node === node) {
      present.labels = labels;
      return;
    }
    if (present !== undefined) this.leave(uid);
    const seat: Seat = { node, group: spreadGroup(pod), namespace, labels };
    this.#seats.set(uid, seat);
    let there = this.#byNode.get(node);
    if (there === undefined) {
      there = { seats: new Set(), groups: new Map() };
      this.#byNode.set(node, there);
    }
    there.seats.add(seat);
    there.groups.set(seat.group, (there.groups.get(seat.group) ?? 0) + 1);
  }

  /** True for a Pod that has a seat, promised or taken. */
  has(uid: string): boolean {
    return this.#seats.has(uid);
  }

  /** The Pod is gone, or could not be bound. */
  leave(uid: string): void {
    const seat = this.#seats.get(uid);
    if (seat === undefined) return;
    this.#seats.delete(uid);
    const there = this.#byNode.get(seat.node);
    if (there === undefined) return;
    there.seats.delete(seat);
    const left = (there.groups.get(seat.group) ?? 1) - 1;
    if (left === 0) there.groups.delete(seat.group);
    else there.groups.set(seat.group, left);
  }

  /** The Pods on a node. */
  podsOn(node: string): Iterable<Neighbour> {
    return this.#byNode.get(node)?.seats ?? [];
  }

  /** A node as the planner looks at it. */
  candidate(node: Node): Candidate {
    const there = this.#byNode.get(node.metadata.name ?? '');
    return {
      node,
      pods: there?.seats.size ?? 0,
      count: (group) => there?.groups.get(group) ?? 0,
    };
  }
}
