/** The newest ReplicaSet of a Deployment, and the revision of each (pkg/controller/deployment/util). */
import type { Draft } from '../../../client/resource-client.ts';
import type { Deployment, ReplicaSet } from '../../../objects/types/apps.generated.ts';
import { byCreation, controllerReference } from '../../../objects/pods.ts';
import { hashTemplate, podTemplateHash, sameTemplate } from '../plan-template.ts';
import { maxSurge } from './plan-limits.ts';

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
