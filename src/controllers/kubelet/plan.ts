/** The status of a Pod at a time, and what should run (pkg/kubelet/kubelet_pods.go, kuberuntime_manager.go). */
import type { Container, ContainerStatus, Node, Pod, PodStatus } from '../../objects/types/core.generated.ts';
import { formatTime } from '../../objects/time.ts';
import { behaviourOf, type Behaviour } from './plan-behaviour.ts';
import { conditionsOf } from './plan-conditions.ts';
import {
  advanceRun,
  containerStatus,
  type Observed,
  type PlannedContainer,
  readRun,
  type Restarts,
  type Run,
} from './plan-containers.ts';

export interface KubeletInput {
  readonly pod: Pod;
  readonly node: Node;
  /** The Pod's addresses, the primary family first. */
  readonly addresses: readonly string[];
  /** By the name of the container. */
  readonly observed: ReadonlyMap<string, Observed>;
  readonly isStandIn: (container: Container) => boolean;
  /** Sandbox and volumes are there; without, nothing is started. */
  readonly isPrepared: boolean;
  /** Further networks are attached, or none are awaited; without, nothing is started. */
  readonly hasNetworks: boolean;
  /** All containers end: the Pod is deleted, evicted, or was active for too long. */
  readonly ending?: PodEnding | undefined;
  readonly now: number;
}

/** The end of a Pod. */
export interface PodEnding {
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Milliseconds. */
  readonly grace: number;
  /** Of the status: `Evicted`, `DeadlineExceeded`; undefined with a deletion. */
  readonly reason?: string;
  readonly message?: string;
}

/** A container that should run. */
export interface Attempt {
  readonly container: Container;
  readonly attempt: number;
  readonly startedAt: number;
}

export interface KubeletPlan {
  /** The members of the status that kubelet writes. */
  readonly status: PodStatus;
  /** When to reconcile again, in milliseconds since 1970; undefined: only after a change. */
  readonly next: number | undefined;
  /** Init containers in their order, then the others. */
  readonly running: readonly Attempt[];
}

interface Planned extends PlannedContainer {
  readonly next: number | undefined;
  readonly isWanted: boolean;
}

/** Plans a Pod that has not finished. */
export function planPod(input: KubeletInput): KubeletPlan {
  const { pod, node, addresses, isPrepared, ending, now } = input;
  const { spec } = pod;
  const init = planInit(input);
  const goesOn = mayStart(input) && init.isDone && !init.hasFailed;
  const whyNot = (spec.initContainers ?? []).length > 0 ? 'PodInitializing' : 'ContainerCreating';
  const main = (spec.containers ?? []).map((container) => planMain(input, container, goesOn, whyNot));
  const hasEnded = init.hasFailed || (main.length > 0 && main.every(({ run }) => run.phase === 'ended'));
  const sidecars = init.planned.map((each) => (hasEnded ? endSidecar(input, each) : each));
  const ephemeral = (spec.ephemeralContainers ?? []).map((container) =>
    planEphemeral(input, { ...container, name: container.name }),
  );
  const all = [...sidecars, ...main, ...ephemeral];
  const isOver = !all.some(({ run }) => run.phase === 'running');
  const phase = phaseOf(input, init, main, isOver && (hasEnded || ending !== undefined));
  const hosts = hostAddresses(node);
  const startTime = pod.status.startTime ?? formatTime(now);
  const counted = [...sidecars.filter(({ container }) => isSidecar(container)), ...main];
  const statuses = (planned: readonly Planned[]): ContainerStatus[] =>
    planned.map((each) => containerStatus(pod, each));
  const isFinal = phase === 'Succeeded' || phase === 'Failed';
  const status: PodStatus = {
    ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    phase,
    conditions: conditionsOf({
      ...{ pod, phase, now },
      hasSandbox: mayStart(input) && !isFinal,
      incomplete: init.incomplete,
      statuses: counted.map(({ container, ready }) => ({ name: container.name, ready })),
    }),
    ...(isFinal && ending?.reason !== undefined
      ? { reason: ending.reason, message: ending.message ?? '' }
      : {}),
    ...hostMembers(hosts),
    ...(isPrepared ? addressMembers(spec.hostNetwork === true ? hosts : addresses) : {}),
    startTime,
    ...(sidecars.length === 0 ? {} : { initContainerStatuses: statuses(sidecars) }),
    containerStatuses: statuses(main),
    ...(ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: statuses(ephemeral) }),
  };
  return {
    status,
    next: isFinal ? undefined : earliest(all.map((each) => each.next)),
    running: all.flatMap(({ container, run, isWanted }) =>
      run.phase === 'running' && isWanted
        ? [{ container, attempt: run.restarts, startedAt: run.startedAt }]
        : [],
    ),
  };
}

function mayStart({ isPrepared, hasNetworks }: KubeletInput): boolean {
  return isPrepared && hasNetworks;
}

interface PlannedInit {
  readonly planned: readonly Planned[];
  /** All have completed, or run beside the others. */
  readonly isDone: boolean;
  readonly hasFailed: boolean;
  readonly incomplete: readonly string[];
}

/** One after the other; once the Pod's containers have started, those that are done stay so. */
function planInit(input: KubeletInput): PlannedInit {
  const { pod } = input;
  const wasDone = (pod.status.containerStatuses ?? []).some(
    (status) => readRun(status, undefined).phase !== 'new',
  );
  const planned: Planned[] = [];
  let goesOn = mayStart(input);
  let hasFailed = false;
  for (const container of pod.spec.initContainers ?? []) {
    const sidecar = isSidecar(container);
    const each =
      wasDone && !sidecar ? asBefore(input, container) : planOne(input, container, goesOn, sidecar);
    planned.push(each);
    if (sidecar ? each.started : each.ready) continue;
    hasFailed ||= each.run.phase === 'ended' && !sidecar;
    goesOn = false;
  }
  const incomplete = wasDone
    ? []
    : planned.filter((each) => !(isSidecar(each.container) ? each.started : each.ready));
  return {
    planned,
    isDone: wasDone || incomplete.length === 0,
    hasFailed,
    incomplete: incomplete.map(({ container }) => container.name),
  };
}

function asBefore(input: KubeletInput, container: Container): Planned {
  const run = readRun(statusOf(input.pod, container.name), undefined);
  const ready = run.phase === 'ended' && run.failure.exitCode === 0;
  const waiting = { reason: 'PodInitializing' };
  return { container, run, ready, started: false, waiting, next: undefined, isWanted: true };
}

function planOne(input: KubeletInput, container: Container, mayStart: boolean, sidecar: boolean): Planned {
  const { pod, isStandIn } = input;
  const behaviour = behaviourOf(pod, false);
  const own = !sidecar && isStandIn(container) ? { ...never, completeAfter: 0 } : never;
  const { restartPolicy = 'Always' } = pod.spec;
  const restarts: Restarts = (exitCode) => sidecar || (exitCode !== 0 && restartPolicy !== 'Never');
  const planned = advance(input, container, {
    ...{ mayStart, restarts, whyNot: 'PodInitializing' },
    behaviour: { ...behaviour, ...own },
  });
  if (sidecar) return planned;
  const { run } = planned;
  return { ...planned, ready: run.phase === 'ended' && run.failure.exitCode === 0, started: false };
}

const never = { failAfter: undefined, completeAfter: undefined };

function planMain(input: KubeletInput, container: Container, mayStart: boolean, whyNot: string): Planned {
  const { pod, isStandIn } = input;
  const behaviour = behaviourOf(pod, isStandIn(container));
  const restarts = restartsOf(container, pod.spec.restartPolicy ?? 'Always');
  return advance(input, container, { mayStart, restarts, whyNot, behaviour });
}

/** Not restarted, and not ready: kubelet does not probe them. */
function planEphemeral(input: KubeletInput, container: Container): Planned {
  const behaviour = { ...behaviourOf(input.pod, false), ...never };
  const planned = advance(input, container, {
    ...{ mayStart: mayStart(input), behaviour, restarts: () => false, whyNot: 'ContainerCreating' },
  });
  return { ...planned, ready: false, started: false };
}

/** By the policy and the rules of a container, else by the Pod's (KEP-5307). */
function restartsOf({ restartPolicy, restartPolicyRules = [] }: Container, ofPod: string): Restarts {
  const policy = restartPolicy ?? ofPod;
  return (exitCode) => {
    const rule = restartPolicyRules.find(({ exitCodes }) => {
      if (exitCodes === undefined) return false;
      const isIn = (exitCodes.values ?? []).includes(exitCode);
      return exitCodes.operator === 'In' ? isIn : !isIn;
    });
    if (rule?.action === 'Restart') return true;
    return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
  };
}

interface Course {
  readonly mayStart: boolean;
  readonly whyNot: string;
  readonly behaviour: Behaviour;
  readonly restarts: Restarts;
}

function advance(input: KubeletInput, container: Container, course: Course): Planned {
  const { observed: all, ending, now } = input;
  const observed = all.get(container.name);
  const before = readRun(statusOf(input.pod, container.name), observed);
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

/** A container of a Pod that ends: a stand-in, and what an annotation is about, takes its time; programs are asked to. */
function end(
  input: KubeletInput,
  container: Container,
  { behaviour, whyNot }: Course,
  before: Run,
  { since, grace }: PodEnding,
): Planned {
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
  const { stopAfter = isStandIn(container) ? 1000 : undefined } = behaviour;
  const at = stopAfter === undefined ? undefined : since + Math.min(stopAfter, grace);
  if (seen !== undefined || (at !== undefined && at <= now)) {
    const inTime = (stopAfter ?? 0) <= grace;
    const failure = seen ?? { exitCode: inTime ? 0 : 137, startedAt, finishedAt: now };
    return { container, run: { phase: 'ended', restarts, failure }, waiting, ...idle };
  }
  const readiness = readinessOf(before, behaviour, observed, now);
  const next = earliest([at, readiness.next]);
  return { container, run: before, waiting, isWanted: true, ...readiness, next };
}

/** When the other containers have ended, those beside them are stopped, and not started again. */
function endSidecar(input: KubeletInput, planned: Planned): Planned {
  const { container, waiting } = planned;
  const observed = input.observed.get(container.name);
  const run = readRun(statusOf(input.pod, container.name), observed);
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
  { readyAfter, readiness, saysReadiness }: Behaviour,
  observed: Observed | undefined,
  now: number,
): { ready: boolean; started: boolean; next: number | undefined } {
  if (run.phase !== 'running') return { ready: false, started: false, next: undefined };
  const isSeen = observed?.attempt === run.restarts;
  const started = !isSeen || observed.started !== false;
  if (readiness === false) return { ready: false, started, next: undefined };
  const probed = saysReadiness || !isSeen || (started && observed.ready !== false);
  const since = now - (run.startedAt + readyAfter);
  if (since < 0) return { ready: false, started, next: now - since };
  if (readiness === true) return { ready: probed, started, next: undefined };
  const turn = Math.floor(since / readiness);
  return { ready: probed && turn % 2 === 0, started, next: now - since + (turn + 1) * readiness };
}

/** kubelet's `getPhase`; the last word is said when nothing runs any more. */
function phaseOf(
  { ending }: KubeletInput,
  { hasFailed, isDone }: PlannedInit,
  main: readonly Planned[],
  isOver: boolean,
): string {
  if (isOver) {
    if (hasFailed || ending?.reason !== undefined) return 'Failed';
    const succeeded = main.every(({ run }) => run.phase === 'ended' && run.failure.exitCode === 0);
    return succeeded ? 'Succeeded' : 'Failed';
  }
  if (!isDone) return 'Pending';
  const isWaiting = main.some(({ run }) => run.phase === 'new');
  return isWaiting ? 'Pending' : 'Running';
}

/** The earliest of some times; undefined of none. */
export function earliest(times: readonly (number | undefined)[]): number | undefined {
  return times.reduce(
    (first, time) => (first === undefined || (time ?? Infinity) < first ? time : first),
    undefined,
  );
}

/** True for an init container that runs beside the others (`restartPolicy: Always`). */
export function isSidecar({ restartPolicy }: Container): boolean {
  return restartPolicy === 'Always';
}

function statusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].find(
    (each) => each.name === name,
  );
}

/** The InternalIPs of a node, in its order. */
export function hostAddresses({ status }: Node): string[] {
  return (status.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []));
}

function hostMembers(hosts: readonly string[]): Pick<PodStatus, 'hostIP' | 'hostIPs'> {
  const [first] = hosts;
  return first === undefined ? {} : { hostIP: first, hostIPs: hosts.map((ip) => ({ ip })) };
}

function addressMembers(addresses: readonly string[]): Pick<PodStatus, 'podIP' | 'podIPs'> {
  const [first] = addresses;
  return first === undefined ? {} : { podIP: first, podIPs: addresses.map((ip) => ({ ip })) };
}
