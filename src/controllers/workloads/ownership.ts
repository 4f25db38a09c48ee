import { isNotFound } from '../../client/errors.ts';
import { byNamespace, byOwner, indexByNamespace, indexByOwner } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import {
  compileLabelSelector,
  matchesLabels,
  type ParsedLabelSelector,
} from '../../objects/selectors/labels.ts';
import { joinKey, keyOf, type KubeObject, type LabelSelector, type ObjectKey } from '../../objects/meta.ts';
import { controllerOf, controllerReference } from '../../objects/pods.ts';
import type { Change, KeyLoop } from '../../runtime/key-loop.ts';

/** A kind that owns what its selector matches. */
export interface Selecting extends KubeObject {
  spec: { selector?: LabelSelector };
}

export interface OwnershipOptions<Owner extends KubeObject, Child extends KubeObject> {
  /** The selector; undefined: nothing. */
  readonly selector: (owner: Owner) => LabelSelector | undefined;
  /** A condition on children beside their labels; default: none. */
  readonly isMember?: (owner: Owner, child: Child) => boolean;
  readonly owners: Informer<Owner>;
  readonly children: Informer<Child>;
  /** Milliseconds over which changes of children are batched; default 0. */
  readonly batchMs?: number;
}

const orphans = 'namespace of what no controller owns';

function indexOrphans(object: KubeObject): readonly string[] {
  return controllerOf(object) === undefined ? [object.metadata.namespace ?? ''] : [];
}

/** Owners and children: finds the children of an owner by index, adopts orphans, and enqueues owners on changes. */
export class Ownership<Owner extends KubeObject, Child extends KubeObject> {
  readonly #options: OwnershipOptions<Owner, Child>;
  readonly #client: ResourceClient<Child>;
  readonly #selectors = new WeakMap<object, ParsedLabelSelector>();

  constructor(loop: KeyLoop, options: OwnershipOptions<Owner, Child>) {
    const { owners, children, batchMs = 0 } = options;
    this.#options = options;
    this.#client = loop.context.clients.for(children.resource);

    owners.addIndex(byNamespace, indexByNamespace);
    children.addIndex(byOwner, indexByOwner);
    children.addIndex(orphans, indexOrphans);

    loop.on(children, (change) => {
      for (const key of this.#ownersOfChange(change)) loop.enqueue(key, { afterMs: batchMs });
      return [];
    });
  }

  /** The children of an owner by reference and selector, from the cache, without writes. */
  owned(owner: Owner): Child[] {
    return this.#plan(owner, this.#ofOwner(owner)).owned;
  }

  /** The children of an owner, after it adopted orphans and released what it no longer selects. */
  async claim(owner: Owner, signal: AbortSignal): Promise<Child[]> {
    const { children } = this.#options;
    const candidates = [
      ...this.#ofOwner(owner),
      ...children.cache.byIndex(orphans, owner.metadata.namespace ?? ''),
    ];
    const { owned, adopt, release } = this.#plan(owner, candidates);
    for (const child of adopt) {
      const others = child.metadata.ownerReferences ?? [];
      const adopted = await this.#patchOwners(child, [...others, controllerReference(owner)], signal);
      if (adopted !== undefined) owned.push(adopted);
    }
    for (const child of release) {
      const rest = (child.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner.metadata.uid);
      await this.#patchOwners(child, rest, signal);
    }
    return owned;
  }

  /** An invalid selector selects nothing. */
  #selectorOf(owner: Owner): ParsedLabelSelector {
    const known = this.#selectors.get(owner);
    if (known !== undefined) return known;
    let compiled: ParsedLabelSelector = 'nothing';
    try {
      const selector = this.#options.selector(owner);
      if (selector !== undefined) compiled = compileLabelSelector(selector);
    } catch {
      // Validation refuses such selectors.
    }
    this.#selectors.set(owner, compiled);
    return compiled;
  }

  #plan(owner: Owner, candidates: readonly Child[]): OwnershipClaim<Child> {
    const { isMember = () => true } = this.#options;
    return planClaim(owner, this.#selectorOf(owner), candidates, (child) => isMember(owner, child));
  }

  #ofOwner(owner: Owner): readonly Child[] {
    return this.#options.children.cache.byIndex(byOwner, owner.metadata.uid ?? '');
  }

  async #patchOwners(
    child: Child,
    ownerReferences: KubeObject['metadata']['ownerReferences'],
    signal: AbortSignal,
  ): Promise<Child | undefined> {
    const { namespace = '', name = '', uid, resourceVersion } = child.metadata;
    const patch = { metadata: { uid, resourceVersion, ownerReferences } };
    try {
      return await this.#client.mergePatch(namespace, name, patch, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  #ownersOfChange(change: Change<Child>): readonly ObjectKey[] {
    // At the start every owner is enqueued anyway.
    if (change.kind === 'added' && change.initial) return [];
    const owners = this.#ownersOf(change.object);
    if (change.kind !== 'updated') return owners;
    const isMoved = controllerOf(change.old)?.uid !== controllerOf(change.object)?.uid;
    return isMoved ? [...owners, ...this.#ownersOf(change.old)] : owners;
  }

  /** The owner of a child; of an orphan those that may adopt it. */
  #ownersOf(child: Child): readonly ObjectKey[] {
    const { owners } = this.#options;
    const namespace = child.metadata.namespace ?? '';
    const controller = controllerOf(child);
    if (controller === undefined) {
      return owners.cache
        .byIndex(byNamespace, namespace)
        .filter((owner) => matchesLabels(this.#selectorOf(owner), child.metadata.labels))
        .map(keyOf);
    }
    if (controller.kind !== owners.resource.kind) return [];
    const key = joinKey(namespace, controller.name);
    return owners.cache.get(key)?.metadata.uid === controller.uid ? [key] : [];
  }
}

/** The objects of one owner. */
export interface OwnershipClaim<T extends KubeObject> {
  /** Owned, and selected. */
  readonly owned: T[];
  /** Selected orphans: to adopt. */
  readonly adopt: T[];
  /** Owned, but not selected: to release. */
  readonly release: T[];
}

/**
 * Sorts the objects of a namespace by their relation to an owner.
 *
 * @param objects the owner's dependents, and orphans.
 * @param isMember a condition on objects beside their labels.
 */
export function planClaim<T extends KubeObject>(
  owner: KubeObject,
  selector: ParsedLabelSelector,
  objects: Iterable<T>,
  isMember: (object: T) => boolean = () => true,
): OwnershipClaim<T> {
  const claim: OwnershipClaim<T> = { owned: [], adopt: [], release: [] };
  const leaving = owner.metadata.deletionTimestamp !== undefined;
  for (const object of objects) {
    const controller = controllerOf(object);
    const selected = matchesLabels(selector, object.metadata.labels) && isMember(object);
    if (controller !== undefined) {
      if (controller.uid !== owner.metadata.uid) continue;
      if (selected) claim.owned.push(object);
      else if (!leaving) claim.release.push(object);
    } else if (selected && !leaving && object.metadata.deletionTimestamp === undefined) {
      claim.adopt.push(object);
    }
  }
  return claim;
}
