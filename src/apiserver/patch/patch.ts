/** The three patch types that change a stored object as a text or map (apiserver `endpoints/handlers/patch.go`). */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { StatusError } from '../../objects/status.ts';
import { badRequest, plainError } from '../../objects/status-errors.ts';
import { resultOf } from '../../objects/steps.ts';
import { invalid, invalidObject } from '../../registry/validation/field-errors.ts';
import { decodeAs, type ExpectedKind, strictText } from '../schema/decode-body.ts';
import { DecodeError } from '../schema/decode-walk.ts';
import { decodeMapValue } from '../schema/decode.ts';
import { encodeObject, encodePlain } from '../schema/encode.ts';
import type { ParsedJson } from '../schema/json/go-json.ts';
import type { FieldValidation } from '../schema/schema.ts';
import { interpretKind, VersionKindError, versionText } from '../schema/version-kind.ts';
import { goPrint } from './go-print.ts';
import { applyJsonPatch, PatchOperationError } from './json-patch.ts';
import { applyMergePatch, withoutNulls } from './merge-patch.ts';
import { type ParsedPatch, parsePatch, type ParsedPatchType } from './parse-patch.ts';
import { StrategicPatchError } from './strategic-error.ts';
import { strategicMerge } from './strategic-merge.ts';
import { restOfPatch } from './strategic-rest.ts';

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
