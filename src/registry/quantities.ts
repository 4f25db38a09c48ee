import { parseQuantity } from '../objects/quantity.ts';
import { type FieldError, invalid } from './field-errors.ts';

/** Resources that are counted: they have no parts (`IsIntegerResourceName`). */
const counted = new Set([
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
]);

/** A quantity of a resource is not negative, and whole where the resource is counted (`ValidateResourceQuantityValue`). */
export function validateResourceQuantity(resource: string, value: string, path: string): FieldError[] {
  const { nanos } = parseQuantity(value);
  const errors: FieldError[] = [];
  if (nanos < 0n) errors.push(invalid(path, value, 'must be greater than or equal to 0'));
  if ((counted.has(resource) || isExtended(resource)) && nanos % 1_000_000_000n !== 0n) {
    errors.push(invalid(path, value, 'must be an integer'));
  }
  return errors;
}

/** Named by a domain other than kubernetes.io (`IsExtendedResourceName`). */
export function isExtended(resource: string): boolean {
  const slash = resource.indexOf('/');
  if (slash === -1 || resource.startsWith('requests.')) return false;
  return !resource.slice(0, slash).endsWith('kubernetes.io');
}
