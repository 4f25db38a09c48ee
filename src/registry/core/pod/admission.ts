import type { PriorityClass } from '../../../objects/types/scheduling.generated.ts';
import type { PodSpec, Toleration, Binding, Pod } from '../../../objects/types/core.generated.ts';
import type { KubeObject, ObjectMeta } from '../../../objects/meta.ts';
import { conflict } from '../../../objects/status.ts';
import { schedulingGroup, systemPriorityClasses } from '../../scheduling/priorityclass.ts';
import type { ClusterReader } from '../../generic/strategy.ts';
import type { RuntimeClass } from '../../../objects/types/node.generated.ts';
import { initContainerAnnotations } from './defaults.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { compareQuantities } from '../../../objects/formats/quantity.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { type FieldError, invalid, notSupported, required } from '../../validation/field-errors.ts';

/** The priority of a Pod without a class when there is no default class. */
const noClass: PriorityClass = { metadata: {}, value: 0, preemptionPolicy: 'PreemptLowerPriority' };

/**
 * Admission Priority: sets the priority and the preemption policy of a new Pod from its class.
 *
 * @returns why the Pod is refused: an unknown class, or a priority or policy that differs from the class.
 */
export function setPriority(spec: PodSpec, cluster: ClusterReader): string | undefined {
  const { priorityClassName = '' } = spec;
  const found =
    priorityClassName === ''
      ? (defaultPriorityClass(cluster) ?? noClass)
      : priorityClassOf(cluster, priorityClassName);
  if (found === undefined) return `no PriorityClass with name ${priorityClassName} was found`;
  const { value = 0, preemptionPolicy = 'PreemptLowerPriority' } = found;
  if (priorityClassName === '' && found !== noClass) spec.priorityClassName = found.metadata.name ?? '';
  const computed = (member: string, given: string, right: string) =>
    `the ${member} (${given}) must not be provided in pod spec; priority admission controller computed ${right} from the given PriorityClass name`;
  if (spec.priority !== undefined && spec.priority !== value) {
    return computed('integer value of priority', String(spec.priority), String(value));
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy) {
    return computed('string value of PreemptionPolicy', spec.preemptionPolicy, preemptionPolicy);
  }
  spec.priority = value;
  spec.preemptionPolicy = preemptionPolicy;
  return undefined;
}

/** Admission Priority: an update that leaves out priority and preemption policy keeps them. */
export function keepPriority(spec: PodSpec, { priority, preemptionPolicy }: PodSpec): void {
  if (priority !== undefined) spec.priority ??= priority;
  if (preemptionPolicy !== undefined) spec.preemptionPolicy ??= preemptionPolicy;
}

/** The default class; of several the one with the lowest value. */
export function defaultPriorityClass(cluster: ClusterReader): PriorityClass | undefined {
  const classes: readonly PriorityClass[] = cluster.list(schedulingGroup, 'priorityclasses');
  let found: PriorityClass | undefined;
  for (const each of classes) {
    if (each.globalDefault !== true) continue;
    if (found === undefined || (each.value ?? 0) < (found.value ?? 0)) found = each;
  }
  return found;
}

/** The system classes always exist: they cannot be deleted. */
function priorityClassOf(cluster: ClusterReader, name: string): PriorityClass | undefined {
  return (
    cluster.get(schedulingGroup, 'priorityclasses', '', name) ??
    systemPriorityClasses.find(({ metadata }) => metadata.name === name)
  );
}

const otherOverhead = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const noOverhead = 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead';

/** The runtime class of a Pod, undefined where it names none; a string says why the Pod is refused. */
function runtimeClassOf(
  { runtimeClassName: name }: PodSpec,
  cluster: ClusterReader,
): (KubeObject & Partial<RuntimeClass>) | string | undefined {
  if (name === undefined) return undefined;
  const found = cluster.get('node.k8s.io', 'runtimeclasses', '', name);
  return found ?? `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`;
}

/**
 * Admission RuntimeClass: copies the overhead, the node selector and the tolerations of a Pod's class to the Pod
 * (`plugin/pkg/admission/runtimeclass` Admit).
 *
 * @returns why the Pod is refused.
 */
export function applyRuntimeClass(spec: PodSpec, cluster: ClusterReader): string | undefined {
  const found = runtimeClassOf(spec, cluster);
  if (typeof found === 'string') return found;
  const { overhead, scheduling } = found ?? {};
  if (overhead !== undefined) {
    const { podFixed } = overhead;
    if (spec.overhead !== undefined && !sameAmounts(spec.overhead, podFixed ?? {})) return otherOverhead;
    if (podFixed !== undefined) spec.overhead = { ...podFixed };
  }
  if (scheduling === undefined) return undefined;
  const { nodeSelector = {}, tolerations = [] } = scheduling;
  const selector = { ...spec.nodeSelector };
  for (const [key, value] of Object.entries(nodeSelector)) {
    const own = Object.hasOwn(selector, key) ? selector[key] : undefined;
    if (own !== undefined && own !== value) {
      const classes = `runtimeClass.scheduling.nodeSelector[${key}] = ${value}`;
      return `conflict: ${classes}; pod.spec.nodeSelector[${key}] = ${own}`;
    }
    selector[key] = value;
  }
  if (Object.keys(selector).length > 0) spec.nodeSelector = selector;
  spec.tolerations = mergeTolerations(spec.tolerations ?? [], tolerations);
  return undefined;
}

/** Admission RuntimeClass: the overhead of a Pod is that of its class (Validate). @returns why the Pod is refused. */
export function validateOverhead(spec: PodSpec, cluster: ClusterReader): string | undefined {
  const found = runtimeClassOf(spec, cluster);
  if (typeof found === 'string') return found;
  if (found?.overhead === undefined) return spec.overhead === undefined ? undefined : noOverhead;
  return sameAmounts(found.overhead.podFixed ?? {}, spec.overhead ?? {}) ? undefined : otherOverhead;
}

function sameAmounts(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => {
    const [left, right] = [a[name], b[name]];
    return left !== undefined && right !== undefined && compareQuantities(left, right) === 0;
  });
}

/** Both lists, without tolerations that another one covers (`util/tolerations` MergeTolerations). */
function mergeTolerations(first: readonly Toleration[], second: readonly Toleration[]): Toleration[] {
  const all = [...first, ...second];
  const merged: Toleration[] = [];
  all.forEach((toleration, i) => {
    const later = all.slice(i + 1).filter((other) => !jsonEqual(other, toleration));
    if ([...merged, ...later].some((other) => covers(other, toleration))) return;
    merged.push(toleration);
  });
  return merged;
}

/** True when the first toleration covers the second (`util/tolerations` isSuperset). */
function covers(wide: Toleration, narrow: Toleration): boolean {
  if (jsonEqual(wide, narrow)) return true;
  const { key = '', effect = '', operator = '', value = '', tolerationSeconds: seconds } = wide;
  if ((narrow.key ?? '') !== key && (key !== '' || operator !== 'Exists')) return false;
  if ((narrow.effect ?? '') !== effect && effect !== '') return false;
  if (effect === 'NoExecute' && seconds !== undefined) {
    if (narrow.tolerationSeconds === undefined || narrow.tolerationSeconds > seconds) return false;
  }
  if (operator === 'Exists') return true;
  return (
    (operator === '' || operator === 'Equal') && narrow.operator === 'Equal' && (narrow.value ?? '') === value
  );
}

/** A posted Binding. */
export type PostedBinding = KubeObject & Partial<Pick<Binding, 'target'>>;

/** The rules of a Binding (`ValidatePodBinding`). Its name and namespace are the Pod's. */
export function validateBinding({ target }: PostedBinding): FieldError[] {
  const { kind = '', name = '' } = target ?? {};
  const errors: FieldError[] = [];
  if (kind !== '' && kind !== 'Node') errors.push(notSupported('target.kind', kind, ['Node', '<empty>']));
  if (name === '') errors.push(required('target.name'));
  else if (kind === '' || kind === 'Node') {
    for (const fault of nameIsDNSSubdomain(name, false)) errors.push(invalid('target.name', name, fault));
  }
  return errors;
}

/**
 * Applies `POST /binding` to a Pod: its node, the annotations and labels of the Binding, and the condition
 * PodScheduled.
 *
 * @param now RFC 3339.
 * @returns a new Pod; the stored one is not changed.
 * @throws {StatusError} 409 when the Pod is being deleted, is gated, or is on a node already.
 */
export function bindPod(pod: Pod, { metadata, target }: PostedBinding, now: string): Pod {
  const name = pod.metadata.name ?? '';
  const refuse = (why: string) => conflict({ group: '', resource: 'pods/binding' }, name, why);
  if (pod.metadata.deletionTimestamp !== undefined)
    throw refuse(`pod ${name} is being deleted, cannot be assigned to a host`);
  if ((pod.spec.nodeName ?? '') !== '') {
    throw refuse(`pod ${name} is already assigned to node ${JSON.stringify(pod.spec.nodeName)}`);
  }
  if ((pod.spec.schedulingGates ?? []).length > 0)
    throw refuse(`pod ${name} has non-empty .spec.schedulingGates`);
  const bound = structuredClone(pod);
  bound.spec.nodeName = target?.name ?? '';
  if (metadata.annotations !== undefined) {
    const annotations = Object.entries({ ...bound.metadata.annotations, ...metadata.annotations });
    const kept = annotations.filter(([key]) => !initContainerAnnotations.includes(key));
    bound.metadata.annotations = Object.fromEntries(kept);
  }
  if (metadata.labels !== undefined) bound.metadata.labels = { ...bound.metadata.labels, ...metadata.labels };
  const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: now };
  const conditions = (bound.status.conditions ??= []);
  const at = conditions.findIndex(({ type }) => type === scheduled.type);
  conditions.splice(at === -1 ? conditions.length : at, 1, scheduled);
  // The nomination has no more use (ClearingNominatedNodeNameAfterBinding).
  delete bound.status.nominatedNodeName;
  return bound;
}

const copied = ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone'];

/**
 * Admission PodTopologyLabels: copies zone and region of the node to a bound Pod or its Binding.
 *
 * @param node undefined when there is no such node, which is no error.
 */
export function copyTopologyLabels(metadata: ObjectMeta, node: KubeObject | undefined): void {
  const labels = node?.metadata.labels ?? {};
  const found = copied.flatMap((key): [string, string][] => {
    const value = labels[key];
    return value === undefined ? [] : [[key, value]];
  });
  copyLabels(metadata, Object.fromEntries(found));
}

/** Adds missing labels. */
function copyLabels(metadata: ObjectMeta, labels: Readonly<Record<string, string>>): void {
  if (Object.keys(labels).length > 0) metadata.labels = { ...labels, ...metadata.labels };
}
