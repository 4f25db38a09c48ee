import { jsonEqual } from '../../objects/json.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../field-errors.ts';
import { isDNS1035Label, isDNS1123Subdomain } from '../names.ts';
import type { CustomResourceDefinition, CustomResourceNames, CustomResourceVersion } from './definition.ts';
import { validateStructural } from './structural.ts';

/** The name says what is defined. */
export function validateDefinitionName({ spec, metadata }: CustomResourceDefinition): FieldError[] {
  const { name = '' } = metadata;
  if (name === '' || isDNS1123Subdomain(name).length > 0) return [];
  if (name === `${spec.names.plural}.${spec.group}`) return [];
  return [invalid('metadata.name', name, 'must be spec.names.plural+"."+spec.group')];
}

/** The rules of `spec` (apiextensions `validation/validation.go`). */
export function validateDefinition({ spec }: CustomResourceDefinition): FieldError[] {
  const errors: FieldError[] = [];
  const { group, names, scope } = spec;
  const versions = spec.versions ?? [];
  errors.push(...validateGroup(group));
  errors.push(...validateScope(scope));
  errors.push(...validateVersions(versions));
  errors.push(...validateNames(names, 'spec.names'));
  errors.push(...validateConversion(spec.conversion));
  if (spec.preserveUnknownFields === true) {
    errors.push(invalid('spec.preserveUnknownFields', true, 'must be false'));
  }
  return errors;
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

function validateVersions(versions: readonly CustomResourceVersion[]): FieldError[] {
  const errors: FieldError[] = [];
  if (versions.length === 0) return [required('spec.versions', 'must have at least one version')];
  const seen = new Set<string>();
  versions.forEach((version, i) => {
    const path = `spec.versions[${i}]`;
    const broken = isDNS1035Label(version.name);
    if (broken.length > 0) errors.push(invalid(`${path}.name`, version.name, broken.join(',')));
    if (seen.has(version.name)) errors.push(duplicate(`${path}.name`, version.name));
    seen.add(version.name);
    errors.push(...validateVersionSchema(version, schemaPath(versions, i), path));
    errors.push(...validateSubresources(version, subresourcesPath(versions, i)));
  });
  const storage = versions.filter((version) => version.storage).length;
  if (storage !== 1) {
    const names = versions.map(({ name, served, storage: stored }) => ({
      Name: name,
      Served: served,
      Storage: stored,
    }));
    errors.push(invalid('spec.versions', names, 'must have exactly one version marked as storage version'));
  }
  return errors;
}

/** Where a version's schema is said to be: equal schemas count as one for the whole definition. */
function schemaPath(versions: readonly CustomResourceVersion[], i: number): string {
  const [first] = versions;
  const same = versions.every((version) => jsonEqual(version.schema, first?.schema));
  return same ? 'spec.validation.openAPIV3Schema' : `spec.versions[${i}].schema.openAPIV3Schema`;
}

function subresourcesPath(versions: readonly CustomResourceVersion[], i: number): string {
  const [first] = versions;
  const same = versions.every((version) => jsonEqual(version.subresources, first?.subresources));
  return same ? 'spec.subresources' : `spec.versions[${i}].subresources`;
}

/** The paths of `/scale` are simple ones, below `.spec` and `.status` (`ValidateCustomResourceDefinitionSubresources`). */
function validateSubresources({ subresources }: CustomResourceVersion, path: string): FieldError[] {
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
      : check(labelSelectorPath, 'labelSelectorPath', ['.spec.', '.status.'], 'either .status or .spec')),
  ];
}

function validateVersionSchema(
  version: CustomResourceVersion,
  path: string,
  versionPath: string,
): FieldError[] {
  const schema = version.schema?.openAPIV3Schema;
  if (schema === undefined)
    return [required(`${versionPath}.schema.openAPIV3Schema`, 'schemas are required')];
  return validateStructural(schema, path);
}

function validateNames(names: CustomResourceNames, path: string): FieldError[] {
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
  if (plural === '') errors.push(required(`${path}.plural`));
  label(plural, `${path}.plural`);
  if (singular !== '') label(singular, `${path}.singular`);
  if (kind === '') errors.push(required(`${path}.kind`));
  mixed(kind, `${path}.kind`);
  shortNames.forEach((name, i) => label(name, `${path}.shortNames[${i}]`));
  if (listKind !== '') mixed(listKind, `${path}.listKind`);
  if (kind !== '' && kind === listKind) {
    errors.push(invalid(`${path}.listKind`, listKind, 'kind and listKind may not be the same'));
  }
  categories.forEach((name, i) => label(name, `${path}.categories[${i}]`));
  return errors;
}

function validateConversion(conversion: CustomResourceDefinition['spec']['conversion']): FieldError[] {
  const strategy = conversion?.strategy ?? 'None';
  if (strategy === 'None') return [];
  if (strategy === 'Webhook') {
    return [
      forbiddenField('spec.conversion.strategy', 'this server converts between versions by "None" only'),
    ];
  }
  return [notSupported('spec.conversion.strategy', strategy, ['None', 'Webhook'])];
}

/** What may not change once a definition is established. */
export function validateImmutableNames(
  definition: CustomResourceDefinition,
  old: CustomResourceDefinition,
): FieldError[] {
  const { spec } = definition;
  const before = old.spec;
  const fields = [
    ['spec.group', spec.group, before.group],
    ['spec.scope', spec.scope, before.scope],
    ['spec.names.kind', spec.names.kind, before.names.kind],
    ['spec.names.plural', spec.names.plural, before.names.plural],
  ] as const;
  return fields.flatMap(([field, value, was]) =>
    value === was ? [] : [invalid(field, value, 'field is immutable')],
  );
}
