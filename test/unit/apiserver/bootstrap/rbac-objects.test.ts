import type { ClusterRole, RoleBinding } from '../../../../src/objects/types/rbac.generated.ts';
import { describe, expect, test } from 'vitest';
import { reconciledBinding, reconciledRole } from '../../../../src/apiserver/bootstrap/rbac-objects.ts';

const autoupdate = 'rbac.authorization.kubernetes.io/autoupdate';

function role(verbs: readonly string[], annotation = 'true'): ClusterRole {
  return {
    metadata: { name: 'r', labels: { l: 'mine' }, annotations: { [autoupdate]: annotation } },
    rules: [{ verbs: [...verbs], apiGroups: [''], resources: ['pods'] }],
  };
}

describe('a stored role', () => {
  test('is given the rules that it lacks, and keeps its own', () => {
    expect(reconciledRole(role(['delete', 'get']), role(['get', 'list', 'watch']))?.rules).toEqual([
      { verbs: ['delete', 'get'], apiGroups: [''], resources: ['pods'] },
      { verbs: ['list', 'watch'], apiGroups: [''], resources: ['pods'] },
    ]);
  });

  test('is left alone when it grants all', () => {
    expect(reconciledRole(role(['*']), role(['get', 'list']))).toBeUndefined();
  });

  test('is left alone when its owner wants that', () => {
    expect(reconciledRole(role(['get'], 'false'), role(['get', 'list']))).toBeUndefined();
  });

  test('gets the labels that it lacks, and keeps those that were set', () => {
    const wanted = role(['get']);
    wanted.metadata.labels = { l: 'theirs', other: 'x' };
    expect(reconciledRole(role(['get']), wanted)?.metadata.labels).toEqual({ l: 'mine', other: 'x' });
  });

  test('is given the selectors that it lacks', () => {
    const aggregated = (...names: readonly string[]): ClusterRole => ({
      metadata: role([]).metadata,
      rules: null,
      aggregationRule: { clusterRoleSelectors: names.map((name) => ({ matchLabels: { [name]: 'true' } })) },
    });
    expect(reconciledRole(aggregated('a'), aggregated('b'))?.aggregationRule).toEqual(
      aggregated('a', 'b').aggregationRule,
    );
  });
});

describe('a stored binding', () => {
  const binding = (roleName: string, ...groups: readonly string[]): RoleBinding => ({
    metadata: role([]).metadata,
    roleRef: { kind: 'ClusterRole', name: roleName },
    subjects: groups.map((name) => ({ kind: 'Group', name })),
  });

  test('is given the subjects that it lacks', () => {
    expect(reconciledBinding(binding('r', 'a'), binding('r', 'b'))).toMatchObject({
      subjects: binding('r', 'a', 'b').subjects,
    });
    expect(reconciledBinding(binding('r', 'a', 'b'), binding('r', 'b'))).toBeUndefined();
  });

  test('to another role is made again, unless its owner wants it as it is', () => {
    expect(reconciledBinding(binding('other'), binding('r', 'a'))).toBe('recreate');
    const kept = { ...binding('other'), metadata: role([], 'false').metadata };
    expect(reconciledBinding(kept, binding('r', 'a'))).toBeUndefined();
  });
});
