/** The next number of replicas of each ReplicaSet (pkg/controller/deployment: rolling.go, recreate.go, sync.go). */
import type { Deployment, ReplicaSet } from '../../../objects/types/apps.generated.ts';
import { byCreation } from '../../../objects/pods.ts';
import { isRolling, maxSurge, maxUnavailable } from './plan-limits.ts';
import { desiredReplicasAnnotation, type Generations, maxReplicasAnnotation } from './plan-revisions.ts';

/** A ReplicaSet and its wanted size. */
export interface Resize {
  readonly replicaSet: ReplicaSet;
  readonly replicas: number;
}

function size(replicaSet: ReplicaSet): number {
  return replicaSet.spec.replicas ?? 0;
}

function sum(replicaSets: readonly ReplicaSet[], count: (replicaSet: ReplicaSet) => number): number {
  return replicaSets.reduce((total, replicaSet) => total + count(replicaSet), 0);
}

function available({ status }: ReplicaSet): number {
  return status.availableReplicas ?? 0;
}

function all({ newest, old }: Generations): ReplicaSet[] {
  return newest === undefined ? [...old] : [...old, newest];
}

/** The size of the newest ReplicaSet, within what the surge allows (`NewRSNewReplicas`). */
export function newestSize(deployment: Deployment, generations: Generations): number {
  const wanted = deployment.spec.replicas ?? 0;
  const present = generations.newest === undefined ? 0 : size(generations.newest);
  if (present >= wanted || !isRolling(deployment)) return wanted;
  const room = wanted + maxSurge(deployment) - sum(all(generations), size);
  return room <= 0 ? present : present + Math.min(room, wanted - present);
}

/** The sizes of the old ReplicaSets now (`reconcileOldReplicaSets`). */
export function shrinkOld(deployment: Deployment, generations: Generations): Resize[] {
  const { newest, old } = generations;
  const active = old.filter((replicaSet) => size(replicaSet) > 0).sort(byCreation);
  if (active.length === 0) return [];
  const minAvailable = (deployment.spec.replicas ?? 0) - maxUnavailable(deployment);
  const newestUnavailable = newest === undefined ? 0 : size(newest) - available(newest);
  const removable = sum(all(generations), size) - minAvailable - newestUnavailable;
  if (removable <= 0) return [];

  const sizes = new Map(active.map((replicaSet) => [replicaSet, size(replicaSet)]));
  // Unavailable replicas receive no traffic: they are removed first.
  let left = removable;
  for (const replicaSet of active) {
    const unhealthy = Math.min(left, size(replicaSet) - available(replicaSet));
    if (unhealthy <= 0) continue;
    sizes.set(replicaSet, size(replicaSet) - unhealthy);
    left -= unhealthy;
  }
  let surplus = sum(all(generations), available) - minAvailable;
  for (const replicaSet of active) {
    if (surplus <= 0) break;
    const present = sizes.get(replicaSet) ?? 0;
    const fewer = Math.min(present, surplus);
    sizes.set(replicaSet, present - fewer);
    surplus -= fewer;
  }
  return resizes(sizes);
}

/** All old ReplicaSets to 0: Recreate. */
export function emptyOld(generations: Generations): Resize[] {
  return resizes(new Map(generations.old.map((replicaSet) => [replicaSet, 0])));
}

/** True when the Deployment was scaled since a ReplicaSet was last sized (`isScalingEvent`). */
export function isScaled(deployment: Deployment, generations: Generations): boolean {
  return all(generations).some((replicaSet) => {
    const desired = noted(replicaSet, desiredReplicasAnnotation);
    return size(replicaSet) > 0 && desired !== undefined && desired !== (deployment.spec.replicas ?? 0);
  });
}

/** The sizes after the Deployment was scaled: a running rollout is scaled in proportion (`scale`). */
export function scaleAll(deployment: Deployment, generations: Generations): Resize[] {
  const wanted = deployment.spec.replicas ?? 0;
  const { newest, old } = generations;
  const active = all(generations).filter((replicaSet) => size(replicaSet) > 0);
  if (active.length <= 1) {
    const only = active[0] ?? newest ?? old.at(-1);
    return only === undefined ? [] : [{ replicaSet: only, replicas: wanted }];
  }
  if (newest !== undefined && isSaturated(deployment, newest)) {
    return resizes(new Map(old.map((replicaSet) => [replicaSet, 0])));
  }
  if (!isRolling(deployment)) return [];
  return proportional(deployment, active, wanted);
}

function isSaturated(deployment: Deployment, replicaSet: ReplicaSet): boolean {
  const wanted = deployment.spec.replicas ?? 0;
  return (
    size(replicaSet) === wanted &&
    noted(replicaSet, desiredReplicasAnnotation) === wanted &&
    available(replicaSet) === wanted
  );
}

/** Includes active ReplicaSets that keep their size: their annotations get the new total. */
function proportional(deployment: Deployment, active: readonly ReplicaSet[], wanted: number): Resize[] {
  const allowed = wanted > 0 ? wanted + maxSurge(deployment) : 0;
  const toAdd = allowed - sum(active, size);
  const sorted = [...active].sort((a, b) => {
    if (size(a) !== size(b)) return size(b) - size(a);
    return toAdd > 0 ? byCreation(b, a) : byCreation(a, b);
  });
  const sizes = new Map<ReplicaSet, number>();
  let added = 0;
  for (const replicaSet of sorted) {
    const share = toAdd === 0 ? 0 : proportionOf(deployment, replicaSet, toAdd, added);
    sizes.set(replicaSet, size(replicaSet) + share);
    added += share;
  }
  const [largest] = sorted;
  if (largest !== undefined) {
    sizes.set(largest, Math.max(0, (sizes.get(largest) ?? 0) + toAdd - added));
  }
  return [...sizes].map(([replicaSet, replicas]) => ({ replicaSet, replicas }));
}

function proportionOf(deployment: Deployment, replicaSet: ReplicaSet, toAdd: number, added: number): number {
  const fraction = fractionOf(deployment, replicaSet);
  return toAdd > 0 ? Math.min(fraction, toAdd - added) : Math.max(fraction, toAdd - added);
}

function fractionOf(deployment: Deployment, replicaSet: ReplicaSet): number {
  const wanted = deployment.spec.replicas ?? 0;
  if (wanted === 0) return -size(replicaSet);
  const before = noted(replicaSet, maxReplicasAnnotation) || (deployment.status.replicas ?? 0);
  if (before === 0) return 0;
  const now = wanted + maxSurge(deployment);
  return Math.round((size(replicaSet) * now) / before) - size(replicaSet);
}

function noted({ metadata }: ReplicaSet, annotation: string): number | undefined {
  const text = metadata.annotations?.[annotation] ?? '';
  return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

function resizes(sizes: ReadonlyMap<ReplicaSet, number>): Resize[] {
  return [...sizes].flatMap(([replicaSet, replicas]) =>
    replicas === size(replicaSet) ? [] : [{ replicaSet, replicas }],
  );
}
