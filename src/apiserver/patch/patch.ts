/** The three patch types that change a stored object as a text or map (apiserver `endpoints/handlers/patch.go`). */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { StatusError } from '../../objects/status.ts';
import { badRequest, plainError } from '../../objects/status-errors.ts';
import { invalid, invalidObject } from '../../registry/field-errors.ts';
import { decodeAs, type ExpectedKind, strictText } from '../schema/decode-body.ts';
import { DecodeError } from '../schema/decode-walk.ts';
import { decodeMapValue } from '../schema/decode.ts';
import { repeatedFields } from '../schema/repeated-fields.ts';
import { encodeObject, encodePlain } from '../schema/encode.ts';
import { JsonSyntaxError, parseJson, type ParsedJson, RawNumber } from '../schema/parse-json.ts';
import type { FieldValidation } from '../schema/schema.ts';
import { interpretKind, jsonTypeName, VersionKindError, versionText } from '../schema/version-kind.ts';
import { goPrint } from './go-print.ts';
import { applyJsonPatch, PatchOperationError } from './json-patch.ts';
import { applyMergePatch } from './merge-patch.ts';
import { StrategicPatchError } from './strategic-error.ts';
import { strategicMerge } from './strategic-merge.ts';

/** The patch types but apply, which has a room of its own. Custom resources have no strategic merge. */
export type PatchType = 'json' | 'merge' | 'strategic';

export interface PatchRequest {
  readonly type: PatchType;
  readonly bytes: Buffer;
  /** The stored object, with apiVersion and kind; not changed. */
  readonly live: KubeObject;
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
  const parsed = parsePatch(request);
  const live = versionedCopy(request);
  return request.type === 'strategic' ? patchMap(request, parsed, live) : patchText(request, parsed, live);
}

/** The patch as JSON, of the shape that its type needs. */
function parsePatch({ type, bytes }: PatchRequest): ParsedJson {
  // A strategic patch is decoded without the words before the error.
  const words = type === 'strategic' ? '' : 'error decoding patch: ';
  let parsed: ParsedJson;
  try {
    parsed = parseJson(bytes);
  } catch (error) {
    throw error instanceof JsonSyntaxError ? badRequest(words + error.message) : error;
  }
  const { value } = parsed;
  if (type === 'json') {
    if (value !== null && !Array.isArray(value)) {
      throw badRequest(
        `${words}json: cannot unmarshal ${jsonTypeName(value)} into Go value of type []interface {}`,
      );
    }
  } else if (value === null) {
    if (type === 'merge') throw badRequest('Invalid JSON Patch');
  } else if (!isRecord(value) || value instanceof RawNumber) {
    throw badRequest(
      `${words}json: cannot unmarshal ${jsonTypeName(value)} into Go value of type map[string]interface {}`,
    );
  }
  return parsed;
}

/** The stored object as a client reads it: a copy, members in the order of the encoding. */
function versionedCopy({ live, expected }: PatchRequest): JsonRecord {
  const typed = { ...live, apiVersion: versionText(expected), kind: expected.kind };
  const copy: unknown = JSON.parse(encodeObject(expected.schema, typed));
  return isRecord(copy) ? copy : {};
}

/** JSON and merge patches make a text, which is decoded like a body. */
function patchText(request: PatchRequest, parsed: ParsedJson, live: JsonRecord): Patched {
  const patched = request.type === 'json' ? runJsonPatch(live, parsed.value) : mergeText(live, parsed.value);
  const refuse = (reason: string): StatusError => invalidPatch(encodePlain(patched), reason);
  try {
    const value: ParsedJson = { value: patched, repeated: undefined, hasRawNumbers: true };
    const actual = interpretKind(patched, request.expected);
    const { object, strictErrors } = decodeAs(value, actual, request.expected);
    return finish(request, object, [...repeatedFields(parsed), ...strictErrors], refuse);
  } catch (error) {
    if (error instanceof DecodeError || error instanceof VersionKindError) throw refuse(error.message);
    throw error;
  }
}

function runJsonPatch(live: JsonRecord, operations: unknown): JsonRecord {
  try {
    return applyJsonPatch(live, operations);
  } catch (error) {
    throw error instanceof PatchOperationError ? rejected(error) : error;
  }
}

function mergeText(live: JsonRecord, patch: unknown): JsonRecord {
  return isRecord(patch) ? applyMergePatch(live, patch) : live;
}

/** A strategic merge makes a map, which is converted without going through text. */
function patchMap(request: PatchRequest, parsed: ParsedJson, live: JsonRecord): Patched {
  const patch = isRecord(parsed.value) ? parsed.value : {};
  const refuse = (reason: string): StatusError => invalidPatch(goPrint(patch), reason);
  let merged: JsonRecord;
  try {
    merged = strategicMerge(request.expected.schema, live, patch);
  } catch (error) {
    if (!(error instanceof StrategicPatchError)) throw error;
    if (error.answer === 'badRequest') throw badRequest(error.message);
    throw error.answer === 'unprocessable' ? rejected(error) : plainError(error.message);
  }
  try {
    const { object, strictErrors } = decodeMapValue(request.expected.schema, merged);
    const { metadata, ...rest } = object;
    // A strategic patch of kind or apiVersion has no effect: the type is that of the request.
    const typed: KubeObject = {
      ...rest,
      apiVersion: versionText(request.expected),
      kind: request.expected.kind,
      metadata: isRecord(metadata) ? metadata : {},
    };
    return finish(request, typed, [...repeatedFields(parsed), ...strictErrors], refuse);
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
