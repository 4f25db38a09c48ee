import { isIPv4 } from 'node:net';
import { type IPFamily, parseAddress } from '../../objects/address.ts';
import { isStringMap, isRecord } from '../../objects/json.ts';
import type {
  ObjectReference,
  Pod,
  Service,
  ServicePort,
  Container,
} from '../../objects/types/core.generated.ts';

/**
 * The fields of a Pod that the endpoints controllers read (k8s.io/endpointslice/util, `controller_utils.go`). All
 * functions are pure and accept missing fields, which a broken server may send.
 */

/** True when a Pod may back a Service: not finished, and it has an address. */
export function mayBackService(pod: Pod): boolean {
  const { phase, podIP, podIPs } = pod.status;
  if (phase === 'Succeeded' || phase === 'Failed') return false;
  return (podIP !== undefined && podIP !== '') || (podIPs !== undefined && podIPs.length > 0);
}

/** The host name to publish: only with a subdomain that is the Service's name. */
export function publishedHostname(pod: Pod, service: Service): string | undefined {
  const { hostname, subdomain } = pod.spec;
  return hostname !== undefined && hostname !== '' && subdomain === service.metadata.name
    ? hostname
    : undefined;
}

/** The reference to a Pod in an endpoint. */
export function podReference(pod: Pod): ObjectReference {
  const { namespace, name, uid } = pod.metadata;
  return {
    kind: 'Pod',
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(uid === undefined ? {} : { uid }),
  };
}

/** The selector of a Service whose endpoints a controller writes; undefined for all others. */
export function managedSelector(service: Service): Readonly<Record<string, string>> | undefined {
  const { type } = service.spec;
  return type === 'ExternalName' ? undefined : selectorOf(service);
}

/** The selector of a Service; undefined when it has none, or an invalid one. */
export function selectorOf(service: Service): Readonly<Record<string, string>> | undefined {
  const selector: unknown = service.spec.selector;
  return isStringMap(selector) && Object.keys(selector).length > 0 ? selector : undefined;
}

/** An address as text in canonical form, and its family. */
export interface CanonicalIP {
  ip: string;
  family: IPFamily;
}

/**
 * Reads an address as Go's `ParseIPSloppy` does and returns it as `net.IP.String` prints it: decimal fields with
 * leading zeros are read, IPv6 is compressed, IPv4-mapped IPv6 is IPv4. Undefined for other texts.
 */
export function canonicalIP(text: string): CanonicalIP | undefined {
  // A fast path without big integers, for nearly all Pods.
  if (isIPv4(text)) return { ip: text, family: 'IPv4' };
  const parsed = parseAddress(text);
  return parsed === undefined ? undefined : { ip: parsed.canonical, family: parsed.family };
}

/**
 * The fields of a Service that the endpoints controllers read. A broken server may send them in any shape: malformed
 * ones count as absent. All functions are pure.
 */

const none: readonly ServicePort[] = [];

/** The ports of a Service. */
export function portsOf({ spec }: Service): readonly ServicePort[] {
  const ports: unknown = spec.ports;
  if (!Array.isArray(ports)) return none;
  const list: readonly unknown[] = ports;
  return list.filter(isServicePort);
}

/** The address families that a Service names, each once. */
export function namedFamilies({ spec }: Service): IPFamily[] {
  const families: unknown = spec.ipFamilies;
  if (!Array.isArray(families)) return [];
  const list: readonly unknown[] = families;
  return [...new Set(list.filter((family) => family === 'IPv4' || family === 'IPv6'))];
}

/** True for headless Services. */
export function isHeadless({ spec }: Service): boolean {
  // A Service without an address is not headless: an API server that does not allocate shows it until another
  // controller has. kube-controller-manager, which never sees one, would call it headless.
  return spec.clusterIP === 'None';
}

/** The address of a Service; undefined for headless ones, and for those without an address yet. */
export function clusterIPOf({ spec }: Service): string | undefined {
  const clusterIP: unknown = spec.clusterIP;
  return typeof clusterIP === 'string' && clusterIP !== '' && clusterIP !== 'None' ? clusterIP : undefined;
}

function isServicePort(port: unknown): port is ServicePort {
  if (!isRecord(port) || typeof port['port'] !== 'number') return false;
  const { name, protocol, appProtocol, targetPort } = port;
  return (
    isOptionalText(name) &&
    isOptionalText(protocol) &&
    isOptionalText(appProtocol) &&
    (isOptionalText(targetPort) || typeof targetPort === 'number')
  );
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

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
