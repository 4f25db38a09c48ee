import type {
  ResourceQuota,
  ScopedResourceSelectorRequirement,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, invalid, required } from '../../validation/field-errors.ts';
import { isQuotaResource } from '../../validation/resource-names.ts';

const ofPods = ['pods', 'cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'];
/** The resources that a quota of a scope can limit (`IsResourceQuotaScopeValidForResource`). */
const resourcesOf = new Map<string, readonly string[]>([
  ['Terminating', ofPods],
  ['NotTerminating', ofPods],
  ['BestEffort', ['pods']],
  ['NotBestEffort', ofPods],
  ['PriorityClass', ofPods],
  ['CrossNamespacePodAffinity', ofPods],
  ['VolumeAttributesClass', ['persistentvolumeclaims', 'requests.storage']],
]);
/** Scopes without values. */
const withoutValues = new Set([
  'Terminating',
  'NotTerminating',
  'BestEffort',
  'NotBestEffort',
  'CrossNamespacePodAffinity',
]);
const onlyExists =
  "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
const opposed = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
];
const scopesPath = 'spec.scopes';
const selectorPath = 'spec.scopeSelector.matchExpressions';

/** The rules of the scopes of a quota, and of the selector of scopes (`validateResourceQuotaScopes`, `validateScopeSelector`). */
export function validateScopes(spec: ResourceQuota['spec']): FieldError[] {
  const { scopes = [], scopeSelector } = spec;
  const resources = Object.keys(spec.hard ?? {})
    .filter(isQuotaResource)
    .sort();
  const errors: FieldError[] = [];
  for (const scope of scopes) {
    if (!resourcesOf.has(scope)) errors.push(invalid(scopesPath, scopes, 'unsupported scope'));
    pushResourceErrors(errors, scope, resources, scopesPath, scopes);
  }
  pushOpposed(errors, scopes, scopesPath, scopes);
  if (scopeSelector === undefined) return errors;
  const { matchExpressions = [] } = scopeSelector;
  // As kube-apiserver prints its own type.
  const shown = {
    MatchExpressions: matchExpressions.map(({ scopeName, operator, values }) => ({
      ScopeName: scopeName,
      Operator: operator,
      Values: values ?? null,
    })),
  };
  for (const requirement of matchExpressions) {
    const { scopeName } = requirement;
    if (!resourcesOf.has(scopeName)) {
      errors.push(invalid(`${selectorPath}.scopeName`, scopeName, 'unsupported scope'));
    }
    pushResourceErrors(errors, scopeName, resources, selectorPath, shown);
    pushAll(errors, validateOperator(requirement));
  }
  const selected = matchExpressions.map(({ scopeName }) => scopeName);
  // kube-apiserver prints the other scopes here.
  pushOpposed(errors, selected, selectorPath, spec.scopes);
  return errors;
}

function pushResourceErrors(
  errors: FieldError[],
  scope: string,
  resources: readonly string[],
  path: string,
  shown: unknown,
): void {
  const bounded = resourcesOf.get(scope);
  for (const resource of resources) {
    if (bounded === undefined || bounded.includes(resource)) continue;
    errors.push(invalid(path, shown, 'unsupported scope applied to resource'));
  }
}

function pushOpposed(
  errors: FieldError[],
  scopes: readonly string[],
  path: string,
  shown: readonly string[] | undefined,
): void {
  for (const pair of opposed) {
    if (pair.every((scope) => scopes.includes(scope)))
      errors.push(invalid(path, shown, 'conflicting scopes'));
  }
}

function validateOperator({ scopeName, operator, values }: ScopedResourceSelectorRequirement): FieldError[] {
  const errors: FieldError[] = [];
  if (withoutValues.has(scopeName) && operator !== 'Exists') {
    errors.push(invalid(`${selectorPath}.operator`, operator, onlyExists));
  }
  const given = (values ?? []).length > 0;
  if (operator === 'In' || operator === 'NotIn') {
    const detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
    if (!given) errors.push(required(`${selectorPath}.values`, detail));
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
    if (given) errors.push(invalid(`${selectorPath}.values`, values, detail));
  } else errors.push(invalid(`${selectorPath}.operator`, operator, 'not a valid selector operator'));
  return errors;
}
