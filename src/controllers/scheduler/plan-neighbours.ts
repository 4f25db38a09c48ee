/** Which nodes a Pod's neighbours leave to it (kube-scheduler's plugins PodTopologySpread and InterPodAffinity). */
import type { Labels } from '../../objects/labels/label-selector.ts';
import {
  compileLabelSelector,
  matchesLabels,
  type ParsedLabelSelector,
} from '../../objects/labels/labels.ts';
import type {
  Node,
  Pod,
  PodAffinityTerm,
  TopologySpreadConstraint,
} from '../../objects/types/core.generated.ts';
import { untolerated } from '../nodes/plan.ts';
import { lasting, matchesNode, type Obstacle, passing } from './plan-nodes.ts';
import type { Neighbour, NodeCandidate } from './occupancy.ts';

/** The labels of a namespace; undefined: they are not known. */
export type NamespaceLabels = (namespace: string) => Labels | undefined;

type Filter = (node: Node) => Obstacle | undefined;

const passesAll: Filter = () => undefined;
const spreadReason = "node(s) didn't match pod topology spread constraints";

/** What neighbours say: spread first, then affinity, as in the order of the default plugins. */
export function neighbourFilter(
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
