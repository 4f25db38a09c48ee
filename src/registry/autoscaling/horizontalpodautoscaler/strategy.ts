import type {
  HorizontalPodAutoscaler,
  HPAScalingRules,
} from '../../../objects/types/autoscaling.generated.ts';
import { genericStrategy, fillParts } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';

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

const defaultUtilization = 80;

const scaleUp: HPAScalingRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
};

const scaleDown: HPAScalingRules = {
  selectPolicy: 'Max',
  policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
};

/** `SetDefaults_HorizontalPodAutoscaler` of autoscaling/v2: at least one Pod, scaled by CPU usage. */
function setHpaDefaults(autoscaler: HorizontalPodAutoscaler): void {
  fillParts(autoscaler);
  const { spec } = autoscaler;
  spec.minReplicas ??= 1;
  if ((spec.metrics ?? []).length === 0) {
    const target = { type: 'Utilization', averageUtilization: defaultUtilization };
    spec.metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }];
  }
  const { behavior } = spec;
  if (behavior === undefined) return;
  behavior.scaleUp = withDefaults(behavior.scaleUp, scaleUp);
  behavior.scaleDown = withDefaults(behavior.scaleDown, scaleDown);
}

function withDefaults(given: HPAScalingRules | undefined, defaults: HPAScalingRules): HPAScalingRules {
  return { ...structuredClone(defaults), ...given };
}
