import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { type FieldError, invalid, notSupported } from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { validateConditions } from '../validation/conditions.ts';
import { validateLabelSelector } from '../validation/label-selector.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { validateAtMost100Percent, validateCountOrPercent, validateCounts } from '../core/podtemplate.ts';

const evictionPolicies = ['AlwaysAllow', 'IfHealthyBudget'];

/** The rules of PodDisruptionBudgets (`apis/policy/validation`, `pkg/registry/policy/poddisruptionbudget`). */
export const podDisruptionBudgetStrategy = genericStrategy<PodDisruptionBudget>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  metadataRules: 'none',
  allowUnconditionalUpdate: false,
  hasStatus: true,
  generationChanges: isSpecChanged,
  repeatsCreate: 'instead',
  setDefaults: addEmptyParts,
  validateCreate: ({ spec }) => validateSpec(spec),
  validateStatus: ({ status }) => [
    ...validateConditions(status.conditions ?? [], 'status.conditions'),
    ...validateCounts(status, ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods']),
  ],
});

function validateSpec(spec: PodDisruptionBudget['spec']): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec;
  const errors: FieldError[] = [];
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    const shown = { MinAvailable: minAvailable, Selector: selector ?? null, MaxUnavailable: maxUnavailable };
    const detail = 'minAvailable and maxUnavailable cannot be both set';
    errors.push(invalid('spec', { ...shown, UnhealthyPodEvictionPolicy: policy ?? null }, detail));
  }
  pushAll(
    errors,
    validateCountOrPercent(minAvailable, 'spec.minAvailable'),
    validateAtMost100Percent(minAvailable, 'spec.minAvailable'),
    validateCountOrPercent(maxUnavailable, 'spec.maxUnavailable'),
    validateAtMost100Percent(maxUnavailable, 'spec.maxUnavailable'),
    validateLabelSelector(selector, 'spec.selector'),
  );
  if (policy !== undefined && !evictionPolicies.includes(policy)) {
    errors.push(notSupported('spec.unhealthyPodEvictionPolicy', policy, evictionPolicies));
  }
  return errors;
}
