/** Which fields count for a write (apimachinery `managedfields/internal/stripmeta.go`, strategies' GetResetFields). */
import type { FieldPath, OwnableFields } from '../../../registry/generic/strategy.ts';
import { fieldSetDifference, type FieldSet, isEmptySet, leafSet, setOf, withoutPath } from './field-set.ts';

/** Fields that identify an object, or that only the server sets: they have no owner. */
const unowned: FieldSet = setOf(
  false,
  new Map([
    ['f:apiVersion', leafSet],
    ['f:kind', leafSet],
    [
      'f:metadata',
      setOf(
        true,
        new Map(
          [
            'name',
            'namespace',
            'creationTimestamp',
            'selfLink',
            'uid',
            'clusterName',
            'generation',
            'managedFields',
            'resourceVersion',
          ].map((name) => [`f:${name}`, leafSet]),
        ),
      ),
    ],
  ]),
);

export function stripUnowned(set: FieldSet): FieldSet {
  return fieldSetDifference(set, unowned);
}

/**
 * Removes fields that writers of an endpoint cannot own (`fieldpath.NewExcludeSetFilter`, `NewIncludeMatcherFilter`).
 */
export function onlyOwnable(set: FieldSet, { resetFields = [], onlyFields }: OwnableFields): FieldSet {
  const rest = resetFields.reduce(withoutPath, set);
  return onlyFields === undefined ? rest : alongPaths(rest, onlyFields);
}

function alongPaths(set: FieldSet, paths: readonly FieldPath[]): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    const here = paths.filter(([name]) => name === '*' || element === `f:${name}`);
    if (here.length === 0) continue;
    const ends = here.some((path) => path.length === 1);
    const below = here.map((path) => path.slice(1));
    const kept = ends ? child : alongPaths(child, below);
    if (!isEmptySet(kept)) children.set(element, kept);
  }
  return setOf(set.owned, children);
}
