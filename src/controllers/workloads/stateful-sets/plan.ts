import type { Draft } from '../../../client/resource-client.ts';
import type { KubeObject, OwnerReference } from '../../../objects/meta.ts';
import type { ControllerRevision, StatefulSet } from '../../../objects/types/apps.generated.ts';
import type { PersistentVolumeClaim, Pod } from '../../../objects/types/core.generated.ts';
import { templateOf } from '../plan-history.ts';
import { controllerRevisionHash, podFromTemplate, scaledValue } from '../plan-template.ts';
import { isPodAvailable, isFinished, isPodReady, isPodTerminating } from '../../../objects/pods.ts';

// The identity of a StatefulSet's Pods (pkg/controller/statefulset/stateful_set_utils.go).
const podNameLabel = 'statefulset.kubernetes.io/pod-name';
const podIndexLabel = 'apps.kubernetes.io/pod-index';

/** `web-2` for the ordinal 2 of the StatefulSet `web`. */
export function podName({ metadata }: StatefulSet, ordinal: number): string {
  return `${metadata.name ?? ''}-${ordinal}`;
}

/** True for Pods with a name of the set: it adopts and keeps no others (`isMemberOf`). */
export function isMember(set: StatefulSet, { metadata }: Pod): boolean {
  return /^(.*)-\d+$/.exec(metadata.name ?? '')?.[1] === set.metadata.name;
}

/** `web-2` of the StatefulSet `web` → 2; undefined for any other name. */
export function ordinalOf(set: StatefulSet, pod: Pod): number | undefined {
  const prefix = `${set.metadata.name ?? ''}-`;
  const name = pod.metadata.name ?? '';
  const rest = name.startsWith(prefix) ? name.slice(prefix.length) : '';
  return /^(?:0|[1-9]\d{0,8})$/.test(rest) ? Number(rest) : undefined;
}

/** The revision that a Pod was made from. */
export function revisionNameOf({ metadata }: Pod): string {
  return metadata.labels?.[controllerRevisionHash] ?? '';
}

/** The Pod of an ordinal: its name, host name and claims are always the same. */
export function draftPod(set: StatefulSet, revision: ControllerRevision, ordinal: number): Draft<Pod> {
  const draft = podFromTemplate(set, templateOf(revision));
  const name = podName(set, ordinal);
  const { serviceName = '' } = set.spec;
  const volumes = claimNames(set).map((volume) => ({
    name: volume,
    persistentVolumeClaim: { claimName: `${volume}-${name}` },
  }));
  const others = (draft.spec?.volumes ?? []).filter(
    (volume) => !volumes.some((own) => own.name === volume.name),
  );
  return {
    metadata: {
      ...draft.metadata,
      name,
      labels: {
        ...draft.metadata.labels,
        [podNameLabel]: name,
        [podIndexLabel]: String(ordinal),
        [controllerRevisionHash]: revision.metadata.name ?? '',
      },
    },
    spec: {
      ...draft.spec,
      hostname: name,
      ...(serviceName === '' ? {} : { subdomain: serviceName }),
      ...(volumes.length === 0 ? {} : { volumes: [...volumes, ...others] }),
    },
  };
}

function claimNames({ spec }: StatefulSet): string[] {
  return (spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata.name ?? '');
}

/** The names of the PersistentVolumeClaims of an ordinal's Pod. */
export function claimsOf(set: StatefulSet, ordinal: number): readonly string[] {
  return claimNames(set).map((volume) => `${volume}-${podName(set, ordinal)}`);
}

/** The PersistentVolumeClaims of an ordinal's Pod. */
export function draftClaims(set: StatefulSet, ordinal: number): Draft<PersistentVolumeClaim>[] {
  const { namespace = '' } = set.metadata;
  const names = claimsOf(set, ordinal);
  return (set.spec.volumeClaimTemplates ?? []).map(({ status: _, ...claim }, i) => {
    const labels = { ...claim.metadata.labels, ...set.spec.selector?.matchLabels };
    const metadata = { ...claim.metadata, namespace, name: names[i] ?? '', labels };
    const ownerReferences = claimOwners(set, undefined, metadata);
    return { ...claim, metadata: { ...metadata, ...(ownerReferences && { ownerReferences }) } };
  });
}

/**
 * The owners that a claim is to have by `persistentVolumeClaimRetentionPolicy`: it is deleted with the set, or with its Pod
 * when the set is scaled below that (`updateClaimOwnerRefForSetAndPod`).
 *
 * @param pod that uses it; undefined: it is being made.
 * @returns undefined: it has them, or it is another's.
 */
export function claimOwners(
  set: StatefulSet,
  pod: Pod | undefined,
  { ownerReferences = [] }: KubeObject['metadata'],
): OwnerReference[] | undefined {
  const { whenDeleted, whenScaled } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  const own = [set.metadata.uid, pod?.metadata.uid];
  const others = ownerReferences.filter(({ uid }) => !own.includes(uid));
  if (others.some(({ controller }) => controller === true)) return undefined;
  const isCondemned = pod !== undefined && !isInRange(set, ordinalOf(set, pod) ?? -1);
  const owners =
    isCondemned && whenScaled === 'Delete'
      ? [controllerRef('v1', 'Pod', pod)]
      : whenDeleted === 'Delete'
        ? [controllerRef('apps/v1', 'StatefulSet', set)]
        : [];
  const wanted = [...others, ...owners];
  const isSame =
    wanted.length === ownerReferences.length &&
    wanted.every(({ uid }) => ownerReferences.some((present) => present.uid === uid));
  return isSame ? undefined : wanted;
}

function controllerRef(
  apiVersion: string,
  kind: string,
  { metadata: { name = '', uid = '' } }: KubeObject,
): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** True for a claim that goes with a Pod that is gone: the next Pod of the name waits for that (`PodClaimIsStale`). */
export function isStale(set: StatefulSet, ordinal: number, { metadata }: KubeObject): boolean {
  const name = podName(set, ordinal);
  return (metadata.ownerReferences ?? []).some((owner) => owner.kind === 'Pod' && owner.name === name);
}

function isInRange({ spec }: StatefulSet, ordinal: number): boolean {
  const start = spec.ordinals?.start ?? 0;
  return ordinal >= start && ordinal < start + (spec.replicas ?? 0);
}

export interface StatefulSetInput {
  readonly set: StatefulSet;
  readonly pods: readonly Pod[];
  /** The revision of Pods below the partition. */
  readonly current: ControllerRevision;
  /** The revision of the present template. */
  readonly update: ControllerRevision;
  readonly now: number;
}

export interface StatefulSetPlan {
  readonly create: readonly { readonly ordinal: number; readonly revision: ControllerRevision }[];
  readonly remove: readonly Pod[];
}

/**
 * Plans which Pods to create and delete now (pkg/controller/statefulset/stateful_set_control.go, `updateStatefulSet`):
 * one after another unless `podManagementPolicy` is Parallel.
 */
export function planStatefulSet(input: StatefulSetInput): StatefulSetPlan {
  const { set, pods } = input;
  const start = set.spec.ordinals?.start ?? 0;
  const end = start + (set.spec.replicas ?? 0);
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(set, pod) ?? -1, pod]));
  const parallel = set.spec.podManagementPolicy === 'Parallel';
  const create: { ordinal: number; revision: ControllerRevision }[] = [];
  const remove: Pod[] = [];

  for (let ordinal = start; ordinal < end; ordinal++) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) create.push({ ordinal, revision: revisionFor(input, ordinal) });
    else if (isFinished(pod) && !isPodTerminating(pod)) remove.push(pod);
    else if (parallel || isSteady(input, pod)) continue;
    if (!parallel) return { create, remove };
  }

  const condemned = pods
    .flatMap((pod) => {
      const ordinal = ordinalOf(set, pod);
      return ordinal === undefined || isInRange(set, ordinal) ? [] : [{ pod, ordinal }];
    })
    .sort((a, b) => b.ordinal - a.ordinal);
  // Without Parallel: of several Pods that are not steady, the lowest is first, and the rest wait for it.
  const firstUnsteady = condemned.findLast(({ pod }) => !isSteady(input, pod));
  for (const each of condemned) {
    const isWaiting = !parallel && !isSteady(input, each.pod) && each !== firstUnsteady;
    if (!isPodTerminating(each.pod) && !isWaiting) remove.push(each.pod);
    if (!parallel) return { create, remove };
  }
  if (create.length > 0 || remove.length > 0) return { create, remove };
  return { create, remove: nextToUpdate(input, byOrdinal, start, end) };
}

/**
 * Pods of an old revision, the highest ordinal first, down to the partition: as many as may be unavailable beside those
 * that are. With Parallel, those that are unavailable themselves come first, and cost nothing
 * (`updateStatefulSetAfterInvariantEstablished`).
 */
function nextToUpdate(
  input: StatefulSetInput,
  byOrdinal: ReadonlyMap<number, Pod>,
  start: number,
  end: number,
): Pod[] {
  const { replicas = 0, updateStrategy, podManagementPolicy } = input.set.spec;
  if (updateStrategy?.type === 'OnDelete') return [];
  const { partition = 0, maxUnavailable } = updateStrategy?.rollingUpdate ?? {};
  const pods = [...byOrdinal].filter(([ordinal]) => ordinal >= start && ordinal < end);
  const unavailable = pods.filter(([, pod]) => !isSteady(input, pod)).length;
  const budget = Math.max(1, scaledValue(maxUnavailable, replicas, 'down', 1)) - unavailable;
  const outdated = pods
    .filter(([ordinal, pod]) => ordinal >= start + partition && isOutdated(input, pod))
    .sort(([a], [b]) => b - a)
    .map(([, pod]) => pod);
  if (podManagementPolicy !== 'Parallel') return outdated.slice(0, Math.max(0, budget));
  const steady = outdated.filter((pod) => isSteady(input, pod));
  return [...outdated.filter((pod) => !isSteady(input, pod)), ...steady.slice(0, Math.max(0, budget))];
}

function isOutdated({ update }: StatefulSetInput, pod: Pod): boolean {
  return revisionNameOf(pod) !== update.metadata.name && !isPodTerminating(pod);
}

function revisionFor({ set, current, update }: StatefulSetInput, ordinal: number): ControllerRevision {
  if (set.spec.updateStrategy?.type === 'OnDelete') return update;
  const rolling = set.spec.updateStrategy?.rollingUpdate;
  const kept = rolling === undefined ? (set.status.currentReplicas ?? 0) : (rolling.partition ?? 0);
  return ordinal < (set.spec.ordinals?.start ?? 0) + kept ? current : update;
}

function isSteady({ set, now }: StatefulSetInput, pod: Pod): boolean {
  return !isPodTerminating(pod) && isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now);
}

/** The status to report (`updateStatefulSet`, `completeUpdate`). */
export function planStatefulSetStatus({
  set,
  pods,
  current,
  update,
  now,
}: StatefulSetInput): StatefulSet['status'] {
  const wanted = set.spec.replicas ?? 0;
  // Finished ones too, until they are gone.
  const members = pods.filter(({ status }) => (status.phase ?? '') !== '');
  const ready = members.filter((pod) => pod.status.phase === 'Running' && isPodReady(pod));
  const available = ready.filter((pod) => isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now));
  const staying = members.filter((pod) => !isPodTerminating(pod));
  const of = (revision: ControllerRevision): number =>
    staying.filter((pod) => revisionNameOf(pod) === revision.metadata.name).length;
  const updated = of(update);
  const complete = updated === wanted && members.length === wanted && ready.length === members.length;
  const settled = complete ? update : current;
  const currentReplicas = of(settled);
  return {
    ...(set.metadata.generation === undefined ? {} : { observedGeneration: set.metadata.generation }),
    replicas: members.length,
    ...(ready.length === 0 ? {} : { readyReplicas: ready.length }),
    ...(currentReplicas === 0 ? {} : { currentReplicas }),
    ...(updated === 0 ? {} : { updatedReplicas: updated }),
    currentRevision: settled.metadata.name ?? '',
    updateRevision: update.metadata.name ?? '',
    collisionCount: set.status.collisionCount ?? 0,
    availableReplicas: available.length,
    // Others write them.
    ...(set.status.conditions && { conditions: set.status.conditions }),
  };
}
