import { type IPFamily, addressBits, formatAddress, type ParsedCidr } from '../../objects/address.ts';
import type { Direction, PolicyPod } from './network-policy.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import type { Span } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ObjectKey } from '../../objects/meta.ts';

/**
 * The filters of a node as sets, chains and verdicts: policies without the objects they are made of. Ranges of addresses
 * and ports do not overlap: the kernel takes no others.
 */

/**
 * A set of addresses or ports. Its elements are texts:
 *
 * - `address`: `10.0.0.1`
 * - `range`: `10.0.0.0-10.0.0.255`, none of which touches another one
 * - `port`: `tcp 80-90`, none of which touches another one
 * - `endpoint`, a port of an address: `10.0.0.1 tcp 80`
 * - `self`, Pods whose connections to themselves are allowed: `10.0.0.1`
 */
export interface FilterSet {
  readonly kind: 'address' | 'range' | 'port' | 'endpoint' | 'self';
  /** Of its addresses; undefined for ports. */
  readonly family: IPFamily | undefined;
  /** Is another object whenever the elements are others. */
  readonly elements: ReadonlySet<string>;
}

/** One step of a chain. The first that decides does. */
export type FilterRule =
  /** The connections that the chain of a policy allows. */
  | { readonly kind: 'policy'; readonly chain: string }
  /** A connection is allowed whose other side and port are in the sets, as far as they are named. */
  | {
      readonly kind: 'allow';
      readonly direction: Direction;
      /** Undefined: of any, and of both families where no other set has one. */
      readonly family: IPFamily | undefined;
      readonly peers: string | undefined;
      readonly ports: string | undefined;
      /** Ports of destinations. */
      readonly endpoints: string | undefined;
    }
  /** Decides on a connection that leads there: what one step allows, the next ones do not see. */
  | {
      readonly kind: 'firewall';
      readonly allow: boolean;
      readonly family: IPFamily;
      readonly to: string;
      /** Undefined: any, and protocols that have none. */
      readonly ports: string | undefined;
    }
  | { readonly kind: 'drop' };

/** The filters of a connection: both NetworkPolicies and the EgressFirewall have to let it pass. */
export type FilterStage = Direction | 'firewall';

/**
 * The filter of one node. Names are made of hashes: a chain, and a set of ranges or of ports, is never another one by the
 * same name, and a set of addresses or endpoints follows Pods.
 */
export interface PolicyPlan {
  /** Always with {@link selfSets}. */
  readonly sets: ReadonlyMap<string, FilterSet>;
  readonly chains: ReadonlyMap<string, readonly FilterRule[]>;
  /** The chain for connections to (ingress) or from (egress, firewall) an address of a Pod of the node. */
  readonly subjects: Readonly<Record<FilterStage, ReadonlyMap<string, string>>>;
}

/** The sets of the node's Pods that are filtered: a Pod always reaches itself. */
export const selfSets = { IPv4: 'self-4', IPv6: 'self-6' } as const;

/** A CIDR without others, as `<first>-<last>` in order. */
export function addressRanges(cidr: ParsedCidr, except: readonly ParsedCidr[]): readonly string[] {
  let left: readonly Span[] = [rangeOf(cidr)];
  for (const each of except) {
    if (each.family === cidr.family) left = left.flatMap((range) => without(range, rangeOf(each)));
  }
  return left.map(
    ({ first, last }) => `${formatAddress(cidr.family, first)}-${formatAddress(cidr.family, last)}`,
  );
}

function rangeOf({ family, network, prefixLength }: ParsedCidr): Span {
  const size = 1n << BigInt(addressBits(family) - prefixLength);
  return { first: network, last: network + size - 1n };
}

function without(range: Span, gap: Span): readonly Span[] {
  if (gap.last < range.first || range.last < gap.first) return [range];
  const before = { first: range.first, last: gap.first - 1n };
  const after = { first: gap.last + 1n, last: range.last };
  return [before, after].filter(({ first, last }) => first <= last);
}

/** Ports of a protocol, 0 to 65535. */
export interface PortSpan {
  readonly protocol: Protocol;
  readonly first: number;
  readonly last: number;
}

/** Ranges of ports as `tcp <first>-<last>`; what overlaps or touches is one. */
export function portRanges(ranges: readonly PortSpan[]): readonly string[] {
  const merged: PortSpan[] = [];
  const ordered = ranges.toSorted((a, b) => compare(a.protocol, b.protocol) || a.first - b.first);
  for (const range of ordered) {
    const before = merged.at(-1);
    if (before?.protocol === range.protocol && range.first <= before.last + 1) {
      merged[merged.length - 1] = { ...before, last: Math.max(before.last, range.last) };
    } else {
      merged.push(range);
    }
  }
  return merged.map(({ protocol, first, last }) => `${protocol.toLowerCase()} ${first}-${last}`);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A Pod with its addresses; those of host networks and those that have ended are none for policies. */
export interface AddressedPod {
  readonly pod: PolicyPod;
  /** In canonical form. */
  readonly addresses: readonly string[];
}

/**
 * The Pod of each address. A Pod's address may be another one's before the end of the first is known: then it is
 * the other one's, until that is gone.
 */
export class AddressHolders {
  readonly #given = new Map<ObjectKey, AddressedPod>();
  /** By address, in the order in which Pods got it: the last one holds it. */
  readonly #claims = new Map<string, readonly ObjectKey[]>();

  /** A Pod as it was given. */
  get(key: ObjectKey): AddressedPod | undefined {
    return this.#given.get(key);
  }

  /** Adds or changes a Pod; undefined: it is gone. @returns all Pods that are others now, with what they hold. */
  set(key: ObjectKey, pod: AddressedPod | undefined): ReadonlyMap<ObjectKey, AddressedPod | undefined> {
    const before = this.#given.get(key);
    if (jsonEqual(before, pod)) return new Map();
    if (pod === undefined) this.#given.delete(key);
    else this.#given.set(key, pod);
    const others = new Set<ObjectKey>();
    for (const address of before?.addresses ?? []) {
      if (pod?.addresses.includes(address) !== true) this.#claim(address, key, false, others);
    }
    for (const address of pod?.addresses ?? []) {
      if (before?.addresses.includes(address) !== true) this.#claim(address, key, true, others);
    }
    return new Map([key, ...others].map((each) => [each, this.#held(each)]));
  }

  #claim(address: string, key: ObjectKey, isNew: boolean, others: Set<ObjectKey>): void {
    const rest = (this.#claims.get(address) ?? []).filter((each) => each !== key);
    const last = rest.at(-1);
    if (last !== undefined) others.add(last);
    const claims = isNew ? [...rest, key] : rest;
    if (claims.length === 0) this.#claims.delete(address);
    else this.#claims.set(address, claims);
  }

  #held(key: ObjectKey): AddressedPod | undefined {
    const given = this.#given.get(key);
    if (given === undefined) return undefined;
    const addresses = given.addresses.filter((address) => this.#claims.get(address)?.at(-1) === key);
    return addresses.length === given.addresses.length ? given : { ...given, addresses };
  }
}

/** Where the elements of a set come from. */
export type PodSetSource = Pick<PodSet, 'kind' | 'family' | 'namespace' | 'elementsOf'>;

/** A set whose elements come from Pods. */
export class PodSet implements FilterSet {
  readonly kind: 'address' | 'endpoint';
  readonly family: IPFamily;
  /** Of the only Pods that it may have; undefined: of all. */
  readonly namespace: string | undefined;
  readonly elementsOf: (pod: AddressedPod) => readonly string[];
  readonly #byPod = new Map<ObjectKey, readonly string[]>();
  #elements: ReadonlySet<string> | undefined;

  constructor({ kind, family, namespace, elementsOf }: PodSetSource) {
    this.kind = kind;
    this.family = family;
    this.namespace = namespace;
    this.elementsOf = elementsOf;
  }

  get elements(): ReadonlySet<string> {
    return (this.#elements ??= new Set([...this.#byPod.values()].flat()));
  }

  /** The Pod gives these elements from now on; undefined: it is gone. */
  update(key: ObjectKey, pod: AddressedPod | undefined): void {
    const next = pod === undefined ? [] : this.elementsOf(pod);
    const before = this.#byPod.get(key) ?? [];
    if (next.length === before.length && next.every((element, i) => element === before[i])) return;
    if (next.length === 0) this.#byPod.delete(key);
    else this.#byPod.set(key, next);
    this.#elements = undefined;
  }
}
