import type { Pod } from '../../objects/types/core.generated.ts';
import { parseTime } from '../../objects/time.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { ContainerRuntime } from './container-runtime.ts';
import type { PodState } from './pod-state.ts';

/** Decides when Pods end: by their deletion, or at the deadline of their spec (`activeDeadlineSeconds`). */
export class PodEndings {
  readonly #context: ControllerContext;
  readonly #runtime: ContainerRuntime;

  constructor(context: ControllerContext, runtime: ContainerRuntime) {
    this.#context = context;
    this.#runtime = runtime;
  }

  /** Whether the Pod has to end. @returns when to check again. */
  decide(pod: Pod, state: PodState): number | undefined {
    const { clock, events } = this.#context;
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
    const { activeDeadlineSeconds, containers = [], terminationGracePeriodSeconds = 30 } = pod.spec;
    const now = clock.now();
    if (deletionTimestamp !== undefined) {
      const grace = deletionGracePeriodSeconds * 1000;
      if (state.ending === undefined) {
        for (const { name } of containers) {
          events.event(pod, 'Normal', 'Killing', `Stopping container ${name}`);
        }
        this.#loseContainers(pod, state);
      }
      state.ending = {
        since: state.ending?.since ?? now,
        grace: Math.min(grace, state.ending?.grace ?? grace),
      };
      return undefined;
    }
    if (activeDeadlineSeconds === undefined || state.ending !== undefined) return undefined;
    const at = (parseTime(pod.status.startTime ?? '') ?? now) + activeDeadlineSeconds * 1000;
    if (at > now) return at;
    const message = 'Pod was active on the node longer than the specified deadline';
    this.#loseContainers(pod, state);
    state.ending = {
      since: now,
      grace: terminationGracePeriodSeconds * 1000,
      reason: 'DeadlineExceeded',
      message,
    };
    events.event(pod, 'Normal', 'DeadlineExceeded', message);
    return undefined;
  }

  /** Programs of a former process are gone: nothing is waited for. */
  #loseContainers(pod: Pod, state: PodState): void {
    const {
      containerStatuses = [],
      initContainerStatuses = [],
      ephemeralContainerStatuses = [],
    } = pod.status;
    for (const { name, restartCount, state: current } of [
      ...[...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses],
    ]) {
      if (current?.running === undefined || state.observed.has(name)) continue;
      const startedAt = parseTime(current.running.startedAt ?? '') ?? this.#context.clock.now();
      state.started(name, restartCount, startedAt, { startup: false, readiness: false });
      const message = 'The container could not be located when the pod was terminated';
      const exit = { exitCode: 137, reason: 'ContainerStatusUnknown', message };
      const spec = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])].find(
        (container) => container.name === name,
      );
      const isStandIn = spec === undefined || this.#runtime.isStandIn(pod, spec);
      if (!isStandIn) state.ended(name, restartCount, exit, this.#context.clock.now());
    }
  }
}
