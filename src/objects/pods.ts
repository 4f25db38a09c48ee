import { compareText } from './formats/go-text.ts';
import {
  type KubeObject,
  type ObjectName,
  type OwnerReference,
  conditionOf,
  joinKey,
  type ObjectKey,
} from './meta.ts';
import type { ContainerPort, Node, Pod, PodSpec, Container, Volume } from './types/core.generated.ts';
import { conditionStatus, jsonEqual, listAt, recordAt, scalarAt, textAt } from './json.ts';
import { parseTime } from './formats/time.ts';
import { parseQuantity } from './formats/quantity.ts';

/** The fields of a Pod and of a Node that controllers read (pkg/api/v1/pod/util.go, pkg/controller/controller_utils.go). */

/** The ports of the containers that run as long as the Pod: sidecars are init containers. */
export function lastingPorts({ containers = [], initContainers = [] }: PodSpec): readonly ContainerPort[] {
  return [...containers, ...initContainers.filter(isSidecar)].flatMap(({ ports = [] }) => ports);
}

/** True for an init container that runs as long as the Pod (KEP-753). */
export function isSidecar({ restartPolicy }: Container): boolean {
  return restartPolicy === 'Always';
}

/** The claim of a volume. */
export interface VolumeClaim {
  readonly name: string;
  readonly isReadOnly: boolean;
  /** It is made for the Pod, and belongs to it. */
  readonly isEphemeral: boolean;
}

/** The claim that a volume of a Pod names, or that is made for it (`ephemeral.VolumeClaimName`); undefined: none. */
export function claimOf({ metadata }: Pod, volume: Volume): VolumeClaim | undefined {
  const { name, persistentVolumeClaim: claim, ephemeral } = volume;
  if (claim !== undefined) {
    return { name: claim.claimName, isReadOnly: claim.readOnly === true, isEphemeral: false };
  }
  if (ephemeral === undefined) return undefined;
  return { name: `${metadata.name ?? ''}-${name}`, isReadOnly: false, isEphemeral: true };
}

/** The claims that a Pod names, or that are made for it. */
export function claimsOf(pod: Pod): readonly VolumeClaim[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => claimOf(pod, volume) ?? []);
}

/** Their keys. */
export function claimKeysOf(pod: Pod): readonly ObjectKey[] {
  return claimsOf(pod).map(({ name }) => joinKey(pod.metadata.namespace ?? '', name));
}

/** Why a claim is not that of an ephemeral volume of a Pod; undefined: it is (`ephemeral.VolumeIsForPod`). */
export function foreignClaim(pod: Pod, claim: KubeObject): string | undefined {
  if (controllerOf(claim)?.uid === pod.metadata.uid) return undefined;
  const { namespace = '', name = '' } = claim.metadata;
  const of = `${pod.metadata.namespace ?? ''}/${pod.metadata.name ?? ''}`;
  return `PVC ${namespace}/${name} was not created for pod ${of} (pod is not owner)`;
}

/** True for a Pod that is being deleted. */
export function isPodTerminating({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** True for a Pod whose containers have all ended and are not restarted. */
export function isFinished({ status }: Pod): boolean {
  return status.phase === 'Succeeded' || status.phase === 'Failed';
}

/** True for a Pod that counts as a replica: neither finished nor being deleted (`IsPodActive`). */
export function isActive(pod: Pod): boolean {
  return !isFinished(pod) && pod.metadata.deletionTimestamp === undefined;
}

/** True when the condition Ready is True. */
export function isPodReady({ status }: Pod): boolean {
  return conditionOf(status.conditions, 'Ready')?.status === 'True';
}

/** True when the condition Ready of a Node is True; false where its conditions are malformed. */
export function isNodeReady(node: Node): boolean {
  return conditionStatus(listAt(node, 'status', 'conditions'), 'Ready') === 'True';
}

/** Milliseconds until a ready Pod counts as available; 0 when it does; undefined for one that is not ready. */
function untilAvailable(pod: Pod, minReadySeconds: number, now: number): number | undefined {
  const ready = conditionOf(pod.status.conditions, 'Ready');
  if (ready?.status !== 'True') return undefined;
  if (minReadySeconds === 0) return 0;
  const since = parseTime(ready.lastTransitionTime ?? '') ?? now;
  return Math.max(0, since + minReadySeconds * 1000 - now);
}

/** True when the Pod has been ready for `minReadySeconds` (`IsPodAvailable`). */
export function isPodAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  return untilAvailable(pod, minReadySeconds, now) === 0;
}

/** The earliest time, in milliseconds from now, at which a ready Pod becomes available; undefined for none. */
export function nextAvailable(
  pods: readonly Pod[],
  minReadySeconds: number,
  now: number,
): number | undefined {
  const waits = pods.flatMap((pod) => {
    const wait = untilAvailable(pod, minReadySeconds, now);
    return wait === undefined || wait === 0 ? [] : [wait];
  });
  return waits.length === 0 ? undefined : waits.reduce((least, wait) => Math.min(least, wait));
}

/** The owner that manages the object, if there is one (`GetControllerOf`). */
export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find((owner) => owner.controller === true);
}

/** The controller reference that an owner sets on the objects it makes (`NewControllerRef`). */
export function controllerReference(owner: KubeObject): OwnerReference {
  return {
    apiVersion: owner.apiVersion ?? '',
    kind: owner.kind ?? '',
    name: owner.metadata.name ?? '',
    uid: owner.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Oldest first; of the same second, by name. */
export function byCreation(a: KubeObject, b: KubeObject): number {
  const [first, second] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''];
  if (first !== second) return first < second ? -1 : 1;
  return compareText(a.metadata.name ?? '', b.metadata.name ?? '');
}

/** The resource requests and limits of a Pod (`component-helpers/resource/helpers.go` PodRequests, PodLimits). */

/** Amounts by the name of a resource, in billionths as in quantities. */
export type ResourceAmounts = ReadonlyMap<string, bigint>;

/** Shared by all Pods without requests. */
const nothing: ResourceAmounts = new Map();
/** Resources that a Pod may set as a whole (KEP-2837). */
const podLevel = /^(?:cpu|memory|hugepages-.+)$/;

/**
 * The requests or limits of a Pod: of all its containers, or of the init container that needs most beside the sidecars
 * before it; what the Pod sets as a whole counts instead. Its overhead comes on top.
 *
 * @throws {Error} when a quantity cannot be read; stored Pods have none.
 */
export function podResources(pod: KubeObject, kind: 'requests' | 'limits'): ResourceAmounts {
  return sumOfPod(pod, kind, (container) => amountsOf(container, kind));
}

/**
 * What a Pod takes of its node: while a resize is not done, of each container the most of what its spec wants, of what it
 * was given and of what it runs with (PodRequests with `UseStatusResources`).
 *
 * @throws {Error} when a quantity cannot be read; stored Pods have none.
 */
export function podRequestsInUse(pod: KubeObject): ResourceAmounts {
  const statuses = new Map<string, unknown>();
  for (const list of ['containerStatuses', 'initContainerStatuses']) {
    for (const status of listAt(pod, 'status', list)) statuses.set(textAt(status, 'name'), status);
  }
  const isInfeasible = listAt(pod, 'status', 'conditions').some(
    (each) => textAt(each, 'type') === 'PodResizePending' && textAt(each, 'reason') === 'Infeasible',
  );
  return sumOfPod(pod, 'requests', (container) => {
    const wanted = recordAt(container, 'resources', 'requests');
    const status = statuses.get(textAt(container, 'name'));
    const [given, actual] = [
      recordAt(status, 'allocatedResources'),
      recordAt(status, 'resources', 'requests'),
    ];
    const isSame = jsonEqual(given, wanted) && jsonEqual(actual, wanted);
    if (isSame || Object.keys(recordAt(status, 'resources')).length === 0) return quantities(wanted);
    const most = new Map(isInfeasible ? [] : quantities(wanted));
    for (const other of [given, actual]) raise(most, quantities(other));
    return most;
  });
}

/** @param amountsIn of a container. */
function sumOfPod(
  pod: KubeObject,
  kind: 'requests' | 'limits',
  amountsIn: (container: unknown) => ResourceAmounts,
): ResourceAmounts {
  const sum = new Map<string, bigint>();
  for (const container of listAt(pod, 'spec', 'containers')) add(sum, amountsIn(container));
  const sidecars = new Map<string, bigint>();
  const most = new Map<string, bigint>();
  for (const container of listAt(pod, 'spec', 'initContainers')) {
    const amounts = amountsIn(container);
    if (textAt(container, 'restartPolicy') === 'Always') {
      add(sum, amounts);
      add(sidecars, amounts);
      raise(most, sidecars);
    } else {
      const together = new Map(sidecars);
      add(together, amounts);
      raise(most, together);
    }
  }
  raise(sum, most);
  for (const [name, amount] of amountsOf(recordAt(pod, 'spec'), kind)) {
    if (podLevel.test(name)) sum.set(name, amount);
  }
  const overhead = quantities(recordAt(pod, 'spec', 'overhead'));
  for (const [name, amount] of overhead) {
    // A resource without a limit gets no overhead.
    if (kind === 'requests' || sum.has(name)) sum.set(name, (sum.get(name) ?? 0n) + amount);
  }
  return sum.size === 0 ? nothing : sum;
}

function add(sum: Map<string, bigint>, amounts: ResourceAmounts): void {
  for (const [name, amount] of amounts) sum.set(name, (sum.get(name) ?? 0n) + amount);
}

function raise(sum: Map<string, bigint>, amounts: ResourceAmounts): void {
  for (const [name, amount] of amounts) if (amount > (sum.get(name) ?? 0n)) sum.set(name, amount);
}

function amountsOf(container: unknown, kind: 'requests' | 'limits'): ResourceAmounts {
  return quantities(recordAt(container, 'resources', kind));
}

function quantities(record: Readonly<Record<string, unknown>>): ResourceAmounts {
  return new Map(
    Object.keys(record).map((name) => [name, parseQuantity(scalarAt(record, name) ?? '0').nanos]),
  );
}

/** The part of a Pod that Events about a container name (kubelet `container/ref.go`). */
export function containerFieldPath({ spec }: Pod, name: string): string {
  const lists = { containers: spec.containers, initContainers: spec.initContainers };
  const [list = 'ephemeralContainers'] = Object.entries(lists).flatMap(([list, containers = []]) =>
    containers.some((container) => container.name === name) ? [list] : [],
  );
  return `spec.${list}{${name}}`;
}

/**
 * The workload of a Pod: its controller, and of a ReplicaSet that a Deployment has made, the Deployment, whose name stands
 * before the hash (`GenerateReplicaSetName`). Undefined for a Pod of its own.
 */
export function workloadOf(pod: Pod): { readonly kind: string; readonly name: string } | undefined {
  const owner = controllerOf(pod);
  if (owner === undefined) return undefined;
  const hash = pod.metadata.labels?.['pod-template-hash'];
  const isOfDeployment = owner.kind === 'ReplicaSet' && hash !== undefined && owner.name.endsWith(`-${hash}`);
  return isOfDeployment
    ? { kind: 'Deployment', name: owner.name.slice(0, -hash.length - 1) }
    : { kind: owner.kind, name: owner.name };
}

/** The Pods of a workload that have not ended: the ready ones first, then the oldest. */
export function podsOfWorkload(pods: readonly Pod[], { kind, namespace, name }: ObjectName): readonly Pod[] {
  const isOf = (pod: Pod): boolean => {
    const of = workloadOf(pod);
    const isReplicaSet = kind === 'ReplicaSet' && controllerOf(pod)?.kind === kind;
    return isReplicaSet ? controllerOf(pod)?.name === name : of?.kind === kind && of.name === name;
  };
  return pods
    .filter((pod) => pod.metadata.namespace === namespace && isActive(pod) && isOf(pod))
    .toSorted((a, b) => Number(isPodReady(b)) - Number(isPodReady(a)) || byCreation(a, b));
}
