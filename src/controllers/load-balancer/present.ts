import { parseStrictAddress } from '../../objects/address.ts';
import type { Condition } from '../../objects/meta.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { LoadBalancerIngress, Service } from '../../objects/core.generated.ts';
import { readAssigned, type Origin } from './assigned-text.ts';

/** The condition that we keep on every Service that we serve. */
export const conditionType = 'servicenet.dev/LoadBalancerReady';

/** Our condition on a Service, which says that we serve it or did. */
export function readyCondition(service: Service): Condition | undefined {
  return service.status.conditions?.find(({ type }) => type === conditionType);
}

/** An address that a Service has by its status. */
export interface PresentAddress {
  readonly family: IPFamily;
  /** Canonical. */
  readonly address: string;
  /** Undefined for an address that no pool of ours gave. */
  readonly origin: Origin | undefined;
  /** The sharing key with which it has the address, as `keyText` writes it; undefined where nothing says so. */
  readonly key: string | undefined;
  /** `TCP/80`: its ports that are served there; undefined where the status names none, as others leave it. */
  readonly served: ReadonlySet<string> | undefined;
}

/**
 * The addresses in a Service's status that are ours, at most one of each family: those that our condition names, else
 * those that our pools contain, as another load balancer may have left them.
 *
 * @param isPooled whether some pool contains an address.
 */
export function presentAddresses(
  service: Service,
  isPooled: (family: IPFamily, value: bigint) => boolean,
): PresentAddress[] {
  const entries = service.status.loadBalancer?.ingress ?? [];
  if (entries.length === 0) return [];
  const named = new Map(
    readAssigned(readyCondition(service)?.message ?? '').map((text) => [text.address, text]),
  );
  const found = new Map<IPFamily, PresentAddress>();
  for (const entry of entries) {
    const parsed = entry.ip === undefined ? undefined : parseStrictAddress(entry.ip);
    if (parsed === undefined) continue;
    const { family, canonical: address, value } = parsed;
    const text = named.get(address);
    const before = found.get(family);
    if (before !== undefined && (text === undefined || before.key !== undefined)) continue;
    if (text === undefined && !isPooled(family, value)) continue;
    found.set(family, { family, address, origin: text?.origin, key: text?.key, served: servedPorts(entry) });
  }
  return [...found.values()];
}

/** True when our condition names an address that the status shows no more: somebody else took it out. */
export function takenOut(service: Service): boolean {
  const shown = new Set((service.status.loadBalancer?.ingress ?? []).map(({ ip }) => ip));
  return readAssigned(readyCondition(service)?.message ?? '').some(({ address }) => !shown.has(address));
}

function servedPorts({ ports }: LoadBalancerIngress): ReadonlySet<string> | undefined {
  if (ports === undefined) return undefined;
  const served = ports.filter(({ error }) => error === undefined);
  return new Set(served.map(({ protocol, port }) => `${protocol}/${port}`));
}

/**
 * True for a class-less Service that another provider serves already: it has addresses or names of which none is
 * ours. Such a Service is never touched.
 */
export function isForeign(service: Service, own: readonly PresentAddress[]): boolean {
  const { loadBalancerClass } = service.spec;
  if (loadBalancerClass !== undefined && loadBalancerClass !== '') return false;
  const entries = service.status.loadBalancer?.ingress ?? [];
  return entries.length > 0 && own.length === 0 && readyCondition(service) === undefined;
}
