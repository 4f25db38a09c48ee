import type { AddressRange } from '../../allocation/address-range.ts';
import { type ParsedAddress, parseStrictAddress } from '../../objects/address.ts';
import type { LabelSelector } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { AddressPool, AddressPoolSpec, BGPPeer } from '../../objects/types/servicenet.ts';
import { readPool } from '../../controllers/load-balancer/pool.ts';
import { maxEntries, selectorProblem } from './foreign.ts';

/** The result of an import. */
export interface Imported {
  readonly pools: readonly AddressPool[];
  readonly peers: readonly BGPPeer[];
  /** Notes for the user about what was not imported or was changed: sentences. */
  readonly notes: readonly string[];
}

/** The label with the name of a namespace, which every namespace has. */
const namespaceNameLabel = 'kubernetes.io/metadata.name';

/** A pool of another load balancer: its name there, and its spec as an AddressPool. */
export interface ForeignPool {
  readonly name: string;
  readonly spec: AddressPoolSpec;
}

function poolObject(name: string, spec: AddressPoolSpec): AddressPool {
  return { apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool', metadata: { name }, spec };
}

/**
 * AddressPools with valid, unique names. Pools without an address are left out with a note, and so are pools with an
 * invalid selector, because without it they would serve all Services.
 */
export function asPools(pools: readonly ForeignPool[], notes: string[]): AddressPool[] {
  const names = new Set<string>();
  return pools.flatMap(({ name, spec }) => {
    if ((spec.addresses ?? []).length === 0) {
      notes.push(`${name}: not imported: it has no addresses that a pool can have`);
      return [];
    }
    const [problem] = [spec.namespaceSelector, spec.serviceSelector].flatMap(
      (selector) => (selector === undefined ? undefined : selectorProblem(selector)) ?? [],
    );
    if (problem !== undefined) {
      notes.push(`${name}: not imported: ${problem}`);
      return [];
    }
    const taken = freeName(name, names);
    names.add(taken);
    if (taken !== name) notes.push(`${JSON.stringify(name)} was renamed to ${taken}`);
    return [poolObject(taken, spec)];
  });
}

function withoutOuterDashes(label: string): string {
  const words = label.split('-');
  const first = words.findIndex((word) => word !== '');
  return words.slice(first, words.findLastIndex((word) => word !== '') + 1).join('-');
}

/** Most characters of a name before a number is appended. */
const maxNameLength = 253 - 8;

/** The name as a DNS subdomain (RFC 1123) that is not in `names`; what has no character of one is called `otherwise`. */
export function freeName(name: string, names: ReadonlySet<string>, otherwise = 'pool'): string {
  const labels = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .slice(0, maxNameLength)
    .split('.')
    .map((label) => withoutOuterDashes(label))
    .filter((label) => label !== '');
  const base = labels.length === 0 ? otherwise : labels.join('.');
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? base : `${base}-${number}`;
    if (!names.has(candidate)) return candidate;
  }
}

/** Selects namespaces by their names. */
export function namespacesNamed(names: readonly string[]): LabelSelector {
  return { matchExpressions: [{ key: namespaceNameLabel, operator: 'In', values: [...names] }] };
}

/**
 * Adds pools without autoAssign for the addresses of Services that no other pool contains, so that they are kept. Notes
 * the classes of Services that the controller has to serve.
 *
 * @param presentPools the AddressPools of the cluster.
 */
export function keepingAssigned(
  { pools, peers, notes }: Imported,
  services: readonly Service[],
  presentPools: readonly AddressPool[],
): Imported {
  const read = [...pools, ...presentPools].map((object) => readPool(object).pool);
  const within = (ranges: readonly AddressRange[], { family, value }: ParsedAddress): boolean =>
    ranges.some((range) => range.contains(family, value));
  const isPooled = (address: ParsedAddress): boolean =>
    read.some(({ ranges, excluded }) => within(ranges, address) && !within(excluded, address));
  const outside = new Map<string, ParsedAddress>();
  const classes = new Map<string, number>(); // class -> its Services
  for (const { spec, status } of services) {
    if (spec.type !== 'LoadBalancer') continue;
    const { loadBalancerClass = '' } = spec;
    if (loadBalancerClass !== '') classes.set(loadBalancerClass, (classes.get(loadBalancerClass) ?? 0) + 1);
    for (const { ip } of status.loadBalancer?.ingress ?? []) {
      const parsed = ip === undefined ? undefined : parseStrictAddress(ip);
      if (parsed !== undefined && !isPooled(parsed)) outside.set(parsed.canonical, parsed);
    }
  }
  const moreNotes = [...classes].map(
    ([name, count]) =>
      `${count === 1 ? '1 Service has' : `${count} Services have`} the loadBalancerClass ${name}: run the controller with --lb-class=${name} to serve them`,
  );
  if (outside.size === 0) return { pools, peers, notes: [...notes, ...moreNotes] };
  const addresses = [...outside.values()]
    .map(({ canonical, family }) => `${canonical}/${family === 'IPv4' ? 32 : 128}`)
    .sort();
  const count = `${outside.size} ${outside.size === 1 ? 'address' : 'addresses'}`;
  const keeping: ForeignPool[] = [];
  for (let first = 0; first < addresses.length; first += maxEntries) {
    const some = addresses.slice(first, first + maxEntries);
    const number = keeping.length === 0 ? '' : `-${keeping.length + 1}`;
    keeping.push({ name: `imported-addresses${number}`, spec: { addresses: some, autoAssign: false } });
  }
  const present = new Set([...presentPools, ...pools].map(({ metadata }) => metadata.name ?? ''));
  const kept = keeping.map(({ name, spec }) => poolObject(freeName(name, present), spec));
  const names = kept.map(({ metadata }) => metadata.name).join(', ');
  return {
    pools: [...pools, ...kept],
    peers,
    notes: [
      ...notes,
      `${count} in use would be given by no pool; ${names} ${kept.length === 1 ? 'keeps' : 'keep'} them`,
      ...moreNotes,
    ],
  };
}
