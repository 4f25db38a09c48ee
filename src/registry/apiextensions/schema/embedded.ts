/** Embedded resources (apiextensions `schema/objectmeta/validation.go`). */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import type { ObjectMeta, OwnerReference } from '../../../objects/meta.ts';
import { itemSchemaOf, valuesOf } from './json-schema.ts';
import { type FieldError, invalid, required } from '../../validation/field-errors.ts';
import { validateCustomObjectMeta } from '../../generic/metadata.ts';
import { isDNS1035Label, nameIsPathSegment } from '../../../objects/names.ts';

/** Values deeper than this are refused elsewhere. */
const maxDepth = 500;

/** An `x-kubernetes-embedded-resource` must have apiVersion and kind, and valid metadata if any. */
export function validateEmbedded(
  schema: JSONSchemaProps,
  value: unknown,
  path = '',
  depth = 0,
): FieldError[] {
  if (depth > maxDepth) return [];
  if (Array.isArray(value)) {
    const items = itemSchemaOf(schema);
    if (items === undefined) return [];
    return value.flatMap((item, i) => validateEmbedded(items, item, `${path}[${i}]`, depth + 1));
  }
  if (!isRecord(value)) return [];
  const { properties = {} } = schema;
  const values = valuesOf(schema);
  const errors = schema['x-kubernetes-embedded-resource'] === true ? validateObject(value, path) : [];
  for (const [name, member] of Object.entries(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const at = path === '' ? name : `${path}.${name}`;
    if (property !== undefined) pushAll(errors, validateEmbedded(property, member, at, depth + 1));
    else if (values !== undefined) {
      pushAll(errors, validateEmbedded(values, member, `${path}[${name}]`, depth + 1));
    }
  }
  return errors;
}

function validateObject(value: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const errors = validateTypeMeta(value, path);
  // The metadata of the root object is checked with the object.
  if (path === '' || !isRecord(value['metadata'])) return errors;
  const metadata = metadataOf(value['metadata']);
  const namespaced = (metadata.namespace ?? '') !== '';
  return [
    ...errors,
    ...validateCustomObjectMeta(metadata, {
      namespaced,
      nameRule: nameIsPathSegment,
      path: `${path}.metadata`,
    }),
  ];
}

/** The rules of embedded metadata, for members of the right type; a name is not required. */
function metadataOf(value: Readonly<Record<string, unknown>>): ObjectMeta {
  const text = (member: string) => (typeof value[member] === 'string' ? value[member] : '');
  const texts = (member: string) => {
    const entries = isRecord(value[member]) ? Object.entries(value[member]) : [];
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  };
  const list = (member: string): unknown[] => (Array.isArray(value[member]) ? value[member] : []);
  const generation = value['generation'];
  return {
    name: text('name') === '' ? 'fakename' : text('name'),
    generateName: text('generateName'),
    namespace: text('namespace'),
    labels: texts('labels'),
    annotations: texts('annotations'),
    finalizers: list('finalizers').filter((finalizer) => typeof finalizer === 'string'),
    ownerReferences: list('ownerReferences').filter(isOwnerReference),
    managedFields: list('managedFields').filter(isRecord),
    ...(typeof generation === 'number' ? { generation } : {}),
  };
}

function isOwnerReference(value: unknown): value is OwnerReference {
  return (
    isRecord(value) && ['apiVersion', 'kind', 'name', 'uid'].every((key) => typeof value[key] === 'string')
  );
}

function validateTypeMeta(value: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const members = ['apiVersion', 'kind'] as const;
  const errors = members
    .filter((member) => !Object.hasOwn(value, member))
    .map((member) => required(`${path}.${member}`));
  for (const member of members) {
    if (!Object.hasOwn(value, member)) continue;
    const text = value[member];
    const fail = (detail: string) => errors.push(invalid(`${path}.${member}`, text, detail));
    if (typeof text !== 'string') fail('must be a string');
    else if (text === '') fail('must not be empty');
    else if (member === 'kind') {
      const faults = isDNS1035Label(text.toLowerCase());
      if (faults.length > 0) fail(`may have mixed case, but should otherwise match: ${faults.join(',')}`);
    } else if (text.split('/').length > 2) {
      fail(`unexpected GroupVersion string: ${text}`);
    }
  }
  return errors;
}
