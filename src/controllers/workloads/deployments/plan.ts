/**
 * The next step of a Deployment (pkg/controller/deployment/deployment_controller.go, `syncDeployment`). Level-based: a
 * step is written, its effect is a change of a ReplicaSet, and then the next step is planned.
 */
import { jsonEqual } from '../../../objects/json.ts';
import type { Draft } from '../../../client/resource-client.ts';
import type { Deployment, DeploymentStatus, ReplicaSet } from '../../../objects/types/apps.generated.ts';
import { conditionOf } from '../../../objects/conditions.ts';
import { isRolling } from './plan-limits.ts';
import {
  draftReplicaSet,
  type Generations,
  generationsOf,
  newestAnnotations,
  outdated,
  revisionAnnotation,
  sizeAnnotations,
} from './plan-revisions.ts';
import { emptyOld, isScaled, newestSize, type Resize, scaleAll, shrinkOld } from './plan-rollout.ts';
import { isComplete, type Milestone, planDeploymentStatus } from './plan-status.ts';

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
 * Plans the writes.
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
