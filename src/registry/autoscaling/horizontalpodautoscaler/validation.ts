/** The rules of HorizontalPodAutoscalers (`apis/autoscaling/validation`), feature HPAScaleToZero off. */
import type {
  HPAScalingPolicy,
  HPAScalingRules,
  HorizontalPodAutoscalerBehavior,
  HorizontalPodAutoscalerSpec,
  HorizontalPodAutoscalerStatus,
} from '../../../objects/types/autoscaling.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { parseQuantity } from '../../../objects/quantity.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../validation/field-errors.ts';
import { validateMetrics, validateReference } from './metrics.ts';

const maxPeriodSeconds = 1800;
const maxWindowSeconds = 3600;
const selectPolicies = ['Disabled', 'Max', 'Min'];
const policyTypes = ['Percent', 'Pods'];

/** @param allowZero the stored object has a minimum of 0 already. */
export function validateSpec(spec: HorizontalPodAutoscalerSpec, allowZero: boolean): FieldError[] {
  const { minReplicas, maxReplicas, scaleTargetRef, metrics = [], behavior = {} } = spec;
  const errors: FieldError[] = [];
  const lowest = allowZero ? 0 : 1;
  if (minReplicas !== undefined && minReplicas < lowest) {
    errors.push(invalid('spec.minReplicas', minReplicas, `must be greater than or equal to ${lowest}`));
  }
  if (maxReplicas < 1) errors.push(invalid('spec.maxReplicas', maxReplicas, 'must be greater than 0'));
  if (minReplicas !== undefined && maxReplicas < minReplicas) {
    const detail = 'must be greater than or equal to `minReplicas`';
    errors.push(invalid('spec.maxReplicas', maxReplicas, detail));
  }
  pushAll(errors, validateReference(scaleTargetRef, 'spec.scaleTargetRef'), validateMetrics(metrics));
  const isScaledByOthers = metrics.some(({ type }) => type === 'Object' || type === 'External');
  if (minReplicas === 0 && !isScaledByOthers) {
    const detail = 'must specify at least one Object or External metric to support scaling to zero replicas';
    errors.push(forbiddenField('spec.metrics', detail));
  }
  return [...errors, ...validateBehavior(behavior)];
}

function validateBehavior({ scaleUp, scaleDown }: HorizontalPodAutoscalerBehavior): FieldError[] {
  return [
    ...(scaleUp === undefined ? [] : validateRules(scaleUp, 'spec.behavior.scaleUp')),
    ...(scaleDown === undefined ? [] : validateRules(scaleDown, 'spec.behavior.scaleDown')),
  ];
}

function validateRules(rules: HPAScalingRules, path: string): FieldError[] {
  const { stabilizationWindowSeconds: seconds, selectPolicy, policies = [], tolerance } = rules;
  const errors: FieldError[] = [];
  if (seconds !== undefined) {
    const at = `${path}.stabilizationWindowSeconds`;
    if (seconds < 0) errors.push(invalid(at, seconds, 'must be greater than or equal to zero'));
    if (seconds > maxWindowSeconds) {
      errors.push(invalid(at, seconds, `must be less than or equal to ${maxWindowSeconds}`));
    }
  }
  if (selectPolicy !== undefined && !selectPolicies.includes(selectPolicy)) {
    errors.push(notSupported(`${path}.selectPolicy`, selectPolicy, selectPolicies));
  }
  if (policies.length === 0) errors.push(required(`${path}.policies`, 'must specify at least one Policy'));
  policies.forEach((policy, i) => {
    pushAll(errors, validatePolicy(policy, `${path}.policies[${i}]`));
  });
  if (tolerance !== undefined && parseQuantity(tolerance).nanos < 0n) {
    errors.push(invalid(`${path}.tolerance`, tolerance, 'must be greater than or equal to 0'));
  }
  return errors;
}

function validatePolicy({ type, value, periodSeconds }: HPAScalingPolicy, path: string): FieldError[] {
  const errors = policyTypes.includes(type) ? [] : [notSupported(`${path}.type`, type, policyTypes)];
  if (value <= 0) errors.push(invalid(`${path}.value`, value, 'must be greater than zero'));
  const at = `${path}.periodSeconds`;
  if (periodSeconds <= 0) errors.push(invalid(at, periodSeconds, 'must be greater than zero'));
  if (periodSeconds > maxPeriodSeconds) {
    errors.push(invalid(at, periodSeconds, `must be less than or equal to ${maxPeriodSeconds}`));
  }
  return errors;
}

export function validateStatus({
  currentReplicas = 0,
  desiredReplicas = 0,
}: HorizontalPodAutoscalerStatus): FieldError[] {
  const detail = 'must be greater than or equal to 0';
  return [
    ...(currentReplicas < 0 ? [invalid('status.currentReplicas', currentReplicas, detail)] : []),
    ...(desiredReplicas < 0 ? [invalid('status.desiredReplicas', desiredReplicas, detail)] : []),
  ];
}
