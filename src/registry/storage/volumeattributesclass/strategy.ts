import type { VolumeAttributesClass } from '../../../objects/types/storage.generated.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { forbidUpdates, validateParameters, validateProvisioner } from '../storageclass/strategy.ts';

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
  validateUpdate: (attributes, old) => forbidUpdates(attributes, old, ['driverName', 'parameters']),
});
