/** Which names of a definition are accepted (apiextensions `pkg/controller/status/naming_controller.go`). PURE. */
import {
  type CustomResourceCondition,
  type CustomResourceDefinition,
  type CustomResourceNames,
  withCondition,
} from '../../registry/customresourcedefinition/definition.ts';

interface Judged {
  readonly acceptedNames: CustomResourceNames;
  readonly conditions: CustomResourceCondition[];
}

/**
 * Decides the names of a definition against those that the others of its group have.
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
  const accepted: CustomResourceNames = { ...definition.status.acceptedNames };
  const taken = takenNames(others);
  let conflict: CustomResourceCondition | undefined;
  const refuse = (reason: string, name: string) => {
    conflict = {
      type: 'NamesAccepted',
      status: 'False',
      lastTransitionTime: now,
      reason,
      message: `${JSON.stringify(name)} is already in use`,
    };
  };
  if (taken.resources.has(names.plural) && names.plural !== accepted.plural)
    refuse('PluralConflict', names.plural);
  else accepted.plural = names.plural;
  const { singular = '', listKind = '', shortNames = [], categories = [] } = names;
  if (singular !== '' && taken.resources.has(singular) && singular !== accepted.singular)
    refuse('SingularConflict', singular);
  else if (singular !== '') accepted.singular = singular;
  const short = shortNames.filter(
    (name) => taken.resources.has(name) && accepted.shortNames?.includes(name) !== true,
  );
  if (short.length > 0) refuse('ShortNamesConflict', short.join(', '));
  else if (shortNames.length > 0) accepted.shortNames = [...shortNames];
  if (taken.kinds.has(names.kind) && names.kind !== accepted.kind) refuse('KindConflict', names.kind);
  else accepted.kind = names.kind;
  if (listKind !== '' && taken.kinds.has(listKind) && listKind !== accepted.listKind)
    refuse('ListKindConflict', listKind);
  else if (listKind !== '') accepted.listKind = listKind;
  if (categories.length > 0) accepted.categories = [...categories];
  const namesAccepted = conflict ?? {
    type: 'NamesAccepted',
    status: 'True',
    lastTransitionTime: now,
    reason: 'NoConflicts',
    message: 'no conflicts found',
  };
  const conditions = withCondition(definition.status.conditions, namesAccepted);
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

function ordered(names: CustomResourceNames): CustomResourceNames {
  const { plural, singular, shortNames, kind, listKind, categories } = names;
  return {
    plural,
    ...(singular === undefined ? {} : { singular }),
    ...(shortNames === undefined ? {} : { shortNames }),
    kind,
    ...(listKind === undefined ? {} : { listKind }),
    ...(categories === undefined ? {} : { categories }),
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
