/** The 409 of an apply that would change what others own (apimachinery `managedfields/internal/conflict.go`). */
import { StatusError } from '../../../objects/status.ts';
import { type FieldSet, intersection, isEmptySet, fieldPathsOf } from './field-set.ts';
import type { Managed, Managers } from './managers.ts';
import { showPath } from './path-element.ts';

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
