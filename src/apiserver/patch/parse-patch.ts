/** Reads the body of a patch (apiserver `endpoints/handlers/patch.go` applyJSPatch, strategicPatchObject). */
import { isRecord } from '../../objects/json.ts';
import { badRequest } from '../../objects/status-errors.ts';
import { DecodeError } from '../schema/decode-walk.ts';
import { checkValue } from '../schema/decode.ts';
import { parseJson } from '../schema/json/parse-json.ts';
import { type ParsedJson, JsonSyntaxError, RawNumber } from '../schema/json/go-json.ts';
import { repeatedFields } from '../schema/repeated-fields.ts';
import {
  anySchema,
  type Field,
  type FieldValidation,
  type LeafSchema,
  type ListSchema,
  type StructSchema,
} from '../schema/schema.ts';
import { checkJsonSize } from '../schema/size-limits.ts';
import { jsonTypeName } from '../schema/version-kind.ts';

/** The patch types except apply (see `apply/`). Custom resources have no strategic merge. */
export type ParsedPatchType = 'json' | 'merge' | 'strategic';

/** A patch of the shape that its type needs. */
export interface ParsedPatch {
  /** Strategic: an object or null. Merge: an object or, with Ignore, a list. JSON: a list or null. */
  readonly value: unknown;
  /** The strict errors of the patch itself; collected in every mode. */
  readonly strictErrors: readonly string[];
  /** JSON: the strings that are not spelt as Go spells them. */
  readonly misspelt?: ReadonlySet<string>;
}

interface PatchBody {
  readonly type: ParsedPatchType;
  readonly bytes: Buffer;
  readonly fieldValidation: FieldValidation;
}

/**
 * Reads a patch. With `Warn` and `Strict` it is read twice, first by the fields of its type, whose errors come first.
 *
 * @throws {StatusError} 400 when it is no JSON, or not of the shape that its type needs; 413 when it is too large.
 */
export function parsePatch({ type, bytes, fieldValidation }: PatchBody): ParsedPatch {
  checkJsonSize(bytes);
  const lax = fieldValidation === 'Ignore';
  let parsed: ParsedJson;
  try {
    parsed = parseJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    if (type === 'strategic' || (type === 'json' && lax)) throw badRequest(error.message);
    throw badRequest(lax ? badMergePatch : `error decoding patch: ${error.message}`);
  }
  if (type === 'json') {
    const operations = lax ? readOperations(parsed) : checkOperations(parsed);
    return { ...operations, misspelt: misspeltStrings(bytes.toString('utf8')) };
  }
  checkObject(type, parsed.value, lax);
  const huge = parsed.hasRawNumbers && !(type === 'merge' && lax) ? infinite(parsed.value) : undefined;
  if (huge !== undefined) {
    const reason = `json: cannot unmarshal number ${huge.literal} into Go value of type float64`;
    throw badRequest(type === 'merge' ? `error decoding patch: ${reason}` : reason);
  }
  return { value: parsed.value, strictErrors: repeatedFields(parsed) };
}

/** The first number that no float64 holds. */
function infinite(value: unknown): RawNumber | undefined {
  if (value instanceof RawNumber) return Number.isFinite(Number(value.literal)) ? undefined : value;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const member of Object.values(value)) {
    const found = infinite(member);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The merge library's only error. */
const badMergePatch = 'Invalid JSON Patch';

function checkObject(type: ParsedPatchType, value: unknown, lax: boolean): void {
  if (isRecord(value) && !(value instanceof RawNumber)) return;
  if (value === null) {
    if (type === 'merge') throw badRequest(badMergePatch);
    return;
  }
  if (type === 'merge' && lax) {
    if (Array.isArray(value)) return;
    throw badRequest(badMergePatch);
  }
  const reason = `json: cannot unmarshal ${jsonTypeName(value)} into Go value of type map[string]interface {}`;
  throw badRequest(type === 'merge' ? `error decoding patch: ${reason}` : reason);
}

const text: LeafSchema = { type: 'string', goType: 'string' };
const operationFields = [
  operationField('op', text),
  operationField('path', text),
  operationField('from', text),
  operationField('value', anySchema),
];
const operation: StructSchema = {
  type: 'struct',
  name: 'jsonPatchOp',
  goType: 'handlers.jsonPatchOp',
  fields: operationFields,
  byName: new Map(operationFields.map((field) => [field.name, field])),
  atomic: true,
  custom: undefined,
};
/** What kube-apiserver reads a JSON patch into before the patch library does. */
const operations: ListSchema = {
  type: 'list',
  goType: '[]handlers.jsonPatchOp',
  items: operation,
  listType: 'atomic',
  mapKeys: [],
};

function operationField(name: string, schema: LeafSchema): Field {
  return {
    name,
    schema,
    absent: 'omit',
    dropZero: false,
    required: false,
    default: undefined,
    patchStrategy: [],
    patchMergeKey: undefined,
  };
}

function checkOperations(parsed: ParsedJson): ParsedPatch {
  let declared: readonly string[];
  try {
    declared = checkValue(operations, parsed);
  } catch (error) {
    throw error instanceof DecodeError ? badRequest(`error decoding patch: ${error.message}`) : error;
  }
  // Values have no type: what is repeated in them is found apart.
  const all = new Set([...declared, ...repeatedFields(parsed)]);
  const { value } = readOperations(parsed);
  return { value, strictErrors: [...all].map((error) => `json patch ${error}`) };
}

/** As the patch library reads it. */
function readOperations({ value }: ParsedJson): ParsedPatch {
  if (value !== null && !Array.isArray(value)) throw mismatch(value, 'Patch');
  for (const item of value ?? []) {
    if (item !== null && (!isRecord(item) || item instanceof RawNumber)) throw mismatch(item, 'Operation');
  }
  return { value, strictErrors: [] };
}

function mismatch(value: unknown, type: string): Error {
  return badRequest(`json: cannot unmarshal ${jsonTypeName(value)} into Go value of type jsonpatch.${type}`);
}

/** How Go's encoding/json spells strings. */

/** What Go escapes in strings and JavaScript does not. */
const escapedByGo = /[<>&\u2028\u2029]/g;

/**
 * The strings of a JSON text that Go would spell in another way: `<`, `>` and `&` bare, other characters escaped
 * that Go writes as they are.
 *
 * @param json is valid.
 */
function misspeltStrings(json: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (let start = json.indexOf('"'); start >= 0;) {
    const end = endOfString(json, start);
    const literal = json.slice(start, end);
    const value: unknown = JSON.parse(literal);
    if (typeof value === 'string' && goLiteral(value) !== literal) found.add(value);
    start = json.indexOf('"', end);
  }
  return found;
}

function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

function goLiteral(value: string): string {
  return JSON.stringify(value).replaceAll(
    escapedByGo,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
