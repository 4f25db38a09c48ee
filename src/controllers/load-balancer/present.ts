import { parseStrictAddress } from '../../objects/address.ts';
import type { Condition } from '../../objects/meta.ts';
import type { IPFamily, Service } from '../../objects/service.ts';

/** The condition that we keep on every Service that we serve. */
export const conditionType = 'servicenet.dev/LoadBalancerReady';

/** Our condition on a Service, which says that we serve it or did. */
export function readyCondition(service: Service): Condition | undefined {
  return service.status.conditions?.find(({ type }) => type === conditionType);
}

/**
 * The addresses in a Service's status that are ours: of one that we served before, the first of each family (we write
 * ours first); of one that we did not, those that our pools contain, as another load balancer may have left them.
 *
 * @param isPooled whether some pool contains an address.
 */
export function presentAddresses(
  service: Service,
  isPooled: (family: IPFamily, value: bigint) => boolean,
): string[] {
  const served = readyCondition(service) !== undefined;
  const found = new Map<IPFamily, string>();
  for (const { ip } of service.status.loadBalancer?.ingress ?? []) {
    const parsed = ip === undefined ? undefined : parseStrictAddress(ip);
    if (parsed === undefined || found.has(parsed.family)) continue;
    if (served || isPooled(parsed.family, parsed.value)) found.set(parsed.family, parsed.canonical);
  }
  return [...found.values()];
}

/**
 * True for a class-less Service that another provider serves already: it has addresses or names of which none is
 * ours. Such a Service is never touched.
 */
export function isForeign(service: Service, own: readonly string[]): boolean {
  const { loadBalancerClass } = service.spec;
  if (loadBalancerClass !== undefined && loadBalancerClass !== '') return false;
  const entries = service.status.loadBalancer?.ingress ?? [];
  return entries.length > 0 && own.length === 0 && readyCondition(service) === undefined;
}

/** Ports of which the status says that another Service serves them at the shared address: `TCP/80`. */
export function unservedPorts(service: Service): Set<string> {
  const ports = (service.status.loadBalancer?.ingress ?? []).flatMap((entry) => entry.ports ?? []);
  return new Set(
    ports.filter(({ error }) => error !== undefined).map(({ protocol, port }) => `${protocol}/${port}`),
  );
}
