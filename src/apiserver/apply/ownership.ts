/** Which fields count for a write (apimachinery `managedfields/internal/stripmeta.go`, strategies' GetResetFields). */
import { difference, type FieldSet, leafSet, setOf, withoutField } from './field-set.ts';

/** Fields that identify an object, or that only the server sets: nobody owns them. */
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
  return difference(set, unowned);
}

/**
 * Leaves out the half of an object that an endpoint does not write: status for the main resource, spec for
 * `/status`, where the kind has one.
 */
export function filterForEndpoint(set: FieldSet, subresource: string, hasStatus: boolean): FieldSet {
  if (!hasStatus) return set;
  if (subresource === 'status') return withoutField(set, 'spec');
  return subresource === '' ? withoutField(set, 'status') : set;
}
