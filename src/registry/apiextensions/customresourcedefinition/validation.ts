import type {
  CustomResourceDefinitionVersion,
  JSONSchemaProps,
  CustomResourceDefinition,
  CustomResourceDefinitionNames,
} from '../../../objects/types/apiextensions.generated.ts';
import { readFieldPath, compileAllRules } from '../rules/compile-rules.ts';
import {
  duplicate,
  type FieldError,
  invalid,
  required,
  tooMany,
  notSupported,
} from '../../validation/field-errors.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import { isDNS1035Label, isDNS1123Subdomain } from '../../../objects/names.ts';
import { validateConversion } from './conversion.ts';
import { validatePatternSizes, validateSchema } from './structural.ts';

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string'];
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];
const maxSelectableFields = 8;
const maxWarning = 256;

/** Columns have a name, a type and a path (`ValidateCustomResourceColumnDefinition`). */
function validateColumns(
  { additionalPrinterColumns = [] }: CustomResourceDefinitionVersion,
  path: string,
): FieldError[] {
  return additionalPrinterColumns.flatMap(({ name, type, format = '', jsonPath }, i) => {
    const at = `${path}[${i}]`;
    const errors: FieldError[] = [];
    const oneOf = (words: readonly string[]) => `must be one of ${words.join(',')}`;
    if (name === '') errors.push(required(`${at}.name`));
    if (type === '') errors.push(required(`${at}.type`, oneOf(columnTypes)));
    else if (!columnTypes.includes(type)) errors.push(invalid(`${at}.type`, type, oneOf(columnTypes)));
    if (format !== '' && !columnFormats.includes(format)) {
      errors.push(invalid(`${at}.format`, format, oneOf(columnFormats)));
    }
    if (jsonPath === '') errors.push(required(`${at}.JSONPath`));
    else if (!jsonPath.startsWith('.')) {
      errors.push(invalid(`${at}.JSONPath`, jsonPath, 'must be a simple json path starting with .'));
    }
    return errors;
  });
}

/** Selectable fields are declared scalars (`ValidateCustomResourceSelectableFields`). */
function validateSelectableFields(
  { selectableFields = [] }: CustomResourceDefinitionVersion,
  schema: JSONSchemaProps,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  selectableFields.forEach(({ jsonPath }, i) => {
    const at = `${path}[${i}].jsonPath`;
    if (jsonPath === '') {
      errors.push(required(at));
      return;
    }
    const fail = (detail: string) => errors.push(invalid(at, jsonPath, detail));
    const { field, schema: found, fault } = readFieldPath(jsonPath, schema, false);
    if (fault !== undefined) {
      fail(`is an invalid path: ${fault}`);
      return;
    }
    if (/^metadata(?:[.[]|$)/.test(field)) fail('must not point to fields in metadata');
    if (!['string', 'boolean', 'integer'].includes(found?.type ?? '')) {
      fail(
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
      );
    }
    if (seen.has(field)) errors.push(duplicate(at, jsonPath));
    seen.add(field);
  });
  if (seen.size > maxSelectableFields) errors.push(tooMany(path, seen.size, maxSelectableFields));
  return errors;
}

/** Only deprecated versions have a warning, of limited printable characters (`validateDeprecationWarning`). */
function validateWarning(
  { deprecated = false, deprecationWarning: text }: CustomResourceDefinitionVersion,
  path: string,
): FieldError[] {
  if (text === undefined) return [];
  if (!deprecated) return [invalid(path, text, 'can only be set for deprecated versions')];
  const errors: FieldError[] = [];
  if (Buffer.byteLength(text) > maxWarning) {
    errors.push(invalid(path, text, `must be <= ${maxWarning} characters long`));
  }
  if (text === '') errors.push(invalid(path, text, 'must not be an empty string'));
  const odd = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(text);
  if (odd !== null) {
    const index = Buffer.byteLength(text.slice(0, odd.index));
    const detail = `must only contain printable UTF-8 characters; non-printable character found at index ${index}`;
    errors.push(invalid(path, text, detail));
  }
  return errors;
}

/** kube-apiserver has no limit: each version is a resource of its own, with OpenAPI, discovery and an APIService. */
const maxVersions = 100;

/** The name is made of the plural and the group. */
export function validateDefinitionName({ spec, metadata }: CustomResourceDefinition): FieldError[] {
  const { name = '' } = metadata;
  if (name === '' || name === `${spec.names.plural}.${spec.group}`) return [];
  return [invalid('metadata.name', name, 'must be spec.names.plural+"."+spec.group')];
}

/**
 * The rules of `spec` and of the stored versions (apiextensions `validation/validation.go`).
 *
 * @param immutable errors of immutable fields, reported between the two.
 * @param mayHaveWrongBundle see `mayKeepWrongBundle`; a new definition may.
 */
export function validateDefinition(
  definition: CustomResourceDefinition,
  immutable: readonly FieldError[] = [],
  mayHaveWrongBundle = true,
): FieldError[] {
  const { spec, status } = definition;
  const { group, names, scope } = spec;
  const versions = spec.versions ?? [];
  if (versions.length > maxVersions) return [tooMany('spec.versions', versions.length, maxVersions)];
  // Before they are compiled.
  const tooLarge = validatePatternSizes(versions);
  if (tooLarge.length > 0) return tooLarge;
  return [
    ...validateGroup(group),
    ...validateScope(scope),
    ...validateVersions(spec.versions ?? null),
    ...validateNames(names, 'spec.names'),
    ...validateShared(versions),
    ...validateConversion(spec.conversion, spec.preserveUnknownFields === true, mayHaveWrongBundle),
    ...immutable,
    ...validateStoredVersions(status.storedVersions, versions),
  ];
}

/** Reported last, and not for stored values (`validatePreserveUnknownFields`). */
export function validatePreservation(
  { spec }: CustomResourceDefinition,
  old?: CustomResourceDefinition,
): FieldError[] {
  if (spec.preserveUnknownFields !== true || old?.spec.preserveUnknownFields === true) return [];
  const detail =
    'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
  return [invalid('spec.preserveUnknownFields', true, detail)];
}

function validateGroup(group: string): FieldError[] {
  if (group === '') return [required('spec.group')];
  const broken = isDNS1123Subdomain(group);
  if (broken.length > 0) return [invalid('spec.group', group, broken.join(','))];
  return group.includes('.')
    ? []
    : [invalid('spec.group', group, 'should be a domain with at least one dot')];
}

function validateScope(scope: string): FieldError[] {
  if (scope === '') return [required('spec.scope')];
  return scope === 'Cluster' || scope === 'Namespaced'
    ? []
    : [notSupported('spec.scope', scope, ['Cluster', 'Namespaced'])];
}

/** The storage version, and earlier ones, must be known (`ValidateCustomResourceDefinitionStoredVersions`). */
function validateStoredVersions(
  stored: readonly string[] | null,
  versions: readonly CustomResourceDefinitionVersion[],
): FieldError[] {
  const path = 'status.storedVersions';
  if (stored === null || stored.length === 0) {
    return [invalid(path, stored, 'must have at least one stored version')];
  }
  const missing = versions.filter(({ name, storage }) => storage && !stored.includes(name));
  const errors = missing.map(({ name }) => invalid(path, stored, `must have the storage version ${name}`));
  stored.forEach((name, i) => {
    if (versions.some((version) => version.name === name)) return;
    const why = `${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    errors.push(invalid(`${path}[${i}]`, name, `missing from spec.versions; ${why}`));
  });
  return errors;
}

/**
 * Fields that each version has for itself: the internal form of a definition has fields that are equal in all versions
 * once.
 */
type SharedMember = 'schema' | 'subresources' | 'additionalPrinterColumns' | 'selectableFields';

function isShared(versions: readonly CustomResourceDefinitionVersion[], member: SharedMember): boolean {
  const [first] = versions;
  return versions.every((version) => jsonEqual(version[member], first?.[member]));
}

function validateVersions(list: readonly CustomResourceDefinitionVersion[] | null): FieldError[] {
  const errors: FieldError[] = [];
  const versions = list ?? [];
  const [first] = versions;
  versions.forEach(({ schema }, i) => {
    if (schema?.openAPIV3Schema !== undefined) return;
    errors.push(required(`spec.versions[${i}].schema.openAPIV3Schema`));
  });
  versions.forEach((version, i) => {
    const path = `spec.versions[${i}]`;
    const broken = isDNS1035Label(version.name);
    if (broken.length > 0) errors.push(invalid(`${path}.name`, version.name, broken.join(',')));
    const own = (member: SharedMember) => !isShared(versions, member);
    pushAll(
      errors,
      validateWarning(version, `${path}.deprecationWarning`),
      own('schema') ? validateVersionSchema(version, `${path}.schema.openAPIV3Schema`) : [],
      own('subresources') ? validateSubresources(version, `${path}.subresources`) : [],
      own('additionalPrinterColumns') ? validateColumns(version, `${path}.additionalPrinterColumns`) : [],
      own('selectableFields') ? selectable(version, path, own('schema')) : [],
    );
  });
  const wrong = (detail: string) => errors.push(invalid('spec.versions', shown(list), detail));
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    wrong('must contain unique version names');
  }
  if (versions.filter((version) => version.storage).length !== 1) {
    wrong('must have exactly one version marked as storage version');
  }
  // The internal form repeats the name of the first version.
  const broken = first === undefined || first.name === '' ? [] : isDNS1035Label(first.name);
  if (broken.length > 0) errors.push(invalid('spec.version', first?.name, broken.join(',')));
  return errors;
}

/** As Go prints the internal type. */
function shown(list: readonly CustomResourceDefinitionVersion[] | null): unknown {
  if (list === null) return null;
  const own = (version: CustomResourceDefinitionVersion, member: SharedMember) =>
    isShared(list, member) ? null : (version[member] ?? null);
  return list.map((version) => ({
    Name: version.name,
    Served: version.served,
    Storage: version.storage,
    Deprecated: version.deprecated ?? false,
    DeprecationWarning: version.deprecationWarning ?? null,
    Schema: own(version, 'schema'),
    Subresources: own(version, 'subresources'),
    AdditionalPrinterColumns: own(version, 'additionalPrinterColumns'),
    SelectableFields: own(version, 'selectableFields'),
  }));
}

/** Compiles the rules of all versions that {@link validateDefinition} validates, in steps. */
export function* compileVersions({ spec }: CustomResourceDefinition): Generator<undefined, void, undefined> {
  const versions = spec.versions ?? [];
  if (versions.length > maxVersions) return;
  const distinct = isShared(versions, 'schema') ? versions.slice(0, 1) : versions;
  for (const { schema } of distinct) {
    if (schema?.openAPIV3Schema !== undefined) yield* compileAllRules(schema.openAPIV3Schema);
  }
}

/** Fields that are equal in all versions are reported once, after the names. */
function validateShared(versions: readonly CustomResourceDefinitionVersion[]): FieldError[] {
  const [first] = versions;
  if (first === undefined) return [];
  const shared = (member: SharedMember) => isShared(versions, member);
  return [
    ...(shared('schema') ? validateVersionSchema(first, 'spec.validation.openAPIV3Schema') : []),
    ...(shared('subresources') ? validateSubresources(first, 'spec.subresources') : []),
    ...(shared('additionalPrinterColumns') ? validateColumns(first, 'spec.additionalPrinterColumns') : []),
    ...(shared('selectableFields') ? selectable(first, 'spec', shared('schema')) : []),
  ];
}

/** Fields that all versions share are validated with the shared schema, others with that of their version. */
function selectable(
  version: CustomResourceDefinitionVersion,
  path: string,
  hasSchema: boolean,
): FieldError[] {
  const { selectableFields = [], schema } = version;
  const at = `${path}.selectableFields`;
  if (selectableFields.length === 0) return [];
  if (hasSchema && schema !== undefined) {
    return validateSelectableFields(version, schema.openAPIV3Schema ?? {}, at);
  }
  const detail =
    path === 'spec'
      ? 'may only be set when validations.schema is included'
      : 'may only be set when `version.schema.openAPIV3Schema` is not included';
  return [invalid(at, '', detail)];
}

function validateVersionSchema({ schema }: CustomResourceDefinitionVersion, path: string): FieldError[] {
  return schema?.openAPIV3Schema === undefined ? [] : validateSchema(schema.openAPIV3Schema, path);
}

/** The paths of `/scale` are simple ones, below `.spec` and `.status` (`ValidateCustomResourceDefinitionSubresources`). */
function validateSubresources({ subresources }: CustomResourceDefinitionVersion, path: string): FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = scale;
  const check = (value: string, member: string, parents: readonly string[], where: string): FieldError[] => {
    const field = `${path}.scale.${member}`;
    if (value === '') return [required(field)];
    if (!value.startsWith('.')) return [invalid(field, value, 'must be a simple json path starting with .')];
    return parents.some((parent) => value.startsWith(parent))
      ? []
      : [invalid(field, value, `should be a json path under ${where}`)];
  };
  return [
    ...check(specReplicasPath, 'specReplicasPath', ['.spec.'], '.spec'),
    ...check(statusReplicasPath, 'statusReplicasPath', ['.status.'], '.status'),
    ...(labelSelectorPath === ''
      ? []
      : check(labelSelectorPath, 'labelSelectorPath', ['.spec.', '.status.'], 'either .spec or .status')),
  ];
}

/** The names in the status may be absent (`ValidateCustomResourceDefinitionStatus`). */
export function validateAcceptedNames(names: CustomResourceDefinitionNames): FieldError[] {
  return validateNameForms(names, 'status.acceptedNames');
}

function validateNames(names: CustomResourceDefinitionNames, path: string): FieldError[] {
  const { plural, singular = '', kind, listKind = '' } = names;
  const missing = Object.entries({ plural, singular, kind, listKind }).filter(([, text]) => text === '');
  return [...missing.map(([member]) => required(`${path}.${member}`)), ...validateNameForms(names, path)];
}

function validateNameForms(names: CustomResourceDefinitionNames, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { plural, singular = '', kind, listKind = '', shortNames = [], categories = [] } = names;
  const label = (text: string, field: string) => {
    const broken = isDNS1035Label(text);
    if (broken.length > 0) errors.push(invalid(field, text, broken.join(',')));
  };
  const mixed = (text: string, field: string) => {
    const broken = isDNS1035Label(text.toLowerCase());
    if (broken.length > 0) {
      errors.push(
        invalid(field, text, `may have mixed case, but should otherwise match: ${broken.join(',')}`),
      );
    }
  };
  if (plural !== '') label(plural, `${path}.plural`);
  if (singular !== '') label(singular, `${path}.singular`);
  if (kind !== '') mixed(kind, `${path}.kind`);
  if (listKind !== '') mixed(listKind, `${path}.listKind`);
  shortNames.forEach((name, i) => label(name, `${path}.shortNames[${i}]`));
  if (kind !== '' && kind === listKind) {
    errors.push(invalid(`${path}.listKind`, listKind, 'kind and listKind may not be the same'));
  }
  categories.forEach((name, i) => label(name, `${path}.categories[${i}]`));
  return errors;
}

/** Immutable fields: the name contains group and plural; storage depends on scope and kind. */
export function validateImmutableNames(
  { spec }: CustomResourceDefinition,
  { spec: before }: CustomResourceDefinition,
  established: boolean,
): FieldError[] {
  const stored = [
    ['spec.scope', spec.scope, before.scope],
    ['spec.names.kind', spec.names.kind, before.names.kind],
  ] as const;
  const always = [
    ['spec.group', spec.group, before.group],
    ['spec.names.plural', spec.names.plural, before.names.plural],
  ] as const;
  return [...(established ? stored : []), ...always].flatMap(([field, value, was]) =>
    value === was ? [] : [invalid(field, value, 'field is immutable')],
  );
}
