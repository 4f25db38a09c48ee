import type { IPFamily } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { PolicyPod } from './connection.ts';
import type { FilterSet } from './policy-plan.ts';

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
