import type { Container, Pod, Service, ServicePort } from '../../objects/types/core.generated.ts';
import { portsOf } from './service.ts';

/** A port of a Service as one Pod serves it. */
export interface ResolvedPort {
  /** The Service port's name, "" for the unnamed one. */
  name: string;
  protocol: string;
  /** The number on the Pod. */
  port: number;
  appProtocol?: string;
}

/**
 * The ports of a Service as a Pod serves them, in the Service's order. A named targetPort is looked up by name and
 * protocol in the containers, then in the restartable init containers; a port that the Pod lacks is left out.
 */
export function resolvePorts(service: Service, pod: Pod): ResolvedPort[] {
  const resolved: ResolvedPort[] = [];
  for (const servicePort of portsOf(service)) {
    const port = targetPortOf(servicePort, pod);
    if (port === undefined) continue;
    resolved.push({
      name: servicePort.name ?? '',
      protocol: servicePort.protocol ?? 'TCP',
      port,
      ...(servicePort.appProtocol === undefined ? {} : { appProtocol: servicePort.appProtocol }),
    });
  }
  return resolved;
}

function targetPortOf(servicePort: ServicePort, pod: Pod): number | undefined {
  const target = servicePort.targetPort ?? servicePort.port;
  if (typeof target === 'number') return target;
  const protocol = servicePort.protocol ?? 'TCP';
  const sidecars = pod.spec.initContainers?.filter((container) => container.restartPolicy === 'Always');
  return namedPort(pod.spec.containers, target, protocol) ?? namedPort(sidecars, target, protocol);
}

function namedPort(
  containers: readonly Container[] | undefined,
  name: string,
  protocol: string,
): number | undefined {
  for (const container of containers ?? []) {
    for (const port of container.ports ?? []) {
      if (port.name === name && (port.protocol ?? 'TCP') === protocol) return port.containerPort;
    }
  }
  return undefined;
}

/** A text for a set of ports: lists with the same ports in another order have the same key. */
export function portsKey(
  ports: readonly { name?: string; protocol?: string; port?: number; appProtocol?: string }[],
): string {
  if (ports.length === 1) {
    const [only] = ports;
    if (only !== undefined) return endpointPortKey(only);
  }
  return ports.map(endpointPortKey).sort().join('\n');
}

/** A text for a port. Names and protocols hold no control characters, so tabs separate the parts. */
export function endpointPortKey(port: {
  name?: string;
  protocol?: string;
  port?: number;
  appProtocol?: string;
}): string {
  return `${port.name ?? ''}\t${port.protocol ?? 'TCP'}\t${String(port.port ?? '')}\t${port.appProtocol ?? ''}`;
}
