import type { AddressRange } from '../../allocation/address-range.ts';
import { type ParsedAddress, parseStrictAddress } from '../../objects/address.ts';
import { compileLabelSelector } from '../../objects/labels.ts';
import type { LabelSelector } from '../../objects/meta.ts';
import type { Service } from '../../objects/core.generated.ts';
import { type AddressPool, type AddressPoolSpec, readPool } from '../../controllers/load-balancer/pool.ts';
import { mostEntries } from './addresses.ts';

/** What another load balancer's configuration becomes. */
export interface Imported {
  readonly pools: readonly AddressPool[];
  /** What could not be carried over as it was, in words for a person. */
  readonly notes: readonly string[];
}

/** The label that every namespace has. */
const namespaceName = 'kubernetes.io/metadata.name';

/** A pool of another load balancer: what it is called there, and what became of it. */
export interface ForeignPool {
  readonly name: string;
  readonly spec: AddressPoolSpec;
}

function poolObject(name: string, spec: AddressPoolSpec): AddressPool {
  return { apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool', metadata: { name }, spec };
}

/**
 * AddressPools that the API takes. Those without an address, and those whose selectors cannot be said, are left out
 * with a note: without a selector they would serve everybody.
 */
export function asPools(pools: readonly ForeignPool[], notes: string[]): AddressPool[] {
  const names = new Set<string>();
  return pools.flatMap(({ name, spec }) => {
    if ((spec.addresses ?? []).length === 0) {
      notes.push(`${name}: not imported: it has no addresses that a pool can have`);
      return [];
    }
    const [selectorProblem] = [spec.namespaceSelector, spec.serviceSelector].flatMap(problemOf);
    if (selectorProblem !== undefined) {
      notes.push(`${name}: not imported: ${selectorProblem}`);
      return [];
    }
    const taken = freeName(name, names);
    names.add(taken);
    if (taken !== name) notes.push(`${JSON.stringify(name)} was renamed to ${taken}`);
    return [poolObject(taken, spec)];
  });
}

function problemOf(selector: LabelSelector | undefined): string[] {
  if (selector === undefined) return [];
  try {
    compileLabelSelector(selector);
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

function withoutOuterDashes(label: string): string {
  const words = label.split('-');
  const first = words.findIndex((word) => word !== '');
  return words.slice(first, words.findLastIndex((word) => word !== '') + 1).join('-');
}

/** Longest name of an object, with room for a number. */
const longestName = 253 - 8;

/** The name as a DNS subdomain (RFC 1123) that no other pool has. */
function freeName(name: string, names: ReadonlySet<string>): string {
  const labels = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .slice(0, longestName)
    .split('.')
    .map((label) => withoutOuterDashes(label))
    .filter((label) => label !== '');
  const base = labels.length === 0 ? 'pool' : labels.join('.');
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? base : `${base}-${number}`;
    if (!names.has(candidate)) return candidate;
  }
}

/** Selects namespaces by their names. */
export function namespacesNamed(names: readonly string[]): LabelSelector {
  return { matchExpressions: [{ key: namespaceName, operator: 'In', values: [...names] }] };
}

/**
 * Adds a pool for addresses that Services have but no imported pool would give, so that none of them is lost: it gives
 * them to nobody else who does not ask for them. Says which classes of Services have to be named to the controller.
 *
 * @param presentPools the AddressPools that the cluster has already.
 */
export function keepingAssigned(
  { pools, notes }: Imported,
  services: readonly Service[],
  presentPools: readonly AddressPool[],
): Imported {
  const read = [...pools, ...presentPools].map((object) => readPool(object).pool);
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
  const addresses = [...outside.values()]
    .map(({ canonical, family }) => `${canonical}/${family === 'IPv4' ? 32 : 128}`)
    .sort();
  const count = `${outside.size} ${outside.size === 1 ? 'address' : 'addresses'}`;
  const keeping: ForeignPool[] = [];
  for (let first = 0; first < addresses.length; first += mostEntries) {
    const some = addresses.slice(first, first + mostEntries);
    const number = keeping.length === 0 ? '' : `-${keeping.length + 1}`;
    keeping.push({ name: `imported-addresses${number}`, spec: { addresses: some, autoAssign: false } });
  }
  const present = new Set([...presentPools, ...pools].map(({ metadata }) => metadata.name ?? ''));
  const kept = keeping.map(({ name, spec }) => poolObject(freeName(name, present), spec));
  const names = kept.map(({ metadata }) => metadata.name).join(', ');
  return {
    pools: [...pools, ...kept],
    notes: [
      ...notes,
      `${count} in use would be given by no pool; ${names} ${kept.length === 1 ? 'keeps' : 'keep'} them`,
      ...moreNotes,
    ],
  };
}
