/** Whose an object is: adoption of what nobody owns, release of what no longer matches (`ControllerRefManager`). */
import { matchesLabels, type ParsedLabelSelector } from '../../objects/labels.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { controllerOf } from '../../objects/pods.ts';

/** The objects of one owner. */
export interface Claim<T extends KubeObject> {
  /** Owned, and selected. */
  readonly owned: T[];
  /** Selected and nobody's: to be taken. */
  readonly adopt: T[];
  /** Owned, and no longer selected: to be let go. */
  readonly release: T[];
}

/**
 * Sorts the objects of a namespace by what they are to an owner.
 *
 * @param objects the owner's dependents, and those of nobody.
 * @param isMember what an object must be like beside its labels.
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
