/** Which names of a definition are accepted (apiextensions `pkg/controller/status/naming_controller.go`). PURE. */
import type {
  CustomResourceDefinition,
  CustomResourceDefinitionCondition,
  CustomResourceDefinitionNames,
} from '../../objects/types/apiextensions.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { hasWrongBundle } from '../../registry/apiextensions/customresourcedefinition/conversion.ts';
import {
  hasCondition,
  withCondition,
} from '../../registry/apiextensions/customresourcedefinition/strategy.ts';

/** The parts of a definition that the names of others in its group are checked against. */
export interface NamedDefinition {
  readonly status: Pick<CustomResourceDefinition['status'], 'acceptedNames'>;
}

interface NameDecision {
  readonly acceptedNames: CustomResourceDefinitionNames;
  readonly conditions: CustomResourceDefinitionCondition[] | null;
}

/**
 * Decides which names of a definition are accepted. A name is refused while a definition of the group, the same one
 * included, has it as another name. Where all names of the spec have been accepted, the status does not change. Once
 * they are accepted, the condition Established of a new definition has the reason Installing.
 *
 * @param group all definitions of the group.
 * @param now RFC 3339.
 */
export function acceptNames(
  definition: CustomResourceDefinition,
  group: readonly NamedDefinition[],
  now: string,
): NameDecision {
  const { names } = definition.spec;
  const before = definition.status;
  if (areNamesAccepted(definition)) return before;
  const accepted: CustomResourceDefinitionNames = { ...before.acceptedNames };
  const taken = takenNames(group);
  let conflict: CustomResourceDefinitionCondition | undefined;
  const refuse = (reason: string, ...refused: readonly string[]) => {
    const messages = refused.map((name) => `${JSON.stringify(name)} is already in use`);
    const message = messages.length > 1 ? `[${messages.join(', ')}]` : messages.join('');
    conflict = condition('NamesAccepted', 'False', now, reason, message);
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
  const noConflicts = condition('NamesAccepted', 'True', now, 'NoConflicts', 'no conflicts found');
  const conditions = withCondition(before.conditions, conflict ?? noConflicts);
  const established = conditions.find(({ type }) => type === 'Established');
  const installing = conflict === undefined && established?.status !== 'True';
  if (established !== undefined && !installing) return { acceptedNames: normalized(accepted), conditions };
  const [reason, message] = installing
    ? (['Installing', 'the initial names have been accepted'] as const)
    : (['NotAccepted', 'not all names are accepted'] as const);
  const next = condition('Established', 'False', now, reason, message);
  return { acceptedNames: normalized(accepted), conditions: withCondition(conditions, next) };
}

/** True when all names of the spec are accepted: other definitions cannot change that. */
export function areNamesAccepted({ spec, status }: CustomResourceDefinition): boolean {
  return jsonEqual(normalized(spec.names), normalized(status.acceptedNames));
}

/**
 * The conditions with Established once the first names are accepted; it stays when names change (apiextensions
 * `pkg/controller/establish`). A definition whose conversion webhook has an invalid CA bundle is not established.
 */
export function setEstablished(
  definition: CustomResourceDefinition,
  now: string,
): CustomResourceDefinitionCondition[] | null {
  const { conditions } = definition.status;
  if (!hasCondition(definition, 'NamesAccepted') || hasCondition(definition, 'Established'))
    return conditions;
  const next = hasWrongBundle(definition.spec.conversion)
    ? condition('Established', 'False', now, 'InvalidCABundle', 'The conversion webhook CABundle is invalid')
    : condition('Established', 'True', now, 'InitialNamesAccepted', 'the initial names have been accepted');
  const established = withCondition(conditions, next);
  return jsonEqual(established, conditions) ? conditions : established;
}

function condition(
  type: string,
  status: string,
  lastTransitionTime: string,
  reason: string,
  message: string,
): CustomResourceDefinitionCondition {
  return { type, status, lastTransitionTime, reason, message };
}

/** The names in Go's order of fields, without empty ones. */
function normalized(names: CustomResourceDefinitionNames): CustomResourceDefinitionNames {
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

/** The accepted names of definitions. Plurals, singulars and short names share one set, kinds and list kinds another. */
function takenNames(group: readonly NamedDefinition[]): {
  resources: Set<string>;
  kinds: Set<string>;
} {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const { status } of group) {
    const { plural, singular = '', shortNames = [], kind, listKind = '' } = status.acceptedNames;
    for (const name of [plural, singular, ...shortNames]) if (name !== '') resources.add(name);
    for (const name of [kind, listKind]) if (name !== '') kinds.add(name);
  }
  return { resources, kinds };
}
