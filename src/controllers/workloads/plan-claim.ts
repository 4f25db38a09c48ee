/** Ownership of objects: adoption of orphans, release of objects that no longer match (`ControllerRefManager`). */
import { matchesLabels, type ParsedLabelSelector } from '../../objects/labels.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { controllerOf } from '../../objects/pods.ts';

/** The objects of one owner. */
export interface Claim<T extends KubeObject> {
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
): Claim<T> {
  const claim: Claim<T> = { owned: [], adopt: [], release: [] };
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
