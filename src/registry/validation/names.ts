import { type FieldError, invalid, required } from './field-errors.ts';
import { isQualifiedName, isDNS1123Subdomain } from '../../objects/names.ts';
import { parseQuantity, quantityIn } from '../../objects/formats/quantity.ts';

/** Names of resources, the keys of amounts (`apis/core/helper/helpers.go`, `apis/core/validation`). */

const compute = ['cpu', 'memory', 'ephemeral-storage'];
/** Objects that quotas count, in whole numbers. */
const counted = [
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
];
const countedResources = new Set(counted);
const containerResources = new Set(compute);
const quotaResources = new Set([
  ...compute,
  ...compute.flatMap((resource) => [`requests.${resource}`, `limits.${resource}`]),
  'requests.storage',
  ...counted,
]);

/** Huge pages of a given size. */
export function isHugePage(resource: string): boolean {
  return resource.startsWith('hugepages-');
}

/** Kubernetes' own: without a domain, or of kubernetes.io (`IsNativeResource`). */
function isNative(resource: string): boolean {
  return !resource.includes('/') || resource.includes('kubernetes.io/');
}

/** Resources with a domain of another vendor (`IsExtendedResourceName`). */
export function isExtendedResource(resource: string): boolean {
  if (isNative(resource) || resource.startsWith('requests.')) return false;
  return isQualifiedName(`requests.${resource}`).length === 0;
}

/** Counted in whole numbers (`IsIntegerResourceName`). */
function isWhole(resource: string): boolean {
  return countedResources.has(resource) || isExtendedResource(resource);
}

/** A request may be lower than the limit (`IsOvercommitAllowed`). */
export function mayBeOvercommitted(resource: string): boolean {
  return isNative(resource) && !isHugePage(resource);
}

/** A resource that quotas have without a domain (`IsStandardQuotaResourceName`). */
export function isQuotaResource(resource: string): boolean {
  return quotaResources.has(resource) || isHugePage(resource.replace(/^requests\./, ''));
}

/** A name for any amount (`validateResourceName`). */
export function validateResourceName(resource: string, path: string): FieldError[] {
  const errors = isQualifiedName(resource).map((message) => invalid(path, resource, message));
  const known = resource.includes('/') || resource === 'storage' || isQuotaResource(resource);
  if (errors.length === 0 && !known) {
    errors.push(invalid(path, resource, 'must be a standard resource type or fully qualified'));
  }
  return errors;
}

/** A name for amounts of containers (`ValidateContainerResourceName`). */
export function validateContainerResourceName(resource: string, path: string): FieldError[] {
  const errors = validateResourceName(resource, path);
  if (!resource.includes('/')) {
    if (!containerResources.has(resource) && !isHugePage(resource)) {
      errors.push(invalid(path, resource, 'must be a standard resource for containers'));
    }
  } else if (!isNative(resource) && !isExtendedResource(resource)) {
    errors.push(invalid(path, resource, "doesn't follow extended resource name standard"));
  }
  return errors;
}

/** A name for limits of quotas (`ValidateResourceQuotaResourceName`). */
export function validateQuotaResourceName(resource: string, path: string): FieldError[] {
  const errors = validateResourceName(resource, path);
  if (!resource.includes('/') && !isQuotaResource(resource)) {
    errors.push(invalid(path, resource, 'must be a standard resource for quota'));
  }
  return errors;
}

/**
 * A quantity of a resource is not negative, and whole where the resource is counted
 * (`ValidateResourceQuantityValue`, which looks at thousandths, rounded up).
 */
export function validateResourceQuantity(resource: string, value: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (parseQuantity(value).nanos < 0n) {
    errors.push(invalid(path, value, 'must be greater than or equal to 0'));
  }
  if (isWhole(resource) && quantityIn(value, 'thousandths') % 1000n !== 0n) {
    errors.push(invalid(path, value, 'must be an integer'));
  }
  return errors;
}

const path = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;
const pathForm = path.source.slice(1, -1);

/** The errors of a domain and a path, such as `example.com/controller` (util/validation IsDomainPrefixedPath). */
export function domainPrefixedPathErrors(at: string, text: string): FieldError[] {
  if (text === '') return [required(at)];
  const slash = text.indexOf('/');
  const domain = text.slice(0, slash);
  const rest = text.slice(slash + 1);
  if (slash < 1 || rest === '') {
    return [invalid(at, text, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  const errors = isDNS1123Subdomain(domain).map((message) => invalid(at, domain, message));
  if (!path.test(rest)) {
    errors.push(invalid(at, rest, `Invalid path (regex used for validation is '${pathForm}')`));
  }
  return errors;
}
