import type { Service, ServiceSpec } from '../../../objects/types/core.generated.ts';
import {
  externallyAccessible,
  mayHaveNodePorts,
  needsClusterIP,
  needsHealthCheck,
  nodePortsOf,
  sameList,
} from './type-rules.ts';

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
