import type { Service, ServicePort, ServiceSpec } from '../../../objects/types/core.generated.ts';
import { externallyAccessible } from './type-rules.ts';

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
