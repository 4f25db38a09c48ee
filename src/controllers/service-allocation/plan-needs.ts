/** Which addresses and node ports a Service needs (`pkg/registry/core/service/storage/alloc.go`). Pure. */
import type { IPFamily } from '../../objects/address.ts';
import { type AllocationClaim, type ServiceView, familyOf } from './plan-view.ts';
import { quotedStart } from '../../objects/formats/go-text.ts';

/** The families of the Service CIDRs, primary first; empty while none is known. */
export type KnownFamilies = readonly IPFamily[];

/** The families and addresses that a Service should have. */
export interface Addressing {
  readonly policy: string;
  readonly families: readonly IPFamily[];
  /** The addresses that it keeps, as written. */
  readonly kept: readonly string[];
  /** The families of the missing addresses, in the order of `families`. */
  readonly missing: readonly IPFamily[];
}

/**
 * Decides policy, families and missing addresses of a Service that is not an ExternalName. A text is the reason why
 * the Service contradicts itself or the cluster.
 */
export function decideAddressing(view: ServiceView, cluster: KnownFamilies): Addressing | string {
  const unbound = view.headless && !view.hasSelector;
  const policy = view.policy === '' ? (unbound ? 'RequireDualStack' : 'SingleStack') : view.policy;
  const single = policy === 'SingleStack';
  const kept = view.headless ? [] : view.clusterIPs.slice(0, single ? 1 : 2);
  // A second address of a SingleStack Service: it was dual-stack, and releases the address.
  const wasDual = view.clusterIPs.length > 1;
  const asked = single && wasDual ? view.families.slice(0, 1) : view.families;
  const families: IPFamily[] = [];
  for (const family of asked) {
    if (family !== 'IPv4' && family !== 'IPv6')
      return `ipFamilies: ${quotedStart(family)} is not an IP family`;
    if (families.includes(family)) return `ipFamilies: ${family} is listed twice`;
    families.push(family);
  }
  for (const [i, address] of kept.entries()) {
    const family = familyOf(address);
    if (family === undefined) continue;
    families[i] ??= family;
    if (families[i] !== family)
      return `clusterIPs: expected an ${families[i]} value as indicated by ipFamilies[${i}]`;
  }
  const [primary] = cluster;
  if (primary === undefined) return 'no range of Service addresses is known';
  if (single && families.length > 1) {
    return 'ipFamilyPolicy must be RequireDualStack or PreferDualStack when multiple IP families are specified';
  }
  if (families.length === 0) families.push(primary);
  const second = (families[0] ?? primary) === 'IPv4' ? 'IPv6' : 'IPv4';
  if (unbound) {
    if (!single && families.length === 1) families.push(second);
    return { policy, families, kept, missing: [] };
  }
  if (policy === 'RequireDualStack' && cluster.length < 2)
    return 'this cluster is not configured for dual-stack services';
  const unknown = families.find((family) => !cluster.includes(family));
  if (unknown !== undefined) return `ipFamilies: ${unknown} is not configured on this cluster`;
  if (!single && families.length === 1 && cluster.length > 1) families.push(second);
  return { policy, families, kept, missing: view.headless ? [] : families.slice(kept.length) };
}

/** Number of missing node ports. Ports of one number (53/TCP and 53/UDP) share one, as in kube-apiserver. */
export function missingNodePorts(view: ServiceView): number {
  if (!view.wantsNodePorts) return 0;
  return new Set(view.ports.map(({ port }) => port).filter((port) => !view.nodePortOf.has(port))).size;
}

export function lacksHealthCheckPort(view: ServiceView): boolean {
  return view.wantsHealthCheck && view.healthCheckNodePort === 0;
}

/** The node port of each port, in order, with the claimed ones assigned; 0 for none. */
export function assignNodePorts(
  view: ServiceView,
  claim: AllocationClaim,
): { ports: number[]; healthCheck: number } {
  const claimed = claim.ports.values();
  const next = (): number => claimed.next().value ?? 0;
  const assigned = new Map<number, number>();
  const ports = view.ports.map(({ port, nodePort }) => {
    if (!view.mayHaveNodePorts) return 0;
    if (nodePort > 0 || !view.wantsNodePorts) return nodePort;
    const number = assigned.get(port) ?? view.nodePortOf.get(port) ?? next();
    assigned.set(port, number);
    return number;
  });
  const healthCheck = view.wantsHealthCheck ? view.healthCheckNodePort || next() : 0;
  return { ports, healthCheck };
}

/** True when a claim is exactly what is missing. */
export function fits(view: ServiceView, addressing: Addressing | undefined, claim: AllocationClaim): boolean {
  const missing = addressing?.missing ?? [];
  const ports = missingNodePorts(view) + (lacksHealthCheckPort(view) ? 1 : 0);
  return (
    claim.ports.length === ports &&
    claim.addresses.length === missing.length &&
    claim.addresses.every((address, i) => familyOf(address) === missing[i])
  );
}
