import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { badRequest, StatusError, plainError } from '../../objects/status.ts';
import { DecodeError, repeatedFields, checkJsonSize } from '../schema/decode-walk.ts';
import { checkValue, decodeMapValue } from '../schema/decode.ts';
import { parseJson, type ParsedJson, JsonSyntaxError, RawNumber, YamlSyntaxError } from '../schema/json.ts';
import { parseYaml } from '../schema/yaml/parse-yaml.ts';
import {
  anySchema,
  type Field,
  type FieldValidation,
  type LeafSchema,
  type ListSchema,
  type StructSchema,
} from '../schema/schema.ts';
import { jsonTypeName, interpretKind, VersionKindError, versionText } from '../schema/builtin.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { resultOf } from '../../objects/lists.ts';
import { invalid, invalidObject } from '../../registry/validation/field-errors.ts';
import { decodeAs, type ExpectedKind, strictText } from '../schema/decode-body.ts';
import { encodeObject, encodePlain } from '../schema/encode.ts';
import { goPrint, StrategicPatchError } from './strategic-lists.ts';
import { applyJsonPatch, PatchOperationError } from './json-patch.ts';
import { applyMergePatch, withoutNulls, strategicMerge, restOfPatch } from './strategic-merge.ts';

/**
 * - Reads the body of a patch (apiserver `endpoints/handlers/patch.go` applyJSPatch, strategicPatchObject).
 * - How Go's encoding/json spells strings.
 * - The three patch types that change a stored object as a text or map (apiserver `endpoints/handlers/patch.go`).
 */

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

/** JSON may begin with white space (`unicode.IsSpace`). */
const jsonObject = /^[\s\u0085]*\{/;

/**
 * Refuses the body of a patch that cannot be read at all, before the object is looked for (`handlers/patch.go`
 * validateAndTranscodePatch). An apply that looks like JSON is not checked.
 *
 * @throws {StatusError} 400, or 413 for too many values.
 */
export function checkPatchBody(type: ParsedPatchType | 'apply', bytes: Buffer): void {
  const json = bytes.toString('utf8');
  if (type === 'apply') {
    if (!jsonObject.test(json)) checkYaml(bytes);
    return;
  }
  checkJsonSize(bytes);
  try {
    JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw badRequest('invalid JSON patch');
  }
}

function checkYaml(bytes: Buffer): void {
  try {
    parseYaml(bytes);
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) throw error;
    throw badRequest(`error encoding patch: ${error.message}`);
  }
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

export type { ParsedPatchType as PatchType };

export interface PatchRequest {
  readonly type: ParsedPatchType;
  readonly bytes: Buffer;
  /** The stored object, with apiVersion and kind; not changed. */
  readonly live: KubeObject;
  /** Its JSON, members in the order of the encoding, if available. */
  readonly liveText?: string | undefined;
  readonly expected: ExpectedKind;
  readonly fieldValidation: FieldValidation;
}

export interface Patched {
  /** A new object: types checked, zero values normalised, with apiVersion and kind. Not defaulted. */
  readonly object: KubeObject;
  /** Texts for `Warning` headers (fieldValidation Warn). */
  readonly warnings: readonly string[];
}

/** Applies a patch to the stored object. @throws {StatusError} 400, 413, 422 or 500 as kube-apiserver. */
export function patchObject(request: PatchRequest): Patched {
  return resultOf(patchInSteps(request));
}

/** As {@link patchObject}. Yields between steps, of which each takes time by the size of the patch and of the object. */
export function* patchInSteps(request: PatchRequest): Steps {
  const patch = parsePatch(request);
  const live = versionedCopy(request);
  yield;
  return yield* request.type === 'strategic'
    ? patchMap(request, patch, live)
    : patchText(request, patch, live);
}

type Steps = Generator<undefined, Patched, undefined>;

/** The stored object as a client reads it: a copy, members in the order of the encoding. */
function versionedCopy({ live, liveText, expected }: PatchRequest): JsonRecord {
  const { kind, schema } = expected;
  const copy: unknown = JSON.parse(
    liveText ?? encodeObject(schema, { ...live, apiVersion: versionText(expected), kind }),
  );
  return isRecord(copy) ? copy : {};
}

/** JSON and merge patches make a text, which is decoded like a body. */
function* patchText(request: PatchRequest, patch: ParsedPatch, live: JsonRecord): Steps {
  const patched = request.type === 'json' ? runJsonPatch(live, patch) : mergeText(live, patch.value);
  const refuse = (reason: string): StatusError => invalidPatch(encodePlain(patched), reason);
  yield;
  try {
    const value: ParsedJson = { value: patched, repeated: undefined, hasRawNumbers: true };
    const actual = interpretKind(patched, request.expected);
    const { object, strictErrors } = decodeAs(value, actual, request.expected);
    return finish(request, object, [...patch.strictErrors, ...strictErrors], refuse);
  } catch (error) {
    if (error instanceof DecodeError || error instanceof VersionKindError) throw refuse(error.message);
    throw error;
  }
}

function runJsonPatch(live: JsonRecord, patch: ParsedPatch): unknown {
  try {
    return applyJsonPatch(live, patch.value, patch.misspelt);
  } catch (error) {
    throw error instanceof PatchOperationError ? rejected(error) : error;
  }
}

/** A list takes the place of the whole object, and is none. */
function mergeText(live: JsonRecord, patch: unknown): unknown {
  return isRecord(patch) ? applyMergePatch(live, patch) : withoutNulls(patch);
}

/** A strategic merge makes a map, which is converted without going through text. */
function* patchMap(request: PatchRequest, patch: ParsedPatch, live: JsonRecord): Steps {
  const change = isRecord(patch.value) ? patch.value : {};
  const { schema } = request.expected;
  const refuse = (reason: string): StatusError =>
    invalidPatch(goPrint(restOfPatch(schema, live, change)), reason);
  let merged: JsonRecord;
  try {
    merged = strategicMerge(schema, live, change);
  } catch (error) {
    if (!(error instanceof StrategicPatchError)) throw error;
    if (error.answer === 'badRequest') throw badRequest(error.message);
    throw error.answer === 'unprocessable' ? rejected(error) : plainError(error.message);
  }
  yield;
  try {
    const { object, strictErrors } = decodeMapValue(schema, merged);
    const { metadata, ...rest } = object;
    // A strategic patch of kind or apiVersion has no effect: the type is that of the request.
    const typed: KubeObject = {
      ...rest,
      apiVersion: versionText(request.expected),
      kind: request.expected.kind,
      metadata: isRecord(metadata) ? metadata : {},
    };
    return finish(request, typed, [...patch.strictErrors, ...strictErrors], refuse);
  } catch (error) {
    throw error instanceof DecodeError ? refuse(error.message) : error;
  }
}

function finish(
  { fieldValidation }: PatchRequest,
  object: KubeObject,
  strictErrors: readonly string[],
  refuse: (reason: string) => StatusError,
): Patched {
  if (fieldValidation === 'Strict' && strictErrors.length > 0) throw refuse(strictText(strictErrors));
  return { object, warnings: fieldValidation === 'Warn' ? strictErrors : [] };
}

/** The 422 of a patch whose result does not decode. */
function invalidPatch(shown: string, reason: string): StatusError {
  return invalidObject({ group: '', kind: '', name: '' }, [invalid('patch', shown, reason)]);
}

/** The 422 of an operation that fails: the reason stays in the log. */
function rejected(cause: Error): StatusError {
  const message = 'the server rejected our request due to an error in our request';
  return new StatusError(422, 'Invalid', message, { details: {}, cause });
}
