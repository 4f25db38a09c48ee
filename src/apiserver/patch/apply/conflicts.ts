import { StatusError } from '../../../objects/status.ts';
import {
  type FieldSet,
  intersection,
  isEmptySet,
  fieldPathsOf,
  showPath,
  fieldSetDifference,
  leafSet,
  setOf,
  withoutPath,
} from './field-set.ts';
import type { Managed, Managers } from './managers.ts';
import type { FieldPath, OwnableFields } from '../../../registry/generic/strategy.ts';

/**
 * - The 409 of an apply that would change what others own (apimachinery `managedfields/internal/conflict.go`).
 * - Which fields count for a write (apimachinery `managedfields/internal/stripmeta.go`, strategies' GetResetFields).
 */

/** Fields that an apply would change although another manager owns them. */
export interface Conflict {
  readonly owner: Managed;
  readonly fields: FieldSet;
}

/**
 * The conflicts of a change, by identifier of the owner.
 *
 * @param changedFor the changed fields, in the version of an owner.
 */
export function findConflicts(
  managers: Managers,
  self: string,
  changedFor: (owner: Managed) => FieldSet,
): Map<string, Conflict> {
  const conflicts = new Map<string, Conflict>();
  for (const [id, owner] of managers) {
    if (id === self) continue;
    const fields = intersection(owner.fields, changedFor(owner));
    if (!isEmptySet(fields)) conflicts.set(id, { owner, fields });
  }
  return conflicts;
}

/** The answer to conflicts, of which there is at least one. */
export function conflictError(conflicts: ReadonlyMap<string, Conflict>): StatusError {
  const groups = [...conflicts]
    .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
    .map(([, { owner, fields }]) => ({
      owner: showManager(owner),
      paths: fieldPathsOf(fields).map(showPath),
    }));
  const causes = groups.flatMap(({ owner, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${owner}`, field })),
  );
  const [first] = causes;
  const message =
    causes.length === 1 && first !== undefined
      ? `Apply failed with 1 conflict: ${first.message}: ${first.field}`
      : `Apply failed with ${causes.length} conflicts: ${groups
          .map(({ owner, paths }) =>
            [`conflicts with ${owner}:`, ...paths.map((path) => `- ${path}`)].join('\n'),
          )
          .join('\n')}`;
  return new StatusError(409, 'Conflict', message, { details: { causes } });
}

function showManager({ manager, operation, apiVersion, subresource }: Managed): string {
  const name =
    JSON.stringify(manager) + (subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`);
  if (operation === 'Apply') return name;
  return `${name} using ${apiVersion}`;
}

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
