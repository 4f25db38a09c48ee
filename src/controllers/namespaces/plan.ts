/**
 * The conditions of a namespace that is being emptied, and when it is empty (pkg/controller/namespace/deletion). Pure.
 */
import type { Namespace, PodCondition } from '../../objects/types/core.generated.ts';

/** The finalizer in `spec.finalizers` that the namespace controller removes. */
const kubernetesFinalizer = 'kubernetes';

/** The result of one pass over the content of a namespace. */
export interface Pass {
  /** Group versions that could not be discovered, each with its reason. */
  readonly discoveryFailures: readonly string[];
  /** Deletions and lists that failed, each with its reason. */
  readonly contentErrors: readonly string[];
  /** `resource.group` → the number of its remaining objects. */
  readonly remaining: ReadonlyMap<string, number>;
  /** Finalizer → the number of remaining objects that wait for it. */
  readonly finalizers: ReadonlyMap<string, number>;
}

interface Finding {
  type: string;
  reason: string;
  message: string;
}

const fine: readonly Finding[] = [
  {
    type: 'NamespaceDeletionDiscoveryFailure',
    reason: 'ResourcesDiscovered',
    message: 'All resources successfully discovered',
  },
  {
    type: 'NamespaceDeletionGroupVersionParsingFailure',
    reason: 'ParsedGroupVersions',
    message: 'All legacy kube types successfully parsed',
  },
  {
    type: 'NamespaceDeletionContentFailure',
    reason: 'ContentDeleted',
    message: 'All content successfully deleted, may be waiting on finalization',
  },
  {
    type: 'NamespaceContentRemaining',
    reason: 'ContentRemoved',
    message: 'All content successfully removed',
  },
  {
    type: 'NamespaceFinalizersRemaining',
    reason: 'ContentRemoved',
    message: 'All content successfully removed',
  },
];

/** True when nothing remains and nothing failed: the namespace can be finalized. */
export function isEmptied(pass: Pass): boolean {
  return pass.discoveryFailures.length === 0 && pass.contentErrors.length === 0 && pass.remaining.size === 0;
}

/**
 * The conditions of a namespace after a pass; undefined when they are unchanged.
 *
 * @param now RFC 3339.
 */
export function planConditions(
  conditions: readonly PodCondition[] | undefined,
  pass: Pass,
  now: string,
): PodCondition[] | undefined {
  const problems = problemsOf(pass);
  const result = [...(conditions ?? [])];
  let changed = false;
  for (const good of fine) {
    const problem = problems.find(({ type }) => type === good.type);
    const { type, reason, message } = problem ?? good;
    const status = problem === undefined ? 'False' : 'True';
    const at = result.findIndex((condition) => condition.type === type);
    const old = result[at];
    if (old?.status === status && old.reason === reason && old.message === message) continue;
    const lastTransitionTime = old?.status === status ? (old.lastTransitionTime ?? now) : now;
    const next: PodCondition = { type, status, lastTransitionTime, reason, message };
    if (at === -1) result.push(next);
    else result[at] = next;
    changed = true;
  }
  return changed ? result : undefined;
}

function problemsOf({ discoveryFailures, contentErrors, remaining, finalizers }: Pass): Finding[] {
  const problems: Finding[] = [];
  if (discoveryFailures.length > 0) {
    problems.push({
      type: 'NamespaceDeletionDiscoveryFailure',
      reason: 'DiscoveryFailed',
      message: `Discovery failed for some groups, ${discoveryFailures.length} failing: unable to retrieve the complete list of server APIs: ${discoveryFailures.join(', ')}`,
    });
  }
  if (contentErrors.length > 0) {
    problems.push({
      type: 'NamespaceDeletionContentFailure',
      reason: 'ContentDeletionFailed',
      message: `Failed to delete all resource types, ${contentErrors.length} remaining: ${[...contentErrors].sort().join(', ')}`,
    });
  }
  if (remaining.size > 0) {
    const texts = [...remaining].map(([name, count]) => `${name} has ${count} resource instances`);
    problems.push({
      type: 'NamespaceContentRemaining',
      reason: 'SomeResourcesRemain',
      message: `Some resources are remaining: ${texts.sort().join(', ')}`,
    });
  }
  if (finalizers.size > 0) {
    const texts = [...finalizers].map(([name, count]) => `${name} in ${count} resource instances`);
    problems.push({
      type: 'NamespaceFinalizersRemaining',
      reason: 'SomeFinalizersRemain',
      message: `Some content in the namespace has finalizers remaining: ${texts.sort().join(', ')}`,
    });
  }
  return problems;
}

/** The namespace without the controller's finalizer, as the body of `/finalize`. */
export function finalized(namespace: Namespace): Namespace {
  const finalizers = (namespace.spec.finalizers ?? []).filter((name) => name !== kubernetesFinalizer);
  return { ...namespace, spec: { ...namespace.spec, finalizers } };
}
