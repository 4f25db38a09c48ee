import type { ResourceQuota } from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { errorsOfEach, type FieldError, invalid } from '../../validation/field-errors.ts';
import { genericStrategy, fillParts } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { validateResourceQuantity } from '../../validation/quantities.ts';
import { validateQuotaResourceName } from '../../validation/resource-names.ts';
import { validateScopes } from './scope-rules.ts';

/** The rules of ResourceQuotas (`ValidateResourceQuota`). Admission enforces them. */
export const resourceQuotaStrategy = genericStrategy<ResourceQuota>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  hasStatus: true,
  setDefaults: fillParts,
  validateCreate: ({ spec }) => validateSpec(spec),
  validateUpdate: ({ spec }, old) => {
    const errors = validateSpec(spec);
    if (!jsonEqual(distinct(spec.scopes), distinct(old.spec.scopes))) {
      errors.push(invalid('spec.scopes', spec.scopes, 'field is immutable'));
    }
    return errors;
  },
  validateStatus: ({ status }) => [
    ...validateQuantities(status.hard, 'status.hard'),
    ...validateQuantities(status.used, 'status.used'),
  ],
});

function distinct(scopes: readonly string[] | undefined): string[] {
  return [...new Set(scopes)].sort();
}

function validateSpec(spec: ResourceQuota['spec']): FieldError[] {
  return [...validateQuantities(spec.hard, 'spec.hard'), ...validateScopes(spec)];
}

function validateQuantities(quantities: Record<string, string> | undefined, path: string): FieldError[] {
  return errorsOfEach(Object.entries(quantities ?? {}), ([resource, value]) => {
    const at = `${path}[${resource}]`;
    return [...validateQuotaResourceName(resource, at), ...validateResourceQuantity(resource, value, at)];
  });
}
