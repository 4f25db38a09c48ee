/** The deviations of a rollout from the number of replicas (pkg/controller/deployment/util, `ResolveFenceposts`). */
import type { Deployment } from '../../../objects/types/apps.generated.ts';
import { scaledValue } from '../plan-scaled-value.ts';

function fenceposts({ spec }: Deployment): { surge: number; unavailable: number } {
  const replicas = spec.replicas ?? 0;
  const rolling = spec.strategy?.rollingUpdate;
  const surge = scaledValue(rolling?.maxSurge, replicas, 'up');
  const unavailable = scaledValue(rolling?.maxUnavailable, replicas, 'down');
  // Both round to 0: then no rollout could begin.
  return surge === 0 && unavailable === 0 ? { surge, unavailable: 1 } : { surge, unavailable };
}

/** True for the strategy RollingUpdate. */
export function isRolling({ spec }: Deployment): boolean {
  return spec.strategy?.type !== 'Recreate';
}

/** How many Pods there may be above the number of replicas. */
export function maxSurge(deployment: Deployment): number {
  return isRolling(deployment) ? fenceposts(deployment).surge : 0;
}

/** How many Pods may be unavailable. */
export function maxUnavailable(deployment: Deployment): number {
  const replicas = deployment.spec.replicas ?? 0;
  if (!isRolling(deployment) || replicas === 0) return 0;
  return Math.min(fenceposts(deployment).unavailable, replicas);
}
