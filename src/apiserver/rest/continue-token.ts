import { posix } from 'node:path';
import { isRecord } from '../../objects/json.ts';
import { decodeBase64Url } from '../../objects/base64url.ts';
import { badRequest } from '../../objects/status-errors.ts';
import { parseJson } from '../schema/json/parse-json.ts';
import { JsonSyntaxError, RawNumber } from '../schema/json/go-json.ts';
import { jsonTypeName } from '../schema/version-kind.ts';

/** The position at which a chunked list continues (apiserver `storage/continue.go`). */
export interface ContinueToken {
  /** The revision of the first page; -1: go on at the newest state, consistency is lost. */
  readonly revision: number;
  /**
   * The first key of the next page, relative to the listed keys; in tokens of the server the last key of the page and a NUL.
   */
  readonly start: string;
}

/** The token as clients see it: base64url without padding of its JSON. */
export function encodeContinue(token: ContinueToken): string {
  const json = JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.revision, start: token.start });
  return Buffer.from(json).toString('base64url');
}

/** @throws {StatusError} 400 with kube-apiserver's words for tokens that are none (`storage.DecodeContinue`). */
export function decodeContinue(text: string): ContinueToken {
  const bytes = decodeBase64Url(text);
  if (typeof bytes === 'number') throw invalidToken(`illegal base64 data at input byte ${bytes}`);
  const { version, revision, start } = readToken(bytes);
  if (version !== 'meta.k8s.io/v1') {
    throw invalidToken(`server does not recognize this encoded version ${version}`);
  }
  if (revision === 0) {
    throw invalidToken('incorrect encoded start resourceVersion (version meta.k8s.io/v1)');
  }
  if (start === '') throw invalidToken('encoded start key empty (version meta.k8s.io/v1)');
  // A start key must be below the prefix, and in the store's spelling.
  const key = start.startsWith('/') ? start : `/${start}`;
  if (cleaned(key) !== key) throw invalidToken(start);
  return { revision, start: key.slice(1) };
}

interface WrittenToken {
  readonly version: string;
  readonly revision: number;
  readonly start: string;
}

/** The JSON as Go's encoding/json reads it into its struct: names in any case, null for what is not there. */
function readToken(bytes: Buffer): WrittenToken {
  let value: unknown;
  try {
    ({ value } = parseJson(bytes));
  } catch (error) {
    throw error instanceof JsonSyntaxError ? invalidToken(error.message) : error;
  }
  if (value !== null && !(isRecord(value) && !(value instanceof RawNumber))) {
    throw mismatch(value, 'value of type storage.continueToken');
  }
  let [version, revision, start] = ['', 0, ''];
  for (const [name, member] of Object.entries(value ?? {})) {
    if (member === null) continue;
    const lower = name.toLowerCase();
    if (lower === 'v') version = textOf(member, 'v');
    else if (lower === 'rv') revision = integerOf(member);
    else if (lower === 'start') start = textOf(member, 'start');
  }
  return { version, revision, start };
}

function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string') throw mismatch(value, `struct field continueToken.${field} of type string`);
  return value;
}

function integerOf(value: unknown): number {
  const literal = value instanceof RawNumber ? value.literal : String(value);
  const isNumber = value instanceof RawNumber || typeof value === 'number';
  const number = isNumber && /^-?\d+$/.test(literal) ? BigInt(literal) : undefined;
  if (number !== undefined && BigInt.asIntN(64, number) === number) return Number(number);
  throw mismatch(value, 'struct field continueToken.rv of type int64', isNumber ? ` ${literal}` : '');
}

function mismatch(value: unknown, into: string, literal = ''): Error {
  const type = value instanceof RawNumber ? 'number' : jsonTypeName(value);
  return invalidToken(`json: cannot unmarshal ${type}${literal} into Go ${into}`);
}

/** Go's `path.Clean`, which keeps no slash at the end. */
function cleaned(key: string): string {
  const normal = posix.normalize(key);
  return normal.length > 1 && normal.endsWith('/') ? normal.slice(0, -1) : normal;
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}
