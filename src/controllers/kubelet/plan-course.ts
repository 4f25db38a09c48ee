/** The course of one container of a Pod: whether it starts, runs on and is ready, or ends (kuberuntime_manager.go). */
import type { Container, ContainerStatus, Pod } from '../../objects/types/core.generated.ts';
import type { Behaviour } from './plan-behaviour.ts';
import {
  advanceRun,
  type Observed,
  type PlannedContainer,
  readRun,
  type Restarts,
  type Run,
} from './plan-containers.ts';
import { isSidecar } from '../../objects/pods.ts';

/** The inputs of a container's course. */
export interface CourseInput {
  readonly pod: Pod;
  /** By the name of the container. */
  readonly observed: ReadonlyMap<string, Observed>;
  readonly isStandIn: (container: Container) => boolean;
  /** All containers end: the Pod is deleted, evicted, or was active for too long. */
  readonly ending?: PodEnding | undefined;
  /** The time, in milliseconds since 1970. */
  readonly now: number;
}

/** The end of a Pod. */
export interface PodEnding {
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
  readonly graceMs: number;
  /** Of the status: `Evicted`, `DeadlineExceeded`; undefined with a deletion. */
  readonly reason?: string;
  readonly message?: string;
}

/** The wanted state of a container. */
export interface ContainerPlan extends PlannedContainer {
  /** When to look at it again, in milliseconds since 1970; undefined: only after a change. */
  readonly next: number | undefined;
  /** While it runs: it should go on. */
  readonly isWanted: boolean;
}

/** The inputs of a container's course besides its past. */
interface Course {
  /** Without, a container that has never run waits. */
  readonly mayStart: boolean;
  /** The reason of the status while it waits for its first start. */
  readonly whyNot: string;
  readonly behaviour: Behaviour;
  readonly restarts: Restarts;
}

/** The next step of a container. */
export function advance(input: CourseInput, container: Container, course: Course): ContainerPlan {
  const { observed: all, ending, now } = input;
  const observed = all.get(container.name);
  const before = readRun(statusOfContainer(input.pod, container.name), observed);
  const waiting = { reason: course.whyNot };
  if (ending !== undefined) return end(input, container, course, before, ending);
  if (!course.mayStart && before.phase === 'new') {
    return { container, run: before, waiting, ...idle };
  }
  const { run, next } = advanceRun(before, course.behaviour, observed, course.restarts, now);
  const problem = run.phase === 'new' ? observed?.problem : undefined;
  const readiness = readinessOf(run, course.behaviour, observed, now);
  return {
    ...{ container, run, isWanted: true, ...readiness },
    waiting: problem === undefined ? waiting : { reason: problem.reason, message: problem.message },
    next: earliest([next, readiness.next]),
  };
}

const idle = { ready: false, started: false, next: undefined, isWanted: false };

/** Milliseconds that a stand-in without a preStop handler takes to end. */
const standInEndMs = 1000;

/**
 * A container of a Pod that ends. Stand-ins, and containers with an annotation, take a set time, or that of their
 * preStop handler; programs are sent a signal.
 */
function end(
  input: CourseInput,
  container: Container,
  { behaviour, whyNot }: Course,
  before: Run,
  { sinceMs, graceMs }: PodEnding,
): ContainerPlan {
  const { observed: all, isStandIn, now } = input;
  const observed = all.get(container.name);
  const waiting = { reason: whyNot };
  if (before.phase === 'waiting') {
    const run: Run = { phase: 'ended', restarts: before.restarts, failure: before.failure };
    return { container, run, waiting, ...idle };
  }
  if (before.phase !== 'running') return { container, run: before, waiting, ...idle };
  const { startedAt, restarts } = before;
  const seen = observed?.attempt === restarts ? observed.ending : undefined;
  const standInMs = container.lifecycle?.preStop === undefined ? standInEndMs : graceMs;
  const { stopAfterMs = isStandIn(container) ? standInMs : undefined } = behaviour;
  const at = stopAfterMs === undefined ? undefined : sinceMs + Math.min(stopAfterMs, graceMs);
  if (seen !== undefined || (at !== undefined && at <= now)) {
    const inTime = (stopAfterMs ?? 0) <= graceMs;
    const failure = seen ?? { exitCode: inTime ? 0 : 137, startedAt, finishedAt: now };
    return { container, run: { phase: 'ended', restarts, failure }, waiting, ...idle };
  }
  const readiness = readinessOf(before, behaviour, observed, now);
  const next = earliest([at, readiness.next]);
  return { container, run: before, waiting, isWanted: true, ...readiness, next };
}

/** When the other containers have ended, those beside them are stopped, and not started again. */
export function endSidecar(input: CourseInput, planned: ContainerPlan): ContainerPlan {
  const { container, waiting } = planned;
  const observed = input.observed.get(container.name);
  const run = readRun(statusOfContainer(input.pod, container.name), observed);
  if (!isSidecar(container) || run.phase === 'ended' || run.phase === 'new') return planned;
  const { restarts } = run;
  const seen = observed?.attempt === restarts ? observed.ending : undefined;
  const isOn = run.phase === 'running' && seen === undefined && !input.isStandIn(container);
  if (isOn) return { ...planned, run, isWanted: false };
  const stopped = { exitCode: 0, startedAt: input.now, finishedAt: input.now };
  const failure = seen ?? (run.phase === 'waiting' ? run.failure : { ...stopped, startedAt: run.startedAt });
  return { container, run: { phase: 'ended', restarts, failure }, waiting, ...idle };
}

function readinessOf(
  run: Run,
  { readyAfterMs, readiness, saysReadiness }: Behaviour,
  observed: Observed | undefined,
  now: number,
): { ready: boolean; started: boolean; next: number | undefined } {
  if (run.phase !== 'running') return { ready: false, started: false, next: undefined };
  const isSeen = observed?.attempt === run.restarts;
  const started = !isSeen || observed.started !== false;
  if (readiness === false) return { ready: false, started, next: undefined };
  const probed = saysReadiness || !isSeen || (started && observed.ready !== false);
  const since = now - (run.startedAt + readyAfterMs);
  if (since < 0) return { ready: false, started, next: now - since };
  if (readiness === true) return { ready: probed, started, next: undefined };
  const turn = Math.floor(since / readiness);
  return { ready: probed && turn % 2 === 0, started, next: now - since + (turn + 1) * readiness };
}

/** The earliest of some times; undefined of none. */
export function earliest(times: readonly (number | undefined)[]): number | undefined {
  return times.reduce(
    (first, time) => (first === undefined || (time ?? Infinity) < first ? time : first),
    undefined,
  );
}

/** The status of a container of any kind. */
export function statusOfContainer({ status }: Pod, name: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].find(
    (each) => each.name === name,
  );
}
