import type {
  ContainerStatus,
  Pod,
  PodCondition,
  Container,
  Node,
  PodStatus,
  ResourceRequirements,
} from '../../objects/types/core.generated.ts';
import { transitionTime, conditionOf } from '../../objects/meta.ts';
import { formatTime } from '../../objects/formats/time.ts';
import { behaviourOf } from './plan-behaviour.ts';
import { containerStatus, readRun, type Restarts } from './plan-containers.ts';
import {
  advance,
  type CourseInput,
  earliest,
  endSidecar,
  type ContainerPlan,
  statusOfContainer,
} from './plan-course.ts';
import { isSidecar } from '../../objects/pods.ts';
import { resizeCondition, resizeConditionTypes, type ResizeState } from './plan-resize.ts';

/** The inputs of the conditions. */
export interface ConditionInput {
  readonly pod: Pod;
  readonly phase: string;
  /** The sandbox exists, with its network. */
  readonly hasSandbox: boolean;
  /** Of init containers, those that have not done their part. */
  readonly incomplete: readonly string[];
  /** Of containers and of init containers that run beside them. */
  readonly statuses: readonly Pick<ContainerStatus, 'name' | 'ready'>[];
  /** Resizes that are not done. */
  readonly resizes: readonly ResizeState[];
  readonly now: number;
}

type Verdict = Pick<PodCondition, 'status' | 'reason' | 'message'>;
const met: Verdict = { status: 'True' };

/** All conditions of the status: those of others, then the kubelet's (pkg/kubelet/status/generate.go). */
function conditionsOf(input: ConditionInput): PodCondition[] {
  const { pod, hasSandbox, resizes, now } = input;
  const verdicts = new Map<string, Verdict>([
    ['PodReadyToStartContainers', hasSandbox ? met : { status: 'False' }],
    ['Initialized', initializedVerdict(input)],
    ['Ready', readyVerdict(input)],
    ['ContainersReady', containersVerdict(input)],
    ['PodScheduled', met],
  ]);
  const written = [...verdicts].map(([type, verdict]): PodCondition => {
    const { generation } = pod.metadata;
    return {
      type,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      status: verdict.status,
      lastProbeTime: null,
      lastTransitionTime: transitionTime(pod.status.conditions, { type, status: verdict.status }, now),
      ...(verdict.reason === undefined ? {} : { reason: verdict.reason }),
      ...(verdict.message === undefined ? {} : { message: verdict.message }),
    };
  });
  const others = (pod.status.conditions ?? []).filter(
    ({ type }) => !verdicts.has(type) && !resizeConditionTypes.includes(type),
  );
  return [...others, ...resizes.map((each) => resizeCondition(pod, each, now)), ...written];
}

function initializedVerdict({ phase, incomplete }: ConditionInput): Verdict {
  if (phase === 'Succeeded') return { status: 'True', reason: 'PodCompleted' };
  if (incomplete.length === 0) return met;
  const message = `containers with incomplete status: [${incomplete.join(' ')}]`;
  return { status: 'False', reason: 'ContainersNotInitialized', message };
}

function containersVerdict({ phase, statuses }: ConditionInput): Verdict {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  const unready = statuses.filter(({ ready }) => !ready).map(({ name }) => name);
  if (unready.length === 0) return met;
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${unready.join(' ')}]`,
  };
}

function readyVerdict(input: ConditionInput): Verdict {
  const { pod } = input;
  const containers = containersVerdict(input);
  if (containers.status !== 'True') return containers;
  const unmet = (pod.spec.readinessGates ?? []).flatMap(({ conditionType = '' }) => {
    const gate = conditionOf(pod.status.conditions, conditionType);
    if (gate === undefined) {
      return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
    }
    return gate.status === 'True'
      ? []
      : [`the status of pod readiness gate "${conditionType}" is not "True", but ${gate.status}`];
  });
  if (unmet.length === 0) return met;
  return { status: 'False', reason: 'ReadinessGatesNotReady', message: unmet.join(', ') };
}

export interface KubeletInput extends CourseInput {
  readonly node: Node;
  /** The Pod's addresses, the primary family first. */
  readonly addresses: readonly string[];
  /** Sandbox and volumes are there; without, nothing is started. */
  readonly isPrepared: boolean;
  /** Further networks are attached, or none are awaited; without, nothing is started. */
  readonly hasNetworks: boolean;
  /** Resizes that are not done. Default: none. */
  readonly resizes?: readonly ResizeState[];
  /** The resources of containers that run, by their names, where they differ from those of the spec. Default: none do. */
  readonly actual?: ReadonlyMap<string, ResourceRequirements>;
}

const noActual: ReadonlyMap<string, ResourceRequirements> = new Map();

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

/**
 * Plans a Pod that has not finished: its status, and the containers that should run (pkg/kubelet/kubelet_pods.go,
 * kuberuntime_manager.go).
 */
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
  const statuses = (planned: readonly ContainerPlan[]): ContainerStatus[] =>
    planned.map((each) => containerStatus(pod, each, input.actual ?? noActual));
  const isFinal = phase === 'Succeeded' || phase === 'Failed';
  const status: PodStatus = {
    ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    phase,
    conditions: conditionsOf({
      ...{ pod, phase, now },
      hasSandbox: mayStart(input) && !isFinal,
      incomplete: init.incomplete,
      statuses: counted.map(({ container, ready }) => ({ name: container.name, ready })),
      resizes: isFinal ? [] : (input.resizes ?? []),
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
  readonly planned: readonly ContainerPlan[];
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
  const planned: ContainerPlan[] = [];
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

function asBefore(input: KubeletInput, container: Container): ContainerPlan {
  const run = readRun(statusOfContainer(input.pod, container.name), undefined);
  const ready = run.phase === 'ended' && run.failure.exitCode === 0;
  const waiting = { reason: 'PodInitializing' };
  return { container, run, ready, started: false, waiting, next: undefined, isWanted: true };
}

function planOne(
  input: KubeletInput,
  container: Container,
  mayStart: boolean,
  sidecar: boolean,
): ContainerPlan {
  const { pod, isStandIn } = input;
  const behaviour = behaviourOf(pod, false);
  const own = !sidecar && isStandIn(container) ? { ...never, completeAfterMs: 0 } : never;
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

const never = { failAfterMs: undefined, completeAfterMs: undefined };

function planMain(
  input: KubeletInput,
  container: Container,
  mayStart: boolean,
  whyNot: string,
): ContainerPlan {
  const { pod, isStandIn } = input;
  const behaviour = behaviourOf(pod, isStandIn(container));
  const restarts = restartsOf(container, pod.spec.restartPolicy ?? 'Always');
  return advance(input, container, { mayStart, restarts, whyNot, behaviour });
}

/** Not restarted, and not ready: kubelet does not probe them. */
function planEphemeral(input: KubeletInput, container: Container): ContainerPlan {
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

/** kubelet's `getPhase`; a final phase only when nothing runs. */
function phaseOf(
  { ending }: KubeletInput,
  { hasFailed, isDone }: PlannedInit,
  main: readonly ContainerPlan[],
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
