/**
 * Acting as somebody else by request headers (apiserver `endpoints/filters/impersonation.go`). What a request asks
 * for is read here; whether it may is the authorizer's to say, about each of the attributes.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { badRequest } from '../../objects/status-errors.ts';
import type { UserInfo } from '../http/exchange.ts';
import { anonymousUser, withAuthenticatedGroup } from './users.ts';

/** One thing that the real user must be allowed to `impersonate`. */
interface ImpersonationAttribute {
  readonly group: '' | 'authentication.k8s.io';
  readonly resource: 'users' | 'groups' | 'serviceaccounts' | 'uids' | 'userextras';
  /** The key of an extra. */
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Impersonation {
  /** Whom the request is served as, once all attributes are granted. */
  readonly user: UserInfo;
  readonly attributes: readonly ImpersonationAttribute[];
}

const serviceAccountPrefix = 'system:serviceaccount:';
const extraPrefix = 'impersonate-extra-';

/**
 * Reads the impersonation headers; undefined when there are none.
 *
 * @throws {StatusError} 400 for a group, uid or extra without a user.
 */
export function impersonation(headers: IncomingHttpHeaders): Impersonation | undefined {
  const name = single(headers['impersonate-user']);
  const uid = single(headers['impersonate-uid']);
  const groups = values(headers['impersonate-group']);
  const extraKeys = Object.keys(headers).filter((key) => key.startsWith(extraPrefix));
  if (name === '') {
    if (uid === '' && groups.length === 0 && extraKeys.length === 0) return undefined;
    throw badRequest('requested to impersonate a group, a uid or an extra without impersonating a user');
  }
  const attributes: ImpersonationAttribute[] = [];
  const authentication = 'authentication.k8s.io';
  const none = { subresource: '', namespace: '' };
  const account = serviceAccount(name);
  if (account === undefined) attributes.push({ group: '', resource: 'users', ...none, name });
  else attributes.push({ group: '', resource: 'serviceaccounts', subresource: '', ...account });
  for (const group of groups) attributes.push({ group: '', resource: 'groups', ...none, name: group });
  const extra = new Map<string, readonly string[]>();
  for (const header of extraKeys) {
    const key = decodeKey(header.slice(extraPrefix.length));
    const list = values(headers[header]);
    extra.set(key, list);
    for (const value of list) {
      const row = { subresource: key, namespace: '', name: value };
      attributes.push({ group: authentication, resource: 'userextras', ...row });
    }
  }
  if (uid !== '') attributes.push({ group: authentication, resource: 'uids', ...none, name: uid });
  return { user: impersonated(name, uid, groups, extra, account?.namespace), attributes };
}

function impersonated(
  name: string,
  uid: string,
  groups: readonly string[],
  extra: ReadonlyMap<string, readonly string[]>,
  accountNamespace: string | undefined,
): UserInfo {
  const own =
    groups.length > 0 || accountNamespace === undefined
      ? groups
      : ['system:serviceaccounts', `system:serviceaccounts:${accountNamespace}`];
  const user = { name, uid, groups: own, extra: Object.fromEntries(extra) };
  if (name === anonymousUser.name)
    return groups.length > 0 ? user : { ...user, groups: anonymousUser.groups };
  return withAuthenticatedGroup(user);
}

function serviceAccount(user: string): { namespace: string; name: string } | undefined {
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
