/**
 * The permissions for impersonation (KEP-5284, apiserver `endpoints/filters/impersonation/mode.go`): a request passes
 * by the first of several modes whose permissions its user has. The mode of associated nodes is left out: it needs
 * tokens of Pods that name their node.
 */
import { anonymousUser, unauthenticatedGroup, withAuthenticatedGroup } from '../authentication/users.ts';
import { StatusError } from '../../objects/status.ts';
import { aggregateText } from '../../registry/validation/field-errors.ts';
import { domainPrefixedPathErrors } from '../../registry/validation/domain-prefixed-path.ts';
import { isDNS1123Subdomain } from '../../objects/names.ts';
import { serviceAccount } from '../authentication/impersonation.ts';
import { type AccessAttributes, accessForbidden, type Authorizer, requireAccess } from './authorizer.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

const authentication = 'authentication.k8s.io';
const masters = 'system:masters';
const nodePrefix = 'system:node:';
/**
 * From this number of groups or extras on, the right to all of them is checked first (manyAuthorizationChecksInLoop).
 */
const manyChecks = 4;

/** The constrained modes with the users that they are for; the old permission is tried behind them. */
const modes: readonly (readonly [mode: string, isFor: (wanted: UserInfo) => boolean])[] = [
  ['arbitrary-node', (wanted) => isNode(wanted) && isNameOnly(wanted)],
  ['serviceaccount', (wanted) => serviceAccount(wanted.name) !== undefined && isNameOnly(wanted)],
  ['user-info', (wanted) => !isNode(wanted) && serviceAccount(wanted.name) === undefined],
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
  for (const [mode, isFor] of modes) {
    if (!isFor(wanted)) continue;
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

  /** @param constrained false for the permission that is older than the modes. */
  constructor(authorizer: Authorizer, user: UserInfo, verb: string, constrained: boolean) {
    this.#authorizer = authorizer;
    this.#user = user;
    this.#verb = verb;
    this.#constrained = constrained;
  }

  /** @throws {StatusError} 403 for the first part that is not granted. */
  require(wanted: UserInfo): void {
    this.#requireName(wanted);
    if (wanted.uid !== '') this.#require(this.#asking(authentication, 'uids', { name: wanted.uid }));
    this.#requireGroups(wanted.groups);
    this.#requireExtras(Object.entries(wanted.extra));
  }

  #requireName(wanted: UserInfo): void {
    const account = serviceAccount(wanted.name);
    if (account !== undefined) this.#require(this.#asking(this.#group, 'serviceaccounts', account));
    else if (this.#constrained && isNode(wanted)) {
      this.#require(this.#asking(this.#group, 'nodes', { name: wanted.name.slice(nodePrefix.length) }));
    } else this.#require(this.#asking(this.#group, 'users', { name: wanted.name }));
  }

  #requireGroups(groups: readonly string[]): void {
    const asking = (name: string): AccessAttributes => this.#asking(this.#group, 'groups', { name });
    if (this.#constrained && groups.includes('')) {
      throw this.#refuse(asking(''), 'impersonating the empty string group is not allowed');
    }
    if (this.#constrained && groups.includes(masters)) {
      throw this.#refuse(asking(masters), 'impersonating the system:masters group is not allowed');
    }
    if (this.#hasAll(groups.length, asking('*'))) return;
    for (const group of groups) this.#require(asking(group));
  }

  #requireExtras(extras: readonly Extra[]): void {
    const asking = (more: object): AccessAttributes => this.#asking(authentication, 'userextras', more);
    const fault = this.#constrained ? extraFault(extras) : undefined;
    if (fault !== undefined) throw this.#refuse(asking({}), fault);
    const count = extras.flatMap(([, texts]) => texts).length;
    if (this.#hasAll(count, asking({ subresource: '*', name: '*' }))) return;
    for (const [key, texts] of extras) {
      for (const text of texts) this.#require(asking({ subresource: key, name: text }));
    }
  }

  /** The API group of names and groups. */
  get #group(): string {
    return this.#constrained ? authentication : '';
  }

  #asking(group: string, resource: string, more: object): AccessAttributes {
    const resourceAsked = { subresource: '', namespace: '', name: '', group, resource, ...more };
    return { verb: this.#verb, path: '', resource: resourceAsked };
  }

  #require(asked: AccessAttributes): void {
    requireAccess(this.#authorizer, this.#user, asked);
  }

  #refuse(asked: AccessAttributes, why: string): StatusError {
    return accessForbidden(this.#user, asked, why);
  }

  /** Whether many groups or extras need no check one by one, because all are granted. */
  #hasAll(count: number, everything: AccessAttributes): boolean {
    if (!this.#constrained || count < manyChecks) return false;
    return this.#authorizer.authorize(this.#user, everything).allowed;
  }
}

type Extra = readonly [key: string, texts: readonly string[]];

/** Why the extras are invalid (validateExtra). */
function extraFault(extras: readonly Extra[]): string | undefined {
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

function actingUser(wanted: UserInfo): UserInfo {
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

function isNode({ name }: UserInfo): boolean {
  return name.startsWith(nodePrefix) && isDNS1123Subdomain(name.slice(nodePrefix.length)).length === 0;
}

function isNameOnly({ uid, groups, extra }: UserInfo): boolean {
  return uid === '' && groups.length === 0 && Object.keys(extra).length === 0;
}
