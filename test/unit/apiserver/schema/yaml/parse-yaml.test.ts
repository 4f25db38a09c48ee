import { describe, expect, it } from 'vitest';

import { parseYaml } from '../../../../../src/apiserver/schema/yaml/parse-yaml.ts';

const valueOf = (text: string): unknown => parseYaml(Buffer.from(text)).value;

describe('the value of a YAML document', () => {
  it.each([
    ['a: 1\nb: [x, 2.5, true, null, ~]\n', { a: 1, b: ['x', 2.5, true, null, null] }],
    ['', null],
    ['1: a\ntrue: b\n2.5: c\n', { 1: 'a', true: 'b', 2.5: 'c' }],
    ['a: <<\n"<<": b\n', { a: '<<', '<<': 'b' }],
    ['a: 2020-01-01\n', { a: '2020-01-01' }],
    ['a: &x [1]\nb: *x\nc: {d: *x}\n', { a: [1], b: [1], c: { d: [1] } }],
    // An anchor can be set again: an alias means the last one before it.
    ['a: &x 1\nb: *x\nc: &x 2\nd: *x\n', { a: 1, b: 1, c: 2, d: 2 }],
    ['a: &y {b: &x 1}\nc: &x 2\nd: *y\ne: *x\n', { a: { b: 1 }, c: 2, d: { b: 1 }, e: 2 }],
    ['a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n', { a: { b: 1, c: 2 }, d: { b: 1, c: 3 } }],
    ['<<: [{a: 1}, {a: 2, b: 3}]\n', { a: 1, b: 3 }],
    ['&x a: 1\nb: *x\n', { a: 1, b: 'a' }],
  ])('%j is %j', (text, value) => {
    expect(valueOf(text)).toEqual(value);
  });

  it.each([
    ['a: &x [*x]\n', "anchor 'x' value contains itself"],
    ['a: &x {b: {c: *x}}\n', "anchor 'x' value contains itself"],
    ['b: *x\na: &x 1\n', "unknown anchor 'x' referenced"],
    ['<<: 1\n', 'map merge requires map or sequence of maps as the value'],
    ['a: &x [1]\n<<: *x\n', 'map merge requires map or sequence of maps as the value'],
    ['<<: [[{a: 1}]]\n', 'map merge requires map or sequence of maps as the value'],
  ])('%j: %s', (text, problem) => {
    expect(() => valueOf(text)).toThrow(`yaml: ${problem}`);
  });

  it('reads an alias as often as yaml.v2 does', () => {
    const list = `a: &x 1\nb: [${'*x, '.repeat(5_000)}]\nc: [${'1, '.repeat(100)}]\n`;
    expect(valueOf(list)).toMatchObject({ b: Array.from({ length: 5_000 }, () => 1) });
  });

  it('refuses aliases that multiply, and such as repeat a long text', () => {
    const levels = Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(10)}]\n`);
    expect(() => valueOf(`a0: &a0 1\n${levels.join('')}`)).toThrow('document contains excessive aliasing');
    const long = `a: &x ${'x'.repeat(1_000_000)}\nb: [*x, *x, *x, *x]\n`;
    expect(() => valueOf(long)).toThrow('document contains excessive aliasing');
  });

  it.each([
    ['tokens', 'a: b\n'.repeat(10_000), 'limit is 30000 tokens of YAML'],
    ['lines', `a: |\n${' b\n'.repeat(200_000)}`, 'limit is 200000 lines of YAML'],
    [
      'values',
      `a: &a [${'1,'.repeat(300)}]\nb: [${'*a,'.repeat(90)}]\nc: [${'1,'.repeat(300)}]`,
      'limit is 20000 values',
    ],
  ])('refuses too many %s', (_, text, problem) => {
    expect(() => valueOf(text)).toThrow(`Request entity too large: ${problem}`);
  });

  it('reads the first document only, however many there are', () => {
    expect(valueOf(`a: 1\n${'---\n'.repeat(700_000)}`)).toEqual({ a: 1 });
  });

  it.each([
    ['quotes', 'x\\"'.repeat(300_000)],
    ['backslashes', '\\"'.repeat(300_000)],
  ])('says what is wrong with many %s in one pass', (_, text) => {
    expect(() => valueOf(`a: [x${text}`)).toThrow('yaml: ');
  });
});
