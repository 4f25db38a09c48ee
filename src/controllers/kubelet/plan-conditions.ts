/** The conditions of a Pod's status (pkg/kubelet/status/generate.go). */
import type { ContainerStatus, Pod, PodCondition } from '../../objects/types/core.generated.ts';
import { transitionTime, conditionOf } from '../../objects/conditions.ts';

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
  readonly now: number;
}

type Verdict = Pick<PodCondition, 'status' | 'reason' | 'message'>;
const met: Verdict = { status: 'True' };

/** All conditions of the status: those of others, then the kubelet's. */
export function conditionsOf(input: ConditionInput): PodCondition[] {
  const { pod, hasSandbox, now } = input;
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
  const others = (pod.status.conditions ?? []).filter(({ type }) => !verdicts.has(type));
  return [...others, ...written];
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
