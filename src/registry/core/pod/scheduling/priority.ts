import type { PriorityClass } from '../../../../objects/types/scheduling.generated.ts';
import type { PodSpec } from '../../../../objects/types/core.generated.ts';
import type { KubeObject } from '../../../../objects/meta.ts';
import { forbidden } from '../../../../objects/status-errors.ts';
import { schedulingGroup, systemPriorityClasses } from '../../../scheduling/priorityclass/strategy.ts';
import type { ClusterReader } from '../../../generic/strategy.ts';

/** The priority of a Pod without a class when there is no default class. */
const noClass: PriorityClass = { metadata: {}, value: 0, preemptionPolicy: 'PreemptLowerPriority' };

/**
 * Admission Priority: sets a Pod's priority and preemption policy from its class.
 *
 * @throws {StatusError} 403 for an unknown class, or for a priority or policy that differs from the class.
 */
export function admitPriority({ metadata }: KubeObject, spec: PodSpec, cluster: ClusterReader): void {
  const refuse = (why: string) => forbidden({ group: '', resource: 'pods' }, metadata.name ?? '', why);
  const { priorityClassName = '' } = spec;
  const found =
    priorityClassName === ''
      ? (defaultPriorityClass(cluster) ?? noClass)
      : priorityClassOf(cluster, priorityClassName);
  if (found === undefined) throw refuse(`no PriorityClass with name ${priorityClassName} was found`);
  const { value = 0, preemptionPolicy = 'PreemptLowerPriority' } = found;
  if (priorityClassName === '' && found !== noClass) spec.priorityClassName = found.metadata.name ?? '';
  const computed = (member: string, given: string, right: string) =>
    `the ${member} (${given}) must not be provided in pod spec; priority admission controller computed ${right} from the given PriorityClass name`;
  if (spec.priority !== undefined && spec.priority !== value) {
    throw refuse(computed('integer value of priority', String(spec.priority), String(value)));
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy) {
    throw refuse(computed('string value of PreemptionPolicy', spec.preemptionPolicy, preemptionPolicy));
  }
  spec.priority = value;
  spec.preemptionPolicy = preemptionPolicy;
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
