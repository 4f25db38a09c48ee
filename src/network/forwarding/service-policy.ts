import { keyOf } from '../../objects/key.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { TrafficPolicy } from './forwarding-plan.ts';
import { isPort } from './port.ts';
import type { Problems } from './problem.ts';

/** The policy of cluster IPs (`pkg/api/v1/service`, InternalPolicyLocal). */
export function internalTrafficPolicy(service: Service): TrafficPolicy {
  return service.spec.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster';
}

/** The policy of all other destinations; read only of Services that can have some (ExternalPolicyLocal). */
export function externalTrafficPolicy(service: Service): TrafficPolicy {
  const { type, externalIPs, externalTrafficPolicy: policy } = service.spec;
  const external = type === 'LoadBalancer' || type === 'NodePort' || (externalIPs ?? []).length > 0;
  return external && policy === 'Local' ? 'Local' : 'Cluster';
}

const defaultAffinitySeconds = 10800;
const maxAffinitySeconds = 86400;

/** Seconds of `sessionAffinity: ClientIP`; undefined without affinity. */
export function affinitySeconds(service: Service, problems: Problems): number | undefined {
  const { sessionAffinity, sessionAffinityConfig } = service.spec;
  if (sessionAffinity !== 'ClientIP') return undefined;
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds;
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= maxAffinitySeconds) return seconds;
  const what = `spec.sessionAffinityConfig.clientIP.timeoutSeconds: ${seconds} is out of range: ${defaultAffinitySeconds} is used`;
  problems.add('InvalidAffinityTimeout', 'Service', keyOf(service), what);
  return defaultAffinitySeconds;
}

/** The health check port of load balancers with policy Local (NeedsHealthCheck); undefined without one. */
export function healthCheckNodePort(service: Service, problems: Problems): number | undefined {
  if (service.spec.type !== 'LoadBalancer' || externalTrafficPolicy(service) !== 'Local') return undefined;
  const port = service.spec.healthCheckNodePort ?? 0;
  if (isPort(port)) return port;
  if (port === 0) {
    const what = 'spec.healthCheckNodePort is not set: load balancers cannot ask this node';
    problems.add('NoHealthCheckNodePort', 'Service', keyOf(service), what);
  } else {
    const what = `spec.healthCheckNodePort: ${port} is out of range`;
    problems.add('InvalidPort', 'Service', keyOf(service), what);
  }
  return undefined;
}
