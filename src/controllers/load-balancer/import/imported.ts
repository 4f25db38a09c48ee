import { parseAddressRange } from '../../../allocation/address-range.ts';
import { parseStrictAddress } from '../../../objects/address.ts';
import type { LabelSelector } from '../../../objects/meta.ts';
import type { Service } from '../../../objects/service.ts';
import type { AddressPool, AddressPoolSpec } from '../pool.ts';

/** What another load balancer's configuration becomes. */
export interface Imported {
  readonly pools: readonly AddressPool[];
  /** What could not be carried over as it was, in words for a person. */
  readonly notes: readonly string[];
}

/** The label that every namespace has. */
const namespaceName = 'kubernetes.io/metadata.name';

/** An AddressPool as it is printed. */
export function poolObject(name: string, spec: AddressPoolSpec): AddressPool {
  return { apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool', metadata: { name }, spec };
}

/** Selects namespaces by their names. */
export function namespacesNamed(names: readonly string[]): LabelSelector {
  return { matchExpressions: [{ key: namespaceName, operator: 'In', values: [...names] }] };
}

/**
 * Adds a pool for addresses that Services have but no imported pool contains, so that none of them is lost: it gives
 * them to nobody else who does not ask for them.
 */
export function keepingAssigned({ pools, notes }: Imported, services: readonly Service[]): Imported {
  const ranges = pools.flatMap(({ spec }) =>
    (spec.addresses ?? []).flatMap((text) => parseAddressRange(text) ?? []),
  );
  const outside = new Set<string>();
  for (const { spec, status } of services) {
    if (spec.type !== 'LoadBalancer') continue;
    for (const { ip } of status.loadBalancer?.ingress ?? []) {
      const parsed = ip === undefined ? undefined : parseStrictAddress(ip);
      if (parsed === undefined || ranges.some((range) => range.contains(parsed.family, parsed.value)))
        continue;
      outside.add(`${parsed.canonical}/${parsed.family === 'IPv4' ? 32 : 128}`);
    }
  }
  if (outside.size === 0) return { pools, notes };
  return {
    pools: [
      ...pools,
      poolObject('imported-addresses', { addresses: [...outside].sort(), autoAssign: false }),
    ],
    notes: [...notes, `${outside.size} addresses in use are in no pool; imported-addresses keeps them`],
  };
}
