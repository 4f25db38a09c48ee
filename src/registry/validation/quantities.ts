import { parseQuantity, quantityIn } from '../../objects/quantity.ts';
import { type FieldError, invalid } from './field-errors.ts';
import { isWhole } from './resource-names.ts';

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
