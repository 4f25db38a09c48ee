import { describe, expect, test } from 'vitest';
import {
  asksFor,
  needsCheck,
  kindsToCheck,
  paramKindOf,
} from '../../../../src/controllers/policy-status/plan.ts';

const resources = [
  { group: '', plural: 'events', kind: 'Event', versions: ['v1'] },
  { group: 'events.k8s.io', plural: 'events', kind: 'Event', versions: ['v1'] },
  { group: 'apps', plural: 'deployments', kind: 'Deployment', versions: ['v1', 'v1beta1'] },
  { group: 'apps', plural: 'daemonsets', kind: 'DaemonSet', versions: ['v1'] },
  ...Array.from({ length: 15 }, (_, index) => ({
    group: 'many',
    plural: `r${String(index).padStart(2, '0')}`,
    kind: `R${String(index).padStart(2, '0')}`,
    versions: ['v1'],
  })),
];

function rule(group: string, version: string, ...plurals: string[]) {
  return { apiGroups: [group], apiVersions: [version], resources: plurals };
}

function kinds(...resourceRules: ReturnType<typeof rule>[]): string[] {
  return kindsToCheck({ spec: { matchConstraints: { resourceRules } } }, resources).map(
    ({ group, version, kind }) => `${group}/${version} ${kind}`,
  );
}

describe('the kinds to check', () => {
  test('are those of all rules, sorted, each once', () => {
    expect(kinds(rule('apps', 'v1', 'deployments', 'daemonsets'), rule('apps', 'v1', 'deployments'))).toEqual(
      ['apps/v1 DaemonSet', 'apps/v1 Deployment'],
    );
  });

  test('of the group "" are those of any group', () => {
    expect(kinds(rule('', 'v1', 'events'))).toEqual(['/v1 Event', 'events.k8s.io/v1 Event']);
    expect(kinds(rule('events.k8s.io', 'v1', 'events'))).toEqual(['events.k8s.io/v1 Event']);
  });

  test('are none where groups or versions have wildcards; other resources of a rule count', () => {
    expect(kinds(rule('*', 'v1', 'deployments'), rule('apps', '*', 'deployments'))).toEqual([]);
    expect(kinds(rule('apps', 'v1', '*', 'deployments/scale', '*/*', 'daemonsets'))).toEqual([
      'apps/v1 DaemonSet',
    ]);
    expect(kinds(rule('apps', 'v2', 'deployments'), rule('apps', 'v1', 'nothing'))).toEqual([]);
  });

  test('are ten at most', () => {
    const many = resources.map(({ plural }) => plural).filter((plural) => plural.startsWith('r'));
    const found = kinds(rule('many', 'v1', ...many), rule('apps', 'v1', 'deployments'));
    expect(found).toHaveLength(10);
    expect(found.at(-1)).toBe('many/v1 R09');
  });
});

test('a policy is checked once for each generation', () => {
  expect(needsCheck({ metadata: { generation: 1 }, status: {} })).toBe(true);
  expect(needsCheck({ metadata: { generation: 2 }, status: { observedGeneration: 1 } })).toBe(true);
  expect(needsCheck({ metadata: { generation: 2 }, status: { observedGeneration: 2 } })).toBe(false);
});

test('the kind of parameters is read of its apiVersion', () => {
  const kindOf = (apiVersion: string) => paramKindOf({ spec: { paramKind: { apiVersion, kind: 'K' } } });
  expect(kindOf('v1')).toEqual({ group: '', version: 'v1', kind: 'K' });
  expect(kindOf('a.b/v2')).toEqual({ group: 'a.b', version: 'v2', kind: 'K' });
  expect(paramKindOf({ spec: {} })).toBeUndefined();
});

test.each([
  ['apps', 'v1', true],
  ['apps', 'v1beta1', false],
  ['batch', 'v1', false],
])('a policy about apps/v1 asks for %s/%s: %s', (group, version, isAsked) => {
  const spec = { matchConstraints: { resourceRules: [rule('apps', 'v1', 'deployments')] } };
  expect(asksFor({ spec }, group, version)).toBe(isAsked);
});

test('a policy about the group "" asks for every group', () => {
  const spec = { matchConstraints: { resourceRules: [rule('', 'v1', 'events')] } };
  expect(asksFor({ spec }, 'events.k8s.io', 'v1')).toBe(true);
});
