/** How many replicas a resource metric asks for (pkg/controller/podautoscaler/replica_calculator.go). */
import { conditionOf } from '../../objects/meta.ts';
import { scalarAt } from '../../objects/json.ts';
import { isSidecar } from '../../objects/pods.ts';
import { quantityIn } from '../../objects/formats/quantity.ts';
import { parseTime } from '../../objects/formats/time.ts';
import type { Pod } from '../../objects/types/core.generated.ts';

/** What a Pod used, from metrics.k8s.io. */
export interface PodSample {
  readonly pod: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** The time before, over which it was measured. */
  readonly windowMs: number;
  readonly containers: readonly { readonly name: string; readonly usage: Readonly<Record<string, string>> }[];
}

/** Which resource of which containers. */
export interface ResourceOf {
  readonly resource: string;
  /** Absent: all containers. */
  readonly container?: string;
}

/** Ratios of usage and target between which nothing changes: 1 − `down` to 1 + `up`. */
export interface Tolerance {
  readonly up: number;
  readonly down: number;
}

/** What a metric is computed from. */
export interface ReplicaQuestion extends ResourceOf {
  /** Replicas that are asked for now. */
  readonly current: number;
  /** Those of the target's selector. */
  readonly pods: readonly Pod[];
  /** Of these Pods; or why there are none. */
  readonly samples: readonly PodSample[] | string;
  readonly tolerance: Tolerance;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** The answer of a metric. */
export interface ReplicaProposal {
  readonly replicas: number;
  /** Thousandths that a Pod uses on average. */
  readonly averageMilli: bigint;
  /** In percent of the requests; only of a target in percent. */
  readonly utilization?: number;
}

/** Why no number can be computed, in kube-controller-manager's words. */
export class MetricError extends Error {
  override readonly name = 'MetricError';
}

/** A Pod that started less than this ago counts once it is ready (`--horizontal-pod-autoscaler-cpu-initialization-period`). */
const initializationMs = 300_000;
/** A Pod that became unready within this time of its start was never ready (`--horizontal-pod-autoscaler-initial-readiness-delay`). */
const readinessDelayMs = 30_000;

/** Thousandths by the name of the Pod. */
type Values = Map<string, bigint>;

/** For a target in percent of the requests. @throws {MetricError} */
export function proposeByUtilization(question: ReplicaQuestion, target: number): ReplicaProposal {
  const groups = groupPods(question);
  const requests = new Map(question.pods.map((pod) => [nameOf(pod), requestOf(pod, question)]));
  const used = (values: Values) => {
    let usage = 0n;
    let requested = 0n;
    let count = 0n;
    for (const [name, value] of values) {
      const request = requests.get(name);
      if (request === undefined) continue;
      usage += value;
      requested += request;
      count++;
    }
    if (requested === 0n) throw new MetricError('no metrics returned matched known pods');
    const utilization = Number((usage * 100n) / requested);
    return { utilization, averageMilli: usage / count, ratio: utilization / target };
  };
  const { utilization, averageMilli } = used(groups.values);
  // A Pod without a sample uses all that it requests, or what is aimed at, where that is more.
  const share = BigInt(Math.max(100, target));
  const replicas = propose(question, groups, {
    ratioOf: (values) => used(values).ratio,
    highest: (name) => ((requests.get(name) ?? 0n) * share) / 100n,
  });
  return { replicas, averageMilli, utilization };
}

/** For a target of thousandths a Pod. @throws {MetricError} */
export function proposeByAverage(question: ReplicaQuestion, targetMilli: bigint): ReplicaProposal {
  const groups = groupPods(question);
  const averageOf = (values: Values): bigint =>
    [...values.values()].reduce((sum, value) => sum + value, 0n) / BigInt(values.size);
  const replicas = propose(question, groups, {
    ratioOf: (values) => Number(averageOf(values)) / Number(targetMilli),
    highest: () => targetMilli,
  });
  return { replicas, averageMilli: averageOf(groups.values) };
}

interface PodGroups {
  /** Of Pods that count. */
  readonly values: Values;
  readonly readyCount: number;
  readonly unready: readonly string[];
  readonly missing: readonly string[];
}

/** @throws {MetricError} where no Pod counts. */
function groupPods({ pods, samples, nowMs, resource, container }: ReplicaQuestion): PodGroups {
  const measured = valuesOf(samples, { resource, ...(container !== undefined && { container }) });
  if (pods.length === 0) {
    throw new MetricError('no pods returned by selector while calculating replica count');
  }
  const values: Values = new Map([...measured].map(([name, { milli }]) => [name, milli]));
  const unready: string[] = [];
  const missing: string[] = [];
  let readyCount = 0;
  for (const pod of pods) {
    const name = nameOf(pod);
    const sample = measured.get(name);
    if (pod.metadata.deletionTimestamp !== undefined || pod.status.phase === 'Failed') values.delete(name);
    else if (pod.status.phase === 'Pending') unready.push(name);
    else if (sample === undefined) missing.push(name);
    else if (resource === 'cpu' && isStarting(pod, sample, nowMs)) unready.push(name);
    else readyCount++;
  }
  for (const name of unready) values.delete(name);
  if (values.size === 0) {
    throw new MetricError('did not receive metrics for targeted pods (pods might be unready)');
  }
  return { values, readyCount, unready, missing };
}

/** Whether the CPU of a Pod says nothing yet: a start takes more than what follows. */
function isStarting(pod: Pod, { atMs, windowMs }: PodSample, nowMs: number): boolean {
  const ready = conditionOf(pod.status.conditions, 'Ready');
  const startedMs = timeOf(pod.status.startTime);
  if (ready === undefined || startedMs === undefined) return true;
  const changedMs = timeOf(ready.lastTransitionTime) ?? 0;
  const isUnready = ready.status === 'False';
  if (startedMs + initializationMs > nowMs) return isUnready || atMs < changedMs + windowMs;
  return isUnready && startedMs + readinessDelayMs > changedMs;
}

/** What fills in for Pods whose use is not known. */
interface Filling {
  readonly ratioOf: (values: Values) => number;
  /** The most that a Pod is taken to use. */
  readonly highest: (pod: string) => bigint;
}

/**
 * The replicas by the ratio of use and target. Pods without a sample dampen the change: they use much where fewer replicas
 * would do, and nothing where more are needed; so do those that are not ready.
 */
function propose(
  { current, tolerance }: ReplicaQuestion,
  { values, readyCount, unready, missing }: PodGroups,
  { ratioOf, highest }: Filling,
): number {
  const isTolerated = (ratio: number): boolean => ratio >= 1 - tolerance.down && ratio <= 1 + tolerance.up;
  const ratio = ratioOf(values);
  const fillsUnready = unready.length > 0 && ratio > 1;
  if (!fillsUnready && missing.length === 0) {
    return isTolerated(ratio) ? current : Math.ceil(ratio * readyCount);
  }
  const filled: Values = new Map(values);
  if (ratio < 1) for (const name of missing) filled.set(name, highest(name));
  if (ratio > 1) for (const name of missing) filled.set(name, 0n);
  if (fillsUnready) for (const name of unready) filled.set(name, 0n);
  const newRatio = ratioOf(filled);
  if (isTolerated(newRatio) || (ratio < 1 && newRatio > 1) || (ratio > 1 && newRatio < 1)) return current;
  const replicas = Math.ceil(newRatio * filled.size);
  const turns = (newRatio < 1 && replicas > current) || (newRatio > 1 && replicas < current);
  return turns ? current : replicas;
}

/** @throws {MetricError} */
function valuesOf(
  samples: readonly PodSample[] | string,
  { resource, container }: ResourceOf,
): ReadonlyMap<string, PodSample & { readonly milli: bigint }> {
  const fail = (why: string): never => {
    throw new MetricError(`unable to get metrics for resource ${resource}: ${why}`);
  };
  if (typeof samples === 'string') {
    return fail(`unable to fetch metrics from resource metrics API: ${samples}`);
  }
  if (samples.length === 0) return fail('no metrics returned from resource metrics API');
  const values = new Map<string, PodSample & { readonly milli: bigint }>();
  for (const sample of samples) {
    const counted = sample.containers.filter(({ name }) => container === undefined || name === container);
    if (container !== undefined && counted.length === 0) {
      return fail(`container ${container} not present in metrics for pod ${sample.pod}`);
    }
    const amounts = counted.map(({ usage }) => usage[resource]);
    // A Pod of which a container has no figure counts as missing.
    if (amounts.length === 0 || amounts.includes(undefined)) continue;
    const milli = amounts.reduce((sum, amount = '0') => sum + quantityIn(amount, 'thousandths'), 0n);
    values.set(sample.pod, { ...sample, milli });
  }
  return values;
}

/** Thousandths that a Pod requests. @throws {MetricError} */
function requestOf(pod: Pod, { resource, container }: ResourceOf): bigint {
  const { containers = [], initContainers = [] } = pod.spec;
  const ofPod = scalarAt(pod.spec, 'resources', 'requests', resource);
  if (container === undefined && ofPod !== undefined) return quantityIn(ofPod, 'thousandths');
  let sum = 0n;
  for (const { name, resources } of [...containers, ...initContainers.filter(isSidecar)]) {
    if (container !== undefined && name !== container) continue;
    const amount = scalarAt(resources, 'requests', resource);
    if (amount === undefined) {
      throw new MetricError(`missing request for ${resource} in container ${name} of Pod ${nameOf(pod)}`);
    }
    sum += quantityIn(amount, 'thousandths');
  }
  return sum;
}

function nameOf({ metadata }: Pod): string {
  return metadata.name ?? '';
}

function timeOf(text: string | null | undefined): number | undefined {
  return text === undefined || text === null ? undefined : parseTime(text);
}
