import type { Service, ServicePort, ServiceSpec } from '../../../objects/types/core.generated.ts';
import {
  externallyAccessible,
  mayHaveNodePorts,
  needsClusterIP,
  needsHealthCheck,
  nodePortsOf,
  sameList,
  allocatesNodePorts,
  hasNoSelector,
  headlessIP,
} from './type-rules.ts';
import { parseAddress, type IPFamily } from '../../../objects/address.ts';

/**
 * - The defaults of Services, when they are decoded and when old ones are read.
 * - Completes the linked and allocated fields of a spec before allocation
 *   (`pkg/registry/core/service/storage/storage.go` patchAllocatedValues, normalizeClusterIPs).
 */

/** `v1.DefaultClientIPServiceAffinitySeconds`: three hours. */
const affinitySeconds = 10800;

/**
 * The versioned defaults of a Service (`pkg/apis/core/v1/defaults.go` SetDefaults_Service). Addresses, families and
 * node ports are not defaulted but allocated.
 */
export function setServiceDefaults(service: Service): void {
  const loose: Partial<Pick<Service, 'spec' | 'status'>> = service;
  loose.spec ??= {};
  loose.status ??= {};
  loose.status.loadBalancer ??= {};
  const { spec } = service;
  if (isEmpty(spec.type)) spec.type = 'ClusterIP';
  setAffinity(spec);
  spec.ports?.forEach(setPortDefaults);
  if (isEmpty(spec.externalTrafficPolicy) && externallyAccessible(spec))
    spec.externalTrafficPolicy = 'Cluster';
  if (spec.internalTrafficPolicy === undefined && hasInternalPolicy(spec))
    spec.internalTrafficPolicy = 'Cluster';
  if (spec.type !== 'LoadBalancer') return;
  spec.allocateLoadBalancerNodePorts ??= true;
  for (const ingress of service.status.loadBalancer?.ingress ?? []) {
    if (!isEmpty(ingress.ip)) ingress.ipMode ??= 'VIP';
  }
}

function setAffinity(spec: ServiceSpec): void {
  if (isEmpty(spec.sessionAffinity)) spec.sessionAffinity = 'None';
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig;
  if (spec.sessionAffinity !== 'ClientIP') return;
  if (spec.sessionAffinityConfig?.clientIP?.timeoutSeconds !== undefined) return;
  spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: affinitySeconds } };
}

function setPortDefaults(port: ServicePort): void {
  const loose: Partial<ServicePort> = port;
  loose.port ??= 0;
  if (isEmpty(port.protocol)) port.protocol = 'TCP';
  if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') {
    port.targetPort = port.port;
  }
}

function hasInternalPolicy({ type }: ServiceSpec): boolean {
  return type === 'ClusterIP' || type === 'NodePort' || type === 'LoadBalancer';
}

function isEmpty(text: string | undefined): boolean {
  return text === undefined || text === '';
}

/**
 * Removes fields that the new type of a Service does not use, if the client did not change them; changed ones stay and
 * fail validation (`pkg/registry/core/service/strategy.go` dropTypeDependentFields).
 */
export function dropTypeDependentFields(service: Service, old: Service): void {
  const { spec } = service;
  if (needsClusterIP(old.spec) && !needsClusterIP(spec)) dropAddressFields(spec, old.spec);
  if (mayHaveNodePorts(old.spec) && !mayHaveNodePorts(spec) && addsNoNodePort(spec, old.spec)) {
    for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (needsHealthCheck(old.spec) && !needsHealthCheck(spec)) {
    if (spec.healthCheckNodePort === old.spec.healthCheckNodePort) delete spec.healthCheckNodePort;
  }
  if (old.spec.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    if (spec.allocateLoadBalancerNodePorts === old.spec.allocateLoadBalancerNodePorts) {
      delete spec.allocateLoadBalancerNodePorts;
    }
    if (spec.loadBalancerClass === old.spec.loadBalancerClass) delete spec.loadBalancerClass;
  }
  if (externallyAccessible(old.spec) && !externallyAccessible(spec)) {
    if (spec.externalTrafficPolicy === old.spec.externalTrafficPolicy) delete spec.externalTrafficPolicy;
  }
  if (spec.type !== 'LoadBalancer') service.status = { ...service.status, loadBalancer: {} };
}

function dropAddressFields(spec: ServiceSpec, old: ServiceSpec): void {
  if ((spec.clusterIP ?? '') === (old.clusterIP ?? '') && sameList(spec.clusterIPs, old.clusterIPs)) {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  }
  if (sameList(spec.ipFamilies, old.ipFamilies)) delete spec.ipFamilies;
  if (spec.ipFamilyPolicy === old.ipFamilyPolicy) delete spec.ipFamilyPolicy;
}

function addsNoNodePort(spec: ServiceSpec, old: ServiceSpec): boolean {
  const before = nodePortsOf(old);
  return nodePortsOf(spec).every((port) => before.includes(port));
}

/** Sets the plural of a new Service that has only the singular. */
export function normalizeNewClusterIPs(spec: ServiceSpec): void {
  const { clusterIP, clusterIPs } = spec;
  if (clusterIP === undefined || clusterIP === '') return;
  if (clusterIPs === undefined || clusterIPs.length === 0) spec.clusterIPs = [clusterIP];
}

/**
 * Restores allocated values that the client left out, so that a manifest without them can be applied to an existing
 * Service. Node ports follow the name of their port.
 */
export function patchAllocatedValues(spec: ServiceSpec, old: ServiceSpec): void {
  if (needsClusterIP(old) && needsClusterIP(spec)) {
    if (isUnset(spec.clusterIP) && old.clusterIP !== undefined) spec.clusterIP = old.clusterIP;
    if (isUnset(spec.clusterIPs) && old.clusterIPs !== undefined) spec.clusterIPs = [...old.clusterIPs];
  }
  if (allocatesNodePorts(old) && allocatesNodePorts(spec)) patchNodePorts(spec, old);
  if (needsHealthCheck(old) && needsHealthCheck(spec) && (spec.healthCheckNodePort ?? 0) === 0) {
    if (old.healthCheckNodePort !== undefined) spec.healthCheckNodePort = old.healthCheckNodePort;
  }
}

function patchNodePorts(spec: ServiceSpec, old: ServiceSpec): void {
  const oldPorts = old.ports ?? [];
  const before = nodePortsOf(old);
  const kept = new Set(nodePortsOf(spec).filter((port) => before.includes(port)));
  for (const port of spec.ports ?? []) {
    if ((port.nodePort ?? 0) !== 0) continue;
    const namesake = oldPorts.findLast((candidate) => (candidate.name ?? '') === (port.name ?? ''));
    const number = namesake?.nodePort ?? 0;
    if (number !== 0 && !kept.has(number)) port.nodePort = number;
  }
}

/** Sets the plural from the singular in an update by a client that has only the singular. */
export function normalizeClusterIPs(spec: ServiceSpec, old: ServiceSpec): void {
  const before = old.clusterIP ?? '';
  const now = spec.clusterIP ?? '';
  if (before === now) {
    if (isUnset(spec.clusterIPs) && !isUnset(old.clusterIPs)) spec.clusterIPs = [...(old.clusterIPs ?? [])];
    return;
  }
  if (!sameList(old.clusterIPs, spec.clusterIPs)) return;
  if (now === '') delete spec.clusterIPs;
  else spec.clusterIPs = [now];
}

function isUnset(value: string | readonly string[] | undefined): boolean {
  return value === undefined || value.length === 0;
}

/**
 * The form of a Service for readers (`pkg/registry/core/service/storage/storage.go` defaultOnReadService): one that
 * was stored long ago gets the plural and family fields that it lacks, and an ExternalName loses its
 * `internalTrafficPolicy`. Returns the object itself if nothing changes, which is the usual case.
 */
export function defaultOnRead(service: Service, primary: IPFamily): Service {
  const { spec } = service;
  const hasPlural = (spec.clusterIPs?.length ?? 0) > 0 || (spec.clusterIP ?? '') === '';
  if (!needsClusterIP(spec)) {
    if (spec.internalTrafficPolicy === undefined && hasPlural) return service;
    const { internalTrafficPolicy: _, ...rest } = spec;
    // A change of type may have set another cluster IP than the Service had.
    normalizeNewClusterIPs(rest);
    return { ...service, spec: rest };
  }
  if (hasPlural && (spec.ipFamilies?.length ?? 0) > 0) return service;
  const decorated = { ...spec };
  normalizeNewClusterIPs(decorated);
  addFamilies(decorated, primary);
  return { ...service, spec: decorated };
}

/**
 * True for the JSON of a Service with the plural and family fields, which no ExternalName has. Quotes within strings
 * are escaped, and no other member of a Service has these names.
 */
export function isDecoratedService(json: string): boolean {
  // Searched from the end, where the spec is.
  return json.lastIndexOf('"ipFamilies":["') !== -1 && json.lastIndexOf('"clusterIPs":["') !== -1;
}

function addFamilies(spec: ServiceSpec, primary: IPFamily): void {
  if ((spec.ipFamilies?.length ?? 0) > 0) return;
  if (spec.clusterIP !== headlessIP) {
    spec.ipFamilies = (spec.clusterIPs ?? []).map((address) => parseAddress(address)?.family ?? 'IPv4');
    if (spec.ipFamilies.length === 1) spec.ipFamilyPolicy = 'SingleStack';
    else if (spec.ipFamilies.length === 2) spec.ipFamilyPolicy = 'RequireDualStack';
  } else if (hasNoSelector(spec)) {
    spec.ipFamilies = [primary, otherFamily(primary)];
    spec.ipFamilyPolicy = 'RequireDualStack';
  } else {
    spec.ipFamilies = [primary];
    spec.ipFamilyPolicy = 'SingleStack';
  }
}

/** The other family. */
export function otherFamily(family: string): IPFamily {
  return family === 'IPv4' ? 'IPv6' : 'IPv4';
}
