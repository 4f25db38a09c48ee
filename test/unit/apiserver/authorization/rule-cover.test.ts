import { describe, expect, test } from 'vitest';
import type { WholeRule } from '../../../../src/apiserver/authorization/rbac.ts';
import { describeRule, missingRules } from '../../../../src/apiserver/authorization/rule-cover.ts';

function rule(changes: Partial<WholeRule>): WholeRule {
  return { verbs: ['get'], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [], ...changes };
}
const pods = (changes: Partial<WholeRule> = {}) => rule({ apiGroups: [''], resources: ['pods'], ...changes });

function missing(held: readonly WholeRule[], wanted: readonly WholeRule[]): string[] {
  return missingRules(held, wanted).map(describeRule);
}

describe('what is granted is held', () => {
  test.each<[string, WholeRule, WholeRule]>([
    ['the same', pods(), pods()],
    ['stars', rule({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }), pods({ verbs: ['x', '*'] })],
    ['all names', pods(), pods({ resourceNames: ['a', 'b'] })],
    ['more names', pods({ resourceNames: ['a', 'b', 'c'] }), pods({ resourceNames: ['c', 'a'] })],
    ['a subresource of all', pods({ resources: ['*/log'] }), pods({ resources: ['pods/log'] })],
    ['a path below', rule({ nonResourceURLs: ['/api/*'] }), rule({ nonResourceURLs: ['/api/v1', '/api/*'] })],
  ])('by %s', (_name, held, wanted) => {
    expect(missing([held], [wanted])).toEqual([]);
  });

  test('by several rules together', () => {
    const held = [
      pods(),
      pods({ verbs: ['list'] }),
      pods({ resources: ['services'], verbs: ['get', 'list'] }),
    ];
    expect(missing(held, [pods({ resources: ['pods', 'services'], verbs: ['get', 'list'] })])).toEqual([]);
  });
});

test('a rule that comes to more than can be listed is looked at as it is', () => {
  const names = (of: string) => Array.from({ length: 1000 }, (_, i) => `${of}-${i}`);
  const huge = rule({ apiGroups: names('group'), resources: names('resource'), verbs: names('verb') });
  expect(missing([], [huge])).toEqual([describeRule(huge)]);
  expect(missing([pods(), rule({ apiGroups: ['*'], resources: ['*'], verbs: ['*'] })], [huge])).toEqual([]);
  expect(missing([huge], [huge])).toEqual([]);
});

describe('what is granted is not held', () => {
  test.each<[string, WholeRule[], WholeRule, string[]]>([
    [
      'nothing',
      [],
      pods({ verbs: ['get', 'list'] }),
      ['{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'],
    ],
    [
      'another verb',
      [pods()],
      pods({ verbs: ['get', 'watch'] }),
      ['{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}'],
    ],
    [
      'one name',
      [pods({ resourceNames: ['a'] })],
      pods(),
      ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
    ],
    [
      'another name',
      [pods({ resourceNames: ['a'] })],
      pods({ resourceNames: ['a', 'b'] }),
      ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'],
    ],
    [
      'a star of what is named',
      [pods()],
      pods({ apiGroups: ['*'] }),
      ['{APIGroups:["*"], Resources:["pods"], Verbs:["get"]}'],
    ],
    [
      'a subresource',
      [pods()],
      pods({ resources: ['pods/exec'] }),
      ['{APIGroups:[""], Resources:["pods/exec"], Verbs:["get"]}'],
    ],
    [
      'a path',
      [rule({ nonResourceURLs: ['/api/*'] })],
      rule({ nonResourceURLs: ['/apis'] }),
      ['{NonResourceURLs:["/apis"], Verbs:["get"]}'],
    ],
  ])('where %s is held', (_name, held, wanted, lines) => {
    expect(missing(held, [wanted])).toEqual(lines);
  });
});
