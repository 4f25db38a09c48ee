import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { forbidden, type StatusCause, StatusError } from '../../objects/status.ts';
import { labelSelectorMatches } from '../validation/label-selector.ts';

/** Seconds after which a client may try again whose budget the disruption controller has not looked at. */
const processingSeconds = 10;
/** `MaxDisruptedPodSize`. */
const maxDisruptedPods = 2000;

/**
 * Decides `POST /eviction` before the Pod is deleted (`pkg/registry/core/pod/storage/eviction.go`).
 *
 * @param budgets all of the Pod's namespace.
 * @returns the budget that the eviction uses up by one, or undefined when none applies.
 * @throws {StatusError} 429 when the budget allows no disruption or is new, 403 when its status is broken, 500 when
 *   several budgets cover the Pod.
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
  checkStatus(budget);
  return budget;
}

/** `checkAndDecrement`. @throws {StatusError} */
function checkStatus({ metadata, status }: PodDisruptionBudget): void {
  const { name = '', generation = 0 } = metadata;
  const { observedGeneration = 0, disruptionsAllowed = 0, disruptedPods = {} } = status;
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  if (observedGeneration < generation) {
    throw refused(`The disruption budget ${name} is still being processed by the server.`, processingSeconds);
  }
  const resource = { group: 'policy', resource: 'poddisruptionbudget' };
  const doesNotAllow = `The disruption budget ${name} does not allow evicting pods currently`;
  if (disruptionsAllowed < 0) {
    const why = 'pdb disruptions allowed is negative';
    throw forbidden(resource, name, why, [causeOf(`${doesNotAllow}: ${why}`)]);
  }
  if (Object.keys(disruptedPods).length > maxDisruptedPods) {
    const why = 'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    const cause = 'too many pending evictions not confirmed by PDB controller';
    throw forbidden(resource, name, why, [causeOf(`${doesNotAllow}: ${cause}`)]);
  }
  if (disruptionsAllowed > 0) return;
  // Without Retry-After: client-go would wait by itself, and its caller not get to know.
  const disallowed = (status.conditions ?? []).find(
    (condition) => condition.type === 'DisruptionAllowed' && condition.status === 'False',
  );
  const { reason = '', message = '' } = disallowed ?? {};
  if (message !== '' && reason === 'SyncFailed') {
    throw refused(`${doesNotAllow} because it failed sync: ${message}`);
  }
  if (currentHealthy <= desiredHealthy) {
    throw refused(
      `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
    );
  }
  throw refused(message === '' ? doesNotAllow : `${doesNotAllow} (${reason}): ${message}`);
}

function causeOf(message: string): StatusCause {
  return { reason: 'DisruptionBudget', message };
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

function refused(cause: string, retryAfterSeconds?: number): StatusError {
  const message = "Cannot evict pod as it would violate the pod's disruption budget.";
  return new StatusError(429, 'TooManyRequests', message, {
    details: {
      causes: [causeOf(cause)],
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
  });
}
