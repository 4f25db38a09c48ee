import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const group = 'rbac.authorization.k8s.io';
const roleRef = { apiGroup: group, kind: 'Role', name: 'r' };

describe('a Role', () => {
  it.each([
    [
      {},
      [
        'rules[0].verbs: Required value',
        'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
        'rules[0].resources: Required value: resource rules must supply at least one resource',
      ],
    ],
    [
      { verbs: ['get'], nonResourceURLs: ['/healthz'] },
      [
        'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs',
      ],
    ],
    [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }, []],
  ])('with the rule %j has the errors %j', (rule, errors) => {
    expect(create(definitionOf('Role'), { rules: [rule] }).errors).toEqual(errors);
  });

  it('of the cluster may name paths, and roles have any name that a path can hold', () => {
    const rules = [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }];
    const named = { metadata: { name: 'system:A b' }, rules };
    expect(create(definitionOf('ClusterRole'), named).errors).toEqual([]);
    expect(create(definitionOf('ClusterRole'), { metadata: { name: 'a/b' }, rules }).errors).toEqual([
      `metadata.name: Invalid value: "a/b": may not contain '/'`,
    ]);
  });
});

describe('a RoleBinding', () => {
  const bindings = definitionOf('RoleBinding');

  it('names the group of roles, users and groups by itself', () => {
    const subjects = [
      { kind: 'User', name: 'jane' },
      { kind: 'ServiceAccount', name: 'sa' },
    ];
    expect(create(bindings, { roleRef: { kind: 'Role', name: 'r' }, subjects }).object).toMatchObject({
      roleRef,
      subjects: [
        { kind: 'User', apiGroup: group, name: 'jane' },
        { kind: 'ServiceAccount', name: 'sa' },
      ],
    });
  });

  it.each([
    [
      { roleRef: { kind: 'Pod', name: 'r' } },
      ['roleRef.kind: Unsupported value: "Pod": supported values: "Role", "ClusterRole"'],
    ],
    [{ roleRef, subjects: [{ kind: 'User' }] }, ['subjects[0].name: Required value']],
    [
      { roleRef, subjects: [{ kind: 'Robot', name: 'r' }] },
      ['subjects[0].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"'],
    ],
  ])('%j is refused', (body, errors) => {
    expect(create(bindings, body).errors).toEqual(errors);
  });

  it('keeps its role', () => {
    const old = create(bindings, { roleRef }).stored;
    expect(update(bindings, old, { roleRef: { ...roleRef, name: 's' } }).errors).toEqual([
      `roleRef: Invalid value: {"APIGroup":"${group}","Kind":"Role","Name":"s"}: field is immutable`,
    ]);
  });

  it('of the cluster says where its service accounts are', () => {
    const body = {
      roleRef: { kind: 'ClusterRole', name: 'r' },
      subjects: [{ kind: 'ServiceAccount', name: 'a' }],
    };
    expect(create(definitionOf('ClusterRoleBinding'), body).errors).toEqual([
      'subjects[0].namespace: Required value',
    ]);
  });
});
