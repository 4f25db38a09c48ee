import { genericStrategy } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { setHpaDefaults } from './defaults.ts';
import type { HorizontalPodAutoscaler } from './types.ts';
import { validateSpec, validateStatus } from './validation.ts';

/** The rules of HorizontalPodAutoscalers of both versions, in the form of autoscaling/v2. */
export const horizontalPodAutoscalerStrategy = genericStrategy<HorizontalPodAutoscaler>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  setDefaults: setHpaDefaults,
  validateCreate: ({ spec }) => validateSpec(spec, false),
  validateUpdate: ({ spec }, old) => validateSpec(spec, old.spec.minReplicas === 0),
  validateStatus: ({ status }) => validateStatus(status),
});
