import { describe, expect, test } from 'vitest';
import { Program } from '../../../src/cel/program.ts';
import { valueOf } from './evaluating.ts';

describe("cel-go's functions of lists", () => {
  test.each<[string, unknown]>([
    ['[1, 2, 3, 4].slice(1, 3)', [2, 3]],
    ['[1].slice(1, 1)', []],
    ['[[1], [2, 3], []].flatten()', [1, 2, 3]],
    ['dyn([1, 2]).flatten()', [1, 2]],
    ['[[[1]], [[2, 3]]].flatten(2)', [1, 2, 3]],
    ['[[1]].flatten(0)', [[1]]],
    ['lists.range(3)', [0, 1, 2]],
    ['lists.range(-1)', []],
    ["['a', 'b'].reverse()", ['b', 'a']],
    ['[2, 1, 2, 1].distinct()', [2, 1]],
    ['[[1], [1], [2]].distinct()', [[1], [2]]],
    ['[3, 1, 2].sort()', [1, 2, 3]],
    ["['b', 'B', 'a'].sort()", ['B', 'a', 'b']],
    ["[duration('2s'), duration('1m')].sort()[0] == duration('2s')", true],
    ["['bb', 'a', 'ccc'].sortBy(x, -x.size())", ['ccc', 'bb', 'a']],
    ['[{"n": 2}, {"n": 1}].sortBy(x, x.n)', [{ n: 1 }, { n: 2 }]],
    ['self.numbers.sortBy(x, -x).map(x, x * 2)', [6, 4, 2]],
    ['[].sort()', []],
  ])('%s', (expression, expected) => {
    expect(valueOf(expression)).toEqual(expected);
  });

  test.each([
    ['[1, 2].slice(2, 1)', 'cannot slice(2, 1), start index must be less than or equal to end index'],
    ['[1, 2].slice(-1, 1)', 'cannot slice(-1, 1), negative indexes not supported'],
    ['[1, 2].slice(0, 3)', 'cannot slice(0, 3), list is length 2'],
    ['[[1]].flatten(-1)', 'level must be non-negative'],
    ["dyn([dyn('d'), dyn(3)]).sort()", 'list elements must have the same type'],
    ['dyn([[1], [2]]).sort()', 'list elements must be comparable'],
    ["'a'.sortBy(x, x)", 'sortBy can only be applied to a list, identifier, comprehension, call or select'],
    ['[[1]].sortBy(x, x)', "found no matching overload for '@sortByAssociatedKeys'"],
    ['lists.range(2000000)', 'operation cancelled: actual cost limit exceeded'],
  ])('%s fails', (expression, message) => {
    expect(() => valueOf(expression)).toThrow(message);
  });
});

/** kube-apiserver's own tests have these: `celcoststability_test.go`. */
describe('what they cost', () => {
  test.each([
    ['[1].reverse() == [1]', 13, 33],
    ['[1,2,3,4].slice(1, 3) == [2, 3]', 14, 34],
    ['[1].sort() == [1]', 14, 34],
    ['["d", "a", "b", "c"].sort() == ["a", "b", "c", "d"]', 45, 66],
    ['[].sortBy(e, e) == []', 14, 54],
    ['["a"].sortBy(e, e) == ["a"]', 30, 71],
    ['lists.range(3).sortBy(e, -e) == [2, 1, 0]', 89, 119],
    ["['c', 'a', 'a', 'b', 'a', 'b', 'c', 'c'].distinct() == ['c', 'a', 'b']", 146, undefined],
  ])('%s: %i, at most %i', (expression, cost, most) => {
    const program = new Program(expression, new Map());
    expect(program.evaluate(new Map(), 1_000_000)).toMatchObject({ value: true, cost });
    if (most !== undefined) expect(program.estimateCost(() => undefined)).toBe(most);
  });
});
