import { parseAddress, type IPFamily } from '../../../objects/address.ts';
import type { Service, ServiceSpec } from '../../../objects/types/core.generated.ts';
import { invalid, invalidObject, type FieldError } from '../../validation/field-errors.ts';
import { validateClusterIPFields } from './cluster-ip-fields.ts';
import { otherFamily } from './decorate.ts';
import { hasNoSelector, headlessIP, sameList, subject } from './type-rules.ts';

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
