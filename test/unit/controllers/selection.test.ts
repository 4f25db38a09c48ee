import { describe, expect, it } from 'vitest';
import { selectControllers } from '../../../src/controllers/selection.ts';

const known = [
  { name: 'a', onByDefault: true },
  { name: 'b', onByDefault: true },
  { name: 'c', onByDefault: false },
];

describe('selectControllers', () => {
  it.each([
    [[], []],
    [['*'], ['a', 'b']],
    [
      ['*', 'c'],
      ['a', 'b', 'c'],
    ],
    [['*', '-a'], ['b']],
    [['-a', '*'], ['b']],
    [
      ['c', 'a'],
      ['a', 'c'],
    ],
    [['-a'], []],
    [['a', '-a'], []],
    [[' a '], ['a']],
  ])('%j: %j', (choice, expected) => {
    expect(selectControllers(choice, known)).toEqual(expected);
  });

  it.each([['x'], ['-x'], ['']])('refuses %j', (item) => {
    expect(() => selectControllers([item], known)).toThrow(
      `"${item}" is not in the list of known controllers: a, b, c`,
    );
  });
});
