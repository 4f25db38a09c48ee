import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { badRequest } from '../../../objects/status.ts';
import type { ExpectedKind } from '../../schema/decode-body.ts';
import { withoutRawNumbers } from '../../schema/decode-leaf.ts';
import { parseJson, JsonSyntaxError, YamlSyntaxError } from '../../schema/json.ts';
import { parseYaml } from '../../schema/yaml/parse-yaml.ts';
import { checkJsonSize } from '../../schema/decode-walk.ts';
import { jsonTypeName, parseVersion, VersionKindError } from '../../schema/builtin.ts';
import type { LeafType, Schema } from '../../schema/schema.ts';
import { goPrint } from '../strategic-lists.ts';
import { itemElement, PathElementError, showElement } from './field-set.ts';
import { memberSchema, membersOf } from './typed-value.ts';

/**
 * - Reads the body of an apply: a configuration in YAML or JSON.
 * - Checks an applied configuration against its schema (structured-merge-diff `typed/validate.go`), wording included.
 */

/**
 * The configuration, and the strict errors of repeated keys. JSON is YAML too, but has a parser of its own.
 *
 * @throws {StatusError} 400, or 413 for too many values.
 */
export function parseConfig(bytes: Buffer): { config: JsonRecord; duplicates: string | undefined } {
  const parsed = parseFastJson(bytes) ?? parseSlowYaml(bytes);
  const { value, duplicates } = parsed;
  if (value === null || value === undefined) return { config: {}, duplicates };
  if (isRecord(value)) return { config: value, duplicates };
  throw badRequest(
    `error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${jsonTypeName(value)} into Go value of type map[string]interface {}`,
  );
}

function parseFastJson(bytes: Buffer): { value: unknown; duplicates: undefined } | undefined {
  if (bytes[0] !== 0x7b) return undefined;
  checkJsonSize(bytes);
  try {
    const { value, repeated, hasRawNumbers } = parseJson(bytes);
    if (repeated !== undefined) return undefined;
    return { value: hasRawNumbers ? withoutRawNumbers(value) : value, duplicates: undefined };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}

function parseSlowYaml(bytes: Buffer): { value: unknown; duplicates: string | undefined } {
  try {
    const { value, duplicates, hasRawNumbers } = parseYaml(bytes);
    return { value: hasRawNumbers ? withoutRawNumbers(value) : value, duplicates };
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) throw error;
    throw badRequest(`error decoding patch: error converting YAML to JSON: ${error.message}`);
  }
}

/** An applied object must have the kind and version of the request. @throws {StatusError} 400 */
export function checkConfigKind(config: JsonRecord, expected: ExpectedKind): void {
  const { apiVersion, kind } = config;
  const kindText = typeof kind === 'string' ? kind : '';
  const { group, version } = splitVersion(typeof apiVersion === 'string' ? apiVersion : '');
  if (group !== expected.group || version !== expected.version || kindText !== expected.kind) {
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${kindText}`);
  }
  const metadata = config['metadata'];
  if (isRecord(metadata) && Array.isArray(metadata['managedFields'])) {
    throw badRequest('metadata.managedFields must be nil');
  }
}

function splitVersion(apiVersion: string): { group: string; version: string } {
  try {
    return parseVersion(apiVersion);
  } catch (error) {
    if (error instanceof VersionKindError) return { group: '', version: '' };
    throw error;
  }
}

/** The errors of a configuration, one text per place: `.spec.bogus: field not declared in schema`. */
export function validateConfig(schema: Schema, value: unknown): string[] {
  const errors: string[] = [];
  validate(schema, value, '', errors);
  return errors;
}

/** The texts as structured-merge-diff joins them. */
export function joinErrors(errors: readonly string[]): string {
  return errors.length === 1
    ? (errors[0] ?? '')
    : ['errors:', ...errors.map((error) => `  ${error}`)].join('\n');
}

function validate(schema: Schema, value: unknown, path: string, errors: string[]): void {
  if (value === null || value === undefined) return;
  if (schema.type === 'list') {
    if (!Array.isArray(value)) {
      errors.push(`${path}: expected list, got &{${goPrint(value)}}`);
      return;
    }
    const seen = new Set<string>();
    for (const [i, item] of value.entries()) {
      let element = `i:${i}`;
      if (schema.listType !== 'atomic') {
        try {
          element = itemElement(schema, item);
        } catch (error) {
          if (!(error instanceof PathElementError)) throw error;
          errors.push(`${path}: element ${i}: ${error.message}`);
          // One item without an identity ends the check of its list.
          return;
        }
        if (seen.has(element)) errors.push(`${path}: duplicate entries for key ${showElement(element)}`);
        seen.add(element);
      }
      validate(schema.items, item, path + showElement(element), errors);
    }
  } else if (schema.type === 'struct' || schema.type === 'map') {
    if (!isRecord(value)) {
      errors.push(`${path}: expected map, got &{${goPrint(value)}}`);
      return;
    }
    for (const name of Object.keys(membersOf(value)).sort()) {
      const type = memberSchema(schema, name);
      if (type === undefined) errors.push(`${path}.${name}: field not declared in schema`);
      else validate(type, value[name], `${path}.${name}`, errors);
    }
  } else if (schema.type !== 'any' && schema.type !== 'fieldsV1' && schema.type !== 'union') {
    const problem = scalarProblem(schema.type, value);
    if (problem !== undefined) errors.push(`${path}: ${problem}`);
  }
}

function scalarProblem(type: LeafType, value: unknown): string | undefined {
  switch (type) {
    case 'string':
    case 'bytes':
      // The library's type shows: this is the one text that prints values with %#v.
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got &{${goPrint(value)}}`;
    case 'int32':
    case 'int64':
    case 'number':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${goType(value)}`;
    default:
      return typeof value === 'object' ? `expected any scalar, got &{${goPrint(value)}}` : undefined;
  }
}

function goType(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'string' ? 'string' : 'map[string]interface {}';
}

/** A value as Go's %#v prints it. */
function goSyntax(value: unknown): string {
  if (value === null || value === undefined) return 'interface {}(nil)';
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  if (!isRecord(value)) return goPrint(value);
  const members = Object.keys(value).sort();
  return `map[string]interface {}{${members.map((key) => `${JSON.stringify(key)}:${goSyntax(value[key])}`).join(', ')}}`;
}
