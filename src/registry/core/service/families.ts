import { parseAddress, type IPFamily } from '../../../objects/address.ts';
import { pushAll } from '../../../objects/lists.ts';
import type { ServiceSpec, Service } from '../../../objects/types/core.generated.ts';
import {
  duplicate,
  invalid,
  notSupported,
  required,
  type FieldError,
  invalidObject,
} from '../../validation/field-errors.ts';
import { validateLegacyAddress } from '../../validation/network.ts';
import { hasHeadlessIPs, headlessIP, hasNoSelector, sameList, subject } from './type-rules.ts';
import { otherFamily } from './normalize.ts';

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

/** The families of the cluster, by the service-cidr flags: the primary, and the secondary of a dual-stack cluster. */
export type ClusterFamilies =
  readonly [primary: IPFamily] | readonly [primary: IPFamily, secondary: IPFamily];

const policyPath = 'spec.ipFamilyPolicy';

/**
 * Sets `ipFamilyPolicy` and `ipFamilies`, before any address is allocated (`pkg/registry/core/service/storage/alloc.go`
 * initIPFamilyFields).
 *
 * @throws {StatusError} 422 when the client's fields contradict each other or the cluster.
 */
export function initIPFamilies(service: Service, old: Service | undefined, cluster: ClusterFamilies): void {
  const { spec } = service;
  if (spec.type === 'ExternalName') return;
  if (old !== undefined && isUnchangedPreferDualStack(spec, old.spec)) return;
  const policy = spec.ipFamilyPolicy ?? old?.spec.ipFamilyPolicy ?? defaultPolicy(spec);
  spec.ipFamilyPolicy = policy;
  refuse(service, validateClusterIPFields(spec, old?.spec));

  const single = policy === 'SingleStack';
  const errors: FieldError[] = [];
  if (old !== undefined) {
    if (single) cutToPrimary(spec, old.spec);
    else pushReductionErrors(errors, spec, old.spec);
  }
  if (single) pushSecondErrors(errors, spec);
  inferFamilies(errors, spec, cluster);
  refuse(service, errors);

  const families = spec.ipFamilies ?? [];
  spec.ipFamilies = families;
  if (spec.clusterIP === headlessIP && hasNoSelector(spec)) {
    // The addresses of its endpoints are unknown: allowed on every cluster.
    if (families.length === 0) families.push(cluster[0]);
    if (families.length < 2 && !single) families.push(otherFamily(families[0] ?? cluster[0]));
    return;
  }
  if (policy === 'RequireDualStack' && cluster.length < 2) {
    errors.push(invalid(policyPath, policy, 'this cluster is not configured for dual-stack services'));
  }
  families.forEach((family, i) => {
    if (isConfigured(family, cluster)) return;
    errors.push(invalid(`spec.ipFamilies[${i}]`, family, 'not configured on this cluster'));
  });
  refuse(service, errors);
  if (families.length === 0) families.push(cluster[0]);
  if (!single && families.length === 1 && cluster.length === 2) {
    families.push(otherFamily(families[0] ?? cluster[0]));
  }
}

/**
 * True for a PreferDualStack Service that changes neither type nor addresses nor families: it is not upgraded when the
 * cluster becomes dual-stack.
 */
export function isUnchangedPreferDualStack(spec: ServiceSpec, old: ServiceSpec): boolean {
  if (spec.ipFamilyPolicy !== 'PreferDualStack' || spec.type !== old.type) return false;
  if (spec.type !== 'ClusterIP' && spec.type !== 'NodePort' && spec.type !== 'LoadBalancer') return false;
  if (old.ipFamilyPolicy !== undefined && old.ipFamilyPolicy !== 'PreferDualStack') return false;
  return sameList(spec.clusterIPs, old.clusterIPs) && sameList(spec.ipFamilies, old.ipFamilies);
}

function defaultPolicy(spec: ServiceSpec): string {
  return spec.clusterIP === headlessIP && hasNoSelector(spec) ? 'RequireDualStack' : 'SingleStack';
}

/** With SingleStack, unchanged lists mean: release the secondary. */
function cutToPrimary(spec: ServiceSpec, old: ServiceSpec): void {
  if (spec.clusterIPs !== undefined && sameList(spec.clusterIPs, old.clusterIPs)) {
    spec.clusterIPs = spec.clusterIPs.slice(0, 1);
  }
  if (spec.ipFamilies !== undefined && sameList(spec.ipFamilies, old.ipFamilies)) {
    spec.ipFamilies = spec.ipFamilies.slice(0, 1);
  }
}

function pushReductionErrors(errors: FieldError[], spec: ServiceSpec, old: ServiceSpec): void {
  if (isReduced(spec.clusterIPs, old.clusterIPs)) {
    const detail = "must be 'SingleStack' to release the secondary cluster IP";
    errors.push(invalid(policyPath, spec.ipFamilyPolicy, detail));
  }
  if (isReduced(spec.ipFamilies, old.ipFamilies)) {
    const detail = "must be 'SingleStack' to release the secondary IP family";
    errors.push(invalid(policyPath, spec.ipFamilyPolicy, detail));
  }
}

/** True for a shorter list; an omitted one does not count. */
function isReduced(list: readonly string[] = [], old: readonly string[] = []): boolean {
  return list.length > 0 && list.length < old.length;
}

function pushSecondErrors(errors: FieldError[], spec: ServiceSpec): void {
  const rule = "must be 'RequireDualStack' or 'PreferDualStack' when multiple";
  if (spec.clusterIPs?.length === 2) {
    errors.push(invalid(policyPath, spec.ipFamilyPolicy, `${rule} cluster IPs are specified`));
  }
  if (spec.ipFamilies?.length === 2) {
    errors.push(invalid(policyPath, spec.ipFamilyPolicy, `${rule} IP families are specified`));
  }
}

/** Adds the families of the addresses that have none yet. */
function inferFamilies(errors: FieldError[], spec: ServiceSpec, cluster: ClusterFamilies): void {
  const { clusterIPs = [] } = spec;
  for (let i = spec.ipFamilies?.length ?? 0; i < clusterIPs.length; i++) {
    const address = clusterIPs[i];
    if (address === undefined || address === headlessIP) return;
    const family = parseAddress(address)?.family ?? 'unknown';
    if (isConfigured(family, cluster)) {
      spec.ipFamilies = [...(spec.ipFamilies ?? []), family];
    } else {
      const detail = `${family} is not configured on this cluster`;
      errors.push(invalid(`spec.clusterIPs[${i}]`, clusterIPs, detail));
    }
  }
}

function isConfigured(family: string, cluster: readonly string[]): boolean {
  return cluster.includes(family);
}

function refuse(service: Service, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject(subject(service), errors);
}
