import type { Deployment, ReplicaSet, DeploymentStatus } from '../../../objects/types/apps.generated.ts';
import { scaledValue, hashTemplate, podTemplateHash, sameTemplate } from '../plan-template.ts';
import type { Draft } from '../../../client/resource-client.ts';
import { byCreation, controllerReference } from '../../../objects/pods.ts';
import { formatTime, parseTime } from '../../../objects/formats/time.ts';
import type { WorkloadCondition } from '../../../objects/types/workloads.ts';
import { conditionOf, transitionTime } from '../../../objects/meta.ts';

/** The deviations of a rollout from the number of replicas (pkg/controller/deployment/util, `ResolveFenceposts`). */
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

// Annotations of ReplicaSets (pkg/controller/deployment/util).
export const revisionAnnotation = 'deployment.kubernetes.io/revision';
const maxRevision = 2n ** 63n - 1n;
const revisionHistoryAnnotation = 'deployment.kubernetes.io/revision-history';
/** The most characters of the revision history; the oldest are dropped first. */
const maxHistoryLength = 2000;
export const desiredReplicasAnnotation = 'deployment.kubernetes.io/desired-replicas';
export const maxReplicasAnnotation = 'deployment.kubernetes.io/max-replicas';

/** Annotations of the Deployment that its ReplicaSets do not inherit (`annotationsToSkip`). */
const notInherited = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  revisionAnnotation,
  revisionHistoryAnnotation,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  'deprecated.deployment.rollback.to',
]);

/** A Deployment's ReplicaSets: the one with its template, and all others, oldest first. */
export interface Generations {
  readonly newest: ReplicaSet | undefined;
  readonly old: readonly ReplicaSet[];
}

/**
 * Separates the newest from the old ones. Of several with the same template the oldest counts (`FindNewReplicaSet`).
 */
export function generationsOf(deployment: Deployment, replicaSets: readonly ReplicaSet[]): Generations {
  const sorted = [...replicaSets].sort(byCreation);
  const newest = sorted.find(({ spec }) => sameTemplate(spec.template, deployment.spec.template));
  return { newest, old: sorted.filter((replicaSet) => replicaSet !== newest) };
}

/** The revision of a Deployment or ReplicaSet, which may be as large as Go's int64; 0 for none. */
export function revisionOf({ metadata }: Deployment | ReplicaSet): bigint {
  const text = metadata.annotations?.[revisionAnnotation] ?? '';
  const revision = /^\d{1,19}$/.test(text) ? BigInt(text) : 0n;
  return revision <= maxRevision ? revision : 0n;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** The revision that the newest ReplicaSet has or gets: one more than all old ones. */
function nextRevision({ newest, old }: Generations): bigint {
  const next = old.map(revisionOf).reduce(larger, 0n) + 1n;
  return newest === undefined ? next : larger(next, revisionOf(newest));
}

/** The wanted annotations of the newest ReplicaSet (`SetNewReplicaSetAnnotations`). */
export function newestAnnotations(deployment: Deployment, generations: Generations): Record<string, string> {
  const annotations = { ...generations.newest?.metadata.annotations };
  const given = deployment.metadata.annotations ?? {};
  for (const [name, value] of Object.entries(given)) {
    if (!notInherited.has(name)) annotations[name] = value;
  }
  const revision = nextRevision(generations);
  const before = generations.newest === undefined ? 0n : revisionOf(generations.newest);
  if (before !== revision) {
    annotations[revisionAnnotation] = String(revision);
    if (before !== 0n) {
      annotations[revisionHistoryAnnotation] = withRevision(annotations[revisionHistoryAnnotation], before);
    }
  }
  return annotations;
}

function withRevision(history = '', revision: bigint): string {
  const revisions = history === '' ? [] : history.split(',');
  revisions.push(String(revision));
  while (revisions.join(',').length > maxHistoryLength) revisions.shift();
  return revisions.join(',');
}

/** The annotations of a ReplicaSet about the Deployment's size (`SetReplicasAnnotations`). */
export function sizeAnnotations(deployment: Deployment): Record<string, string> {
  const replicas = deployment.spec.replicas ?? 0;
  return {
    [desiredReplicasAnnotation]: String(replicas),
    [maxReplicasAnnotation]: String(replicas + maxSurge(deployment)),
  };
}

/** The ReplicaSet for a template that has none yet. */
export function draftReplicaSet(
  deployment: Deployment,
  generations: Generations,
  replicas: number,
): Draft<ReplicaSet> {
  const { namespace = '', name = '' } = deployment.metadata;
  const template = deployment.spec.template;
  const hash = hashTemplate(template, deployment.status.collisionCount);
  const labels = { ...template.metadata?.labels, [podTemplateHash]: hash };
  const { selector = {}, minReadySeconds } = deployment.spec;
  return {
    metadata: {
      name: `${name}-${hash}`,
      namespace,
      labels,
      annotations: { ...newestAnnotations(deployment, generations), ...sizeAnnotations(deployment) },
      ownerReferences: [controllerReference(deployment)],
    },
    spec: {
      replicas,
      ...(minReadySeconds === undefined ? {} : { minReadySeconds }),
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [podTemplateHash]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
    status: {},
  };
}

/** Old ReplicaSets beyond the history's limit, oldest revision first (`cleanupDeployment`). */
export function outdated(deployment: Deployment, old: readonly ReplicaSet[]): ReplicaSet[] {
  const limit = deployment.spec.revisionHistoryLimit;
  const kept = old.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (limit === undefined || kept.length <= limit) return [];
  return kept
    .sort((a, b) => (revisionOf(a) < revisionOf(b) ? -1 : 1))
    .slice(0, kept.length - limit)
    .filter(({ spec, status, metadata }) => {
      const seen = (status.observedGeneration ?? 0) >= (metadata.generation ?? 0);
      return seen && (status.replicas ?? 0) === 0 && (spec.replicas ?? 0) === 0;
    });
}

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
 * The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure
 * (pkg/controller/deployment: sync.go `calculateStatus`, progress.go). The last two are reported for rollouts only (`syncRolloutStatus`), not while a Deployment is paused, scaled or deleted, and
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
