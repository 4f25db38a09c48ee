/**
 * Reads the impersonation headers of a request (apiserver `endpoints/filters/impersonation`). Whether they are allowed
 * is decided in `authorization/impersonation-modes.ts`.
 */
import { badRequest } from '../../objects/status-errors.ts';
import { nameIsDNSLabel, nameIsDNSSubdomain } from '../../objects/names.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

const serviceAccountPrefix = 'system:serviceaccount:';
const prefix = 'impersonate-';
const extraPrefix = 'extra-';
/** The length of the shortest header, `Impersonate-Uid`. */
const shortest = prefix.length + 3;

/**
 * The user that a request asks to impersonate; undefined without impersonation headers. Each repetition of a header
 * adds a group, or a value of an extra; commas do not separate values.
 *
 * @param rawHeaders names and values in turn: Node's `headers` joins repeated ones with commas.
 * @throws {StatusError} 400 for a group, uid or extra without a user.
 */
export function wantedUser(rawHeaders: readonly string[]): UserInfo | undefined {
  let name: string | undefined;
  let uid: string | undefined;
  const groups: string[] = [];
  const extra = new Map<string, string[]>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] ?? '';
    if (header.length < shortest || !header.toLowerCase().startsWith(prefix)) continue;
    const rest = header.slice(prefix.length).toLowerCase();
    const value = Buffer.from(rawHeaders[at + 1] ?? '', 'latin1').toString('utf8');
    if (rest === 'user') name ??= value;
    else if (rest === 'uid') uid ??= value;
    else if (rest === 'group') groups.push(value);
    else if (rest.startsWith(extraPrefix)) {
      const key = decodeKey(rest.slice(extraPrefix.length));
      const values = extra.get(key);
      if (values === undefined) extra.set(key, [value]);
      else values.push(value);
    }
  }
  const wanted = { name: name ?? '', uid: uid ?? '', groups, extra: Object.fromEntries(extra) };
  if (wanted.name !== '') return wanted;
  if (wanted.uid === '' && groups.length === 0 && extra.size === 0) return undefined;
  throw badRequest(`requested ${goText(wanted)} without impersonating a user name`);
}

/** As Go prints a `*user.DefaultInfo` with `%#v`. */
function goText({ name, uid, groups, extra }: UserInfo): string {
  const list = (texts: readonly string[]) =>
    texts.length === 0
      ? '[]string(nil)'
      : `[]string{${texts.map((text) => JSON.stringify(text)).join(', ')}}`;
  const members = Object.keys(extra)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${list(extra[key] ?? [])}`);
  const map =
    members.length === 0 ? 'map[string][]string(nil)' : `map[string][]string{${members.join(', ')}}`;
  const start = `&user.DefaultInfo{Name:${JSON.stringify(name)}, UID:${JSON.stringify(uid)}`;
  return `${start}, Groups:${list(groups)}, Extra:${map}}`;
}

/** The namespace and name of a ServiceAccount's user name; undefined for other users (`serviceaccount.SplitUsername`). */
export function serviceAccountOf(user: string): { namespace: string; name: string } | undefined {
  if (!user.startsWith(serviceAccountPrefix)) return undefined;
  const [namespace = '', name = '', ...more] = user.slice(serviceAccountPrefix.length).split(':');
  const wrong = [...nameIsDNSLabel(namespace, false), ...nameIsDNSSubdomain(name, false), ...more];
  return wrong.length > 0 ? undefined : { namespace, name };
}

/** Clients percent-encode the characters of a key that header names cannot have. */
function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
