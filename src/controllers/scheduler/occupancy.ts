import type { Node } from '../../objects/node.ts';
import type { Pod } from '../../objects/pod.ts';
import { isFinished } from '../workloads/plan-pods.ts';
import { type Candidate, spreadGroup } from './plan.ts';

interface Seat {
  readonly node: string;
  readonly group: string;
  readonly pod: Pod;
}

/** Who is on which node, those included that were just bound and that the cache does not show there yet. */
export class Occupancy {
  readonly #seats = new Map<string, Seat>();
  readonly #byNode = new Map<string, { pods: Map<string, Pod>; groups: Map<string, number> }>();

  /** Notes where a Pod is, as the cache shows it. One that is not bound there keeps the seat it was promised. */
  observe(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    if (isFinished(pod)) this.leave(uid);
    else if (pod.spec.nodeName !== undefined && pod.spec.nodeName !== '') this.take(pod, pod.spec.nodeName);
  }

  /** Promises a seat to a Pod. */
  take(pod: Pod, node: string): void {
    const { uid = '' } = pod.metadata;
    const present = this.#seats.get(uid);
    if (present?.node === node) return;
    if (present !== undefined) this.leave(uid);
    const group = spreadGroup(pod);
    this.#seats.set(uid, { node, group, pod });
    let there = this.#byNode.get(node);
    if (there === undefined) {
      there = { pods: new Map(), groups: new Map() };
      this.#byNode.set(node, there);
    }
    there.pods.set(uid, pod);
    there.groups.set(group, (there.groups.get(group) ?? 0) + 1);
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
    there.pods.delete(uid);
    const left = (there.groups.get(seat.group) ?? 1) - 1;
    if (left === 0) there.groups.delete(seat.group);
    else there.groups.set(seat.group, left);
  }

  /** The Pods on a node. */
  podsOn(node: string): Iterable<Pod> {
    return this.#byNode.get(node)?.pods.values() ?? [];
  }

  /** A node as the planner looks at it. */
  candidate(node: Node): Candidate {
    const there = this.#byNode.get(node.metadata.name ?? '');
    return {
      node,
      pods: there?.pods.size ?? 0,
      count: (group) => there?.groups.get(group) ?? 0,
    };
  }
}
