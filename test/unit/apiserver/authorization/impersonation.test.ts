import { describe, expect, test } from 'vitest';
import { wantedUser } from '../../../../src/apiserver/authorization/impersonation.ts';
import type { AccessAttributes, Authorizer } from '../../../../src/apiserver/authorization/authorizer.ts';
import { impersonated } from '../../../../src/apiserver/authorization/impersonation.ts';
import type { UserInfo } from '../../../../src/registry/generic/strategy.ts';

const asker: UserInfo = { name: 'ann', uid: '', groups: [], extra: {} };
const listOfPods: AccessAttributes = {
  verb: 'list',
  path: '',
  resource: { group: '', resource: 'pods', subresource: '', namespace: 'ns', name: '' },
};

/** Grants what is listed as `verb resource name`. */
function granting(...grants: string[]): Authorizer {
  return {
    authorize: (_user, { verb, resource }) => {
      const words = [verb, resource?.resource ?? '', resource?.name ?? ''];
      return { allowed: grants.includes(words.filter((word) => word !== '').join(' ')), reason: '' };
    },
  };
}

function act(authorizer: Authorizer, headers: Record<string, string>): UserInfo {
  const wanted = wantedUser(Object.entries(headers).flat());
  if (wanted === undefined) throw new Error('no headers');
  return impersonated(authorizer, asker, listOfPods, wanted);
}

describe('impersonation is granted', () => {
  const jane = { 'impersonate-user': 'jane' };

  test('for all requests, by the old verb', () => {
    expect(act(granting('impersonate users jane'), jane)).toEqual({
      name: 'jane',
      uid: '',
      groups: ['system:authenticated'],
      extra: {},
    });
  });

  test('for this request, by the verbs of a mode, which must both be there', () => {
    const on = 'impersonate-on:user-info:list pods';
    const as = 'impersonate:user-info users jane';
    expect(act(granting(on, as), jane).name).toBe('jane');
    expect(() => act(granting(as), jane)).toThrow(
      'pods is forbidden: User "ann" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"',
    );
    expect(() => act(granting(on), jane)).toThrow(
      'users.authentication.k8s.io "jane" is forbidden: User "ann" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope',
    );
  });

  test('for each group, uid and extra, and by no mode for system:masters', () => {
    const headers = { ...jane, 'impersonate-group': 'system:masters', 'impersonate-uid': 'u' };
    const mode = ['impersonate-on:user-info:list pods', 'impersonate:user-info users jane'];
    const more = ['impersonate:user-info uids u', 'impersonate:user-info groups system:masters'];
    expect(() => act(granting(...mode, ...more), headers)).toThrow(
      'impersonating the system:masters group is not allowed',
    );
    const old = ['impersonate users jane', 'impersonate groups system:masters', 'impersonate uids u'];
    expect(act(granting(...old), headers).groups).toEqual(['system:masters', 'system:authenticated']);
  });

  test('of service accounts and nodes, which bring their groups', () => {
    const account = { 'impersonate-user': 'system:serviceaccount:ns:web' };
    expect(act(granting('impersonate serviceaccounts web'), account).groups).toEqual([
      'system:serviceaccounts',
      'system:serviceaccounts:ns',
      'system:authenticated',
    ]);
    const node = { 'impersonate-user': 'system:node:n1' };
    const grants = ['impersonate-on:arbitrary-node:list pods', 'impersonate:arbitrary-node nodes n1'];
    expect(act(granting(...grants), node).groups).toEqual(['system:nodes', 'system:authenticated']);
  });

  test('to what is no account and no node only by the right to any user', () => {
    for (const name of ['system:serviceaccount:NS:web', 'system:serviceaccount:ns:', 'system:node:N 1']) {
      const wanted = { 'impersonate-user': name };
      const account = ['impersonate serviceaccounts web', 'impersonate:arbitrary-node nodes N 1'];
      expect(() => act(granting(...account, 'impersonate-on:arbitrary-node:list pods'), wanted)).toThrow();
      expect(act(granting(`impersonate users ${name}`), wanted).groups).toEqual(['system:authenticated']);
    }
  });

  test('with the groups of those who are known or not', () => {
    const groupsOf = (name: string, group: string) => {
      const grants = granting(`impersonate users ${name}`, `impersonate groups ${group}`);
      return act(grants, { 'impersonate-user': name, 'impersonate-group': group }).groups;
    };
    expect(groupsOf('jane', 'system:unauthenticated')).toEqual(['system:unauthenticated']);
    expect(groupsOf('system:anonymous', 'a')).toEqual(['a', 'system:unauthenticated']);
  });

  const mode = ['impersonate-on:user-info:list pods', 'impersonate:user-info users jane'];
  test.each<[string, Record<string, string>, string]>([
    ['an empty group', { 'impersonate-group': '' }, 'impersonating the empty string group is not allowed'],
    [
      'an extra without a name',
      { 'impersonate-extra-': 'x' },
      'impersonating the empty string key in extra is not allowed',
    ],
    [
      'an extra without a domain',
      { 'impersonate-extra-a': 'x' },
      'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")',
    ],
    [
      'an extra in large letters',
      { 'impersonate-extra-a.b%2f%43': 'x' },
      'impersonating a non-lowercase key in extra is not allowed: "a.b/C"',
    ],
    [
      'an extra without a value',
      { 'impersonate-extra-a.b%2fc': '' },
      'impersonating the empty string value in extra is not allowed',
    ],
  ])('by no mode for %s', (_, headers, why) => {
    const all = ['groups *', 'groups', 'userextras', 'userextras x', 'userextras *'];
    const grants = granting(...mode, ...all.map((what) => `impersonate:user-info ${what}`));
    expect(() => act(grants, { ...jane, ...headers })).toThrow(why);
  });

  test('for four groups at once by the right to all', () => {
    const raw = ['a', 'b', 'c', 'd'].flatMap((group) => ['Impersonate-Group', group]);
    const wanted = wantedUser(['Impersonate-User', 'jane', ...raw]);
    if (wanted === undefined) throw new Error('no headers');
    const all = granting(...mode, 'impersonate:user-info groups *');
    expect(impersonated(all, asker, listOfPods, wanted).groups).toHaveLength(5);
    expect(() => impersonated(all, asker, listOfPods, { ...wanted, groups: ['a', 'b', 'c'] })).toThrow('"a"');
  });
});
