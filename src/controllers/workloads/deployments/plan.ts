import type { Deployment, ReplicaSet, DeploymentStatus } from '../../../objects/types/apps.generated.ts';
import { byCreation } from '../../../objects/pods.ts';
import {
  isRolling,
  maxSurge,
  maxUnavailable,
  desiredReplicasAnnotation,
  type Generations,
  maxReplicasAnnotation,
  draftReplicaSet,
  generationsOf,
  newestAnnotations,
  outdated,
  revisionAnnotation,
  sizeAnnotations,
  isComplete,
  type Milestone,
  planDeploymentStatus,
} from './plan-status.ts';
import { jsonEqual } from '../../../objects/json.ts';
import type { Draft } from '../../../client/resource-client.ts';
import { conditionOf } from '../../../objects/meta.ts';

/** A ReplicaSet and its wanted size (pkg/controller/deployment: rolling.go, recreate.go, sync.go). */
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
function newestSize(deployment: Deployment, generations: Generations): number {
  const wanted = deployment.spec.replicas ?? 0;
  const present = generations.newest === undefined ? 0 : size(generations.newest);
  if (present >= wanted || !isRolling(deployment)) return wanted;
  const room = wanted + maxSurge(deployment) - sum(all(generations), size);
  return room <= 0 ? present : present + Math.min(room, wanted - present);
}

/** The sizes of the old ReplicaSets now (`reconcileOldReplicaSets`). */
function shrinkOld(deployment: Deployment, generations: Generations): Resize[] {
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
function emptyOld(generations: Generations): Resize[] {
  return resizes(new Map(generations.old.map((replicaSet) => [replicaSet, 0])));
}

/** True when the Deployment was scaled since a ReplicaSet was last sized (`isScalingEvent`). */
function isScaled(deployment: Deployment, generations: Generations): boolean {
  return all(generations).some((replicaSet) => {
    const desired = noted(replicaSet, desiredReplicasAnnotation);
    return size(replicaSet) > 0 && desired !== undefined && desired !== (deployment.spec.replicas ?? 0);
  });
}

/** The sizes after the Deployment was scaled: a running rollout is scaled in proportion (`scale`). */
function scaleAll(deployment: Deployment, generations: Generations): Resize[] {
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

/** A ReplicaSet to change, with the new values. */
export interface ReplicaSetChange extends Resize {
  readonly annotations: Readonly<Record<string, string>>;
  readonly minReadySeconds: number;
}

export interface DeploymentPlan {
  readonly create: Draft<ReplicaSet> | undefined;
  readonly change: readonly ReplicaSetChange[];
  readonly remove: readonly ReplicaSet[];
  /** The value of the Deployment's annotation `deployment.kubernetes.io/revision`; undefined: unchanged. */
  readonly revision: string | undefined;
  readonly status: DeploymentStatus;
}

/**
 * Plans the next step of a Deployment (pkg/controller/deployment/deployment_controller.go, `syncDeployment`).
 * Level-based: a step is written, its effect is a change of a ReplicaSet, and then the next step is planned.
 *
 * @param oldPodsRun whether Pods of old ReplicaSets still run, which Recreate waits for.
 */
export function planDeployment(
  deployment: Deployment,
  replicaSets: readonly ReplicaSet[],
  oldPodsRun: (old: readonly ReplicaSet[]) => boolean,
  now: number,
): DeploymentPlan {
  const generations = generationsOf(deployment, replicaSets);
  const step = nextStep(deployment, generations, oldPodsRun);
  const created = step.create?.metadata;
  const newest = created ?? generations.newest?.metadata;
  const revision = created?.annotations?.[revisionAnnotation] ?? step.newestAnnotations?.[revisionAnnotation];
  const present = deployment.metadata.annotations?.[revisionAnnotation];
  const status = planDeploymentStatus(
    deployment,
    generations,
    {
      milestone: milestoneOf(deployment, generations, step),
      newestName: newest?.name,
      isRollout: step.isRollout,
    },
    now,
  );
  const finished = deployment.spec.paused === true || isComplete(deployment, status);
  return {
    create: step.create,
    change: changesOf(deployment, generations, step),
    remove: finished && step.resize.length === 0 ? outdated(deployment, generations.old) : [],
    revision: revision === present ? undefined : revision,
    status,
  };
}

interface Step {
  readonly create?: Draft<ReplicaSet>;
  readonly resize: readonly Resize[];
  /** The wanted annotations of the newest ReplicaSet, if it exists. */
  readonly newestAnnotations?: Readonly<Record<string, string>>;
  /** False while the Deployment is paused, scaled or deleted. */
  readonly isRollout: boolean;
}

function nextStep(
  deployment: Deployment,
  generations: Generations,
  oldPodsRun: (old: readonly ReplicaSet[]) => boolean,
): Step {
  const { newest, old } = generations;
  const annotated =
    newest === undefined ? {} : { newestAnnotations: newestAnnotations(deployment, generations) };
  if (deployment.metadata.deletionTimestamp !== undefined) return { resize: [], isRollout: false };
  if (deployment.spec.paused === true || isScaled(deployment, generations)) {
    return { ...annotated, resize: scaleAll(deployment, generations), isRollout: false };
  }
  const isRollout = true;
  if (!isRolling(deployment)) {
    const emptied = emptyOld(generations);
    if (emptied.length > 0 || oldPodsRun(old)) return { ...annotated, resize: emptied, isRollout };
  }
  const wanted = newestSize(deployment, generations);
  if (newest === undefined) {
    return { create: draftReplicaSet(deployment, generations, wanted), resize: [], isRollout };
  }
  if (newest.spec.replicas !== wanted) {
    return { ...annotated, resize: [{ replicaSet: newest, replicas: wanted }], isRollout };
  }
  return { ...annotated, resize: isRolling(deployment) ? shrinkOld(deployment, generations) : [], isRollout };
}

function changesOf(deployment: Deployment, { newest }: Generations, step: Step): ReplicaSetChange[] {
  const changes = new Map<ReplicaSet, ReplicaSetChange>();
  const add = (
    replicaSet: ReplicaSet,
    replicas: number,
    annotations: Readonly<Record<string, string>>,
  ): void => {
    const present = replicaSet.spec.minReadySeconds ?? 0;
    // Set for an existing newest ReplicaSet: its template stays the same.
    const followed = replicaSet === newest && step.newestAnnotations !== undefined;
    const minReadySeconds = followed ? (deployment.spec.minReadySeconds ?? 0) : present;
    const same =
      replicas === (replicaSet.spec.replicas ?? 0) &&
      minReadySeconds === present &&
      jsonEqual(annotations, replicaSet.metadata.annotations ?? {});
    if (!same) changes.set(replicaSet, { replicaSet, replicas, annotations, minReadySeconds });
  };
  const annotationsOf = (replicaSet: ReplicaSet): Readonly<Record<string, string>> =>
    (replicaSet === newest ? step.newestAnnotations : undefined) ?? replicaSet.metadata.annotations ?? {};
  if (newest !== undefined) add(newest, newest.spec.replicas ?? 0, annotationsOf(newest));
  for (const { replicaSet, replicas } of step.resize) {
    add(replicaSet, replicas, { ...annotationsOf(replicaSet), ...sizeAnnotations(deployment) });
  }
  return [...changes.values()];
}

function milestoneOf(deployment: Deployment, { newest }: Generations, step: Step): Milestone {
  if (step.create !== undefined) return 'created';
  const progressing = conditionOf(deployment.status.conditions, 'Progressing');
  const timedOut = progressing?.reason === 'ProgressDeadlineExceeded';
  if (deployment.spec.paused === true) return timedOut ? undefined : 'paused';
  if (progressing?.reason === 'DeploymentPaused') return 'resumed';
  return progressing === undefined && newest !== undefined ? 'found' : undefined;
}
