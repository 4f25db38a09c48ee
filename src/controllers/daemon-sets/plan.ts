/** One Pod per node (pkg/controller/daemon/daemon_controller.go, update.go, util/daemonset_util.go). */
import type { Draft } from '../../client/resource-client.ts';
import type { Node } from '../../objects/node.ts';
import type { Pod, PodSpec, Toleration } from '../../objects/pod.ts';
import type { DaemonSet } from '../../objects/workloads.ts';
import { untolerated } from '../nodes/plan-taints.ts';
import { matchesNode } from '../scheduler/plan.ts';
import { byAge, isActive, isAvailable, isFinished, isReady } from '../workloads/plan-pods.ts';
import { scaledValue } from '../workloads/plan-scaled-value.ts';
import { controllerRevisionHash, podFromTemplate } from '../workloads/plan-template.ts';

export interface DaemonSetInput {
  readonly daemonSet: DaemonSet;
  readonly pods: readonly Pod[];
  readonly nodes: readonly Node[];
  /** Of the present template. */
  readonly hash: string;
  readonly now: number;
}

export interface DaemonSetPlan {
  readonly create: readonly Draft<Pod>[];
  readonly remove: readonly Pod[];
}

/** What every daemon tolerates (`AddOrUpdateDaemonPodTolerations`). */
const daemonTolerations: readonly Toleration[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
];

/** Plans the Pods to create and delete: first those that nodes lack or should not have, then the update. */
export function planDaemonSet(input: DaemonSetInput): DaemonSetPlan {
  const { daemonSet, nodes, pods, hash } = input;
  const byNode = podsByNode(pods);
  const create: Draft<Pod>[] = [];
  const remove: Pod[] = [];
  for (const node of nodes) {
    const name = node.metadata.name ?? '';
    const there = byNode.get(name) ?? [];
    const { run, stay } = fit(daemonSet, node);
    const failed = there.filter((pod) => isFinished(pod) && !isLeaving(pod));
    remove.push(...failed);
    const active = there.filter(isActive).sort(byAge);
    if (!stay) remove.push(...active);
    else if (run && there.every((pod) => isFinished(pod) && isLeaving(pod))) {
      create.push(draftPod(daemonSet, name, hash));
    } else if (maxSurge(input) === 0) {
      remove.push(...active.slice(1));
    }
  }
  if (daemonSet.spec.updateStrategy?.type === 'OnDelete') return { create, remove };
  const update = maxSurge(input) === 0 ? planReplacement(input, byNode) : planSurge(input, byNode);
  const leaving = new Set(remove);
  return {
    create: [...create, ...update.create],
    remove: [...remove, ...update.remove.filter((pod) => !leaving.has(pod))],
  };
}

/** Whether the node should run the daemon, and may go on running it (`NodeShouldRunDaemonPod`). */
function fit(daemonSet: DaemonSet, node: Node): { run: boolean; stay: boolean } {
  const spec = daemonSet.spec.template?.spec ?? {};
  if (!matchesNode(spec, node)) return { run: false, stay: false };
  const tolerations = [...(spec.tolerations ?? []), ...daemonTolerations];
  const taints = node.spec.taints ?? [];
  return {
    run: untolerated(taints, tolerations, ['NoSchedule', 'NoExecute']).length === 0,
    stay: untolerated(taints, tolerations, ['NoExecute']).length === 0,
  };
}

/** The Pod for a node: it is scheduled there by affinity to the node's name. */
function draftPod(daemonSet: DaemonSet, node: string, hash: string): Draft<Pod> {
  const draft = podFromTemplate(daemonSet, daemonSet.spec.template ?? {});
  const spec: PodSpec = draft.spec ?? {};
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const field = { key: 'metadata.name', operator: 'In', values: [node] };
  const terms = (required?.nodeSelectorTerms ?? [{}]).map((term) => ({ ...term, matchFields: [field] }));
  const given = spec.tolerations ?? [];
  return {
    metadata: { ...draft.metadata, labels: { ...draft.metadata.labels, [controllerRevisionHash]: hash } },
    spec: {
      ...spec,
      affinity: {
        ...spec.affinity,
        nodeAffinity: {
          ...spec.affinity?.nodeAffinity,
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms },
        },
      },
      tolerations: [
        ...given,
        ...daemonTolerations.filter(
          ({ key, effect }) => !given.some((own) => own.key === key && own.effect === effect),
        ),
      ],
    },
  };
}

/** The node that a Pod is on, or is meant for (`GetTargetNodeName`). */
function nodeOf({ spec }: Pod): string {
  if (spec.nodeName !== undefined && spec.nodeName !== '') return spec.nodeName;
  const terms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  for (const { matchFields = [] } of terms) {
    for (const { key, values } of matchFields) if (key === 'metadata.name') return values?.[0] ?? '';
  }
  return '';
}

function podsByNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const byNode = new Map<string, Pod[]>();
  for (const pod of pods) {
    const node = nodeOf(pod);
    const there = byNode.get(node);
    if (there === undefined) byNode.set(node, [pod]);
    else there.push(pod);
  }
  return byNode;
}

function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function isNew(pod: Pod, hash: string): boolean {
  return pod.metadata.labels?.[controllerRevisionHash] === hash;
}

function wantedNodes({ daemonSet, nodes }: DaemonSetInput): Node[] {
  return nodes.filter((node) => fit(daemonSet, node).run);
}

function maxSurge(input: DaemonSetInput): number {
  const value = input.daemonSet.spec.updateStrategy?.rollingUpdate?.maxSurge;
  return value === undefined || value === 0 ? 0 : scaledValue(value, wantedNodes(input).length, 'up');
}

/** Old Pods go first, so many at a time that not more than `maxUnavailable` nodes lack the daemon. */
function planReplacement(input: DaemonSetInput, byNode: ReadonlyMap<string, Pod[]>): DaemonSetPlan {
  const { daemonSet, hash, now } = input;
  const wanted = wantedNodes(input);
  const limit = daemonSet.spec.updateStrategy?.rollingUpdate?.maxUnavailable;
  let budget = scaledValue(limit, wanted.length, 'up', 1);
  const candidates: Pod[] = [];
  const unavailableOld: Pod[] = [];
  for (const { metadata } of wanted) {
    const [pod] = (byNode.get(metadata.name ?? '') ?? []).filter(isActive);
    const available = pod !== undefined && isAvailable(pod, daemonSet.spec.minReadySeconds ?? 0, now);
    if (!available) budget--;
    if (pod === undefined || isNew(pod, hash)) continue;
    (available ? candidates : unavailableOld).push(pod);
  }
  return { create: [], remove: [...unavailableOld, ...candidates.slice(0, Math.max(0, budget))] };
}

/** New Pods come first beside the old, which go when those are available. */
function planSurge(input: DaemonSetInput, byNode: ReadonlyMap<string, Pod[]>): DaemonSetPlan {
  const { daemonSet, hash, now } = input;
  const create: Draft<Pod>[] = [];
  const remove: Pod[] = [];
  let budget = maxSurge(input);
  const waiting: string[] = [];
  for (const { metadata } of wantedNodes(input)) {
    const name = metadata.name ?? '';
    const active = (byNode.get(name) ?? []).filter(isActive);
    const old = active.filter((pod) => !isNew(pod, hash));
    const fresh = active.find((pod) => isNew(pod, hash));
    const usable = (pod: Pod): boolean => isAvailable(pod, daemonSet.spec.minReadySeconds ?? 0, now);
    if (old.length === 0) continue;
    if (fresh === undefined) {
      waiting.push(name);
      continue;
    }
    if (usable(fresh)) remove.push(...old);
    else budget--;
  }
  for (const name of waiting.slice(0, Math.max(0, budget))) create.push(draftPod(daemonSet, name, hash));
  return { create, remove };
}

/** The status to report (`updateDaemonSetStatus`). */
export function planDaemonSetStatus(input: DaemonSetInput): DaemonSet['status'] {
  const { daemonSet, pods, nodes, hash, now } = input;
  const byNode = podsByNode(pods.filter((pod) => !isFinished(pod)));
  const count = { desired: 0, current: 0, misscheduled: 0, ready: 0, available: 0, updated: 0 };
  for (const node of nodes) {
    const there = byNode.get(node.metadata.name ?? '') ?? [];
    if (!fit(daemonSet, node).run) {
      if (there.length > 0) count.misscheduled++;
      continue;
    }
    count.desired++;
    const [pod] = [...there].sort(byAge);
    if (pod === undefined) continue;
    count.current++;
    if (there.some((each) => isNew(each, hash))) count.updated++;
    const ready = there.filter((each) => !isLeaving(each) && isReady(each));
    if (ready.length === 0) continue;
    count.ready++;
    if (ready.some((each) => isAvailable(each, daemonSet.spec.minReadySeconds ?? 0, now))) count.available++;
  }
  const { collisionCount } = daemonSet.status;
  const unavailable = count.desired - count.available;
  return {
    currentNumberScheduled: count.current,
    numberMisscheduled: count.misscheduled,
    desiredNumberScheduled: count.desired,
    numberReady: count.ready,
    ...(daemonSet.metadata.generation === undefined
      ? {}
      : { observedGeneration: daemonSet.metadata.generation }),
    ...(count.updated === 0 ? {} : { updatedNumberScheduled: count.updated }),
    ...(count.available === 0 ? {} : { numberAvailable: count.available }),
    ...(unavailable === 0 ? {} : { numberUnavailable: unavailable }),
    ...(collisionCount === undefined ? {} : { collisionCount }),
  };
}
