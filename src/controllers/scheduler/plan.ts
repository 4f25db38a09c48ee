import { pushAll } from '../../objects/lists.ts';
import { podResources } from '../../objects/pods.ts';
import type { Node, Pod, PodSpec } from '../../objects/types/core.generated.ts';
import { untolerated, zoneLabel } from '../nodes/plan.ts';
import { lacking, lasting, type Obstacle, unsuitable, withoutPorts } from './plan-nodes.ts';
import { hostPortsOf, type NodeCandidate, priorityOf, spreadGroup } from './occupancy.ts';
import { type NamespaceLabels, neighbourFilter } from './plan-neighbours.ts';

/** A node, or why no node fits. */
export type Placement = { readonly node: string } | { readonly message: string };

/** What the volumes of a Pod say of nodes. */
export interface VolumeFilter {
  /** Why no node is for the Pod (PreFilter). */
  readonly problem: string | undefined;
  /** @param below the node is seen as if its Pods of a lower priority had left. */
  obstacle(node: Node, below?: number): Obstacle | undefined;
}

const noVolumes: VolumeFilter = { problem: undefined, obstacle: () => undefined };

/**
 * Chooses the node of a Pod: the filters of kube-scheduler's default plugins in their order (NodeUnschedulable,
 * TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, those of volumes, PodTopologySpread, InterPodAffinity), then a
 * spread over zones and nodes.
 */
export function placePod(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  volumes: VolumeFilter = noVolumes,
  namespaceLabels: NamespaceLabels = () => undefined,
): Placement {
  if (candidates.length === 0) return { message: 'no nodes available to schedule pods' };
  const named = nodesNamedBy(pod.spec);
  const problem = named?.size === 0 ? 'pod affinity terms conflict' : volumes.problem;
  if (problem !== undefined) {
    return { message: `${noneOf(candidates)}: ${problem}. ${preemption(pod, candidates, noNodes, noRetry)}` };
  }
  const filter = filterFor(pod, candidates, volumes, namespaceLabels);
  const obstacles = new Map<NodeCandidate, Obstacle>();
  const fitting = candidates.filter((candidate) => {
    const isNamed = named?.has(candidate.node.metadata.name ?? '') ?? true;
    const obstacle = isNamed ? filter(candidate) : lasting("node(s) didn't satisfy plugin(s) [NodeAffinity]");
    if (obstacle !== undefined) obstacles.set(candidate, obstacle);
    return obstacle === undefined;
  });
  const best = choose(pod, fitting, candidates);
  if (best !== undefined) return { node: best.node.metadata.name ?? '' };
  const unfit = counted([...obstacles.values()].flatMap(({ reasons }) => reasons));
  const retry = (candidate: NodeCandidate, left: NodeCandidate): Obstacle | undefined => {
    const others = candidates.map((each) => (each === candidate ? left : each));
    return filterFor(pod, others, volumes, namespaceLabels, priorityOf(pod))(left);
  };
  return { message: `${noneOf(candidates)}: ${unfit}. ${preemption(pod, candidates, obstacles, retry)}` };
}

const noNodes: ReadonlyMap<NodeCandidate, Obstacle> = new Map();
const noRetry = (): undefined => undefined;

function noneOf(candidates: readonly NodeCandidate[]): string {
  return `0/${candidates.length} nodes are available`;
}

/** How often each reason is given (`FitError.Error`). */
function counted(reasons: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts]
    .map(([reason, count]) => `${count} ${reason}`)
    .sort()
    .join(', ');
}

/**
 * Whether room could be made for a Pod, in the words of plugins/defaultpreemption and framework/preemption. None is made
 * here: where it could be, that is said.
 *
 * @param obstacles those that filters found.
 * @param retry what keeps the Pod from a node that some Pods have left.
 */
function preemption(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  obstacles: ReadonlyMap<NodeCandidate, Obstacle>,
  retry: (candidate: NodeCandidate, left: NodeCandidate) => Obstacle | undefined,
): string {
  if (pod.spec.preemptionPolicy === 'Never') return 'preemption: not eligible due to preemptionPolicy=Never.';
  const reasons: string[] = [];
  for (const candidate of candidates) {
    if (obstacles.get(candidate)?.isLasting !== false) {
      reasons.push('Preemption is not helpful for scheduling');
      continue;
    }
    const left = candidate.withoutBelow(priorityOf(pod));
    const found =
      left === undefined ? lasting('No preemption victims found for incoming pod') : retry(candidate, left);
    if (found === undefined) return 'preemption: not simulated, Pods of a lower priority stay.';
    pushAll(reasons, found.reasons);
  }
  return `preemption: ${noneOf(candidates)}: ${counted(reasons)}.`;
}

/** The nodes to which required affinity limits a Pod by name (NodeAffinity's PreFilter); undefined: it does not. */
function nodesNamedBy({ affinity }: PodSpec): ReadonlySet<string> | undefined {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (terms === undefined || terms.length === 0) return undefined;
  const names = new Set<string>();
  for (const { matchFields = [] } of terms) {
    const [first, ...others] = matchFields
      .filter(({ key, operator }) => key === 'metadata.name' && operator === 'In')
      .map(({ values = [] }) => values);
    if (first === undefined) return undefined;
    for (const name of first) if (others.every((values) => values.includes(name))) names.add(name);
  }
  return names;
}

/** @param below the node is one that the Pods of a lower priority have left. */
function filterFor(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  volumes: VolumeFilter,
  namespaceLabels: NamespaceLabels,
  below?: number,
): (candidate: NodeCandidate) => Obstacle | undefined {
  const requests = podResources(pod, 'requests');
  const ports = hostPortsOf(pod);
  const byNeighbours = neighbourFilter(pod, candidates, namespaceLabels);
  return (candidate) =>
    unsuitable(pod, candidate) ??
    withoutPorts(ports, candidate) ??
    lacking(requests, candidate) ??
    volumes.obstacle(candidate.node, below) ??
    byNeighbours(candidate.node);
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
    const count = candidate.count(group);
    if (count === 0) continue;
    const zone = zoneOf(candidate);
    zones.set(zone, (zones.get(zone) ?? 0) + count);
  }
  const tolerations = pod.spec.tolerations ?? [];
  // From the most to the least important one. No lists are made: there may be a thousand nodes for each of many Pods.
  const scores: readonly ((candidate: NodeCandidate) => number)[] = [
    ({ node: { spec } }) =>
      spec.taints === undefined ? 0 : untolerated(spec.taints, tolerations, ['PreferNoSchedule']).length,
    (candidate) => zones.get(zoneOf(candidate)) ?? 0,
    (candidate) => candidate.count(group),
    (candidate) => candidate.pods,
  ];
  let best: NodeCandidate | undefined;
  const lowest = scores.map(() => Number.POSITIVE_INFINITY);
  for (const candidate of fitting) if (lowers(candidate, scores, lowest)) best = candidate;
  return best;
}

function zoneOf({ node }: NodeCandidate): string {
  return node.metadata.labels?.[zoneLabel] ?? '';
}

/** Whether the scores of one are lower than the lowest ones so far, which they are from then on. */
function lowers<T>(one: T, scores: readonly ((one: T) => number)[], lowest: number[]): boolean {
  let isLower = false;
  for (let i = 0; i < scores.length; i++) {
    const value = scores[i]?.(one) ?? 0;
    const least = lowest[i] ?? 0;
    if (!isLower && value > least) return false;
    isLower ||= value < least;
    lowest[i] = value;
  }
  return isLower;
}
