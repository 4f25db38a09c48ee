import { fillParts } from '../../core/podtemplate/workload.ts';
import type { HorizontalPodAutoscaler, ScalingRules } from './types.ts';

const defaultUtilization = 80;

const scaleUp: ScalingRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
};
const scaleDown: ScalingRules = {
  selectPolicy: 'Max',
  policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
};

/** `SetDefaults_HorizontalPodAutoscaler` of autoscaling/v2: at least one Pod, scaled by CPU usage. */
export function setHpaDefaults(autoscaler: HorizontalPodAutoscaler): void {
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

function withDefaults(given: ScalingRules | undefined, defaults: ScalingRules): ScalingRules {
  return { ...structuredClone(defaults), ...given };
}
