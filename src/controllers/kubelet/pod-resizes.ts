import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import { containerFieldPath } from '../../objects/pods.ts';
import { errorMessage } from '../../objects/status.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { ContainerRuntime } from './container-runtime.ts';
import {
  type Allocation,
  changedResources,
  isSameAllocation,
  planContainerResize,
  refuseResize,
  resizeEvent,
  type ResizeState,
  storedAllocation,
  wantedAllocation,
  withAllocation,
} from './plan-resize.ts';
import type { PodContainers } from './pod-containers.ts';
import type { PodResize, PodState } from './pod-state.ts';

/** Milliseconds until a resize that has failed is tried again. */
const failedRetryMs = 10_000;
/** Milliseconds until one that waits for other Pods is tried again, which their ends do at once (`retryDelay`). */
const deferredRetryMs = 180_000;

/** Gives Pods the resources that their specs have got since they began, and their containers what was given. */
export class PodResizes {
  readonly #context: ControllerContext;
  readonly #runtime: ContainerRuntime;
  readonly #containers: PodContainers;
  /** The Pods whose resize waits for others. */
  readonly #deferred = new Set<ObjectKey>();

  constructor(context: ControllerContext, runtime: ContainerRuntime, containers: PodContainers) {
    this.#context = context;
    this.#runtime = runtime;
    this.#containers = containers;
  }

  /** Pods to look at when another one has ended, or has been resized. */
  get deferred(): readonly ObjectKey[] {
    return [...this.#deferred];
  }

  forget(pod: Pod): void {
    this.#deferred.delete(keyOf(pod));
  }

  /** Keeps what a Pod was given before its spec got other resources. */
  observe(pod: Pod, old: Pod, state: PodState): void {
    if (state.resize !== undefined || pod.metadata.generation === old.metadata.generation) return;
    const given = wantedAllocation(old);
    if (!isSameAllocation(given, wantedAllocation(pod))) state.resize = resizeFrom(given);
  }

  /**
   * Gives a Pod what its spec wants, if the node has it.
   *
   * @param others the other Pods of the node, with what they are given.
   * @returns the Pod with what it is given.
   */
  allocate(pod: Pod, node: Node, state: PodState, others: () => readonly Pod[]): Pod {
    this.forget(pod);
    if (state.resize === undefined) {
      const stored = storedAllocation(pod);
      if (stored === undefined) return pod;
      state.resize = resizeFrom(stored);
    }
    const { resize } = state;
    const [waiting, open] = [stateOf(resize, 'pending'), stateOf(resize, 'in progress')];
    const stays = open === undefined ? [] : [open];
    const wanted = wantedAllocation(pod);
    if (state.ending !== undefined || isSameAllocation(resize.allocation, wanted)) {
      resize.states = state.ending === undefined ? stays : [];
      return withAllocation(pod, resize.allocation);
    }
    const { generation = 0 } = pod.metadata;
    const refusal = refuseResize(pod, node, others());
    if (refusal === undefined) {
      resize.allocation = wanted;
      resize.states = [{ kind: 'in progress', error: '', generation }];
      this.#say(pod, 'started', generation);
      return pod;
    }
    if (refusal.reason === 'Deferred') this.#deferred.add(keyOf(pod));
    resize.states = [{ kind: 'pending', refusal, generation }, ...stays];
    if (waiting?.refusal.reason !== refusal.reason || waiting.generation !== generation) {
      this.#say(pod, refusal.reason, generation, refusal.message);
    }
    return withAllocation(pod, resize.allocation);
  }

  /**
   * Gives the containers that run what the Pod was given.
   *
   * @param pod with what it is given.
   * @returns when to try it again, in milliseconds since 1970.
   */
  async apply(pod: Pod, state: PodState): Promise<number | undefined> {
    const { resize } = state;
    if (resize === undefined || state.ending !== undefined) return undefined;
    const { initContainers = [], containers = [] } = pod.spec;
    const errors: string[] = [];
    const isOfWhole = changedResources(resize.whole, pod.spec.resources).length > 0;
    let isDone = true;
    for (const container of [...initContainers, ...containers]) {
      const { name, resources = {} } = container;
      const isRestarting = resize.restarting.has(name);
      if (isRestarting) isDone = false;
      if (isRestarting || !state.running.has(name)) continue;
      const how = planContainerResize(container, resize.actual.get(name));
      if (how === 'none' && !isOfWhole) continue;
      if (how === 'restart') {
        isDone = false;
        resize.restarting.add(name);
        const text = `Container ${name} resize requires restart`;
        this.#context.events.event(pod, 'Normal', 'Killing', text, containerFieldPath(pod, name));
        this.#containers.kill(pod, state, container);
        continue;
      }
      try {
        await this.#runtime.resize(pod, container);
        resize.actual.set(name, resources);
      } catch (error) {
        errors.push(errorMessage(error));
      }
    }
    if (errors.length === 0) resize.whole = pod.spec.resources;
    this.#applied(pod, resize, isDone, errors.join('; '));
    const [waiting, open] = [stateOf(resize, 'pending'), stateOf(resize, 'in progress')];
    if (waiting === undefined && open === undefined) state.resize = undefined;
    const now = this.#context.clock.now();
    if (errors.length > 0) return now + failedRetryMs;
    return waiting?.refusal.reason === 'Deferred' ? now + deferredRetryMs : undefined;
  }

  #applied(pod: Pod, resize: PodResize, isDone: boolean, error: string): void {
    const open = stateOf(resize, 'in progress');
    const others = resize.states.filter((each) => each !== open);
    const generation = open?.generation ?? pod.metadata.generation ?? 0;
    if (error === '' && isDone) {
      resize.states = others;
      if (open !== undefined) this.#say(pod, 'completed', generation);
      return;
    }
    resize.states = [...others, { kind: 'in progress', error, generation }];
    if (error !== '' && open?.error !== error) this.#say(pod, 'error', generation, error);
  }

  #say(pod: Pod, kind: Parameters<typeof resizeEvent>[1], generation: number, error = ''): void {
    const { type, reason, message } = resizeEvent(pod, kind, generation, error);
    this.#context.events.event(pod, type, reason, message);
  }
}

function resizeFrom(allocation: Allocation): PodResize {
  return {
    ...{ allocation, actual: new Map(allocation.containers), whole: allocation.pod },
    ...{ restarting: new Set(), states: [] },
  };
}

function stateOf<K extends ResizeState['kind']>(
  { states }: PodResize,
  kind: K,
): Extract<ResizeState, { kind: K }> | undefined {
  return states.find((each): each is Extract<ResizeState, { kind: K }> => each.kind === kind);
}
