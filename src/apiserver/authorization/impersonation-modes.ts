/**
 * Who may act as somebody else (KEP-5284, apiserver `endpoints/filters/impersonation/mode.go`): a request passes by the
 * first of several modes whose permissions its user has. The mode of associated nodes is left out: it needs tokens of
 * Pods that name their node.
 */
import type { UserInfo } from '../http/exchange.ts';
import { StatusError } from '../../objects/status.ts';
import { aggregateText } from '../../registry/field-errors.ts';
import { domainPrefixedPathErrors } from '../../registry/domain-prefixed-path.ts';
import { isDNS1123Subdomain } from '../../registry/names.ts';
import { anonymousUser, unauthenticatedGroup, withAuthenticatedGroup } from '../authentication/users.ts';
import { serviceAccount, type WantedUser } from '../authentication/impersonation.ts';
import { type AccessAttributes, accessForbidden, type Authorizer, requireAccess } from './authorizer.ts';

const authentication = 'authentication.k8s.io';
const masters = 'system:masters';
const nodePrefix = 'system:node:';
/** From so many groups or extras on, the right to all of them is asked for first (manyAuthorizationChecksInLoop). */
const manyChecks = 4;

/** The constrained modes with the users that they are for; the old permission is tried behind them. */
const modes: readonly (readonly [mode: string, isFor: (wanted: WantedUser) => boolean])[] = [
  ['arbitrary-node', (wanted) => isNode(wanted) && isNameOnly(wanted)],
  ['serviceaccount', (wanted) => serviceAccount(wanted.name) !== undefined && isNameOnly(wanted)],
  ['user-info', (wanted) => !isNode(wanted) && serviceAccount(wanted.name) === undefined],
];

/**
 * The user that a request is served as.
 *
 * @param access what the request asks for.
 * @throws {StatusError} 403 of the first mode that was tried.
 */
export function impersonated(
  authorizer: Authorizer,
  user: UserInfo,
  access: AccessAttributes,
  wanted: WantedUser,
): UserInfo {
  let refusal: StatusError | undefined;
  const passes = (check: () => void): boolean => {
    try {
      check();
      return true;
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      refusal ??= error;
      return false;
    }
  };
  for (const [mode, isFor] of modes) {
    if (!isFor(wanted)) continue;
    const granted = passes(() => {
      requireAccess(authorizer, user, { ...access, verb: `impersonate-on:${mode}:${access.verb}` });
      requireIdentity(authorizer, user, wanted, `impersonate:${mode}`, true);
    });
    if (granted) return actingUser(isNode(wanted) ? { ...wanted, groups: ['system:nodes'] } : wanted);
  }
  if (passes(() => requireIdentity(authorizer, user, wanted, 'impersonate', false))) {
    return actingUser(wanted);
  }
  throw refusal ?? accessForbidden(user, access, 'all impersonation modes failed');
}

/** Each part of the identity must be granted: the name, the uid, the groups and the extras. */
function requireIdentity(
  authorizer: Authorizer,
  user: UserInfo,
  wanted: WantedUser,
  verb: string,
  constrained: boolean,
): void {
  const none = { subresource: '', namespace: '', name: '' };
  const attributes = (group: string, resource: string, more: object): AccessAttributes => ({
    verb,
    path: '',
    resource: { ...none, group, resource, ...more },
  });
  const group = constrained ? authentication : '';
  const account = serviceAccount(wanted.name);
  const nodeName = wanted.name.slice(nodePrefix.length);
  const name =
    account !== undefined
      ? attributes(group, 'serviceaccounts', account)
      : constrained && isNode(wanted)
        ? attributes(group, 'nodes', { name: nodeName })
        : attributes(group, 'users', { name: wanted.name });
  requireAccess(authorizer, user, name);
  if (wanted.uid !== '') {
    requireAccess(authorizer, user, attributes(authentication, 'uids', { name: wanted.uid }));
  }
  if (constrained && wanted.groups.includes('')) {
    const why = 'impersonating the empty string group is not allowed';
    throw accessForbidden(user, attributes(group, 'groups', {}), why);
  }
  if (constrained && wanted.groups.includes(masters)) {
    const why = 'impersonating the system:masters group is not allowed';
    throw accessForbidden(user, attributes(group, 'groups', { name: masters }), why);
  }
  const has = (asked: AccessAttributes): boolean => authorizer.authorize(user, asked).allowed;
  const many = constrained && wanted.groups.length >= manyChecks;
  if (!many || !has(attributes(group, 'groups', { name: '*' }))) {
    for (const wantedGroup of wanted.groups) {
      requireAccess(authorizer, user, attributes(group, 'groups', { name: wantedGroup }));
    }
  }
  const extras = Object.entries(wanted.extra);
  const fault = constrained ? extraFault(extras) : undefined;
  if (fault !== undefined) throw accessForbidden(user, attributes(authentication, 'userextras', {}), fault);
  const everyExtra = attributes(authentication, 'userextras', { subresource: '*', name: '*' });
  if (constrained && extras.flatMap(([, texts]) => texts).length >= manyChecks && has(everyExtra)) return;
  for (const [key, texts] of extras) {
    for (const text of texts) {
      const extra = attributes(authentication, 'userextras', { subresource: key, name: text });
      requireAccess(authorizer, user, extra);
    }
  }
}

/** What is wrong with the extras for a mode that is no older than it (validateExtra). */
function extraFault(
  extras: readonly (readonly [key: string, texts: readonly string[]])[],
): string | undefined {
  for (const [key, texts] of extras) {
    if (key === '') return 'impersonating the empty string key in extra is not allowed';
    const wrong = domainPrefixedPathErrors('extra.key', key);
    if (wrong.length > 0) {
      return `impersonating an invalid key in extra is not allowed: ${aggregateText(wrong)}`;
    }
    if (key !== key.toLowerCase()) {
      return `impersonating a non-lowercase key in extra is not allowed: ${JSON.stringify(key)}`;
    }
    if (texts.includes('')) return 'impersonating the empty string value in extra is not allowed';
  }
  return undefined;
}

function actingUser(wanted: WantedUser): UserInfo {
  const { name, groups } = wanted;
  const namespace = serviceAccount(name)?.namespace;
  const own =
    groups.length > 0 || namespace === undefined
      ? groups
      : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const user = { ...wanted, groups: own };
  const isUnknown = own.includes(unauthenticatedGroup);
  if (name !== anonymousUser.name) return isUnknown ? user : withAuthenticatedGroup(user);
  return isUnknown ? user : { ...user, groups: [...own, unauthenticatedGroup] };
}

function isNode({ name }: WantedUser): boolean {
  return name.startsWith(nodePrefix) && isDNS1123Subdomain(name.slice(nodePrefix.length)).length === 0;
}

function isNameOnly({ uid, groups, extra }: WantedUser): boolean {
  return uid === '' && groups.length === 0 && Object.keys(extra).length === 0;
}
