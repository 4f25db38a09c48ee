/**
 * Resizing of Pods that run (KEP-1287; pkg/kubelet/allocation, `computePodResizeAction` of kuberuntime_manager.go): what a
 * node gives a Pod, and what its containers do not have yet. PURE
 */
import { conditionOf, transitionTime } from '../../objects/meta.ts';
import { podResources, type ResourceAmounts } from '../../objects/pods.ts';
import { compareQuantities, parseQuantity } from '../../objects/formats/quantity.ts';
import type { EventReason } from '../../objects/reasons.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type {
  Container,
  Node,
  Pod,
  PodCondition,
  ResourceRequirements,
} from '../../objects/types/core.generated.ts';

/** The resources that a node gives to a Pod, which differ from those of its spec while a resize waits. */
export interface Allocation {
  /** Of the Pod as a whole; undefined: it sets none. */
  readonly pod: ResourceRequirements | undefined;
  /** By the name of the container; init containers too. */
  readonly containers: ReadonlyMap<string, ResourceRequirements>;
}

/** All that the spec wants. */
export function wantedAllocation({ spec }: Pod): Allocation {
  const all = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  return {
    pod: spec.resources,
    containers: new Map(all.map(({ name, resources = {} }) => [name, resources])),
  };
}

/** What a process before this one has given to a Pod whose resize waits; undefined for others: what their specs want. */
export function storedAllocation(pod: Pod): Allocation | undefined {
  const { conditions, initContainerStatuses = [], containerStatuses = [], resources } = pod.status;
  if (conditionOf(conditions, pending) === undefined) return undefined;
  const wanted = wantedAllocation(pod);
  const present = [...initContainerStatuses, ...containerStatuses].flatMap(({ name, resources: own }) =>
    own === undefined ? [] : [[name, own] as const],
  );
  return { pod: resources ?? wanted.pod, containers: new Map([...wanted.containers, ...present]) };
}

/** The Pod with these resources instead of those of its spec: itself where they are the same. */
export function withAllocation(pod: Pod, { pod: whole, containers }: Allocation): Pod {
  const { spec } = pod;
  const given = (list: readonly Container[]): Container[] =>
    list.map((each) => {
      const resources = containers.get(each.name);
      return resources === undefined || resources === each.resources ? each : { ...each, resources };
    });
  const { initContainers = [], containers: main = [] } = spec;
  const [init, own] = [given(initContainers), given(main)];
  const isSame = (list: readonly Container[], other: readonly Container[]): boolean =>
    list.every((each, i) => each === other[i]);
  if (whole === spec.resources && isSame(init, initContainers) && isSame(own, main)) return pod;
  return {
    ...pod,
    spec: {
      ...spec,
      ...(whole === undefined ? {} : { resources: whole }),
      ...(spec.initContainers === undefined ? {} : { initContainers: init }),
      ...(spec.containers === undefined ? {} : { containers: own }),
    },
  };
}

/** Whether processors and memory are the same. */
export function isSameAllocation(a: Allocation, b: Allocation): boolean {
  return (
    changedResources(a.pod, b.pod).length === 0 &&
    [...b.containers].every(([name, each]) => changedResources(a.containers.get(name), each).length === 0)
  );
}

const resizable = ['cpu', 'memory'] as const;

/** Which of processors and memory differ. */
export function changedResources(
  before: ResourceRequirements = {},
  now: ResourceRequirements = {},
): readonly (typeof resizable)[number][] {
  return resizable.filter((name) =>
    (['requests', 'limits'] as const).some((member) => {
      const [a, b] = [before[member]?.[name], now[member]?.[name]];
      return a === undefined || b === undefined ? a !== b : compareQuantities(a, b) !== 0;
    }),
  );
}

/** Why the resources of a spec are not given: `Infeasible` on this node, or `Deferred` until others give some back. */
export interface ResizeRefusal {
  readonly reason: 'Infeasible' | 'Deferred';
  readonly message: string;
}

/**
 * Whether a node has what the spec of a Pod wants.
 *
 * @param others the other Pods of the node, as they are given resources.
 */
export function refuseResize(pod: Pod, node: Node, others: readonly Pod[]): ResizeRefusal | undefined {
  const requests = podResources(pod, 'requests');
  for (const name of resizable) {
    const [requested = 0n, all] = [requests.get(name), capacityOf(node, name)];
    if (all === undefined || requested <= all) continue;
    const amounts = `requested: ${shown(name, requested)}, capacity: ${shown(name, all)}`;
    return { reason: 'Infeasible', message: `Node didn't have enough capacity: ${name}, ${amounts}` };
  }
  const lack = lackOf(requests, node, others, resizable);
  return lack === undefined ? undefined : { reason: 'Deferred', message: lack.message };
}

/** A resource of which a node has too little left. */
export interface Lack {
  readonly name: string;
  readonly message: string;
}

/**
 * The first of some resources of which a node has too little left beside others.
 *
 * @param names by default, all that are requested.
 */
export function lackOf(
  requests: ResourceAmounts,
  node: Node,
  others: readonly Pod[],
  names: Iterable<string> = requests.keys(),
): Lack | undefined {
  for (const name of names) {
    const [amount = 0n, all] = [requests.get(name), capacityOf(node, name)];
    // A kubelet does not know of further resources that its node has not.
    if (all === undefined || amount === 0n) continue;
    const used = others.reduce((sum, other) => sum + (podResources(other, 'requests').get(name) ?? 0n), 0n);
    if (amount > all - used) return { name, message: lackMessage(name, amount, used, all) };
  }
  return undefined;
}

function capacityOf({ status }: Node, name: string): bigint | undefined {
  const quantity = status.allocatable?.[name];
  return quantity === undefined ? undefined : parseQuantity(quantity).nanos;
}

function lackMessage(name: string, amount: bigint, used: bigint, all: bigint): string {
  const [requested, taken, capacity] = [amount, used, all].map((each) => shown(name, each));
  return `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${taken}, capacity: ${capacity}`;
}

/** Amounts of `cpu` are in thousandths, as Kubernetes prints them. */
function shown(name: string, nanos: bigint): bigint {
  return nanos / (name === 'cpu' ? 1_000_000n : 1_000_000_000n);
}

/** How a container that runs gets the resources that it was given. */
export type ContainerResize = 'none' | 'in place' | 'restart';

/** @param actual what it runs with. */
export function planContainerResize(
  { resources, resizePolicy = [] }: Container,
  actual: ResourceRequirements | undefined,
): ContainerResize {
  const changed = changedResources(actual, resources);
  if (changed.length === 0) return 'none';
  const restarts = resizePolicy.some(
    ({ resourceName, restartPolicy }) =>
      restartPolicy === 'RestartContainer' && changed.some((name) => name === resourceName),
  );
  return restarts ? 'restart' : 'in place';
}

const pending = 'PodResizePending';
const inProgress = 'PodResizeInProgress';
/** The conditions of a Pod that say how far a resize is. */
export const resizeConditionTypes: readonly string[] = [pending, inProgress];

/** Why the resize of a Pod is not done. */
export type ResizeState =
  | { readonly kind: 'pending'; readonly refusal: ResizeRefusal; readonly generation: number }
  /** With a text, it could not be done yet. */
  | { readonly kind: 'in progress'; readonly error: string; readonly generation: number };

/** The condition that says so; its times stay while reason and message do. */
export function resizeCondition(pod: Pod, state: ResizeState, now: number): PodCondition {
  const type = state.kind === 'pending' ? pending : inProgress;
  const failed = state.kind === 'pending' ? state.refusal : { reason: 'Error', message: state.error };
  const { reason, message } = failed.message === '' ? { reason: undefined, message: undefined } : failed;
  const before = conditionOf(pod.status.conditions, type);
  const isSame = before?.reason === reason;
  return {
    type,
    ...(state.generation === 0 ? {} : { observedGeneration: state.generation }),
    status: 'True',
    lastProbeTime:
      isSame && before?.message === message && before?.lastProbeTime ? before.lastProbeTime : formatTime(now),
    lastTransitionTime: isSame
      ? transitionTime(pod.status.conditions, { type, status: 'True' }, now)
      : formatTime(now),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
}

/** An Event of a resize (pkg/kubelet/events/resize.go). */
export interface ResizeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  readonly message: string;
}

/**
 * @param pod with the resources that the Event is about.
 * @param error of a resize that waits or has failed.
 */
export function resizeEvent(
  pod: Pod,
  kind: 'started' | 'completed' | 'error' | 'Infeasible' | 'Deferred',
  generation: number,
  error = '',
): ResizeEvent {
  const summary = (list: readonly Container[] = []): object[] =>
    list.map(({ name, resources = {} }) => ({ name, resources }));
  const { initContainers = [], containers = [] } = pod.spec;
  const said = JSON.stringify({
    ...(initContainers.length === 0 ? {} : { initContainers: summary(initContainers) }),
    ...(containers.length === 0 ? {} : { containers: summary(containers) }),
    generation,
    ...(error === '' ? {} : { error }),
  });
  return {
    type: kind === 'started' || kind === 'completed' ? 'Normal' : 'Warning',
    reason: eventReasons[kind],
    message: `Pod resize ${kind}: ${said}`,
  };
}

const eventReasons = {
  started: 'ResizeStarted',
  completed: 'ResizeCompleted',
  error: 'ResizeError',
  Infeasible: 'ResizeInfeasible',
  Deferred: 'ResizeDeferred',
} as const;
