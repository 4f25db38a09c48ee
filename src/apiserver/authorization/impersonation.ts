import type { IncomingHttpHeaders } from 'node:http';
import { badRequest } from '../../objects/status-errors.ts';
import type { UserInfo } from '../http/exchange.ts';
import { type Authorizer, requireAccess } from './authorizer.ts';

const serviceAccount = /^system:serviceaccount:([^:]+):([^:]+)$/;

/**
 * The user that a request acts as: the `Impersonate-User`, `-Group` and `-Extra-…` headers, each of which the
 * caller must be allowed to impersonate (apiserver `filters/impersonation`).
 *
 * @throws {StatusError} 400 for groups without a user, 403 where it is not allowed.
 */
export function effectiveUser(authorizer: Authorizer, user: UserInfo, headers: IncomingHttpHeaders): UserInfo {
  const name = single(headers['impersonate-user']);
  const groups = list(headers['impersonate-group']);
  const extra = extraOf(headers);
  if (name === '') {
    if (groups.length > 0 || extra.size > 0 || single(headers['impersonate-uid']) !== '') {
      throw badRequest('requested [] without impersonating a user');
    }
    return user;
  }
  const account = serviceAccount.exec(name);
  const [, namespace = '', accountName = ''] = account ?? [];
  if (account === null) requireImpersonation(authorizer, user, '', 'users', '', name);
  else requireImpersonation(authorizer, user, '', 'serviceaccounts', namespace, accountName);
  for (const group of groups) requireImpersonation(authorizer, user, '', 'groups', '', group);
  for (const key of extra.keys()) requireImpersonation(authorizer, user, 'authentication.k8s.io', 'userextras', '', key);
  const implied =
    account === null || groups.length > 0 ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const all = [...groups, ...implied];
  const special = name === 'system:anonymous' ? 'system:unauthenticated' : 'system:authenticated';
  if (!all.includes(special)) all.push(special);
  return { name, uid: single(headers['impersonate-uid']), groups: all, extra: Object.fromEntries(extra) };
}

function requireImpersonation(
  authorizer: Authorizer,
  user: UserInfo,
  group: string,
  resource: string,
  namespace: string,
  name: string,
): void {
  requireAccess(authorizer, user, {
    verb: 'impersonate',
    path: '',
    resource: { group, resource, subresource: '', namespace, name },
  });
}

function single(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : (value?.[0] ?? '');
}

/** Node joins repeated headers with ", "; a group name holds no comma. */
function list(value: string | string[] | undefined): string[] {
  const texts = typeof value === 'string' ? value.split(', ') : (value ?? []);
  return texts.filter((text) => text !== '');
}

function extraOf(headers: IncomingHttpHeaders): Map<string, readonly string[]> {
  const prefix = 'impersonate-extra-';
  const extra = new Map<string, readonly string[]>();
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(prefix)) continue;
    let key = header.slice(prefix.length);
    try {
      key = decodeURIComponent(key);
    } catch {
      // A key that is not percent-encoded is taken as it is, as kube-apiserver does.
    }
    extra.set(key, list(value));
  }
  return extra;
}
