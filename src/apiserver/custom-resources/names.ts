/** Which names of a definition are accepted (apiextensions `pkg/controller/status/naming_controller.go`). PURE. */
import { jsonEqual } from '../../objects/json.ts';
import {
  type CustomResourceCondition,
  type CustomResourceDefinition,
  type CustomResourceNames,
  withCondition,
} from '../../registry/customresourcedefinition/definition.ts';

interface Judged {
  readonly acceptedNames: CustomResourceNames;
  readonly conditions: CustomResourceCondition[] | null;
}

/**
 * Decides the names of a definition against those that the others of its group have. Names that are accepted already
 * are not looked at again, not even when a conflict was found before with others.
 *
 * @param others definitions of the same group without this one.
 * @param now RFC 3339.
 */
export function judgeNames(
  definition: CustomResourceDefinition,
  others: readonly CustomResourceDefinition[],
  now: string,
): Judged {
  const { names } = definition.spec;
  const before = definition.status;
  if (jsonEqual(ordered(names), ordered(before.acceptedNames))) return before;
  const accepted: CustomResourceNames = { ...before.acceptedNames };
  const taken = takenNames(others);
  let conflict: CustomResourceCondition | undefined;
  const refuse = (reason: string, ...refused: readonly string[]) => {
    const messages = refused.map((name) => `${JSON.stringify(name)} is already in use`);
    const message = messages.length > 1 ? `[${messages.join(', ')}]` : messages.join('');
    conflict = { type: 'NamesAccepted', status: 'False', lastTransitionTime: now, reason, message };
  };
  if (taken.resources.has(names.plural) && names.plural !== accepted.plural)
    refuse('PluralConflict', names.plural);
  else accepted.plural = names.plural;
  const { singular = '', listKind = '', shortNames = [], categories = [] } = names;
  if (singular !== '' && taken.resources.has(singular) && singular !== accepted.singular)
    refuse('SingularConflict', singular);
  else accepted.singular = singular;
  const short = shortNames.filter(
    (name) => taken.resources.has(name) && accepted.shortNames?.includes(name) !== true,
  );
  if (short.length > 0) refuse('ShortNamesConflict', ...new Set(short));
  else accepted.shortNames = shortNames;
  if (taken.kinds.has(names.kind) && names.kind !== accepted.kind) refuse('KindConflict', names.kind);
  else accepted.kind = names.kind;
  if (listKind !== '' && taken.kinds.has(listKind) && listKind !== accepted.listKind)
    refuse('ListKindConflict', listKind);
  else accepted.listKind = listKind;
  accepted.categories = categories;
  const namesAccepted = conflict ?? {
    type: 'NamesAccepted',
    status: 'True',
    lastTransitionTime: now,
    reason: 'NoConflicts',
    message: 'no conflicts found',
  };
  const conditions = withCondition(before.conditions, namesAccepted);
  const established = conditions.find(({ type, status }) => type === 'Established' && status === 'True');
  return {
    acceptedNames: ordered(accepted),
    conditions:
      established === undefined ? withCondition(conditions, establishedCondition(conflict, now)) : conditions,
  };
}

/** Once established a definition stays so, whatever happens to its names. */
function establishedCondition(
  conflict: CustomResourceCondition | undefined,
  now: string,
): CustomResourceCondition {
  return conflict === undefined
    ? {
        type: 'Established',
        status: 'True',
        lastTransitionTime: now,
        reason: 'InitialNamesAccepted',
        message: 'the initial names have been accepted',
      }
    : {
        type: 'Established',
        status: 'False',
        lastTransitionTime: now,
        reason: 'NotAccepted',
        message: 'not all names are accepted',
      };
}

/** The names in the order of their fields, without empty ones. */
function ordered(names: CustomResourceNames): CustomResourceNames {
  const { plural, singular = '', shortNames = [], kind, listKind = '', categories = [] } = names;
  return {
    plural,
    ...(singular === '' ? {} : { singular }),
    ...(shortNames.length === 0 ? {} : { shortNames: [...shortNames] }),
    kind,
    ...(listKind === '' ? {} : { listKind }),
    ...(categories.length === 0 ? {} : { categories: [...categories] }),
  };
}

/** Accepted names of other definitions. A name may be a plural, a singular or a short one only once. */
function takenNames(others: readonly CustomResourceDefinition[]): {
  resources: Set<string>;
  kinds: Set<string>;
} {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const { status } of others) {
    const { plural, singular = '', shortNames = [], kind, listKind = '' } = status.acceptedNames;
    for (const name of [plural, singular, ...shortNames]) if (name !== '') resources.add(name);
    for (const name of [kind, listKind]) if (name !== '') kinds.add(name);
  }
  return { resources, kinds };
}
