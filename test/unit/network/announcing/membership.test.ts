import { describe, expect, test } from 'vitest';
import {
  expiredMembers,
  isAdmitted,
  type Member,
  votersOf,
} from '../../../../src/network/announcing/membership.ts';

const member = (acquired: string, voters: Readonly<Record<string, string>> = {}): Member => ({
  acquired,
  voters: new Map(Object.entries(voters)),
});

describe('members', () => {
  test('are admitted when all others name them as they are now', () => {
    const members = new Map([
      ['a', member('1', { b: '2' })],
      ['b', member('2', { a: '1' })],
      ['c', member('3', { a: '1', b: '2' })],
    ]);
    expect([...members.keys()].filter((node) => isAdmitted(node, members))).toEqual(['a', 'b']);
    members.set('b', member('4', { a: '1' }));
    expect(isAdmitted('b', members)).toBe(false);
    expect(isAdmitted('d', members)).toBe(false);
    expect(votersOf('a', members)).toEqual(
      new Map([
        ['b', '4'],
        ['c', '3'],
      ]),
    );
  });

  test('are given back when they have died by those that they name', () => {
    const members = new Map([
      ['a', member('1')],
      ['b', member('2', { a: '0' })],
      ['c', member('3', {})],
      ['d', member('4', { a: '1' })],
    ]);
    expect(expiredMembers('a', members, (node) => node === 'd')).toEqual(['b']);
  });
});
