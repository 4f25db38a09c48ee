/** The status of a Deployment (pkg/controller/deployment: sync.go `calculateStatus`, progress.go). */
import { formatTime, parseTime } from '../../../objects/time.ts';
import type { Deployment, DeploymentStatus, ReplicaSet } from '../../../objects/types/apps.generated.ts';
import type { WorkloadCondition } from '../../../objects/types/workloads.ts';
import { conditionOf, transitionTime } from '../../../objects/conditions.ts';
import { maxUnavailable } from './plan-limits.ts';
import type { Generations } from './plan-revisions.ts';

/** The value of `progressDeadlineSeconds` that means never. */
const noDeadline = 2 ** 31 - 1;

type Change = Pick<WorkloadCondition, 'type' | 'status' | 'reason' | 'message'>;

/** The condition to report; the present one where status and reason are the same. */
function withCondition(
  conditions: readonly WorkloadCondition[],
  change: Change,
  now: number,
): WorkloadCondition[] {
  const present = conditionOf(conditions, change.type);
  if (present?.status === change.status && present.reason === change.reason) return [...conditions];
  return [
    ...conditions.filter(({ type }) => type !== change.type),
    {
      type: change.type,
      status: change.status,
      lastUpdateTime: formatTime(now),
      lastTransitionTime: transitionTime(conditions, change, now),
      ...(change.reason === undefined ? {} : { reason: change.reason }),
      ...(change.message === undefined ? {} : { message: change.message }),
    },
  ];
}

/** The last step of the rollout, for the condition Progressing. */
export type Milestone = 'created' | 'found' | 'paused' | 'resumed' | undefined;

/** The state of the rollout as its status needs it. */
export interface RolloutStep {
  readonly milestone: Milestone;
  /** The name of the newest ReplicaSet, once it has one. */
  readonly newestName: string | undefined;
  /** False while the Deployment is paused, scaled or deleted. */
  readonly isRollout: boolean;
}

/**
 * The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure. The last two are
 * reported for rollouts only (`syncRolloutStatus`), not while a Deployment is paused, scaled or deleted, and
 * Progressing only of those with a deadline.
 */
export function planDeploymentStatus(
  deployment: Deployment,
  generations: Generations,
  { milestone, newestName, isRollout }: RolloutStep,
  now: number,
): DeploymentStatus {
  const status = countReplicas(deployment, generations);
  const before = deployment.status.conditions ?? [];
  let conditions = hasDeadline(deployment) ? withMilestone(before, milestone, newestName, now) : [...before];
  const enough =
    (status.availableReplicas ?? 0) >= (deployment.spec.replicas ?? 0) - maxUnavailable(deployment);
  conditions = withCondition(
    conditions,
    enough
      ? {
          type: 'Available',
          status: 'True',
          reason: 'MinimumReplicasAvailable',
          message: 'Deployment has minimum availability.',
        }
      : {
          type: 'Available',
          status: 'False',
          reason: 'MinimumReplicasUnavailable',
          message: 'Deployment does not have minimum availability.',
        },
    now,
  );
  if (!isRollout) return { ...status, conditions };
  conditions = hasDeadline(deployment)
    ? withProgress(deployment, status, conditions, newestName, now)
    : conditions.filter(({ type }) => type !== 'Progressing');
  return { ...status, conditions: withFailure(conditions, generations) };
}

/** The status of a Deployment whose new ReplicaSet was refused; unchanged without a deadline. */
export function statusOfRefusal(deployment: Deployment, message: string, now: number): DeploymentStatus {
  const { status } = deployment;
  if (!hasDeadline(deployment)) return status;
  const refusal = { type: 'Progressing', status: 'False', reason: 'ReplicaSetCreateError', message };
  return { ...status, conditions: withCondition(status.conditions ?? [], refusal, now) };
}

function countReplicas(deployment: Deployment, { newest, old }: Generations): DeploymentStatus {
  const all = newest === undefined ? old : [...old, newest];
  const sum = (count: (replicaSet: ReplicaSet) => number | undefined): number =>
    all.reduce((total, replicaSet) => total + (count(replicaSet) ?? 0), 0);
  const availableReplicas = sum(({ status }) => status.availableReplicas);
  const readyReplicas = sum(({ status }) => status.readyReplicas);
  const replicas = sum(({ status }) => status.replicas);
  const updatedReplicas = newest?.status.replicas ?? 0;
  const unavailableReplicas = Math.max(0, sum(({ spec }) => spec.replicas) - availableReplicas);
  const { collisionCount } = deployment.status;
  const { generation } = deployment.metadata;
  return {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(replicas === 0 ? {} : { replicas }),
    ...(updatedReplicas === 0 ? {} : { updatedReplicas }),
    ...(readyReplicas === 0 ? {} : { readyReplicas }),
    ...(availableReplicas === 0 ? {} : { availableReplicas }),
    ...(unavailableReplicas === 0 ? {} : { unavailableReplicas }),
    terminatingReplicas: sum(({ status }) => status.terminatingReplicas),
    ...(collisionCount === undefined ? {} : { collisionCount }),
  };
}

function withMilestone(
  conditions: readonly WorkloadCondition[],
  milestone: Milestone,
  newestName = '',
  now: number,
): WorkloadCondition[] {
  const progressing = (status: string, reason: string, message: string): WorkloadCondition[] =>
    withCondition(conditions, { type: 'Progressing', status, reason, message }, now);
  switch (milestone) {
    case 'created':
      return progressing('True', 'NewReplicaSetCreated', `Created new replica set "${newestName}"`);
    case 'found':
      return progressing('True', 'FoundNewReplicaSet', `Found new replica set "${newestName}"`);
    case 'paused':
      return progressing('Unknown', 'DeploymentPaused', 'Deployment is paused');
    case 'resumed':
      return progressing('Unknown', 'DeploymentResumed', 'Deployment is resumed');
    case undefined:
      return [...conditions];
  }
}

function hasDeadline({ spec }: Deployment): boolean {
  return spec.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds !== noDeadline;
}

/** True when all replicas are new and available, and no old ones are left (`DeploymentComplete`). */
export function isComplete({ spec, metadata }: Deployment, status: DeploymentStatus): boolean {
  const wanted = spec.replicas ?? 0;
  return (
    (status.updatedReplicas ?? 0) === wanted &&
    (status.replicas ?? 0) === wanted &&
    (status.availableReplicas ?? 0) === wanted &&
    (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
  );
}

function withProgress(
  deployment: Deployment,
  status: DeploymentStatus,
  conditions: readonly WorkloadCondition[],
  newestName: string | undefined,
  now: number,
): WorkloadCondition[] {
  const current = conditionOf(deployment.status.conditions, 'Progressing');
  const done = (status.replicas ?? 0) === (status.updatedReplicas ?? 0);
  if (done && current?.reason === 'NewReplicaSetAvailable') return [...conditions];
  const name =
    newestName === undefined
      ? `Deployment "${deployment.metadata.name ?? ''}"`
      : `ReplicaSet "${newestName}"`;
  if (isComplete(deployment, status)) {
    const message = `${name} has successfully progressed.`;
    return withCondition(
      conditions,
      { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message },
      now,
    );
  }
  if (hasProgressed(deployment.status, status)) {
    const progressing = { type: 'Progressing', status: 'True' };
    return [
      ...conditions.filter(({ type }) => type !== 'Progressing'),
      {
        ...progressing,
        lastUpdateTime: formatTime(now),
        lastTransitionTime: transitionTime(conditions, progressing, now),
        reason: 'ReplicaSetUpdated',
        message: `${name} is progressing.`,
      },
    ];
  }
  const deadline = progressDeadline(deployment);
  if (deadline === undefined || deadline >= now) return [...conditions];
  const message = `${name} has timed out progressing.`;
  return withCondition(
    conditions,
    { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message },
    now,
  );
}

function hasProgressed(before: DeploymentStatus, after: DeploymentStatus): boolean {
  const old = ({ replicas = 0, updatedReplicas = 0 }: DeploymentStatus): number => replicas - updatedReplicas;
  return (
    (after.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    old(after) < old(before) ||
    (after.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (after.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  );
}

/** The deadline of the rollout in milliseconds since 1970; undefined without a rollout. */
export function progressDeadline(deployment: Deployment): number | undefined {
  const current = conditionOf(deployment.status.conditions, 'Progressing');
  if (current === undefined || !hasDeadline(deployment) || deployment.spec.paused === true) return undefined;
  if (current.reason === 'NewReplicaSetAvailable' || current.reason === 'ProgressDeadlineExceeded') {
    return undefined;
  }
  const since = parseTime(current.lastUpdateTime ?? '');
  return since === undefined ? undefined : since + (deployment.spec.progressDeadlineSeconds ?? 0) * 1000;
}

/** The failure of a ReplicaSet is copied to the Deployment; that of the newest one has precedence. */
function withFailure(
  conditions: readonly WorkloadCondition[],
  { newest, old }: Generations,
): WorkloadCondition[] {
  const failure = [...(newest === undefined ? [] : [newest]), ...old]
    .map(({ status }) => conditionOf(status.conditions, 'ReplicaFailure'))
    .find((condition) => condition !== undefined);
  if (failure === undefined) return conditions.filter(({ type }) => type !== 'ReplicaFailure');
  return withCondition(conditions, failure, parseTime(failure.lastTransitionTime ?? '') ?? 0);
}
