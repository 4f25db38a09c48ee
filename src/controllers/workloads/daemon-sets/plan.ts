/** One Pod per node (pkg/controller/daemon/daemon_controller.go, update.go, util/daemonset_util.go). */
import type { Draft } from '../../../client/resource-client.ts';
import { pushAll } from '../../../objects/lists.ts';
import type { DaemonSet } from '../../../objects/types/apps.generated.ts';
import type { Node, Pod, PodSpec, Toleration } from '../../../objects/types/core.generated.ts';
import { untolerated } from '../../nodes/plan.ts';
import { matchesNode } from '../../scheduler/plan-nodes.ts';
import {
  byCreation,
  isActive,
  isPodAvailable,
  isFinished,
  isPodReady,
  isPodTerminating,
} from '../../../objects/pods.ts';
import { scaledValue } from '../plan-template.ts';
import { controllerRevisionHash, podFromTemplate } from '../plan-template.ts';

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
  /** Those of `remove` that have failed, with their nodes, for Events. */
  readonly ended: readonly { readonly pod: Pod; readonly node: string }[];
}

/** The annotation in which kube-apiserver counts the changes of a DaemonSet's template, and the Pods' label for it. */
const templateGenerationAnnotation = 'deprecated.daemonset.template.generation';
const templateGenerationLabel = 'pod-template-generation';

/** Tolerations of every daemon Pod (`AddOrUpdateDaemonPodTolerations`). */
const daemonTolerations: readonly Toleration[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
];

/** Tolerations of daemon Pods in the host network. */
const hostNetworkToleration: Toleration = {
  key: 'node.kubernetes.io/network-unavailable',
  operator: 'Exists',
  effect: 'NoSchedule',
};

/** Plans the Pods to create and delete: first missing and superfluous ones, then the update. */
export function planDaemonSet(input: DaemonSetInput): DaemonSetPlan {
  const { daemonSet, pods } = input;
  const byNode = podsByNode(pods);
  const { create, remove, ended } = planNodes(input, byNode);
  if (daemonSet.spec.updateStrategy?.type === 'OnDelete') return { create, remove, ended };
  const update = allowsSurge(input) ? planSurge(input, byNode) : planReplacement(input, byNode);
  const leaving = new Set(remove);
  return {
    create: [...create, ...update.create],
    remove: [...remove, ...update.remove.filter((pod) => !leaving.has(pod))],
    ended,
  };
}

/** Pods that nodes lack, and Pods that should not run (`manage`, `podsShouldBeOnNode`). */
function planNodes(input: DaemonSetInput, byNode: ReadonlyMap<string, readonly Pod[]>): DaemonSetPlan {
  const { daemonSet, nodes, hash } = input;
  const create: Draft<Pod>[] = [];
  const remove: Pod[] = [];
  const ended: { pod: Pod; node: string }[] = [];
  for (const { metadata } of nodes.filter((node) => fit(daemonSet, node).run)) {
    const name = metadata.name ?? '';
    const there = byNode.get(name) ?? [];
    const isLacking = there.length === 0 || (allowsSurge(input) && !there.some(isActive));
    if (isLacking) create.push(draftPod(daemonSet, name, hash));
  }
  for (const node of nodes) {
    const name = node.metadata.name ?? '';
    const there = (byNode.get(name) ?? []).filter((pod) => !isPodTerminating(pod));
    if (!fit(daemonSet, node).stay) {
      pushAll(remove, there);
      continue;
    }
    for (const pod of there.filter(isFinished)) ended.push({ pod, node: name });
    pushAll(remove, there.filter(isFinished), surplus(input, there.filter(isActive).sort(byPlaceAndAge)));
  }
  const known = new Set(nodes.map(({ metadata }) => metadata.name ?? ''));
  // A Pod for a node that is gone is never scheduled, and no collector deletes a Pod without a node.
  for (const [name, there] of byNode) {
    if (known.has(name)) continue;
    pushAll(
      remove,
      there.filter((pod) => (pod.spec.nodeName ?? '') === '' && !isPodTerminating(pod)),
    );
  }
  return { create, remove, ended };
}

/**
 * The superfluous Pods of a node: all but the oldest; with a surge all but the oldest of each revision, and the old one
 * as soon as it is not ready or the new one is available.
 *
 * @param running oldest first.
 */
function surplus(input: DaemonSetInput, running: readonly Pod[]): Pod[] {
  if (!allowsSurge(input)) return running.slice(1);
  const fresh = running.find((pod) => isNew(pod, input.hash));
  const old = running.find((pod) => !isNew(pod, input.hash));
  const others = running.filter((pod) => pod !== fresh && pod !== old);
  if (fresh === undefined || old === undefined) return others;
  return isPodReady(old) && !isUsable(input, fresh) ? others : [...others, old];
}

function isUsable({ daemonSet, now }: DaemonSetInput, pod: Pod): boolean {
  return isPodAvailable(pod, daemonSet.spec.minReadySeconds ?? 0, now);
}

/** Order: bound Pods before those that wait for the node, then the oldest first (`podByCreationTimestampAndPhase`). */
function byPlaceAndAge(a: Pod, b: Pod): number {
  const waits = ({ spec }: Pod): number => Number((spec.nodeName ?? '') === '');
  return waits(a) - waits(b) || byCreation(a, b);
}

/** Whether the node should run the daemon, and whether a running one may continue (`NodeShouldRunDaemonPod`). */
function fit(daemonSet: DaemonSet, node: Node): { run: boolean; stay: boolean } {
  const spec = daemonSet.spec.template.spec ?? {};
  const { nodeName = '' } = spec;
  const isElsewhere = nodeName !== '' && nodeName !== node.metadata.name;
  if (isElsewhere || !matchesNode(spec, node)) return { run: false, stay: false };
  const tolerations = tolerationsOf(spec);
  const taints = node.spec.taints ?? [];
  return {
    run: untolerated(taints, tolerations, ['NoSchedule', 'NoExecute']).length === 0,
    stay: untolerated(taints, tolerations, ['NoExecute']).length === 0,
  };
}

/** The Pod for a node: affinity to the node's name binds it there, whatever else the template prefers. */
function draftPod(daemonSet: DaemonSet, node: string, hash: string): Draft<Pod> {
  const draft = podFromTemplate(daemonSet, daemonSet.spec.template);
  const spec: PodSpec = draft.spec ?? {};
  const term = { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] };
  const generation = daemonSet.metadata.annotations?.[templateGenerationAnnotation];
  return {
    metadata: {
      ...draft.metadata,
      labels: {
        ...draft.metadata.labels,
        ...(generation === undefined ? {} : { [templateGenerationLabel]: generation }),
        [controllerRevisionHash]: hash,
      },
    },
    spec: {
      ...spec,
      affinity: {
        ...spec.affinity,
        nodeAffinity: {
          ...spec.affinity?.nodeAffinity,
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
        },
      },
      tolerations: tolerationsOf(spec),
    },
  };
}

/** The template's tolerations and every daemon's, which have no time limit. */
function tolerationsOf({ tolerations = [], hostNetwork }: PodSpec): Toleration[] {
  const added = hostNetwork === true ? [...daemonTolerations, hostNetworkToleration] : daemonTolerations;
  const same = (a: Toleration, b: Toleration): boolean =>
    a.key === b.key &&
    a.effect === b.effect &&
    a.operator === b.operator &&
    (a.value ?? '') === (b.value ?? '');
  return [
    ...tolerations.map((own) => added.find((each) => same(each, own)) ?? own),
    ...added.filter((each) => !tolerations.some((own) => same(each, own))),
  ];
}

/** The node that a Pod is on, or is made for (`GetTargetNodeName`). */
function nodeOf({ spec }: Pod): string {
  if (spec.nodeName !== undefined && spec.nodeName !== '') return spec.nodeName;
  const terms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  for (const { matchFields = [] } of terms) {
    for (const { key, values } of matchFields) if (key === 'metadata.name') return values?.[0] ?? '';
  }
  return '';
}

/** Pods by their nodes, without those that ended and only wait for their finalizers. */
function podsByNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const byNode = new Map<string, Pod[]>();
  for (const pod of pods) {
    if (isFinished(pod) && isPodTerminating(pod)) continue;
    const node = nodeOf(pod);
    const there = byNode.get(node);
    if (there === undefined) byNode.set(node, [pod]);
    else there.push(pod);
  }
  return byNode;
}

function isNew(pod: Pod, hash: string): boolean {
  return pod.metadata.labels?.[controllerRevisionHash] === hash;
}

function wantedNodes({ daemonSet, nodes }: DaemonSetInput): Node[] {
  return nodes.filter((node) => fit(daemonSet, node).run);
}

/** True where a node may have two Pods at a time. */
function allowsSurge({ daemonSet: { spec } }: DaemonSetInput): boolean {
  if (spec.updateStrategy?.type === 'OnDelete') return false;
  return scaledValue(spec.updateStrategy?.rollingUpdate?.maxSurge, 1, 'up') > 0;
}

function maxSurge(input: DaemonSetInput): number {
  const value = input.daemonSet.spec.updateStrategy?.rollingUpdate?.maxSurge;
  return value === undefined || value === 0 ? 0 : scaledValue(value, wantedNodes(input).length, 'up');
}

type Update = Pick<DaemonSetPlan, 'create' | 'remove'>;

/** Deletes old Pods first, as many at a time as `maxUnavailable` allows. */
function planReplacement(input: DaemonSetInput, byNode: ReadonlyMap<string, Pod[]>): Update {
  const { daemonSet, hash } = input;
  const wanted = wantedNodes(input);
  const limit = daemonSet.spec.updateStrategy?.rollingUpdate?.maxUnavailable;
  let budget = scaledValue(limit, wanted.length, 'up', 1);
  const candidates: Pod[] = [];
  const unavailableOld: Pod[] = [];
  for (const { metadata } of wanted) {
    const [pod] = (byNode.get(metadata.name ?? '') ?? []).filter(isActive);
    const available = pod !== undefined && isUsable(input, pod);
    if (!available) budget--;
    if (pod === undefined || isNew(pod, hash)) continue;
    (available ? candidates : unavailableOld).push(pod);
  }
  return { create: [], remove: [...unavailableOld, ...candidates.slice(0, Math.max(0, budget))] };
}

/**
 * Creates new Pods beside the old ones, at once where the old one is not available; {@link surplus} deletes the old
 * ones.
 */
function planSurge(input: DaemonSetInput, byNode: ReadonlyMap<string, Pod[]>): Update {
  const { daemonSet, hash } = input;
  let budget = maxSurge(input);
  const allowed: string[] = [];
  const candidates: string[] = [];
  for (const { metadata } of wantedNodes(input)) {
    const name = metadata.name ?? '';
    const active = (byNode.get(name) ?? []).filter(isActive);
    const old = active.find((pod) => !isNew(pod, hash));
    const fresh = active.find((pod) => isNew(pod, hash));
    if (old === undefined) continue;
    if (fresh !== undefined) budget -= isUsable(input, fresh) ? 0 : 1;
    else (isUsable(input, old) ? candidates : allowed).push(name);
  }
  const chosen = [...allowed, ...candidates.slice(0, Math.max(0, budget))];
  return { create: chosen.map((name) => draftPod(daemonSet, name, hash)), remove: [] };
}

/** The status to report (`updateDaemonSetStatus`): the oldest Pod of each node counts. */
export function planDaemonSetStatus(input: DaemonSetInput): DaemonSet['status'] {
  const { daemonSet, pods, nodes, hash } = input;
  const byNode = podsByNode(pods);
  const count = { desired: 0, current: 0, misscheduled: 0, ready: 0, available: 0, updated: 0 };
  for (const node of nodes) {
    const [pod] = [...(byNode.get(node.metadata.name ?? '') ?? [])].sort(byPlaceAndAge);
    if (!fit(daemonSet, node).run) {
      if (pod !== undefined) count.misscheduled++;
      continue;
    }
    count.desired++;
    if (pod === undefined) continue;
    count.current++;
    if (isNew(pod, hash)) count.updated++;
    if (isPodReady(pod)) count.ready++;
    if (isUsable(input, pod)) count.available++;
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
