import type { Labels } from '../../objects/selectors/label-selector.ts';
import {
  compileLabelSelector,
  matchesLabels,
  type ParsedLabelSelector,
} from '../../objects/selectors/labels.ts';
import type {
  Node,
  Pod,
  PodAffinityTerm,
  TopologySpreadConstraint,
  PodSpec,
} from '../../objects/types/core.generated.ts';
import { untolerated, zoneLabel } from '../nodes/plan.ts';
import {
  lasting,
  matchesNode,
  type Obstacle,
  passing,
  lacking,
  unsuitable,
  withoutPorts,
} from './plan-nodes.ts';
import { type Neighbour, type NodeCandidate, hostPortsOf, priorityOf, spreadGroup } from './occupancy.ts';
import { pushAll } from '../../objects/lists.ts';
import { podResources } from '../../objects/pods.ts';

/** Which nodes a Pod's neighbours leave to it (kube-scheduler's plugins PodTopologySpread and InterPodAffinity). */

/** The labels of a namespace; undefined: they are not known. */
type NamespaceLabels = (namespace: string) => Labels | undefined;

type Filter = (node: Node) => Obstacle | undefined;

const passesAll: Filter = () => undefined;
const spreadReason = "node(s) didn't match pod topology spread constraints";

/** What neighbours say: spread first, then affinity, as in the order of the default plugins. */
function neighbourFilter(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  namespaceLabels: NamespaceLabels,
): Filter {
  const filters = [
    spreadFilter(pod, candidates),
    affinityFilter(pod, candidates, namespaceLabels),
    antiAffinityFilter(pod, candidates, namespaceLabels),
    existingFilter(pod, candidates, namespaceLabels),
  ].filter((filter) => filter !== passesAll);
  return (node) => {
    for (const filter of filters) {
      const obstacle = filter(node);
      if (obstacle !== undefined) return obstacle;
    }
    return undefined;
  };
}

/** `topologySpreadConstraints` that are `DoNotSchedule` (podtopologyspread/filtering.go). */
function spreadFilter(pod: Pod, candidates: readonly NodeCandidate[]): Filter {
  const constraints = (pod.spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  );
  if (constraints.length === 0) return passesAll;
  const hasAll = ({ metadata: { labels = {} } }: Node): boolean =>
    constraints.every(({ topologyKey }) => Object.hasOwn(labels, topologyKey));
  const spread = candidates.filter(({ node }) => hasAll(node));
  const counted = constraints.map((constraint) => {
    const selector = compileLabelSelector(constraint.labelSelector);
    const counts = new Map<string, number>();
    for (const { node, neighbours } of spread.filter(({ node }) => isIncluded(pod, node, constraint))) {
      const domain = node.metadata.labels?.[constraint.topologyKey] ?? '';
      const count = countMatching(neighbours, selector, pod.metadata.namespace ?? '');
      counts.set(domain, (counts.get(domain) ?? 0) + count);
    }
    const isFew = counts.size < (constraint.minDomains ?? 1);
    const least = isFew ? 0 : [...counts.values()].reduce((a, b) => Math.min(a, b), Infinity);
    const own = matchesLabels(selector, pod.metadata.labels) ? 1 : 0;
    return { constraint, counts, most: least + constraint.maxSkew - own };
  });
  return ({ metadata: { labels = {} } }) => {
    for (const { constraint, counts, most } of counted) {
      const domain = labels[constraint.topologyKey];
      if (domain === undefined) return lasting(`${spreadReason} (missing required label)`);
      if ((counts.get(domain) ?? 0) > most) return passing(spreadReason);
    }
    return undefined;
  };
}

/** Whether the Pods of a node count: by default also behind a taint, and not where the Pod may never be. */
function isIncluded(pod: Pod, node: Node, constraint: TopologySpreadConstraint): boolean {
  const { nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' } = constraint;
  if (nodeAffinityPolicy === 'Honor' && !matchesNode(pod.spec, node)) return false;
  if (nodeTaintsPolicy !== 'Honor') return true;
  const taints = node.spec.taints ?? [];
  return untolerated(taints, pod.spec.tolerations ?? [], ['NoSchedule', 'NoExecute']).length === 0;
}

function countMatching(
  neighbours: Iterable<Neighbour>,
  selector: ParsedLabelSelector,
  namespace: string,
): number {
  if (selector === 'nothing' || selector.length === 0) return 0;
  let count = 0;
  for (const { isTerminating, labels, namespace: own } of neighbours) {
    if (!isTerminating && own === namespace && matchesLabels(selector, labels)) count++;
  }
  return count;
}

/** A term of affinity, for Pods as its owner means them. */
interface Term {
  readonly topologyKey: string;
  matches(other: Pick<Neighbour, 'namespace' | 'labels'>): boolean;
}

/** @param own the namespace that is meant where none is named. */
function readTerm(
  { labelSelector, topologyKey, namespaces = [], namespaceSelector }: PodAffinityTerm,
  own: string,
  namespaceLabels: NamespaceLabels,
): Term {
  const selector = compileLabelSelector(labelSelector);
  const spaces = compileLabelSelector(namespaceSelector);
  const isOwn = namespaces.length === 0 && namespaceSelector === undefined;
  const isMeant = (namespace: string): boolean =>
    isOwn
      ? namespace === own
      : namespaces.includes(namespace) || matchesLabels(spaces, namespaceLabels(namespace));
  return {
    topologyKey,
    matches: ({ namespace, labels }) => isMeant(namespace) && matchesLabels(selector, labels),
  };
}

function termsOf(
  pod: Pod,
  terms: readonly PodAffinityTerm[] | undefined,
  namespaceLabels: NamespaceLabels,
): readonly Term[] {
  return (terms ?? []).map((term) => readTerm(term, pod.metadata.namespace ?? '', namespaceLabels));
}

function identityOf({ metadata }: Pod): Pick<Neighbour, 'namespace' | 'labels'> {
  return { namespace: metadata.namespace ?? '', labels: metadata.labels ?? {} };
}

/** The domains of a term where a Pod is that is meant. */
function domainsOf(
  { topologyKey }: Term,
  candidates: readonly NodeCandidate[],
  isMeant: (other: Neighbour) => boolean,
): ReadonlySet<string> {
  const domains = new Set<string>();
  for (const { node, neighbours } of candidates) {
    const domain = node.metadata.labels?.[topologyKey];
    if (domain === undefined || domains.has(domain)) continue;
    for (const other of neighbours) if (isMeant(other)) domains.add(domain);
  }
  return domains;
}

/** Each required term needs a Pod in the domain that all of them mean; the first of a group needs none. */
function affinityFilter(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  namespaceLabels: NamespaceLabels,
): Filter {
  const required = pod.spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = termsOf(pod, required, namespaceLabels);
  if (terms.length === 0) return passesAll;
  const matchesAll = (other: Pick<Neighbour, 'namespace' | 'labels'>): boolean =>
    terms.every((term) => term.matches(other));
  const found = terms.map((term) => ({ term, domains: domainsOf(term, candidates, matchesAll) }));
  const isFirst = found.every(({ domains }) => domains.size === 0) && matchesAll(identityOf(pod));
  return ({ metadata: { labels = {} } }) => {
    const fits = found.every(({ term: { topologyKey }, domains }) => {
      const domain = labels[topologyKey];
      return domain !== undefined && (isFirst || domains.has(domain));
    });
    return fits ? undefined : lasting("node(s) didn't match pod affinity rules");
  };
}

function antiAffinityFilter(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  namespaceLabels: NamespaceLabels,
): Filter {
  const required = pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = termsOf(pod, required, namespaceLabels);
  if (terms.length === 0) return passesAll;
  const crowded = terms.map((term) => ({
    term,
    domains: domainsOf(term, candidates, (other) => term.matches(other)),
  }));
  return ({ metadata: { labels = {} } }) =>
    crowded.some(({ term, domains }) => domains.has(labels[term.topologyKey] ?? ''))
      ? passing("node(s) didn't match pod anti-affinity rules")
      : undefined;
}

/** The required anti-affinity of Pods that are there. */
function existingFilter(
  pod: Pod,
  candidates: readonly NodeCandidate[],
  namespaceLabels: NamespaceLabels,
): Filter {
  const own = identityOf(pod);
  const refused = new Map<string, Set<string>>();
  for (const { node, withAntiAffinity } of candidates) {
    for (const { antiAffinity, namespace } of withAntiAffinity) {
      for (const written of antiAffinity) {
        const domain = node.metadata.labels?.[written.topologyKey];
        if (domain === undefined || !readTerm(written, namespace, namespaceLabels).matches(own)) continue;
        const domains = refused.get(written.topologyKey) ?? new Set();
        refused.set(written.topologyKey, domains.add(domain));
      }
    }
  }
  if (refused.size === 0) return passesAll;
  return ({ metadata: { labels = {} } }) =>
    [...refused].some(([key, domains]) => domains.has(labels[key] ?? ''))
      ? passing("node(s) didn't satisfy existing pods anti-affinity rules")
      : undefined;
}

/** A node, or why no node fits. */
type Placement = { readonly node: string } | { readonly message: string };

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
