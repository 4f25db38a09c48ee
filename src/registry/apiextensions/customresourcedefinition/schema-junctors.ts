/** allOf, anyOf, oneOf and not may restrict values, but not declare structure. */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import { patternFault } from '../schema/pattern.ts';
import { type FieldError, forbiddenField, invalid, required } from '../../validation/field-errors.ts';
import { itemSchemaOf } from '../schema/json-schema.ts';

const maxDepth = 100;
const lists = ['anyOf', 'allOf', 'oneOf'] as const;
const intOrString = [{ type: 'integer' }, { type: 'string' }];

/** The fields that are forbidden within a junctor, with kube-apiserver's texts. */
const forbiddenWords = [
  ['type', 'empty'],
  ['additionalProperties', 'undefined'],
  ['default', 'undefined'],
  ['title', 'empty'],
  ['description', 'empty'],
  ['nullable', 'false'],
  ['externalDocs', 'undefined'],
  ['x-kubernetes-preserve-unknown-fields', 'false'],
  ['x-kubernetes-embedded-resource', 'false'],
  ['x-kubernetes-int-or-string', 'false'],
  ['x-kubernetes-list-map-keys', 'empty'],
  ['x-kubernetes-list-type', 'undefined'],
  ['x-kubernetes-map-type', 'undefined'],
  ['x-kubernetes-validations', 'empty'],
] as const;

interface Part {
  readonly schema: JSONSchemaProps;
  readonly path: string;
}

/** The parts of the junctors of a schema, with their paths. */
function partsOf(schema: JSONSchemaProps, path: string): Part[] {
  const parts = lists.flatMap((word) =>
    (schema[word] ?? []).map((part, i) => ({ schema: part, path: `${path}.${word}[${i}]` })),
  );
  if (schema.not !== undefined) parts.push({ schema: schema.not, path: `${path}.not` });
  return parts;
}

/** The junctors of a schema declare no structure, and its pattern compiles (`validateValueValidation`). */
export function validateNestedValues(schema: JSONSchemaProps, path: string): FieldError[] {
  // The two forms of IntOrString name types; other junctors may not.
  const [first, ...parts] = schema.allOf ?? [];
  const checked = {
    ...withoutIntOrString(schema),
    ...(first === undefined ? {} : { allOf: [withoutIntOrString(first), ...parts] }),
  };
  return [...validateJunctors(checked, path, 0), ...validatePattern(schema, path)];
}

function withoutIntOrString(schema: JSONSchemaProps): JSONSchemaProps {
  const { anyOf, ...others } = schema;
  return jsonEqual(anyOf ?? [], intOrString) ? others : schema;
}

function validatePattern({ pattern = '' }: JSONSchemaProps, path: string): FieldError[] {
  const fault = patternFault(pattern);
  if (fault === undefined) return [];
  const detail = `must be a valid regular expression, but isn't: ${fault}`;
  return [invalid(`${path}.pattern`, pattern, detail)];
}

function validateJunctors(schema: JSONSchemaProps, path: string, depth: number): FieldError[] {
  return partsOf(schema, path).flatMap((part) => validateNested(part.schema, part.path, depth + 1));
}

function validateNested(schema: JSONSchemaProps, path: string, depth: number): FieldError[] {
  if (depth > maxDepth) return [];
  const errors = [...validateJunctors(schema, path, depth), ...validatePattern(schema, path)];
  const items = itemSchemaOf(schema);
  if (items !== undefined) pushAll(errors, validateNested(items, `${path}.items`, depth + 1));
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    pushAll(errors, validateNested(property, `${path}.properties[${name}]`, depth + 1));
    if (name !== 'metadata') continue;
    const detail = 'must not be specified in a nested context';
    errors.push(forbiddenField(`${path}.properties[metadata]`, detail));
  }
  for (const [word, what] of forbiddenWords) {
    if (!says(Reflect.get(schema, word))) continue;
    errors.push(forbiddenField(`${path}.${word}`, `must be ${what} to be structural`));
  }
  return errors;
}

/** Go's zero values count as absent. */
function says(value: unknown): boolean {
  if (value === undefined || value === false || value === '') return false;
  return !Array.isArray(value) || value.length > 0;
}

/**
 * Fields in the junctors at the root must be declared beside them; other junctors are not checked
 * (`validateStructuralCompleteness`).
 */
export function validateJunctorsCovered(schema: JSONSchemaProps, path: string): FieldError[] {
  return partsOf(schema, path).flatMap((part) => covered(part, schema, path, 0));
}

function covered(part: Part, schema: JSONSchemaProps, path: string, depth: number): FieldError[] {
  if (depth > maxDepth) return [];
  const errors = partsOf(part.schema, part.path).flatMap((inner) => covered(inner, schema, path, depth + 1));
  const member = (inner: JSONSchemaProps, declared: JSONSchemaProps | undefined, name: string) => {
    const innerPath = `${part.path}.${name}`;
    if (declared === undefined) {
      errors.push(required(`${path}.${name}`, `because it is defined in ${innerPath}`));
      return;
    }
    pushAll(errors, covered({ schema: inner, path: innerPath }, declared, `${path}.${name}`, depth + 1));
  };
  const items = itemSchemaOf(part.schema);
  if (items !== undefined) member(items, itemSchemaOf(schema), 'items');
  const { properties = {} } = schema;
  for (const [name, property] of Object.entries(part.schema.properties ?? {})) {
    const declared = Object.hasOwn(properties, name) ? properties[name] : undefined;
    member(property, declared, `properties[${name}]`);
  }
  return errors;
}
