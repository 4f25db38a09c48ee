import { describe, expect, it } from 'vitest';
import type { GraphNode } from '../../../../src/controllers/garbage-collection/plan.ts';
import {
  judge,
  type OwnerState,
  type ObjectAction,
} from '../../../../src/controllers/garbage-collection/plan.ts';

function node(
  uid: string,
  part: Partial<GraphNode> & { owned?: string[]; blocking?: string[] } = {},
): GraphNode {
  const { owned = [], blocking = [], ...rest } = part;
  return {
    uid,
    type: { resource: 'things.', group: '', kind: 'Thing' },
    namespace: 'ns',
    name: uid,
    owners: [
      ...owned.map((each) => ({ apiVersion: 'v1', kind: 'Thing', name: each, uid: each })),
      ...blocking.map((each) => ({
        apiVersion: 'v1',
        kind: 'Thing',
        name: each,
        uid: each,
        blockOwnerDeletion: true,
      })),
    ],
    deleting: false,
    foreground: false,
    orphaning: false,
    ...rest,
  };
}

const leaving = { deleting: true, foreground: true } as const;

describe('judge', () => {
  const cases: [string, GraphNode, GraphNode[], Record<string, OwnerState>, ObjectAction][] = [
    ['an object without owners', node('x'), [], {}, { do: 'nothing' }],
    ['an object whose owner is there', node('x', { owned: ['a'] }), [], { a: 'present' }, { do: 'nothing' }],
    [
      'an object whose owner is gone',
      node('x', { owned: ['a'] }),
      [],
      { a: 'absent' },
      { do: 'delete', policy: 'Background' },
    ],
    [
      'an object of which one owner is gone',
      node('x', { owned: ['a', 'b'] }),
      [],
      { a: 'absent', b: 'present' },
      { do: 'forget owners', uids: ['a'] },
    ],
    [
      'an object of which one owner waits',
      node('x', { owned: ['a', 'b'] }),
      [],
      { a: 'waiting', b: 'present' },
      { do: 'forget owners', uids: ['a'] },
    ],
    [
      'an object whose owner waits',
      node('x', { owned: ['a'] }),
      [],
      { a: 'waiting' },
      { do: 'delete', policy: 'Background' },
    ],
    [
      'an object whose owner waits, with dependents',
      node('x', { owned: ['a'] }),
      [node('y', { owned: ['x'] })],
      { a: 'waiting' },
      { do: 'delete', policy: 'Foreground' },
    ],
    [
      'a circle of waiting',
      node('x', { owned: ['a'] }),
      [node('a', { ...leaving, blocking: ['x'] })],
      { a: 'waiting' },
      { do: 'unblock and delete' },
    ],
    [
      'an owner that waits for one that blocks',
      node('x', leaving),
      [
        node('y', { blocking: ['x'] }),
        node('z', { owned: ['x'] }),
        node('w', { ...leaving, blocking: ['x'] }),
      ],
      {},
      { do: 'visit dependents', uids: ['y'] },
    ],
    [
      'an owner without blocking dependents',
      node('x', leaving),
      [node('z', { owned: ['x'] })],
      {},
      { do: 'finish foreground' },
    ],
    [
      'an owner that leaves its dependents',
      node('x', { deleting: true, orphaning: true }),
      [node('y', { owned: ['x'] })],
      {},
      { do: 'orphan dependents', uids: ['y'] },
    ],
    [
      'an object that is being deleted already',
      node('x', { deleting: true, owned: ['a'] }),
      [],
      {},
      { do: 'nothing' },
    ],
  ];
  it.each(cases)('%s', (_name, subject, dependents, owners, expected) => {
    expect(judge({ node: subject, dependents, owners: new Map(Object.entries(owners)) })).toEqual(expected);
  });
});
