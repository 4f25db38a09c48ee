/** The status of a simulated Pod at a time (pkg/kubelet/status/generate.go, kubelet_pods.go). */
import type { Node, Pod, PodCondition, PodStatus } from '../../objects/core.generated.ts';
import { formatTime, parseTime } from '../../objects/time.ts';
import { conditionOf } from '../../objects/pods.ts';
import { behaviourOf, type Behaviour } from './plan-behaviour.ts';
import {
  advanceRun,
  containerStatuses,
  ephemeralContainerStatuses,
  initContainerStatuses,
  readRun,
  type Run,
} from './plan-containers.ts';

export interface KubeletInput {
  readonly pod: Pod;
  readonly node: Node;
  /** The Pod's addresses, the primary family first. */
  readonly addresses: readonly string[];
  /** When the containers started, to the millisecond, where this process started them. */
  readonly exactStart: number | undefined;
  readonly now: number;
}

export interface KubeletPlan {
  /** The members of the status that kubelet writes. */
  readonly status: PodStatus;
  /** When to reconcile again, in milliseconds since 1970; undefined: only after a change. */
  readonly next: number | undefined;
  /** When the present containers were started. */
  readonly startedAt: number | undefined;
}

/** Plans the status of a Pod that is not being deleted and has not finished. */
export function planPodStatus({ pod, node, addresses, exactStart, now }: KubeletInput): KubeletPlan {
  const behaviour = behaviourOf(pod);
  const before = readRun(pod, exactStart);
  const { run, next } = advanceRun(before, behaviour, pod.spec.restartPolicy ?? 'Always', now);
  const readiness = readinessOf(run, behaviour, now);
  const startTime = pod.status.startTime ?? formatTime(now);
  const hosts = hostAddresses(node);
  const phase = run.phase !== 'ended' ? 'Running' : run.failure.exitCode === 0 ? 'Succeeded' : 'Failed';
  const init = initContainerStatuses(pod, parseTime(startTime) ?? now);
  const ephemeral = ephemeralContainerStatuses(pod, now);
  const status: PodStatus = {
    ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    phase,
    conditions: conditionsOf(pod, phase, readiness.ready, now),
    ...hostMembers(hosts),
    ...addressMembers(pod.spec.hostNetwork === true ? hosts : addresses),
    startTime,
    ...(init.length === 0 ? {} : { initContainerStatuses: init }),
    containerStatuses: containerStatuses(pod, run, readiness.ready),
    ...(ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: ephemeral }),
  };
  return {
    status,
    next: earliest(next, readiness.next),
    startedAt: run.phase === 'running' ? run.startedAt : undefined,
  };
}

/**
 * The change of the status of a Pod that is being deleted: its containers run until they have stopped, and probes keep
 * deciding whether they are ready (KEP-1669 depends on it).
 */
export function planTerminatingStatus(
  pod: Pod,
  exactStart: number | undefined,
  now: number,
): Pick<KubeletPlan, 'status' | 'next'> | undefined {
  const run = readRun(pod, exactStart);
  if (run?.phase !== 'running') return undefined;
  const { ready, next } = readinessOf(run, behaviourOf(pod), now);
  const phase = 'Running';
  const status: PodStatus = {
    phase,
    conditions: conditionsOf(pod, phase, ready, now),
    containerStatuses: containerStatuses(pod, run, ready),
  };
  return { status, next };
}

/**
 * The last status of a Pod at the end of its deletion: its containers were stopped, or killed after the grace period.
 */
export function planStoppedStatus(pod: Pod, inTime: boolean, now: number): PodStatus {
  const run = readRun(pod, undefined);
  const startedAt = run?.phase === 'running' ? run.startedAt : now;
  const failure = { exitCode: inTime ? 0 : 137, startedAt, finishedAt: now };
  const phase = inTime ? 'Succeeded' : 'Failed';
  const ended: Run = { phase: 'ended', restarts: run?.restarts ?? 0, failure };
  return {
    ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    phase,
    conditions: conditionsOf(pod, phase, false, now),
    containerStatuses: containerStatuses(pod, ended, false),
  };
}

/**
 * When the containers of a Pod that is being deleted have stopped, in milliseconds since 1970, and whether they did
 * so within the grace period.
 *
 * @param since when the deletion was first seen.
 */
export function stopTime(pod: Pod, since: number): { at: number; inTime: boolean } {
  const grace = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  const { stopAfter } = behaviourOf(pod);
  return { at: since + Math.min(stopAfter, grace), inTime: stopAfter <= grace };
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

function readinessOf(
  run: Run,
  { readyAfter, readiness }: Behaviour,
  now: number,
): { ready: boolean; next: number | undefined } {
  if (run.phase !== 'running' || readiness === false) return { ready: false, next: undefined };
  const since = now - (run.startedAt + readyAfter);
  if (since < 0) return { ready: false, next: now - since };
  if (readiness === true) return { ready: true, next: undefined };
  const turn = Math.floor(since / readiness);
  return { ready: turn % 2 === 0, next: now - since + (turn + 1) * readiness };
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}

type Verdict = Pick<PodCondition, 'status' | 'reason' | 'message'>;
const met: Verdict = { status: 'True' };

function conditionsOf(pod: Pod, phase: string, ready: boolean, now: number): PodCondition[] {
  const verdicts = new Map<string, Verdict>([
    ['PodReadyToStartContainers', phase === 'Running' ? met : { status: 'False' }],
    ['Initialized', phase === 'Succeeded' ? { status: 'True', reason: 'PodCompleted' } : met],
    ['Ready', readyVerdict(pod, phase, ready)],
    ['ContainersReady', containersVerdict(pod, phase, ready)],
    ['PodScheduled', met],
  ]);
  const written = [...verdicts].map(([type, verdict]): PodCondition => {
    const present = conditionOf(pod.status.conditions, type);
    const { generation } = pod.metadata;
    return {
      type,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      status: verdict.status,
      lastProbeTime: null,
      lastTransitionTime:
        (present?.status === verdict.status ? present.lastTransitionTime : undefined) ?? formatTime(now),
      ...(verdict.reason === undefined ? {} : { reason: verdict.reason }),
      ...(verdict.message === undefined ? {} : { message: verdict.message }),
    };
  });
  const others = (pod.status.conditions ?? []).filter(({ type }) => !verdicts.has(type));
  return [...others, ...written];
}

function containersVerdict(pod: Pod, phase: string, ready: boolean): Verdict {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  if (ready) return met;
  const names = (pod.spec.containers ?? []).map(({ name }) => name).join(' ');
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${names}]`,
  };
}

function readyVerdict(pod: Pod, phase: string, ready: boolean): Verdict {
  const containers = containersVerdict(pod, phase, ready);
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
