/**
 * Acting as somebody else by request headers (apiserver `endpoints/filters/impersonation`). What a request asks
 * for is read here; whether it may is the authorizer's to say.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { badRequest } from '../../objects/status-errors.ts';

/** Whom the headers ask to act as (apiserver `user.DefaultInfo`), before anybody says that it may be. */
export interface WantedUser {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

const serviceAccountPrefix = 'system:serviceaccount:';
const extraPrefix = 'impersonate-extra-';

/**
 * Reads the impersonation headers; undefined when there are none.
 *
 * @throws {StatusError} 400 for a group, uid or extra without a user.
 */
export function wantedUser(headers: IncomingHttpHeaders): WantedUser | undefined {
  const name = single(headers['impersonate-user']);
  const uid = single(headers['impersonate-uid']);
  const groups = values(headers['impersonate-group']);
  const extraKeys = Object.keys(headers).filter((key) => key.startsWith(extraPrefix));
  if (name === '' && uid === '' && groups.length === 0 && extraKeys.length === 0) return undefined;
  const extra: Record<string, readonly string[]> = {};
  for (const header of extraKeys)
    extra[decodeKey(header.slice(extraPrefix.length))] = values(headers[header]);
  const wanted = { name, uid, groups, extra };
  if (name === '') throw badRequest(`requested ${goText(wanted)} without impersonating a user name`);
  return wanted;
}

/** As Go prints a `*user.DefaultInfo` with `%#v`. */
function goText({ name, uid, groups, extra }: WantedUser): string {
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

/** The namespace and name of a ServiceAccount's user name; undefined for other users. */
export function serviceAccount(user: string): { namespace: string; name: string } | undefined {
  if (!user.startsWith(serviceAccountPrefix)) return undefined;
  const [namespace = '', name = '', ...more] = user.slice(serviceAccountPrefix.length).split(':');
  return namespace === '' || name === '' || more.length > 0 ? undefined : { namespace, name };
}

function single(value: string | string[] | undefined): string {
  return (typeof value === 'string' ? value : value?.[0]) ?? '';
}

/** Node joins a repeated header of this kind with ", ". */
function values(value: string | string[] | undefined): string[] {
  if (value === undefined) return [];
  const list = typeof value === 'string' ? value.split(',') : value;
  return list.map((entry) => entry.trim()).filter((entry) => entry !== '');
}

/** Header names cannot carry every key, so that clients percent-encode them. */
function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
