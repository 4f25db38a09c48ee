/** Which fields count for a write (apimachinery `managedfields/internal/stripmeta.go`, strategies' GetResetFields). */
import type { StructSchema } from '../schema/schema.ts';
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

/** The endpoint that a write goes to. */
interface Endpoint {
  readonly schema: StructSchema;
  /** "" for the main resource. */
  readonly subresource: string;
  /** The kind has a `/status` subresource. */
  readonly hasStatus: boolean;
}

/**
 * Leaves out the half of an object that an endpoint does not write: status for the main resource, spec for
 * `/status`, where the kind has one; of custom objects also the metadata (`GetResetFields` of the strategies).
 */
export function filterForEndpoint(set: FieldSet, { schema, subresource, hasStatus }: Endpoint): FieldSet {
  if (!hasStatus) return set;
  if (subresource === 'status') {
    const rest = withoutField(set, 'spec');
    return schema.custom === undefined ? rest : withoutField(rest, 'metadata');
  }
  return subresource === '' ? withoutField(set, 'status') : set;
}
