/**
 * The fields of a Service that the endpoints controllers read. A broken server may send them in any shape: malformed
 * ones count as absent. All functions are pure.
 */
import { isRecord } from '../../objects/json.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Service, ServicePort } from '../../objects/types/core.generated.ts';

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
