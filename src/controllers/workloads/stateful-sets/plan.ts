/**
 * The next step of a StatefulSet (pkg/controller/statefulset/stateful_set_control.go, `updateStatefulSet`): Pods are
 * created and updated one after another unless `podManagementPolicy` is Parallel.
 */
import type { ControllerRevision, StatefulSet } from '../../../objects/types/apps.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import { isPodAvailable, isFinished, isPodReady, isPodTerminating } from '../../../objects/pods.ts';
import { ordinalOf, revisionNameOf } from './plan-pod.ts';

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

/** Plans which Pods to create and delete now. */
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
      return ordinal === undefined || (ordinal >= start && ordinal < end) ? [] : [{ pod, ordinal }];
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

/** Highest ordinal first, one at a time, down to the partition; an unhealthy Pod is waited for. */
function nextToUpdate(
  { set, update, now }: StatefulSetInput,
  byOrdinal: ReadonlyMap<number, Pod>,
  start: number,
  end: number,
): Pod[] {
  if (set.spec.updateStrategy?.type === 'OnDelete') return [];
  const lowest = start + (set.spec.updateStrategy?.rollingUpdate?.partition ?? 0);
  for (let ordinal = end - 1; ordinal >= lowest; ordinal--) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) return [];
    if (revisionNameOf(pod) !== update.metadata.name && !isPodTerminating(pod)) return [pod];
    if (isPodTerminating(pod) || !isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now)) return [];
  }
  return [];
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

/** The status to report (`updateStatefulSet`, `completeRollingUpdate`). */
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
  const isRolling = set.spec.updateStrategy?.type !== 'OnDelete';
  const complete =
    isRolling && updated === wanted && members.length === wanted && ready.length === members.length;
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
  };
}
