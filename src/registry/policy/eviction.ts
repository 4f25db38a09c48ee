import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { StatusError } from '../../objects/status.ts';
import { labelSelectorMatches } from '../validation/label-selector.ts';

/** Seconds after which a refused client may try again. */
const retryAfterSeconds = 10;

/**
 * Decides `POST /eviction` before the Pod is deleted (`pkg/registry/core/pod/storage/eviction.go`).
 *
 * @param budgets all of the Pod's namespace.
 * @returns the budget that the eviction uses up by one, or undefined when none applies.
 * @throws {StatusError} 429 when the budget allows no disruption, 500 when several budgets cover the Pod.
 */
export function admitEviction(
  pod: Pod,
  budgets: readonly PodDisruptionBudget[],
): PodDisruptionBudget | undefined {
  const { phase } = pod.status;
  const finished = phase === 'Succeeded' || phase === 'Failed' || phase === 'Pending';
  if (finished || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const covering = budgets.filter(
    ({ spec }) =>
      spec.selector !== undefined && labelSelectorMatches(spec.selector, pod.metadata.labels) === true,
  );
  const [budget, another] = covering;
  if (another !== undefined) {
    const message =
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
    throw new StatusError(500, 'InternalError', message);
  }
  if (budget === undefined || allowsUnready(pod, budget)) return undefined;
  if ((budget.status.disruptionsAllowed ?? 0) > 0) return budget;
  throw refused(budget);
}

/** Unready Pods may always be evicted if the budget says so, or when the budget is healthy. */
function allowsUnready(pod: Pod, { spec, status }: PodDisruptionBudget): boolean {
  const ready = (pod.status.conditions ?? []).some(
    (condition) => condition.type === 'Ready' && condition.status === 'True',
  );
  if (ready) return false;
  if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  return currentHealthy >= desiredHealthy && desiredHealthy > 0;
}

function refused({ metadata, status }: PodDisruptionBudget): StatusError {
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  const name = metadata.name ?? '';
  const budget = `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  const message = "Cannot evict pod as it would violate the pod's disruption budget.";
  return new StatusError(429, 'TooManyRequests', message, {
    details: { causes: [{ reason: 'DisruptionBudget', message: budget }], retryAfterSeconds },
    headers: { 'Retry-After': String(retryAfterSeconds) },
  });
}
