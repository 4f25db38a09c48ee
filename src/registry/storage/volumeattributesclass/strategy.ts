import type { VolumeAttributesClass } from '../../../objects/types/storage.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { type FieldError, forbiddenField } from '../../validation/field-errors.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { validateParameters, validateProvisioner } from '../storageclass/strategy.ts';

/** The rules of VolumeAttributesClasses (`apis/storage/validation` ValidateVolumeAttributesClass). */
export const volumeAttributesClassStrategy = genericStrategy<VolumeAttributesClass>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  repeatsCreate: 'after',
  validateCreate: ({ driverName, parameters = {} }) => [
    ...validateProvisioner(driverName, 'driverName'),
    ...validateParameters(parameters, false),
  ],
  validateUpdate(attributes, old) {
    const errors: FieldError[] = [];
    if (attributes.driverName !== old.driverName) {
      errors.push(forbiddenField('driverName', 'updates to driverName are forbidden.'));
    }
    if (!jsonEqual(attributes.parameters ?? {}, old.parameters ?? {})) {
      errors.push(forbiddenField('parameters', 'updates to parameters are forbidden.'));
    }
    return errors;
  },
});
