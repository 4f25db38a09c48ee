/**
 * Reads the response of a webhook as client-go does (`rest/request.go`: `transformResponse`, `Into`), with its error
 * texts and those of the codec that kube-apiserver calls webhooks with (`apiserver/pkg/util/webhook/client.go`).
 */
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { builtinSchema } from '../../schema/builtin.ts';
import { notRegistered } from '../../schema/decode-body.ts';
import { DecodeError, decodeStruct } from '../../schema/decode.ts';
import { parseJson } from '../../schema/json/parse-json.ts';
import { type ParsedJson, JsonSyntaxError, YamlSyntaxError } from '../../schema/json/go-json.ts';
import { parseYaml } from '../../schema/yaml/parse-yaml.ts';
import { interpretKind, VersionKindError } from '../../schema/version-kind.ts';

/** The HTTP response of a webhook. */
export interface WebhookAnswer {
  readonly status: number;
  /** "" when there is none. */
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** The version of a review. */
export type ReviewVersion = 'v1' | 'v1beta1';

/** True for a version of reviews that this server supports. */
export function isReviewVersion(version: string): version is ReviewVersion {
  return version === 'v1' || version === 'v1beta1';
}

/** A kind of review: both versions of it have the same fields. */
export interface ReviewKind {
  readonly group: string;
  readonly kind: string;
  /** The name of its schema. */
  readonly schema: string;
}

/** The name of the webhook client's scheme in error texts: the source line that creates it. */
const scheme = 'k8s.io/apiserver/pkg/util/webhook/client.go:69';
/** Bytes of an error response's body that are shown (`maxUnstructuredResponseTextBytes`). */
const maxShown = 2048;

/**
 * The review in an answer: values have the types of the Go structs, unknown fields are dropped.
 *
 * @throws {Error} with client-go's message when it is not of the version of the request.
 */
export function readAnswer(
  answer: WebhookAnswer,
  { group, kind, schema }: ReviewKind,
  asked: ReviewVersion,
): JsonRecord {
  const { status, contentType, bytes } = answer;
  if (status < 200 || status > 206) throw new Error(statusMessage(answer) ?? codeMessage(answer));
  if (bytes.length === 0) {
    const type = contentType === '' ? 'application/json' : contentType;
    throw new Error(`0-length response with status code: ${status} and content type: ${type}`);
  }
  return withGoErrors(() => {
    const parsed = parse(bytes);
    const actual = interpretKind(parsed.value, { group, version: asked, kind });
    if (actual.group !== group || actual.kind !== kind || !isReviewVersion(actual.version)) {
      throw new Error(notRegistered(actual, scheme));
    }
    const review = decodeStruct(builtinSchema(schema), parsed).object;
    if (actual.version === asked) return review;
    throw new Error(`converting (${actual.version}.${kind}) to (${asked}.${kind}): unknown conversion`);
  });
}

/** JSON where the first character is a brace, else YAML: the codec reads both and ignores the content type. */
function parse(bytes: Buffer): ParsedJson {
  const first = /\S/.exec(bytes.toString('latin1', 0, maxShown));
  if (first?.[0] === '{') return parseJson(bytes);
  const { value, hasRawNumbers } = parseYaml(bytes);
  return { value, repeated: undefined, hasRawNumbers };
}

/** Turns the errors of parsing and decoding into those of the webhook codec. */
function withGoErrors<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      throw new Error(`couldn't get version/kind; json parse error: ${error.message}`, { cause: error });
    }
    if (
      error instanceof DecodeError ||
      error instanceof VersionKindError ||
      error instanceof YamlSyntaxError
    ) {
      throw new Error(error.message, { cause: error });
    }
    throw error;
  }
}

/** The message of a Status; undefined where the body is none. */
function statusMessage({ bytes }: WebhookAnswer): string | undefined {
  let value: unknown;
  try {
    ({ value } = parse(bytes));
  } catch {
    return undefined;
  }
  if (!isRecord(value) || value['kind'] !== 'Status' || value['status'] !== 'Failure') return undefined;
  const { message } = value;
  return typeof message === 'string' ? message : '';
}

const messages: ReadonlyMap<number, string> = new Map([
  [400, 'the server rejected our request for an unknown reason'],
  [401, 'the server has asked for the client to provide credentials'],
  [404, 'the server could not find the requested resource'],
  [405, 'the server does not allow this method on the requested resource'],
  [409, 'the server reported a conflict'],
  [422, 'the server rejected our request due to an error in our request'],
  [429, 'the server has received too many requests and has asked us to try again later'],
  [503, 'the server is currently unable to handle the request'],
  [
    504,
    'the server was unable to return a response in the time allotted, but may still be processing the request',
  ],
]);

/** client-go's message for a code (apimachinery `errors.NewGenericServerResponse`). */
function codeMessage({ status, contentType, bytes }: WebhookAnswer): string {
  const isText = contentType === '' || /^text\//i.test(contentType);
  const shown = isText ? bytes.toString('utf8', 0, maxShown).trim() : 'unknown';
  const message = messages.get(status);
  if (message !== undefined) return message;
  if (status === 403 || status === 415) return shown;
  if (status === 406) {
    const isKnown = shown !== '' && shown !== 'unknown';
    return isKnown ? shown : 'the server was unable to respond with a content type that the client supports';
  }
  return status >= 500
    ? `an error on the server (${JSON.stringify(shown)}) has prevented the request from succeeding`
    : `the server responded with the status code ${status} but did not return more information`;
}
