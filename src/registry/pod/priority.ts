import type { KubeObject } from '../../objects/meta.ts';
import { forbidden } from '../../objects/status-errors.ts';
import type { PodSpec } from './types.ts';

/** The classes that every cluster has (`scheduling.SystemPriorityClasses`); others cannot be made here. */
const systemClasses: ReadonlyMap<string, number> = new Map([
  ['system-cluster-critical', 2_000_000_000],
  ['system-node-critical', 2_000_001_000],
]);

/**
 * Admission Priority: works out a Pod's priority from its class.
 *
 * @throws {StatusError} 403 for an unknown class or a priority that the client made up.
 */
export function admitPriority({ metadata }: KubeObject, spec: PodSpec): void {
  const { priorityClassName = '' } = spec;
  const computed = priorityClassName === '' ? 0 : systemClasses.get(priorityClassName);
  const refuse = (why: string) => forbidden({ group: '', resource: 'pods' }, metadata.name ?? '', why);
  if (computed === undefined) throw refuse(`no PriorityClass with name ${priorityClassName} was found`);
  if (spec.priority !== undefined && spec.priority !== computed) {
    throw refuse(
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${computed} from the given PriorityClass name`,
    );
  }
  spec.priority = computed;
  spec.preemptionPolicy ??= 'PreemptLowerPriority';
}
