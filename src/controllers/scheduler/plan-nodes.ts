/** Which nodes a Pod may be on by itself: kube-scheduler's plugins from NodeUnschedulable to NodeResourcesFit. */
import { containsLabels } from '../../objects/selectors/labels.ts';
import type {
  Node,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
} from '../../objects/types/core.generated.ts';
import type { ResourceAmounts } from '../../objects/pods.ts';
import { parseQuantity } from '../../objects/formats/quantity.ts';
import { untolerated } from '../nodes/plan.ts';
import { collide, type NodeCandidate, type UsedHostPort } from './occupancy.ts';

/** Why a node is not for a Pod: the words of the filter that it does not pass, each counted. */
export interface Obstacle {
  readonly reasons: readonly string[];
  /** True where no Pod that leaves the node would help (`UnschedulableAndUnresolvable`). */
  readonly isLasting: boolean;
}

/** A reason that lasts as long as the node and the Pod are what they are. */
export const lasting = (reason: string): Obstacle => ({ reasons: [reason], isLasting: true });
/** A reason that may go with another Pod. */
export const passing = (reason: string): Obstacle => ({ reasons: [reason], isLasting: false });

export function unsuitable(pod: Pod, { node, isReady }: NodeCandidate): Obstacle | undefined {
  const { spec } = node;
  const tolerations = pod.spec.tolerations ?? [];
  const cordon = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
  if (spec.unschedulable === true && untolerated([cordon], tolerations, ['NoSchedule']).length > 0) {
    return lasting('node(s) were unschedulable');
  }
  const { taints } = spec;
  if (taints !== undefined && untolerated(taints, tolerations, ['NoSchedule', 'NoExecute']).length > 0) {
    return lasting('node(s) had untolerated taint(s)');
  }
  if (!isReady) return lasting('node(s) were not ready');
  return matchesNode(pod.spec, node)
    ? undefined
    : lasting("node(s) didn't match Pod's node affinity/selector");
}

export function withoutPorts(
  wanted: readonly UsedHostPort[],
  candidate: NodeCandidate,
): Obstacle | undefined {
  if (wanted.length === 0) return undefined;
  const taken = candidate.hostPorts();
  return wanted.some((port) => taken.some((other) => collide(port, other)))
    ? passing("node(s) didn't have free ports for the requested pod ports")
    : undefined;
}

/** The resources that a node has too little of (`noderesources/fit.go` fitsRequest). */
export function lacking(requests: ResourceAmounts, candidate: NodeCandidate): Obstacle | undefined {
  const { allocatable = {} } = candidate.node.status;
  const reasons: string[] = [];
  if (candidate.pods >= Number(allocatable['pods'] ?? 110)) reasons.push('Too many pods');
  let isLasting = false;
  for (const [name, amount] of requests) {
    if (amount <= 0n) continue;
    const total = amountOf(allocatable[name]);
    if (amount <= total - candidate.requested(name)) continue;
    reasons.push(`Insufficient ${name}`);
    isLasting ||= amount > total;
  }
  return reasons.length === 0 ? undefined : { reasons, isLasting };
}

function amountOf(quantity: string | undefined): bigint {
  return quantity === undefined ? 0n : parseQuantity(quantity).nanos;
}

/** True when the Pod's nodeSelector and required node affinity allow the node; terms are alternatives. */
export function matchesNode(spec: PodSpec, node: Node): boolean {
  if (!containsLabels(node.metadata.labels, spec.nodeSelector ?? {})) return false;
  const terms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms === undefined || matchesTerms(terms, node);
}

/** True when one of the terms selects the node. */
export function matchesTerms(terms: readonly NodeSelectorTerm[], node: Node): boolean {
  return terms.some((term) => matchesTerm(term, node));
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
