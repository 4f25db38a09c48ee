import type {
  JSONSchemaProps,
  CustomResourceDefinitionVersion,
} from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import { validateEmbedded } from '../schema/defaulting.ts';
import { validatePart } from '../schema/validate-value.ts';
import { ValidationBudget, itemSchemaOf, valuesOf } from '../schema/json-schema.ts';
import { type FieldError, invalid, forbiddenField, required } from '../../validation/field-errors.ts';
import { patternFault } from '../schema/validate-scalar.ts';
import { hasRules } from '../rules/compile-rules.ts';
import { validateRuleExpressions } from './rule-expressions.ts';
import { validateOpenApi } from './schema-openapi.ts';
import { compileSteps, maxCompileSteps } from '../../../cel/patterns/syntax.ts';

/**
 * - Defaults of structural schemas (apiextensions `schema/defaulting/validation.go`): they are valid, and have no
 *   unknown fields.
 * - allOf, anyOf, oneOf and not may restrict values, but not declare structure.
 * - The rules of structural schemas (apiextensions `apiserver/schema/{validation,complete}.go`, KEP 20190425).
 */

const maxDepth = 100;

/** The rules that defaults break, wherever they are. @throws {StatusError} 413 when that takes too long. */
function validateSchemaDefaults(
  schema: JSONSchemaProps,
  path: string,
  depth = 0,
  budget = new ValidationBudget(),
): FieldError[] {
  if (depth > maxDepth) return [];
  // The root is a whole object.
  const whole = depth === 0 ? { ...schema, 'x-kubernetes-embedded-resource': true } : schema;
  const errors = schema.default === undefined ? [] : validateDefault(whole, `${path}.default`, budget);
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    pushAll(errors, validateSchemaDefaults(property, `${path}.properties[${name}]`, depth + 1, budget));
  }
  const items = itemSchemaOf(schema);
  if (items !== undefined) pushAll(errors, validateSchemaDefaults(items, `${path}.items`, depth + 1, budget));
  const values = valuesOf(schema);
  if (values !== undefined) {
    pushAll(errors, validateSchemaDefaults(values, `${path}.additionalProperties`, depth + 1, budget));
  }
  return errors;
}

function validateDefault(schema: JSONSchemaProps, path: string, budget: ValidationBudget): FieldError[] {
  const value = schema.default;
  const unknown = hasUnknown(schema, value) ? [invalid(path, value, 'must not have unknown fields')] : [];
  const embedded = validateEmbedded(schema, value, path);
  if (embedded.length > 0) return [...unknown, ...embedded];
  return [...unknown, ...validatePart(schema, value, path, undefined, budget)];
}

/** True where pruning would remove something. */
function hasUnknown(schema: JSONSchemaProps, value: unknown, depth = 0): boolean {
  if (depth > maxDepth) return false;
  const items = itemSchemaOf(schema);
  if (Array.isArray(value)) {
    return items !== undefined && value.some((item) => hasUnknown(items, item, depth + 1));
  }
  if (!isRecord(value)) return false;
  const { properties = {} } = schema;
  const values = valuesOf(schema);
  const keeps =
    schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties === true;
  const embedded = schema['x-kubernetes-embedded-resource'] === true;
  return Object.entries(value).some(([name, member]) => {
    const part = Object.hasOwn(properties, name) ? properties[name] : values;
    if (part !== undefined) return hasUnknown(part, member, depth + 1);
    return !keeps && !(embedded && ['apiVersion', 'kind', 'metadata'].includes(name));
  });
}

const maxJunctorDepth = 100;
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
function validateNestedValues(schema: JSONSchemaProps, path: string): FieldError[] {
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
  if (depth > maxJunctorDepth) return [];
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
function validateJunctorsCovered(schema: JSONSchemaProps, path: string): FieldError[] {
  return partsOf(schema, path).flatMap((part) => covered(part, schema, path, 0));
}

function covered(part: Part, schema: JSONSchemaProps, path: string, depth: number): FieldError[] {
  if (depth > maxJunctorDepth) return [];
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

/** Deeper schemas are refused, as every write would take time for them. */
const maxSchemaDepth = 100;

/**
 * All errors of a version's schema: its structure or else its defaults, then OpenAPI, then its CEL rules. CEL must be
 * loaded.
 */
export function validateSchema(schema: JSONSchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.nullable === true) {
    errors.push(forbiddenField(`${path}.nullable`, 'nullable cannot be true at the root'));
  }
  const structural = validateStructural(schema, path);
  pushAll(errors, structural.length > 0 ? structural : validateSchemaDefaults(schema, path));
  const broken = errors.length > 0;
  pushAll(errors, validateOpenApi(schema, path));
  // Rules are compiled against the types of a valid schema.
  if (!broken && hasRules(schema)) {
    pushAll(errors, validateRuleExpressions(schema, path, errors));
  }
  return errors;
}

/** Errors that kube-apiserver finds in random order are sorted by text. */
function validateStructural(schema: JSONSchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  visit(schema, path, 'at the root', errors, 0);
  pushAll(errors, validateJunctorsCovered(schema, path));
  const text = ({ field, body }: FieldError) => `${field}: ${body}`;
  return errors.sort((a, b) => (text(a) < text(b) ? -1 : Number(text(a) > text(b))));
}

type Place = 'at the root' | 'for specified object fields' | 'for specified array items';

function visit(
  schema: JSONSchemaProps,
  path: string,
  place: Place,
  errors: FieldError[],
  depth: number,
): void {
  if (depth > maxSchemaDepth) {
    errors.push(forbiddenField(path, `schemas may be nested ${maxSchemaDepth} levels deep`));
    return;
  }
  const { type = '', properties = {}, additionalProperties } = schema;
  const items = itemSchemaOf(schema);
  if (type === 'array' && items === undefined) errors.push(required(`${path}.items`, 'must be specified'));
  if (items !== undefined) visit(items, `${path}.items`, 'for specified array items', errors, depth + 1);
  for (const [name, property] of Object.entries(properties)) {
    visit(property, `${path}.properties[${name}]`, 'for specified object fields', errors, depth + 1);
  }
  const root = place === 'at the root';
  if (root && additionalProperties !== undefined) {
    errors.push(forbiddenField(`${path}.additionalProperties`, 'must not be used at the root'));
  }
  const values = valuesOf(schema);
  if (values !== undefined) {
    visit(values, `${path}.additionalProperties`, 'for specified object fields', errors, depth + 1);
  }
  pushExtensionErrors(schema, path, errors);
  pushAll(errors, validateNestedValues(schema, path));
  pushTypeErrors(schema, path, place, errors);
  if (root || schema['x-kubernetes-embedded-resource'] === true) {
    pushTypeMetaErrors(properties, path, root, errors);
  }
}

function pushExtensionErrors(schema: JSONSchemaProps, path: string, errors: FieldError[]): void {
  if (schema['x-kubernetes-int-or-string'] !== true) return;
  for (const word of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const) {
    if (schema[word] !== true) continue;
    errors.push(invalid(`${path}.${word}`, true, 'must be false if x-kubernetes-int-or-string is true'));
  }
}

function pushTypeErrors(schema: JSONSchemaProps, path: string, place: Place, errors: FieldError[]): void {
  const { type = '', properties = {} } = schema;
  const unknown = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const at = `${path}.type`;
  if (schema['x-kubernetes-embedded-resource'] === true) {
    const what = 'x-kubernetes-embedded-resource is true';
    if (type === '') errors.push(required(at, `must be object if ${what}`));
    else if (type !== 'object') errors.push(invalid(at, type, `must be object if ${what}`));
    if (schema.additionalProperties !== undefined) {
      const detail = 'must not be used if x-kubernetes-embedded-resource is set';
      errors.push(forbiddenField(`${path}.additionalProperties`, detail));
    }
    if (!unknown && Object.keys(properties).length === 0) {
      const detail = `must not be empty if ${what} without x-kubernetes-preserve-unknown-fields`;
      errors.push(required(`${path}.properties`, detail));
    }
  } else if (type === '' && !unknown && schema['x-kubernetes-int-or-string'] !== true) {
    errors.push(required(at, `must not be empty ${place}`));
  }
  if (place === 'at the root' && type !== '' && type !== 'object') {
    errors.push(invalid(at, type, 'must be object at the root'));
  }
}

/** `apiVersion`, `kind` and `metadata` are declared implicitly. */
function pushTypeMetaErrors(
  properties: Readonly<Record<string, JSONSchemaProps>>,
  path: string,
  root: boolean,
  errors: FieldError[],
): void {
  for (const [name, type] of [
    ['kind', 'string'],
    ['apiVersion', 'string'],
    ['metadata', 'object'],
  ] as const) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined || property.type === type) continue;
    errors.push(invalid(`${path}.properties[${name}].type`, property.type ?? '', `must be ${type}`));
  }
  const metadata = Object.hasOwn(properties, 'metadata') ? properties['metadata'] : undefined;
  if (!root || metadata === undefined) return;
  const { type: _type, default: _default, properties: members = {}, ...others } = metadata;
  const restricted = Object.keys(members).every((name) => name === 'name' || name === 'generateName');
  if (restricted && Object.keys(others).length === 0) return;
  const detail =
    'must not specify anything other than name and generateName, but metadata is implicitly specified';
  errors.push(forbiddenField(`${path}.properties[metadata]`, detail));
}

/**
 * The patterns of a definition compile to as much as one of CEL may. kube-apiserver has no such rule: a pattern of 15
 * characters can have a million instructions, and each is matched at every write.
 */
export function validatePatternSizes(versions: readonly CustomResourceDefinitionVersion[]): FieldError[] {
  const patterns = new Set<string>();
  for (const { schema } of versions) collect(schema, patterns);
  let steps = 0;
  for (const pattern of patterns) {
    steps += compileSteps(pattern);
    if (steps > maxCompileSteps) {
      return [forbiddenField('spec.versions', 'the patterns of the schemas are too large together')];
    }
  }
  return [];
}

/** The value of a member `pattern` is one, except in a few defaults and allowed values. */
function collect(value: unknown, patterns: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== 'string') collect(member, patterns);
    else if (name === 'pattern') patterns.add(member);
  }
}
