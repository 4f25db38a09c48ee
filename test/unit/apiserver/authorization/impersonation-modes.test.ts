import { describe, expect, test } from 'vitest';
import { wantedUser } from '../../../../src/apiserver/authentication/impersonation.ts';
import type { AccessAttributes, Authorizer } from '../../../../src/apiserver/authorization/authorizer.ts';
import { impersonated } from '../../../../src/apiserver/authorization/impersonation-modes.ts';
import type { UserInfo } from '../../../../src/apiserver/http/exchange.ts';

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
  const wanted = wantedUser(headers);
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
});
