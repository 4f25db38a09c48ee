/** The containers of a simulated Pod over time: running, failing, restarting with back-off, done. */
import type { Container, ContainerState, ContainerStatus, Pod } from '../../objects/core.generated.ts';
import { formatTime, parseTime } from '../../objects/time.ts';
import type { Behaviour } from './plan-behaviour.ts';

/** The state of the containers of a Pod; all of one Pod have the same. */
export type Run =
  | {
      readonly phase: 'running';
      readonly startedAt: number;
      readonly restarts: number;
      readonly failure?: Failure;
    }
  | {
      readonly phase: 'waiting';
      readonly restarts: number;
      readonly until: number;
      readonly failure: Failure;
    }
  | { readonly phase: 'ended'; readonly restarts: number; readonly failure: Failure };

/** How containers ended. */
export interface Failure {
  readonly exitCode: number;
  readonly startedAt: number;
  readonly finishedAt: number;
}

/** kubelet's back-off between restarts: 10 s, doubling up to 5 minutes; the first restart is at once. */
function restartDelay(restarts: number): number {
  return restarts === 0 ? 0 : Math.min(10_000 * 2 ** (restarts - 1), 300_000);
}

/** The state of the containers in the Pod's status; undefined when they were never started. */
export function readRun(pod: Pod, exactStart: number | undefined): Run | undefined {
  const [status] = pod.status.containerStatuses ?? [];
  if (status === undefined) return undefined;
  const restarts = status.restartCount;
  const failure = readFailure(status.lastState);
  const ended = readFailure(status.state);
  if (ended !== undefined) return { phase: 'ended', restarts, failure: ended };
  const startedAt = status.state?.running?.startedAt ?? undefined;
  if (startedAt !== undefined) {
    const exact = exactStart !== undefined && formatTime(exactStart) === startedAt;
    const since = exact ? exactStart : (parseTime(startedAt) ?? 0);
    return { phase: 'running', startedAt: since, restarts, ...(failure === undefined ? {} : { failure }) };
  }
  if (failure === undefined) return undefined;
  return { phase: 'waiting', restarts, until: failure.finishedAt + restartDelay(restarts), failure };
}

function readFailure(state: ContainerState | undefined): Failure | undefined {
  const terminated = state?.terminated;
  if (terminated === undefined) return undefined;
  return {
    exitCode: terminated.exitCode,
    startedAt: parseTime(terminated.startedAt ?? '') ?? 0,
    finishedAt: parseTime(terminated.finishedAt ?? '') ?? 0,
  };
}

/** The state of the containers at `now`, and the time of the next change. */
export function advanceRun(
  before: Run | undefined,
  { failAfter, completeAfter }: Behaviour,
  restartPolicy: string,
  now: number,
): { run: Run; next: number | undefined } {
  let run: Run = before ?? { phase: 'running', startedAt: now, restarts: 0 };
  if (run.phase === 'waiting' && run.until <= now) {
    run = { phase: 'running', startedAt: now, restarts: run.restarts + 1, failure: run.failure };
  }
  if (run.phase === 'waiting') return { run, next: run.until };
  if (run.phase === 'ended') return { run, next: undefined };
  const end = firstEnd(failAfter, completeAfter);
  if (end === undefined) return { run, next: undefined };
  const { startedAt, restarts } = run;
  const endsAt = startedAt + end.after;
  if (endsAt > now) return { run, next: endsAt };
  const failure: Failure = { exitCode: end.exitCode, startedAt, finishedAt: now };
  const again = restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && end.exitCode !== 0);
  if (!again) return { run: { phase: 'ended', restarts, failure }, next: undefined };
  const delay = restartDelay(restarts);
  if (delay > 0)
    return { run: { phase: 'waiting', restarts, until: now + delay, failure }, next: now + delay };
  const restarted: Run = { phase: 'running', startedAt: now, restarts: restarts + 1, failure };
  return { run: restarted, next: now + end.after };
}

function firstEnd(
  failAfter: number | undefined,
  completeAfter: number | undefined,
): { after: number; exitCode: number } | undefined {
  if (failAfter !== undefined && (completeAfter === undefined || failAfter < completeAfter)) {
    return { after: failAfter, exitCode: 1 };
  }
  return completeAfter === undefined ? undefined : { after: completeAfter, exitCode: 0 };
}

/** `status.containerStatuses` for a state of the containers. */
export function containerStatuses(pod: Pod, run: Run, ready: boolean): ContainerStatus[] {
  return (pod.spec.containers ?? []).map((container) => {
    const id = `simulated://${pod.metadata.uid ?? ''}/${container.name}/${run.restarts}`;
    return {
      name: container.name,
      state: stateOf(run, id),
      lastState:
        run.phase === 'ended' || run.failure === undefined ? {} : { terminated: terminated(run.failure) },
      ready,
      restartCount: run.restarts,
      image: container.image ?? '',
      imageID: `simulated://${container.image ?? ''}`,
      containerID: id,
      started: run.phase === 'running',
    };
  });
}

function stateOf(run: Run, id: string): ContainerState {
  switch (run.phase) {
    case 'running':
      return { running: { startedAt: formatTime(run.startedAt) } };
    case 'waiting':
      return { waiting: { reason: 'CrashLoopBackOff', message: 'back-off restarting failed container' } };
    case 'ended':
      return { terminated: { ...terminated(run.failure), containerID: id } };
  }
}

function terminated({ exitCode, startedAt, finishedAt }: Failure): NonNullable<ContainerState['terminated']> {
  return {
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    startedAt: formatTime(startedAt),
    finishedAt: formatTime(finishedAt),
  };
}

/** `status.initContainerStatuses`: done at once, or running beside the others (`restartPolicy: Always`). */
export function initContainerStatuses(pod: Pod, startedAt: number): ContainerStatus[] {
  const time = formatTime(startedAt);
  return (pod.spec.initContainers ?? []).map((container: Container) => {
    const sidecar = container.restartPolicy === 'Always';
    const id = `simulated://${pod.metadata.uid ?? ''}/${container.name}/0`;
    return {
      name: container.name,
      state: sidecar
        ? { running: { startedAt: time } }
        : {
            terminated: {
              exitCode: 0,
              reason: 'Completed',
              startedAt: time,
              finishedAt: time,
              containerID: id,
            },
          },
      lastState: {},
      ready: true,
      restartCount: 0,
      image: container.image ?? '',
      imageID: `simulated://${container.image ?? ''}`,
      containerID: id,
      started: sidecar,
    };
  });
}

/**
 * `status.ephemeralContainerStatuses` (`kubectl debug`): running since they were first seen. Kubelet does not probe
 * them, so they are never ready.
 */
export function ephemeralContainerStatuses(pod: Pod, now: number): ContainerStatus[] {
  return (pod.spec.ephemeralContainers ?? []).map(({ name, image = '' }) => {
    const present = pod.status.ephemeralContainerStatuses?.find((status) => status.name === name);
    return (
      present ?? {
        name,
        state: { running: { startedAt: formatTime(now) } },
        lastState: {},
        ready: false,
        restartCount: 0,
        image,
        imageID: `simulated://${image}`,
        containerID: `simulated://${pod.metadata.uid ?? ''}/${name}/0`,
      }
    );
  });
}
