import { badRequest, StatusError } from '../../objects/status.ts';
import { nameIsDNSLabel, nameIsDNSSubdomain, isDNS1123Subdomain } from '../../objects/names.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';
import {
  anonymousUser,
  serviceAccountGroups,
  unauthenticatedGroup,
  withAuthenticatedGroup,
} from '../authentication/users.ts';
import { aggregateText } from '../../registry/validation/field-errors.ts';
import { domainPrefixedPathErrors } from '../../registry/validation/names.ts';
import { type AccessAttributes, accessForbidden, type Authorizer, requireAccess } from './authorizer.ts';

/**
 * - Reads the impersonation headers of a request (apiserver `endpoints/filters/impersonation`). Whether they are
 *   allowed is decided in `authorization/impersonation-modes.ts`.
 * - The permissions for impersonation (KEP-5284, apiserver `endpoints/filters/impersonation/mode.go`): a request is
 *   allowed by the first mode whose permissions its user has. The mode `associated-node` is left out: it needs tokens
 *   of Pods that name their node.
 */

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
function serviceAccountOf(user: string): { namespace: string; name: string } | undefined {
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

const authentication = 'authentication.k8s.io';
const masters = 'system:masters';
const nodePrefix = 'system:node:';
/** From this number of groups or extras on, access to `*` is checked first (manyAuthorizationChecksInLoop). */
const manyChecks = 4;

/** The constrained modes, and the users to whom they apply. The verb `impersonate` of older versions is tried last. */
const modes: readonly (readonly [mode: string, appliesTo: (wanted: UserInfo) => boolean])[] = [
  ['arbitrary-node', (wanted) => isNode(wanted) && isNameOnly(wanted)],
  ['serviceaccount', (wanted) => serviceAccountOf(wanted.name) !== undefined && isNameOnly(wanted)],
  ['user-info', (wanted) => !isNode(wanted) && serviceAccountOf(wanted.name) === undefined],
];

/**
 * The user that a request is served as.
 *
 * @param access what the request accesses.
 * @throws {StatusError} 403 of the first mode that was tried.
 */
export function impersonated(
  authorizer: Authorizer,
  user: UserInfo,
  access: AccessAttributes,
  wanted: UserInfo,
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
  for (const [mode, appliesTo] of modes) {
    if (!appliesTo(wanted)) continue;
    const granted = passes(() => {
      requireAccess(authorizer, user, { ...access, verb: `impersonate-on:${mode}:${access.verb}` });
      new IdentityCheck(authorizer, user, `impersonate:${mode}`, true).require(wanted);
    });
    if (granted) return actingUser(isNode(wanted) ? { ...wanted, groups: ['system:nodes'] } : wanted);
  }
  if (passes(() => new IdentityCheck(authorizer, user, 'impersonate', false).require(wanted))) {
    return actingUser(wanted);
  }
  throw refusal ?? accessForbidden(user, access, 'all impersonation modes failed');
}

/** Whether the user may impersonate another in one mode. Each part of the identity must be granted. */
class IdentityCheck {
  readonly #authorizer: Authorizer;
  readonly #user: UserInfo;
  readonly #verb: string;
  readonly #constrained: boolean;

  /** @param constrained false for the verb `impersonate` of older versions. */
  constructor(authorizer: Authorizer, user: UserInfo, verb: string, constrained: boolean) {
    this.#authorizer = authorizer;
    this.#user = user;
    this.#verb = verb;
    this.#constrained = constrained;
  }

  /** @throws {StatusError} 403 for the first part that is not granted. */
  require(wanted: UserInfo): void {
    this.#requireName(wanted);
    if (wanted.uid !== '') this.#require(this.#attributes(authentication, 'uids', { name: wanted.uid }));
    this.#requireGroups(wanted.groups);
    this.#requireExtras(Object.entries(wanted.extra));
  }

  #requireName(wanted: UserInfo): void {
    const account = serviceAccountOf(wanted.name);
    if (account !== undefined) this.#require(this.#attributes(this.#group, 'serviceaccounts', account));
    else if (this.#constrained && isNode(wanted)) {
      this.#require(this.#attributes(this.#group, 'nodes', { name: wanted.name.slice(nodePrefix.length) }));
    } else this.#require(this.#attributes(this.#group, 'users', { name: wanted.name }));
  }

  #requireGroups(groups: readonly string[]): void {
    const attributes = (name: string): AccessAttributes => this.#attributes(this.#group, 'groups', { name });
    if (this.#constrained && groups.includes('')) {
      throw this.#refuse(attributes(''), 'impersonating the empty string group is not allowed');
    }
    if (this.#constrained && groups.includes(masters)) {
      throw this.#refuse(attributes(masters), 'impersonating the system:masters group is not allowed');
    }
    if (this.#hasAll(groups.length, attributes('*'))) return;
    for (const group of groups) this.#require(attributes(group));
  }

  #requireExtras(extras: readonly Extra[]): void {
    const attributes = (more: object): AccessAttributes =>
      this.#attributes(authentication, 'userextras', more);
    const invalid = this.#constrained ? invalidExtra(extras) : undefined;
    if (invalid !== undefined) throw this.#refuse(attributes({}), invalid);
    const count = extras.flatMap(([, texts]) => texts).length;
    if (this.#hasAll(count, attributes({ subresource: '*', name: '*' }))) return;
    for (const [key, texts] of extras) {
      for (const text of texts) this.#require(attributes({ subresource: key, name: text }));
    }
  }

  /** The API group of users, groups, ServiceAccounts and nodes. */
  get #group(): string {
    return this.#constrained ? authentication : '';
  }

  #attributes(group: string, resource: string, more: object): AccessAttributes {
    const accessed = { subresource: '', namespace: '', name: '', group, resource, ...more };
    return { verb: this.#verb, path: '', resource: accessed };
  }

  #require(access: AccessAttributes): void {
    requireAccess(this.#authorizer, this.#user, access);
  }

  #refuse(access: AccessAttributes, why: string): StatusError {
    return accessForbidden(this.#user, access, why);
  }

  /** Whether {@link manyChecks} or more groups or extras are all granted at once. */
  #hasAll(count: number, everything: AccessAttributes): boolean {
    if (!this.#constrained || count < manyChecks) return false;
    return this.#authorizer.authorize(this.#user, everything).allowed;
  }
}

type Extra = readonly [key: string, texts: readonly string[]];

/** Why the extras are invalid (validateExtra). */
function invalidExtra(extras: readonly Extra[]): string | undefined {
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

/** The wanted user with the groups that every such user is in. */
function actingUser(wanted: UserInfo): UserInfo {
  const namespace = serviceAccountOf(wanted.name)?.namespace;
  const isBareAccount = namespace !== undefined && wanted.groups.length === 0;
  const groups = isBareAccount ? serviceAccountGroups(namespace) : wanted.groups;
  const user = { ...wanted, groups };
  if (groups.includes(unauthenticatedGroup)) return user;
  if (user.name !== anonymousUser.name) return withAuthenticatedGroup(user);
  return { ...user, groups: [...groups, unauthenticatedGroup] };
}

function isNode({ name }: UserInfo): boolean {
  return name.startsWith(nodePrefix) && isDNS1123Subdomain(name.slice(nodePrefix.length)).length === 0;
}

function isNameOnly({ uid, groups, extra }: UserInfo): boolean {
  return uid === '' && groups.length === 0 && Object.keys(extra).length === 0;
}
