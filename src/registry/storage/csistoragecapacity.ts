import type { CSIStorageCapacity } from '../../objects/types/storage.generated.ts';
import { parseQuantity } from '../../objects/formats/quantity.ts';
import { type FieldError, invalid } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateLabelSelector } from '../validation/label-selector.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';

/** The rules of CSIStorageCapacities (`apis/storage/validation` ValidateCSIStorageCapacity). */
export const csiStorageCapacityStrategy = genericStrategy<CSIStorageCapacity>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  allowUnconditionalUpdate: false,
  validateCreate,
  repeatsCreate: 'before',
  immutable: ['nodeTopology', 'storageClassName'],
});

function validateCreate({ nodeTopology, storageClassName, capacity }: CSIStorageCapacity): FieldError[] {
  const errors = validateLabelSelector(nodeTopology, 'nodeTopology');
  for (const message of nameIsDNSSubdomain(storageClassName, false)) {
    errors.push(invalid('storageClassName', storageClassName, message));
  }
  if (capacity !== undefined && parseQuantity(capacity).nanos < 0n) {
    errors.push(invalid('capacity', capacity, 'must be greater than or equal to 0'));
  }
  return errors;
}
