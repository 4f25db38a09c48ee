import type { IPFamily } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { PolicyPod } from './connection.ts';
import type { FilterSet } from './policy-plan.ts';

/** A Pod with its addresses; those of host networks and those that have ended are none for policies. */
export interface AddressedPod {
  readonly pod: PolicyPod;
  /** In canonical form. */
  readonly addresses: readonly string[];
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
