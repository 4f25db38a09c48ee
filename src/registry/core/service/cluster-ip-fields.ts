import { parseAddress } from '../../../objects/address.ts';
import { pushAll } from '../../../objects/lists.ts';
import type { ServiceSpec } from '../../../objects/types/core.generated.ts';
import {
  duplicate,
  invalid,
  notSupported,
  required,
  type FieldError,
} from '../../validation/field-errors.ts';
import { validateLegacyAddress } from '../../validation/network.ts';
import { hasHeadlessIPs, headlessIP } from './type-rules.ts';

const families = ['IPv4', 'IPv6'];
const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];
const path = 'spec.clusterIPs';

/**
 * The consistency of `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` (`apis/core/validation`
 * ValidateServiceClusterIPsRelatedFields): run before allocation, and again as a part of the validation. Addresses of
 * the stored Service are accepted in any spelling.
 */
export function validateClusterIPFields(spec: ServiceSpec, old?: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName') return [];
  const errors: FieldError[] = [];
  const { clusterIP = '', clusterIPs = [] } = spec;
  if (clusterIP === '') {
    if (clusterIPs.length > 0) {
      errors.push(invalid(path, clusterIPs, 'must be empty when `clusterIP` is not specified'));
    }
  } else if (clusterIPs.length === 0) {
    errors.push(required(path));
  } else if (clusterIPs[0] !== clusterIP) {
    errors.push(invalid(path, clusterIPs, 'first value must match `clusterIP`'));
  }
  pushFamilyErrors(errors, spec);
  const before = errors.length;
  clusterIPs.forEach((address, i) => {
    if (i > 0 || address !== headlessIP) {
      pushAll(errors, validateLegacyAddress(address, `${path}[${i}]`, old?.clusterIPs));
    } else if (clusterIPs.length > 1) {
      errors.push(invalid(path, clusterIPs, "'None' must be the first and only value"));
    }
  });
  const malformed = errors.length > before;
  if (clusterIPs.length > 2) errors.push(invalid(path, clusterIPs, 'may only hold up to 2 values'));
  // Further errors would only repeat that an address is invalid.
  if (!malformed) pushMatchErrors(errors, spec, clusterIPs);
  return errors;
}

function pushFamilyErrors(errors: FieldError[], { ipFamilies, ipFamilyPolicy }: ServiceSpec): void {
  ipFamilies?.forEach((family, i) => {
    const at = `spec.ipFamilies[${i}]`;
    if (!families.includes(family)) errors.push(notSupported(at, family, families));
    if (ipFamilies.indexOf(family) < i) errors.push(duplicate(at, family));
  });
  if (ipFamilyPolicy !== undefined && !policies.includes(ipFamilyPolicy)) {
    errors.push(notSupported('spec.ipFamilyPolicy', ipFamilyPolicy, policies));
  }
}

/** One address of each family, in the order of `ipFamilies`. */
function pushMatchErrors(errors: FieldError[], spec: ServiceSpec, clusterIPs: readonly string[]): void {
  const { ipFamilies = [] } = spec;
  if (hasHeadlessIPs(spec) || (clusterIPs.length < 2 && ipFamilies.length === 0)) return;
  const found = clusterIPs.map((address) => parseAddress(address)?.family);
  if (clusterIPs.length > 1 && new Set(found).size < 2) {
    errors.push(invalid(path, clusterIPs, 'may specify no more than one IP for each IP family'));
  }
  clusterIPs.forEach((address, i) => {
    const family = ipFamilies[i];
    if (family === undefined || family === found[i] || !families.includes(family)) return;
    errors.push(
      invalid(`${path}[${i}]`, address, `expected an ${family} value as indicated by \`ipFamilies[${i}]\``),
    );
  });
}
