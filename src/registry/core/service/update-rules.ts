import { pushAll } from '../../../objects/lists.ts';
import type { ServiceSpec } from '../../../objects/types/core.generated.ts';
import { forbiddenField, invalid, type FieldError } from '../../validation/field-errors.ts';
import { validateLoadBalancerClass } from './traffic-rules.ts';
import { hasHeadlessIPs, needsHealthCheck } from './type-rules.ts';

const unchangeable = 'may not change once set';
const policyPath = 'spec.ipFamilyPolicy';

/** Immutable fields of a Service (`apis/core/validation` ValidateServiceUpdate). */
export function validateTransition(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.type !== 'ExternalName' && old.type !== 'ExternalName') {
    const wasHeadless = hasHeadlessIPs(old);
    const headless = hasHeadlessIPs(spec);
    if (!wasHeadless || !headless) pushAddressErrors(errors, spec, old);
    if (!wasHeadless && !headless) pushFamilyErrors(errors, spec, old);
  }
  pushAll(errors, validateLoadBalancerClass(spec, old));
  if (needsHealthCheck(spec) && needsHealthCheck(old)) {
    if ((spec.healthCheckNodePort ?? 0) !== (old.healthCheckNodePort ?? 0)) {
      errors.push(forbiddenField('spec.healthCheckNodePort', 'field is immutable'));
    }
  }
  return errors;
}

/**
 * Addresses are immutable; a second one may be added, or released with SingleStack
 * (validateUpgradeDowngradeClusterIPs).
 */
function pushAddressErrors(errors: FieldError[], spec: ServiceSpec, old: ServiceSpec): void {
  const { clusterIPs = [] } = spec;
  const { clusterIPs: before = [] } = old;
  if (clusterIPs.length === before.length) {
    before.forEach((address, i) => {
      if (address !== clusterIPs[i]) errors.push(invalid(`spec.clusterIPs[${i}]`, clusterIPs, unchangeable));
    });
    return;
  }
  if (clusterIPs.length === 0) {
    errors.push(invalid('spec.clusterIPs[0]', null, 'primary clusterIP can not be unset'));
  } else if (before.length > 0 && clusterIPs[0] !== before[0]) {
    errors.push(invalid('spec.clusterIPs[0]', clusterIPs, unchangeable));
  }
  if (before.length > 1 && clusterIPs.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    const detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
    errors.push(invalid(policyPath, spec.ipFamilyPolicy, detail));
  }
}

/**
 * Families are immutable, too (validateUpgradeDowngradeIPFamilies). As in kube-apiserver, the index is always 0, and
 * the printed value is the list of addresses when the number of families changed.
 */
function pushFamilyErrors(errors: FieldError[], spec: ServiceSpec, old: ServiceSpec): void {
  const { ipFamilies = [], clusterIPs = [] } = spec;
  const { ipFamilies: before = [] } = old;
  const path = 'spec.ipFamilies[0]';
  if (ipFamilies.length === before.length) {
    before.forEach((family, i) => {
      if (family !== ipFamilies[i]) errors.push(invalid(path, ipFamilies, unchangeable));
    });
    return;
  }
  if (before.length > ipFamilies.length && clusterIPs.length === 0) {
    errors.push(invalid(path, spec.ipFamilies, 'primary ipFamily can not be unset'));
  }
  if (ipFamilies.length > 0 && before.length > 0 && ipFamilies[0] !== before[0]) {
    errors.push(invalid(path, clusterIPs, unchangeable));
  }
  if (before.length > 1 && ipFamilies.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    const detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
    errors.push(invalid(policyPath, spec.ipFamilyPolicy, detail));
  }
}
