import { isRecord } from '../../objects/json.ts';
import { badRequest } from '../../objects/status-errors.ts';

/** Where a chunked list goes on (apiserver `storage/continue.go`). */
export interface ContinueToken {
  /** The revision of the first page; -1: go on at the newest state, consistency is lost. */
  readonly revision: number;
  /** The key behind which the next page starts, relative to the listed prefix; ends in NUL. */
  readonly start: string;
}

/** The token as clients see it: base64url without padding of its JSON. */
export function encodeContinue(token: ContinueToken): string {
  const json = JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.revision, start: token.start });
  return Buffer.from(json).toString('base64url');
}

/** @throws {StatusError} 400 with kube-apiserver's words for tokens that are none. */
export function decodeContinue(text: string): ContinueToken {
  const bad = /[^A-Za-z0-9_-]/.exec(text);
  const illegal = bad?.index ?? (text.length % 4 === 1 ? text.length - 1 : -1);
  if (illegal >= 0) throw invalidToken(`illegal base64 data at input byte ${illegal}`);
  const bytes = Buffer.from(text, 'base64url');
  const json = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // Go shows the byte, as the character of that number.
    const first = String.fromCharCode(bytes[0] ?? 0);
    throw invalidToken(
      json === ''
        ? 'unexpected end of JSON input'
        : `invalid character ${goQuote(first)} looking for beginning of value`,
    );
  }
  if (!isRecord(value)) throw invalidToken('the token is no object');
  const { v, rv, start } = value;
  if (v !== 'meta.k8s.io/v1') {
    throw invalidToken(`server does not recognize this encoded version ${typeof v === 'string' ? v : ''}`);
  }
  if (typeof rv !== 'number' || rv === 0 || !Number.isSafeInteger(rv)) {
    throw invalidToken('incorrect encoded start resourceVersion (version meta.k8s.io/v1)');
  }
  if (typeof start !== 'string' || start === '') {
    throw invalidToken('encoded start key empty (version meta.k8s.io/v1)');
  }
  // A start key must stay below the prefix: a cleaned path that leaves it is refused.
  if (start.split('/').includes('..')) throw invalidToken(JSON.stringify(start));
  return { revision: rv, start };
}

function goQuote(char: string): string {
  return char === "'" ? String.raw`'\''` : `'${char}'`;
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}
