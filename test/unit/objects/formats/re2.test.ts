import { expect, test } from 'vitest';
import { compileRe2 } from '../../../../src/objects/formats/re2.ts';

test('an expression is compiled once, and one that is none says why', () => {
  expect(compileRe2('a+')).toBe(compileRe2('a+'));
  expect(compileRe2('^a+$').matcher('aa').find()).toBe(true);
  expect(() => compileRe2('a(')).toThrow('missing closing )');
  // Go's engine has no references back, which would take more than linear time.
  expect(() => compileRe2('(a)\\1')).toThrow('invalid escape sequence');
});

test('the oldest of many expressions is forgotten', () => {
  const first = compileRe2('first');
  for (let n = 0; n < 2000; n++) compileRe2(`other-${n}`);
  expect(compileRe2('first')).not.toBe(first);
});
