import type {
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
  CrossVersionObjectReference,
  HPAScalingPolicy,
  HPAScalingRules,
  HorizontalPodAutoscalerBehavior,
  HorizontalPodAutoscalerSpec,
  HorizontalPodAutoscalerStatus,
  HorizontalPodAutoscaler,
} from '../../../objects/types/autoscaling.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { parseQuantity } from '../../../objects/formats/quantity.ts';
import {
  declarative,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../validation/field-errors.ts';
import {
  isDNS1123Label,
  isQualifiedName,
  nameIsPathSegment,
  nameIsDNSSubdomain,
} from '../../../objects/names.ts';
import type { MetricSource } from './conversion.ts';
import { genericStrategy, addEmptyParts, isSpecChanged } from '../../generic/generic.ts';

/**
 * - The rules of the metrics that an autoscaler follows (`apis/autoscaling/validation` validateMetrics).
 * - The rules of HorizontalPodAutoscalers (`apis/autoscaling/validation`).
 */

type SourceName = Exclude<keyof MetricSpec, 'type'>;

/** Types in the order in which errors name them, and the member that each fills. */
const members: Readonly<Record<string, SourceName>> = {
  ContainerResource: 'containerResource',
  External: 'external',
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
};
const types = Object.keys(members);
const targetTypes = ['Utilization', 'Value', 'AverageValue'];

function validateMetrics(metrics: readonly MetricSpec[]): FieldError[] {
  return metrics.flatMap((metric, i) => validateMetric(metric, `spec.metrics[${i}]`));
}

function validateMetric(metric: MetricSpec, path: string): FieldError[] {
  const { type } = metric;
  const expected = Object.hasOwn(members, type) ? members[type] : undefined;
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${path}.type`, 'must specify a metric source type'));
  if (expected === undefined) errors.push(notSupported(`${path}.type`, type, types));
  const present = sources.filter((name) => metric[name] !== undefined);
  const [first] = present;
  if (first !== undefined) pushAll(errors, validateSource(metric, first, `${path}.${first}`));
  if (expected === undefined) errors.push(notSupported(`${path}.type`, type, types));
  else if (metric[expected] === undefined) {
    const detail = 'must populate information for the given metric source';
    errors.push(required(`${path}.${expected}`, detail));
  }
  if (present.length === 1) return errors;
  for (const name of present) {
    if (name === expected) continue;
    errors.push(forbiddenField(`${path}.${name}`, 'must populate the given metric source only'));
  }
  return errors;
}

/** In the order in which kube-apiserver checks them: only the first that is set. */
const sources: readonly SourceName[] = ['object', 'external', 'pods', 'resource', 'containerResource'];

function validateSource(spec: MetricSpec, name: SourceName, path: string): FieldError[] {
  const { metric = { name: '' }, target = { type: '' } }: MetricSource = spec[name] ?? {};
  const { value, averageValue } = target;
  switch (name) {
    case 'object': {
      const errors = [
        ...validateReference(
          spec.object?.describedObject ?? { kind: '', name: '' },
          `${path}.describedObject`,
        ),
        ...validateIdentifier(metric, `${path}.metric`),
        ...validateTarget(target, `${path}.target`),
      ];
      if (value === undefined && averageValue === undefined) {
        errors.push(
          required(`${path}.target.averageValue`, 'must set either a target value or averageValue'),
        );
      }
      return errors;
    }
    case 'external':
      return [
        ...validateIdentifier(metric, `${path}.metric`),
        ...validateTarget(target, `${path}.target`),
        ...validateExternal(target, `${path}.target`),
      ];
    case 'pods': {
      const errors = [
        ...validateIdentifier(metric, `${path}.metric`),
        ...validateTarget(target, `${path}.target`),
      ];
      if (averageValue === undefined) {
        const detail = 'must specify a positive target averageValue';
        errors.push(required(`${path}.target.averageValue`, detail));
      }
      return errors;
    }
    case 'resource':
      return [...validateResourceName(spec.resource?.name ?? '', false, path), ...validateUse(target, path)];
    case 'containerResource':
      return [
        ...validateResourceName(spec.containerResource?.name ?? '', true, path),
        ...validateContainer(spec.containerResource?.container ?? '', `${path}.container`),
        ...validateUse(target, path),
      ];
  }
}

function validateExternal({ value, averageValue }: MetricTarget, path: string): FieldError[] {
  if (value === undefined && averageValue === undefined) {
    const detail = 'must set either a target value for metric or a per-pod target';
    return [required(`${path}.averageValue`, detail)];
  }
  if (value === undefined || averageValue === undefined) return [];
  return [forbiddenField(`${path}.value`, 'may not set both a target value for metric and a per-pod target')];
}

function validateResourceName(name: string, ofContainer: boolean, path: string): FieldError[] {
  if (name === '') return [required(`${path}.name`, 'must specify a resource name')];
  if (!ofContainer) return [];
  return isQualifiedName(name).map((message) => invalid(`${path}.name`, name, message));
}

function validateContainer(container: string, path: string): FieldError[] {
  if (container === '') return [required(path, 'must specify a container')];
  return isDNS1123Label(container).map((message) => invalid(path, container, message));
}

/** The target of a resource: a share of the request or an amount, not both. */
function validateUse(target: MetricTarget, source: string): FieldError[] {
  const path = `${source}.target`;
  const { averageUtilization, averageValue } = target;
  const errors = validateTarget(target, path);
  if (averageUtilization === undefined && averageValue === undefined) {
    const detail = 'must set either a target raw value or a target utilization';
    errors.push(required(`${path}.averageUtilization`, detail));
  }
  if (averageUtilization !== undefined && averageValue !== undefined) {
    const detail = 'may not set both a target raw value and a target utilization';
    errors.push(forbiddenField(`${path}.averageValue`, detail));
  }
  return errors;
}

function validateTarget(target: MetricTarget, path: string): FieldError[] {
  const { type, value, averageValue, averageUtilization } = target;
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${path}.type`, 'must specify a metric target type'));
  if (!targetTypes.includes(type)) {
    errors.push(invalid(`${path}.type`, type, 'must be either Utilization, Value, or AverageValue'));
  }
  for (const [member, quantity] of [
    ['value', value],
    ['averageValue', averageValue],
  ] as const) {
    if (quantity !== undefined && parseQuantity(quantity).nanos <= 0n) {
      errors.push(invalid(`${path}.${member}`, quantity, 'must be positive'));
    }
  }
  if (averageUtilization !== undefined && averageUtilization < 1) {
    errors.push(invalid(`${path}.averageUtilization`, averageUtilization, 'must be greater than 0'));
  }
  return errors;
}

function validateIdentifier({ name }: MetricIdentifier, path: string): FieldError[] {
  if (name === '') return [required(`${path}.name`, 'must specify a metric name')];
  return nameIsPathSegment(name, false).map((message) => invalid(`${path}.name`, name, message));
}

/** `ValidateCrossVersionObjectReference`. */
function validateReference({ kind, name }: CrossVersionObjectReference, path: string): FieldError[] {
  const segment = (member: string, value: string): FieldError[] =>
    value === ''
      ? [required(`${path}.${member}`)]
      : nameIsPathSegment(value, false).map((message) => invalid(`${path}.${member}`, value, message));
  return [...segment('kind', kind), ...segment('name', name)];
}

const notNegative = 'must be greater than or equal to 0';
const maxPeriodSeconds = 1800;
const maxWindowSeconds = 3600;
const selectPolicies = ['Disabled', 'Max', 'Min'];
const policyTypes = ['Percent', 'Pods'];

function validateSpec(spec: HorizontalPodAutoscalerSpec): FieldError[] {
  const { minReplicas, maxReplicas, scaleTargetRef, metrics = [], behavior = {} } = spec;
  const errors: FieldError[] = [];
  if (minReplicas !== undefined && minReplicas < 0) {
    errors.push(declarative(invalid('spec.minReplicas', minReplicas, notNegative)));
  }
  if (maxReplicas === 0) errors.push(declarative(required('spec.maxReplicas')));
  if (maxReplicas < 0) {
    errors.push(declarative(invalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to 1')));
  }
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

function validateStatus({
  conditions = [],
  currentReplicas = 0,
  desiredReplicas = 0,
}: HorizontalPodAutoscalerStatus): FieldError[] {
  const numbers: [path: string, value: number][] = [
    ...conditions.map(({ observedGeneration = 0 }, i): [string, number] => [
      `status.conditions[${i}].observedGeneration`,
      observedGeneration,
    ]),
    ['status.currentReplicas', currentReplicas],
    ['status.desiredReplicas', desiredReplicas],
  ];
  return numbers.flatMap(([path, value]) => (value < 0 ? [invalid(path, value, notNegative)] : []));
}

/** The rules of HorizontalPodAutoscalers of both versions, in the form of autoscaling/v2. */
export const horizontalPodAutoscalerStrategy = genericStrategy<HorizontalPodAutoscaler>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: isSpecChanged,
  setDefaults: setHpaDefaults,
  validateCreate: ({ spec }) => validateSpec(spec),
  validateUpdate: ({ spec }) => validateSpec(spec),
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
  addEmptyParts(autoscaler);
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
