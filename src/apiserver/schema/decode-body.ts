import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject, ObjectMeta } from '../../objects/meta.ts';
import { type StatusError, badRequest } from '../../objects/status.ts';
import {
  builtinSchema,
  registeredKind,
  type GroupVersionKind,
  interpretKind,
  VersionKindError,
  versionText,
} from './builtin.ts';
import { pruneCustomObject, schemaFromCustomResource } from './custom-object.ts';
import { DecodeError, decodeStruct } from './decode.ts';
import { parseJson, type ParsedJson, JsonSyntaxError, YamlSyntaxError } from './json.ts';
import { parseProtobuf } from './protobuf/parse-protobuf.ts';
import { parseYaml } from './yaml/parse-yaml.ts';
import { checkJsonSize } from './decode-walk.ts';
import type { FieldValidation, StructSchema } from './schema.ts';
import { ProtobufError } from './protobuf/wire.ts';
import { notMarshalable } from './protobuf/write-protobuf.ts';

/**
 * - Reads request bodies: the path from bytes to a typed object through kube-apiserver's codecs (`serializer/json`,
 *   `serializer/versioning`, `endpoints/handlers/rest.go` transformDecodeError), wording included.
 * - Reads the DeleteOptions that a DELETE may carry (apiserver `endpoints/handlers/delete.go`).
 */

/** What an endpoint expects to read. */
export interface ExpectedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** A struct with `custom` set is a custom resource: read as a map, pruned, not defaulted. */
  readonly schema: StructSchema;
  /** Another version with the same fields, which is taken for this one (`GroupVersionAcceptor`). */
  readonly alsoVersion?: string;
  /** Custom resources: the schemas of the other versions, undefined for one that there is not. */
  schemaOfVersion?(version: string): StructSchema | undefined;
}

export interface BodyToDecode {
  readonly bytes: Buffer;
  /** JSON, YAML or protobuf, without parameters; other types were refused before (415). */
  readonly contentType: string;
  readonly expected: ExpectedKind;
  readonly fieldValidation: FieldValidation;
  /** Gets the warnings of a body that is refused for its version alone; those of others are returned. */
  warn?(text: string): void;
}

export interface DecodedBody {
  /** Types checked, unknown fields dropped, zero values normalised; carries apiVersion and kind. Not defaulted. */
  readonly object: KubeObject;
  /** Texts for `Warning` headers (fieldValidation Warn). */
  readonly warnings: readonly string[];
}

/** Reads a request body. @throws {StatusError} 400 with kube-apiserver's wording, 413 when there is too much in it. */
export function decodeBody(request: BodyToDecode): DecodedBody {
  const { bytes, contentType, expected, fieldValidation } = request;
  const unrecognized = (reason: string): StatusError =>
    badRequest(
      `the object provided is unrecognized (must be of type ${expected.kind}): ${reason} (${summarize(bytes)})`,
    );
  let body: ParsedBody;
  let actual: GroupVersionKind;
  try {
    body = parseBody(bytes, contentType, expected);
    const stated = interpretKind(
      body.parsed.value,
      expected.schema.custom === undefined ? expected : unstated,
    );
    const isAlso = stated.group === expected.group && stated.version === expected.alsoVersion;
    actual = isAlso ? { ...stated, version: expected.version } : stated;
  } catch (error) {
    if (
      error instanceof VersionKindError ||
      error instanceof YamlSyntaxError ||
      error instanceof ProtobufError
    ) {
      throw unrecognized(error.message);
    }
    if (error instanceof JsonSyntaxError) throw unrecognized(`${cannotGetKind}${error.message}`);
    throw error;
  }
  const refuse = (reason: string): StatusError =>
    badRequest(
      `${actual.kind} in version ${JSON.stringify(actual.version)} cannot be handled as a ${expected.kind}: ${reason}`,
    );
  if (expected.schema.custom !== undefined && contentType === protobuf) {
    throw refuse(notMarshalable);
  }
  if (expected.schema.custom !== undefined && !statesKind(body.parsed.value)) {
    throw unrecognized(`Object 'Kind' is missing in '${bytes.toString('utf8')}'`);
  }
  let result: DecodedParts;
  try {
    result = decodeAs(body.parsed, actual, expected);
  } catch (error) {
    throw error instanceof DecodeError ? refuse(error.message) : error;
  }
  // Protobuf skips fields that it does not know.
  const strictErrors = contentType === protobuf ? [] : [...body.strictErrors, ...result.strictErrors];
  if (fieldValidation === 'Strict' && strictErrors.length > 0) throw refuse(strictText(strictErrors));
  const warnings = fieldValidation === 'Warn' ? strictErrors : [];
  if (actual.group !== expected.group || actual.version !== expected.version) {
    for (const warning of warnings) request.warn?.(warning);
    throw badRequest(
      `the API version in the data (${versionText(actual)}) does not match the expected API version (${versionText(expected)})`,
    );
  }
  return { object: result.object, warnings };
}

/** The text of errors that only Strict mode minds. */
export function strictText(errors: readonly string[]): string {
  return `strict decoding error: ${errors.join(', ')}`;
}

/** Custom resources contain their own kind. */
const unstated: GroupVersionKind = { group: '', version: '', kind: '' };

const protobuf = 'application/vnd.kubernetes.protobuf';
const cannotGetKind = "couldn't get version/kind; json parse error: ";

interface ParsedBody {
  readonly parsed: ParsedJson;
  readonly strictErrors: readonly string[];
}

/**
 * Parses by content type.
 *
 * @param defaults kind and version for a body without them: protobuf cannot be parsed without.
 * @throws {JsonSyntaxError | YamlSyntaxError | ProtobufError}
 * @throws {StatusError} 413 for too many values.
 */
function parseBody(bytes: Buffer, contentType: string, defaults: GroupVersionKind): ParsedBody {
  if (contentType === protobuf) {
    const value = parseProtobuf(bytes, defaults);
    return { parsed: { value, repeated: undefined, hasRawNumbers: true }, strictErrors: [] };
  }
  if (contentType !== 'application/yaml') {
    checkJsonSize(bytes);
    return { parsed: parseJson(bytes), strictErrors: [] };
  }
  const { value, duplicates, hasRawNumbers } = parseYaml(bytes);
  return {
    parsed: { value, repeated: undefined, hasRawNumbers },
    strictErrors: duplicates === undefined ? [] : [duplicates],
  };
}

function statesKind(value: unknown): boolean {
  const kind = isRecord(value) ? value['kind'] : undefined;
  return kind !== undefined && kind !== '' && kind !== null;
}

interface DecodedParts {
  readonly object: KubeObject;
  readonly strictErrors: readonly string[];
}

/**
 * Decodes a body of kind `actual` where `expected` is required. @throws {DecodeError} whose message is the reason
 * alone, when the kind is unknown or another one, or a value does not fit.
 */
export function decodeAs(parsed: ParsedJson, actual: GroupVersionKind, expected: ExpectedKind): DecodedParts {
  if (expected.schema.custom === undefined) return decodeRegistered(parsed, actual, expected);
  if (actual.group !== expected.group || actual.kind !== expected.kind)
    return pruneCustomObject(undefined, parsed);
  const schema =
    actual.version === expected.version ? expected.schema : expected.schemaOfVersion?.(actual.version);
  return pruneCustomObject(schema ?? schemaFromCustomResource({}, expected.kind), parsed);
}

/** The name that each of kube-apiserver's schemes has in its errors. */
export const schemeName = 'pkg/runtime/scheme.go:111';

function decodeRegistered(
  parsed: ParsedJson,
  actual: GroupVersionKind,
  expected: ExpectedKind,
): DecodedParts {
  const registered = registeredKind(actual.group, actual.version, actual.kind);
  if (registered === undefined) {
    throw new DecodeError(notRegistered(actual));
  }
  const same =
    actual.kind === expected.kind && actual.version === expected.version && actual.group === expected.group;
  const schema = same
    ? expected.schema
    : registered.schema === undefined
      ? undefined
      : builtinSchema(registered.schema);
  const decoded = schema === undefined ? undefined : decodeStruct(schema, parsed);
  const wanted = same ? registered : registeredKind(expected.group, expected.version, expected.kind);
  const internal = wanted?.internalPackage ?? '';
  if (actual.kind !== expected.kind || registered.internalPackage !== internal) {
    throw new DecodeError(
      `converting (${actual.version}.${actual.kind}) to (${internal}.${expected.kind}): unknown conversion`,
    );
  }
  if (decoded === undefined) return { object: { metadata: {} }, strictErrors: [] };
  const { metadata } = decoded.object;
  const head = {
    apiVersion: versionText(actual),
    kind: actual.kind,
    metadata: isRecord(metadata) ? metadata : ({} satisfies ObjectMeta),
  };
  return {
    object: Object.assign(decoded.object, head),
    strictErrors: decoded.strictErrors,
  };
}

/** Go's notRegisteredErr. */
export function notRegistered(actual: GroupVersionKind): string {
  return `no kind ${JSON.stringify(actual.kind)} is registered for version ${JSON.stringify(versionText(actual))} in scheme ${JSON.stringify(schemeName)}`;
}

/** The beginning of a body for an error text: as it is when it looks like JSON, else in hex. */
function summarize(bytes: Buffer): string {
  if (bytes.length === 0) return '<empty>';
  const encoding = bytes[0] === 0x7b ? 'utf8' : 'hex';
  const shown = bytes.subarray(0, 30).toString(encoding);
  return bytes.length > 30 ? `${shown} ...` : shown;
}

const expected = { group: '', version: 'v1', kind: 'DeleteOptions' };

/**
 * The fields of the DeleteOptions in a body, unknown ones dropped.
 *
 * @throws {StatusError} 400 when the body is no DeleteOptions.
 */
export function decodeDeleteOptions(bytes: Buffer, contentType: string): JsonRecord {
  try {
    const { parsed } = parseBody(bytes, contentType, expected);
    const actual = interpretKind(parsed.value, expected);
    // Typed clients send them in the group version of the kind that they delete: they are of every one.
    if (actual.kind !== expected.kind) throw badRequest(notRegistered(actual));
    return decodeStruct(builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions'), parsed).object;
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`);
    }
    if (
      error instanceof DecodeError ||
      error instanceof VersionKindError ||
      error instanceof ProtobufError ||
      error instanceof YamlSyntaxError
    ) {
      throw badRequest(error.message);
    }
    throw error;
  }
}
