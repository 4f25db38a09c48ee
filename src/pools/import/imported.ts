import type { AddressRange } from '../../allocation/address-range.ts';
import { type ParsedAddress, parseStrictAddress } from '../../objects/address.ts';
import type { LabelSelector } from '../../objects/meta.ts';
import type { Service } from '../../objects/service.ts';
import { type AddressPool, type AddressPoolSpec, readPool } from '../../controllers/load-balancer/pool.ts';

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
 * Adds a pool for addresses that Services have but no imported pool would give, so that none of them is lost: it gives
 * them to nobody else who does not ask for them. Says which classes of Services have to be named to the controller.
 *
 * @param present the AddressPools that the cluster has already.
 */
export function keepingAssigned(
  { pools, notes }: Imported,
  services: readonly Service[],
  present: readonly AddressPool[],
): Imported {
  const read = [...pools, ...present].map((object) => readPool(object).pool);
  const within = (ranges: readonly AddressRange[], { family, value }: ParsedAddress): boolean =>
    ranges.some((range) => range.contains(family, value));
  const isGiven = (address: ParsedAddress): boolean =>
    read.some(({ ranges, excluded }) => within(ranges, address) && !within(excluded, address));
  const outside = new Map<string, ParsedAddress>();
  const classes = new Map<string, number>(); // class -> its Services
  for (const { spec, status } of services) {
    if (spec.type !== 'LoadBalancer') continue;
    const { loadBalancerClass = '' } = spec;
    if (loadBalancerClass !== '') classes.set(loadBalancerClass, (classes.get(loadBalancerClass) ?? 0) + 1);
    for (const { ip } of status.loadBalancer?.ingress ?? []) {
      const parsed = ip === undefined ? undefined : parseStrictAddress(ip);
      if (parsed !== undefined && !isGiven(parsed)) outside.set(parsed.canonical, parsed);
    }
  }
  const moreNotes = [...classes].map(
    ([name, count]) =>
      `${count === 1 ? '1 Service has' : `${count} Services have`} the loadBalancerClass ${name}: run the controller with --lb-class=${name} to serve them`,
  );
  if (outside.size === 0) return { pools, notes: [...notes, ...moreNotes] };
  const addresses = [...outside.values()].map(
    ({ canonical, family }) => `${canonical}/${family === 'IPv4' ? 32 : 128}`,
  );
  const count = `${outside.size} ${outside.size === 1 ? 'address' : 'addresses'}`;
  return {
    pools: [...pools, poolObject('imported-addresses', { addresses: addresses.sort(), autoAssign: false })],
    notes: [
      ...notes,
      `${count} in use would be given by no pool; imported-addresses keeps them`,
      ...moreNotes,
    ],
  };
}
