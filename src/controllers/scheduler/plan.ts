import type { Labels } from '../../objects/labels/label-selector.ts';
import { compileLabelSelector, containsLabels, matchesLabels } from '../../objects/labels/labels.ts';
import type {
  Node,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
} from '../../objects/types/core.generated.ts';
import {
  type ResourceAmounts,
  podResources,
  controllerOf,
  isNodeReady,
  lastingPorts,
  isFinished,
} from '../../objects/pods.ts';
import { parseQuantity } from '../../objects/quantity.ts';
import { untolerated, zoneLabel } from '../nodes/plan.ts';
import { pushAll } from '../../objects/lists.ts';

/** A node and its Pods. */
export interface NodeCandidate {
  readonly node: Node;
  /** The number of Pods, bound or assumed. */
  readonly pods: number;
  /** How much of a resource they request, in billionths as in quantities. */
  requested(resource: string): bigint;
  /** How many of them are of a group ({@link spreadGroup}). */
  count(group: string): number;
  /** Host ports that they have. */
  readonly hostPorts: readonly UsedHostPort[];
}

/** A port of the node that a container takes; of `hostIP` alone unless that is empty. */
export interface UsedHostPort {
  readonly protocol: string;
  readonly hostPort: number;
  readonly hostIP: string;
}

/** A Pod on a node, as anti-affinity reads it. */
export interface Neighbour {
  readonly namespace: string;
  readonly labels: Labels;
}

/** A node, or why no node fits. */
export type Placement = { readonly node: string } | { readonly message: string };

/** The group of Pods that are spread: of one controller, or with the same labels. */
function spreadGroup(pod: Pod): string {
  const { namespace = '', labels = {} } = pod.metadata;
  const controller = controllerOf(pod);
  if (controller !== undefined) return controller.uid;
  return JSON.stringify([namespace, ...Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** The host ports of a Pod. With `hostNetwork`, the API server has filled them in. */
function hostPortsOf({ spec }: Pod): readonly UsedHostPort[] {
  return lastingPorts(spec).flatMap(({ protocol = 'TCP', hostPort = 0, hostIP = '' }) =>
    hostPort === 0 ? [] : [{ protocol, hostPort, hostIP: hostIP === '0.0.0.0' ? '' : hostIP }],
  );
}

/**
 * Chooses the node of a Pod: the filters of kube-scheduler's default plugins (NodeUnschedulable, NodeName,
 * TaintToleration, NodeAffinity, NodePorts, required InterPodAffinity, NodeResourcesFit), then a spread over zones and
 * nodes.
 *
 * @param podsIn the Pods on a node, for anti-affinity; called only for Pods that have some.
 */
export function placePod(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  podsIn: (node: string) => Iterable<Neighbour>,
): Placement {
  const reasons = new Map<string, number>();
  const requests = podResources(pod, 'requests');
  const crowded = crowdedDomains(pod, candidates, podsIn);
  const ports = hostPortsOf(pod);
  const fitting = candidates.filter((candidate) => {
    const reason = obstacle(pod, ports, candidate) ?? crowded(candidate.node);
    const found = reason === undefined ? lacks(requests, candidate) : [reason];
    for (const each of found) reasons.set(each, (reasons.get(each) ?? 0) + 1);
    return found.length === 0;
  });
  const best = choose(pod, fitting, candidates);
  if (best !== undefined) return { node: best.node.metadata.name ?? '' };
  const listed = [...reasons].map(([reason, count]) => `${count} ${reason}`).sort();
  const counted = `0/${candidates.length} nodes are available`;
  return {
    message:
      listed.length === 0 ? 'no nodes available to schedule pods' : `${counted}: ${listed.join(', ')}.`,
  };
}

function obstacle(
  pod: Pod,
  wanted: readonly UsedHostPort[],
  { node, hostPorts }: NodeCandidate,
): string | undefined {
  const { spec } = node;
  const tolerations = pod.spec.tolerations ?? [];
  const cordon = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
  if (spec.unschedulable === true && untolerated([cordon], tolerations, ['NoSchedule']).length > 0) {
    return 'node(s) were unschedulable';
  }
  const [taint] = untolerated(spec.taints ?? [], tolerations, ['NoSchedule', 'NoExecute']);
  if (taint !== undefined) {
    const value = taint.value === undefined || taint.value === '' ? '' : taint.value;
    return `node(s) had untolerated taint {${taint.key}: ${value}}`;
  }
  if (!isNodeReady(node)) return 'node(s) were not ready';
  if (!matchesNode(pod.spec, node)) return "node(s) didn't match Pod's node affinity/selector";
  if (wanted.some((port) => hostPorts.some((taken) => collide(port, taken)))) {
    return "node(s) didn't have free ports for the requested pod ports";
  }
  return undefined;
}

/** `HostPortInfo.CheckConflict`: no address stands for all of them. */
function collide(a: UsedHostPort, b: UsedHostPort): boolean {
  const isSamePort = a.hostPort === b.hostPort && a.protocol === b.protocol;
  return isSamePort && (a.hostIP === b.hostIP || a.hostIP === '' || b.hostIP === '');
}

/** The resources that a node has too little of (`noderesources/fit.go` fitsRequest). */
function lacks(requests: ResourceAmounts, candidate: NodeCandidate): string[] {
  const { allocatable = {} } = candidate.node.status;
  const lacking = [...requests].filter(
    ([name, amount]) => amount > 0n && amount > amountOf(allocatable[name]) - candidate.requested(name),
  );
  const full = candidate.pods >= Number(allocatable['pods'] ?? 110) ? ['Too many pods'] : [];
  return [...full, ...lacking.map(([name]) => `Insufficient ${name}`)];
}

function amountOf(quantity: string | undefined): bigint {
  return quantity === undefined ? 0n : parseQuantity(quantity).nanos;
}

/** True when the Pod's nodeSelector and required node affinity allow the node; terms are alternatives. */
export function matchesNode(spec: PodSpec, node: Node): boolean {
  if (!containsLabels(node.metadata.labels, spec.nodeSelector ?? {})) return false;
  const terms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms === undefined || terms.some((term) => matchesTerm(term, node));
}

function matchesTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  { metadata }: Node,
): boolean {
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  const fields = new Map([['metadata.name', metadata.name ?? '']]);
  const labels = new Map(Object.entries(metadata.labels ?? {}));
  return (
    matchExpressions.every((requirement) => matchesRequirement(requirement, labels.get(requirement.key))) &&
    matchFields.every((requirement) => matchesRequirement(requirement, fields.get(requirement.key)))
  );
}

function matchesRequirement(
  { operator, values = [] }: NodeSelectorRequirement,
  value: string | undefined,
): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0]);
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return false;
  }
}

function crowdedDomains(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  podsIn: (node: string) => Iterable<Neighbour>,
): (node: Node) => string | undefined {
  const terms = pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  if (terms.length === 0) return () => undefined;
  const crowded = terms.map(({ labelSelector, topologyKey }) => {
    const selector = compileLabelSelector(labelSelector);
    const domains = new Set<string>();
    for (const { node } of candidates) {
      const domain = node.metadata.labels?.[topologyKey];
      if (domain === undefined || domains.has(domain)) continue;
      for (const other of podsIn(node.metadata.name ?? '')) {
        if (other.namespace !== (pod.metadata.namespace ?? '')) continue;
        if (matchesLabels(selector, other.labels)) domains.add(domain);
      }
    }
    return { topologyKey, domains };
  });
  return ({ metadata }) =>
    crowded.some(({ topologyKey, domains }) => domains.has(metadata.labels?.[topologyKey] ?? ''))
      ? "node(s) didn't match pod anti-affinity rules"
      : undefined;
}

/** The zone with the fewest Pods of the group, there the node with the fewest of them, then the emptiest one. */
function choose(
  pod: Pod,
  fitting: readonly NodeCandidate[],
  all: readonly NodeCandidate[],
): NodeCandidate | undefined {
  const group = spreadGroup(pod);
  const zones = new Map<string, number>();
  for (const candidate of all) {
    const zone = zoneOf(candidate);
    zones.set(zone, (zones.get(zone) ?? 0) + candidate.count(group));
  }
  const tolerations = pod.spec.tolerations ?? [];
  let best: NodeCandidate | undefined;
  let lowest: readonly number[] = [];
  for (const candidate of fitting) {
    const score = [
      untolerated(candidate.node.spec.taints ?? [], tolerations, ['PreferNoSchedule']).length,
      zones.get(zoneOf(candidate)) ?? 0,
      candidate.count(group),
      candidate.pods,
    ];
    if (best === undefined || isLower(score, lowest)) {
      best = candidate;
      lowest = score;
    }
  }
  return best;
}

function zoneOf({ node }: NodeCandidate): string {
  return node.metadata.labels?.[zoneLabel] ?? '';
}

function isLower(a: readonly number[], b: readonly number[]): boolean {
  for (const [i, value] of a.entries()) {
    const other = b[i] ?? 0;
    if (value !== other) return value < other;
  }
  return false;
}

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
