import type { ServiceSpec, Service } from '../../../objects/types/core.generated.ts';
import {
  forbiddenField,
  invalid,
  notSupported,
  required,
  type FieldError,
} from '../../validation/field-errors.ts';
import { isQualifiedName } from '../../../objects/names.ts';
import { isValidPortNumber, validateLegacyCidr } from '../../validation/network.ts';
import { externallyAccessible, needsHealthCheck } from './type-rules.ts';
import { pushAll } from '../../../objects/lists.ts';

const affinities = ['ClientIP', 'None'];
const policies = ['Cluster', 'Local'];
const distributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];
/** `core.MaxClientIPServiceAffinitySeconds`: one day. */
const maxAffinitySeconds = 86400;
const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'";

/** `sessionAffinity` and its timeout. */
export function validateSessionAffinity(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { sessionAffinity = '', sessionAffinityConfig: config } = spec;
  if (sessionAffinity === '') errors.push(required('spec.sessionAffinity'));
  else if (!affinities.includes(sessionAffinity)) {
    errors.push(notSupported('spec.sessionAffinity', sessionAffinity, affinities));
  }
  const path = 'spec.sessionAffinityConfig';
  if (sessionAffinity === 'None' && config !== undefined) {
    errors.push(forbiddenField(path, 'must not be set when session affinity is None'));
  }
  if (sessionAffinity !== 'ClientIP') return errors;
  const detail = 'when session affinity type is ClientIP';
  const seconds = config?.clientIP?.timeoutSeconds;
  if (config === undefined) errors.push(required(path, detail));
  else if (config.clientIP === undefined) errors.push(required(`${path}.clientIP`, detail));
  else if (seconds === undefined) errors.push(required(`${path}.clientIP.timeoutSeconds`, detail));
  else if (seconds <= 0 || seconds > maxAffinitySeconds) {
    const rule = `must be greater than 0 and less than ${maxAffinitySeconds}`;
    errors.push(invalid(`${path}.clientIP.timeoutSeconds`, seconds, rule));
  }
  return errors;
}

/** `allocateLoadBalancerNodePorts`: required for type LoadBalancer (it has a default), forbidden for others. */
export function validateAllocateNodePorts(spec: ServiceSpec): FieldError[] {
  if (spec.allocateLoadBalancerNodePorts === undefined || spec.type === 'LoadBalancer') return [];
  return [forbiddenField('spec.allocateLoadBalancerNodePorts', onlyLoadBalancer)];
}

/**
 * `loadBalancerClass`: its form and its type; with `old`, also that it does not change while the Service is a
 * LoadBalancer (`apis/core/validation` validateLoadBalancerClassField).
 */
export function validateLoadBalancerClass(spec: ServiceSpec, old?: ServiceSpec): FieldError[] {
  const path = 'spec.loadBalancerClass';
  const errors: FieldError[] = [];
  const { loadBalancerClass, type } = spec;
  if (
    old?.type === 'LoadBalancer' &&
    type === 'LoadBalancer' &&
    old.loadBalancerClass !== loadBalancerClass
  ) {
    errors.push(invalid(path, loadBalancerClass, 'may not change once set'));
  }
  if (loadBalancerClass === undefined) return errors;
  if (type !== 'LoadBalancer') errors.push(forbiddenField(path, onlyLoadBalancer));
  else {
    for (const message of isQualifiedName(loadBalancerClass)) {
      errors.push(invalid(path, loadBalancerClass, message));
    }
  }
  return errors;
}

/** `externalTrafficPolicy` and `healthCheckNodePort`. */
export function validateExternalPolicy(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { externalTrafficPolicy = '', healthCheckNodePort = 0 } = spec;
  const path = 'spec.externalTrafficPolicy';
  if (externallyAccessible(spec)) {
    if (externalTrafficPolicy === '') errors.push(required(path));
    else if (!policies.includes(externalTrafficPolicy)) {
      errors.push(notSupported(path, externalTrafficPolicy, policies));
    }
  } else if (externalTrafficPolicy !== '') {
    errors.push(invalid(path, externalTrafficPolicy, 'may only be set for externally-accessible services'));
  }
  const portPath = 'spec.healthCheckNodePort';
  if (needsHealthCheck(spec)) {
    if (healthCheckNodePort === 0) errors.push(required(portPath));
    else {
      for (const message of isValidPortNumber(healthCheckNodePort)) {
        errors.push(invalid(portPath, healthCheckNodePort, message));
      }
    }
  } else if (healthCheckNodePort !== 0) {
    const detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    errors.push(invalid(portPath, healthCheckNodePort, detail));
  }
  return errors;
}

/** `internalTrafficPolicy` and `trafficDistribution`. */
export function validateInternalTraffic(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { type, internalTrafficPolicy, trafficDistribution } = spec;
  const path = 'spec.internalTrafficPolicy';
  if (internalTrafficPolicy !== undefined) {
    if (!policies.includes(internalTrafficPolicy)) {
      errors.push(notSupported(path, internalTrafficPolicy, policies));
    }
  } else if (type === 'ClusterIP' || type === 'NodePort' || type === 'LoadBalancer') {
    errors.push(required(path));
  }
  if (trafficDistribution !== undefined && !distributions.includes(trafficDistribution)) {
    errors.push(notSupported('spec.trafficDistribution', trafficDistribution, distributions));
  }
  return errors;
}

/** CIDRs separated by commas: the predecessor of `spec.loadBalancerSourceRanges` (`core/v1/annotation_key_constants.go`). */
const sourceRanges = 'service.beta.kubernetes.io/load-balancer-source-ranges';

/** The capital L is kube-apiserver's. */
const path = 'spec.LoadBalancerSourceRanges';
const annotationPath = `metadata.annotations[${sourceRanges}]`;
const rangesOnlyForLoadBalancer = "may only be used when `type` is 'LoadBalancer'";

/**
 * `loadBalancerSourceRanges`, or the annotation that it replaced when the field is empty. Values may be padded with
 * spaces; those of the stored Service are accepted in any spelling.
 */
export function validateSourceRanges(service: Service, old?: Service): FieldError[] {
  const errors: FieldError[] = [];
  const { spec } = service;
  const { loadBalancerSourceRanges: ranges = [] } = spec;
  if (ranges.length > 0) {
    if (spec.type !== 'LoadBalancer') errors.push(forbiddenField(path, rangesOnlyForLoadBalancer));
    const exempt = old?.spec.loadBalancerSourceRanges?.map((value) => value.trim());
    ranges.forEach((value, i) => {
      pushAll(errors, validateLegacyCidr(value.trim(), `${path}[${i}]`, exempt));
    });
    return errors;
  }
  const annotation = annotationOf(service);
  if (annotation === undefined) return errors;
  if (spec.type !== 'LoadBalancer') errors.push(forbiddenField(annotationPath, rangesOnlyForLoadBalancer));
  if (annotation.trim() === '' || (old !== undefined && annotationOf(old) === annotation)) return errors;
  for (const value of annotation.trim().split(',')) {
    pushAll(errors, validateLegacyCidr(value.trim(), annotationPath));
  }
  return errors;
}

function annotationOf({ metadata: { annotations } }: Service): string | undefined {
  return annotations !== undefined && Object.hasOwn(annotations, sourceRanges)
    ? annotations[sourceRanges]
    : undefined;
}
