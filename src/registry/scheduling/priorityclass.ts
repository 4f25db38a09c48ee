import type { PriorityClass } from '../../objects/types/scheduling.generated.ts';
import { type FieldError, forbiddenField, notSupported, required } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';

/** The group of PriorityClasses. */
export const schedulingGroup = 'scheduling.k8s.io';

const systemPrefix = 'system-';
const highestUserDefined = 1_000_000_000;
const policies = ['PreemptLowerPriority', 'Never'];

/** The classes that every cluster has and that cannot be deleted (`apis/scheduling/v1` SystemPriorityClasses). */
export const systemPriorityClasses: readonly PriorityClass[] = [
  {
    metadata: { name: 'system-node-critical' },
    value: 2 * highestUserDefined + 1000,
    description: 'Used for system critical pods that must not be moved from their current node.',
  },
  {
    metadata: { name: 'system-cluster-critical' },
    value: 2 * highestUserDefined,
    description:
      'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  },
];

/** The rules of PriorityClasses (`apis/scheduling/validation` ValidatePriorityClass). */
export const priorityClassStrategy = genericStrategy<PriorityClass>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  generationChanges: () => false,
  defaults: { preemptionPolicy: 'PreemptLowerPriority' },
  immutable: ['preemptionPolicy'],
  validateCreate,
  validateUpdate: ({ value = 0 }, old) =>
    value === (old.value ?? 0) ? [] : [forbiddenField('value', 'may not be changed in an update.')],
});

function validateCreate({
  metadata,
  value = 0,
  globalDefault,
  preemptionPolicy,
}: PriorityClass): FieldError[] {
  const errors: FieldError[] = [];
  const { name = '' } = metadata;
  if (name.startsWith(systemPrefix)) {
    const why = systemFault(name, value, globalDefault ?? false);
    if (why !== undefined) {
      const rule = `priority class names with '${systemPrefix}' prefix are reserved for system use only`;
      errors.push(forbiddenField('metadata.name', `${rule}. error: ${why}`));
    }
  } else if (value > highestUserDefined) {
    const detail = `maximum allowed value of a user defined priority is ${highestUserDefined}`;
    errors.push(forbiddenField('value', detail));
  }
  if (preemptionPolicy === '') errors.push(required('preemptionPolicy'));
  else if (preemptionPolicy !== undefined && !policies.includes(preemptionPolicy)) {
    errors.push(notSupported('preemptionPolicy', preemptionPolicy, policies));
  }
  return errors;
}

/** Why a class differs from the system's, undefined for one of them (`IsKnownSystemPriorityClass`). */
function systemFault(name: string, value: number, globalDefault: boolean): string | undefined {
  const known = systemPriorityClasses.find((each) => each.metadata.name === name);
  if (known === undefined) return `${name} is not a known system priority class`;
  if (known.value !== value) return `value of ${name} PriorityClass must be ${known.value ?? 0}`;
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined;
}
