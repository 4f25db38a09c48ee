import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { type FieldError, invalid } from '../field-errors.ts';
import { genericStrategy } from '../generic.ts';
import { isQualifiedName, nameIsDNSSubdomain } from '../names.ts';
import { validateResourceQuantity } from '../quantities.ts';
import { fillParts } from '../workload/workload.ts';

/** Core/v1 ResourceQuota. */
export interface ResourceQuota extends KubeObject {
  spec: { hard?: Record<string, string>; scopes?: string[] };
  status: { hard?: Record<string, string>; used?: Record<string, string> };
}

const compute = ['cpu', 'memory', 'ephemeral-storage'];
const standardResources = new Set([
  ...compute,
  ...compute.flatMap((resource) => [`requests.${resource}`, `limits.${resource}`]),
  'requests.storage',
  'pods',
  'resourcequotas',
  'services',
  'services.nodeports',
  'services.loadbalancers',
  'replicationcontrollers',
  'secrets',
  'persistentvolumeclaims',
  'configmaps',
]);

const standardScopes = new Set([
  'Terminating',
  'NotTerminating',
  'BestEffort',
  'NotBestEffort',
  'PriorityClass',
  'CrossNamespacePodAffinity',
  'VolumeAttributesClass',
]);

/** The rules of ResourceQuotas (`ValidateResourceQuota`). What they allow is admission's to say. */
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

function validateSpec({ hard, scopes = [] }: ResourceQuota['spec']): FieldError[] {
  const errors = validateQuantities(hard, 'spec.hard');
  for (const scope of scopes) {
    if (!standardScopes.has(scope)) errors.push(invalid('spec.scopes', scopes, 'unsupported scope'));
  }
  const opposed = [
    ['BestEffort', 'NotBestEffort'],
    ['Terminating', 'NotTerminating'],
  ];
  for (const pair of opposed) {
    if (pair.every((scope) => scopes.includes(scope))) {
      errors.push(invalid('spec.scopes', scopes, 'conflicting scopes'));
    }
  }
  return errors;
}

function validateQuantities(quantities: Record<string, string> | undefined, path: string): FieldError[] {
  return Object.entries(quantities ?? {}).flatMap(([resource, value]) => {
    const at = `${path}[${resource}]`;
    return [...validateName(resource, at), ...validateResourceQuantity(resource, value, at)];
  });
}

function validateName(resource: string, path: string): FieldError[] {
  const errors = isQualifiedName(resource).map((message) => invalid(path, resource, message));
  const plain = !resource.includes('/');
  if (errors.length > 0 || !plain || standardResources.has(resource) || resource.includes('hugepages-'))
    return errors;
  return [
    invalid(path, resource, 'must be a standard resource type or fully qualified'),
    invalid(path, resource, 'must be a standard resource for quota'),
  ];
}
