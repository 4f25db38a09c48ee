import type {
  ResourceQuota,
  ScopedResourceSelectorRequirement,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, invalid, required, errorsOfEach } from '../../validation/field-errors.ts';
import {
  isQuotaResource,
  validateResourceQuantity,
  validateQuotaResourceName,
} from '../../validation/names.ts';
import { jsonEqual, listAt, numberAt, recordAt, textAt } from '../../../objects/json.ts';
import { genericStrategy, addEmptyParts } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import type { KubeObject } from '../../../objects/meta.ts';

/**
 * - The rules of ResourceQuotas.
 * - The objects in the scopes of a quota: Pods, and claims by the classes of their volumes
 *   (`pkg/quota/v1/evaluator/core` pods.go, persistent_volume_claims.go).
 */

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
function validateScopes(spec: ResourceQuota['spec']): FieldError[] {
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

/** The rules of ResourceQuotas (`ValidateResourceQuota`). Admission enforces them. */
export const resourceQuotaStrategy = genericStrategy<ResourceQuota>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  hasStatus: true,
  setDefaults: addEmptyParts,
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

/** True when an object counts for a quota: all scopes must hold, each is one of Pods or of claims. */
export function isInScopes(quota: KubeObject, plural: string, object: KubeObject): boolean {
  const scopes = listAt(quota, 'spec', 'scopes');
  const selected = listAt(quota, 'spec', 'scopeSelector', 'matchExpressions');
  if (scopes.length === 0 && selected.length === 0) return true;
  if (plural === 'persistentvolumeclaims') {
    return scopes.length === 0 && selected.every((requirement) => matchesClaim(requirement, object));
  }
  if (plural !== 'pods') return false;
  return (
    scopes.every((scope) => isInScope(String(scope), object)) &&
    selected.every((requirement) => matches(requirement, object))
  );
}

function isInScope(scope: string, pod: KubeObject): boolean {
  const deadline = recordAt(pod, 'spec')['activeDeadlineSeconds'];
  switch (scope) {
    case 'Terminating':
      return deadline !== undefined && numberAt(pod, 'spec', 'activeDeadlineSeconds') >= 0;
    case 'NotTerminating':
      return deadline === undefined;
    case 'BestEffort':
      return isBestEffort(pod);
    case 'NotBestEffort':
      return !isBestEffort(pod);
    case 'PriorityClass':
      return textAt(pod, 'spec', 'priorityClassName') !== '';
    default:
      // Scopes of features that are not supported here.
      return false;
  }
}

function matches(requirement: unknown, pod: KubeObject): boolean {
  const scope = textAt(requirement, 'scopeName');
  const operator = textAt(requirement, 'operator');
  const values = listAt(requirement, 'values');
  if (operator === 'Exists') return isInScope(scope, pod);
  if (operator === 'DoesNotExist') return !isInScope(scope, pod);
  if (scope !== 'PriorityClass') return false;
  const name = textAt(pod, 'spec', 'priorityClassName');
  if (operator === 'In') return values.includes(name);
  return operator === 'NotIn' && name !== '' && !values.includes(name);
}

/** Any class counts that a claim asks for, has, or is about to get (KEP-3751). */
function matchesClaim(requirement: unknown, claim: KubeObject): boolean {
  if (textAt(requirement, 'scopeName') !== 'VolumeAttributesClass') return false;
  const classes = [
    textAt(claim, 'spec', 'volumeAttributesClassName'),
    textAt(claim, 'status', 'currentVolumeAttributesClassName'),
    textAt(claim, 'status', 'modifyVolumeStatus', 'targetVolumeAttributesClassName'),
  ].filter((name) => name !== '');
  const values = listAt(requirement, 'values');
  switch (textAt(requirement, 'operator')) {
    case 'Exists':
      return classes.length > 0;
    case 'DoesNotExist':
      return classes.length === 0;
    case 'In':
      return classes.some((name) => values.includes(name));
    default:
      return classes.length === 0 || classes.some((name) => !values.includes(name));
  }
}

function isBestEffort(pod: KubeObject): boolean {
  const containers = [...listAt(pod, 'spec', 'containers'), ...listAt(pod, 'spec', 'initContainers')];
  return containers.every(
    (container) =>
      Object.keys(recordAt(container, 'resources', 'requests')).length === 0 &&
      Object.keys(recordAt(container, 'resources', 'limits')).length === 0,
  );
}
