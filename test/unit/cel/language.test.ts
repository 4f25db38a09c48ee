import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { issuesOf, valueOf } from './evaluating.ts';
import { anyCharacter } from '../../support/any-character.ts';

describe('literals', () => {
  test.each<[string, unknown]>([
    ['-9223372036854775808 < 0', true],
    ['0x1F', 31],
    ['5u', 5],
    ['1.5e3', 1500],
    ['.5', 0.5],
    [String.raw`"\u00e9\x41\101\n"`, 'éAA\n'],
    [String.raw`r"\d+"`, String.raw`\d+`],
    [`'''a\n"b"'''`, 'a\n"b"'],
    [String.raw`b'\xff'.size()`, 1],
    [`"a" // a comment`, 'a'],
    ['[1, 2,]', [1, 2]],
    [`{'a': 1,}`, { a: 1 }],
    ['null', null],
  ])('%s', (expression, expected) => {
    expect(valueOf(expression)).toEqual(expected);
  });

  test('any text comes back as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        const literal = `"${Array.from(text, (c) => `\\U${(c.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`).join('')}"`;
        fc.pre(text.isWellFormed());
        expect(valueOf(literal)).toBe(text);
      }),
    );
  });
});

describe('operators', () => {
  test.each<[string, unknown]>([
    ['1 + 2 * 3 - 4 / 2 % 3', 5],
    ['-7 / 2', -3],
    ['-7 % 2', -1],
    ['1 < 1.5 && 2u > 1', true],
    ['"a" < "b" && !("😀" < "\uffff")', true],
    ['[1] + [2] == [1, 2]', true],
    [`{'a': 1} == {'a': 1}`, true],
    ['2 in self.numbers', true],
    [`'app' in self.labels`, true],
    ['true ? 1 : 2', 1],
    ['!!true', true],
    ['- - 1', 1],
    [`self.port == 5 || self.port == 'http'`, true],
    ['dyn(1) == 1.0', true],
    [`dyn(1) == 'a'`, false],
    ['self == self', true],
    ['self.numbers[0]', 1],
    [`self.labels['app']`, 'web'],
    ['self.labels.app', 'web'],
    ['has(self.missing)', false],
    ['has(self.labels.app) && !has(self.labels.other)', true],
    ['type(self.port) == string', true],
    ['self.count > 3 && self.ratio < 1.0', true],
  ])('%s', (expression, expected) => {
    expect(valueOf(expression)).toEqual(expected);
  });

  test.each([
    ['9223372036854775807 + 1', 'integer overflow'],
    ['1 / 0', 'division by zero'],
    ['1 % 0', 'modulus by zero'],
    ['0u - 1u', 'unsigned integer overflow'],
    ['self.numbers[9]', 'index out of bounds: 9'],
    [`self.labels['x']`, 'no such key: x'],
    ['self.missing', 'no such key: missing'],
    ['self.port > 5', 'no such overload'],
    [`int('x')`, 'strconv.ParseInt: parsing "x": invalid syntax'],
  ])('%s fails', (expression, message) => {
    expect(() => valueOf(expression)).toThrow(message);
  });

  test('an operand that decides makes up for one that fails, on either side', () => {
    expect(valueOf('1 / 0 == 1 || true')).toBe(true);
    expect(valueOf('true || 1 / 0 == 1')).toBe(true);
    expect(valueOf('1 / 0 == 1 && false')).toBe(false);
    expect(() => valueOf('1 / 0 == 1 && true')).toThrow('division by zero');
  });
});

describe('macros', () => {
  test.each<[string, unknown]>([
    ['self.numbers.all(n, n > 0)', true],
    ['self.numbers.exists(n, n > 2)', true],
    ['self.numbers.exists_one(n, n > 2)', true],
    ['self.numbers.existsOne(n, n > 1)', false],
    ['self.numbers.filter(n, n > 1)', [2, 3]],
    ['self.numbers.map(n, n * 2)', [2, 4, 6]],
    ['self.numbers.map(n, n > 1, n * 2)', [4, 6]],
    [`self.labels.all(k, k != 'x')`, true],
    ['self.numbers.all(i, n, n == i + 1)', true],
    [`self.labels.exists(k, v, k == 'app' && v == 'web')`, true],
    ['self.numbers.transformList(i, n, n * i)', [0, 2, 6]],
    ['self.numbers.transformList(i, n, i > 0, n)', [2, 3]],
    [`self.labels.transformMap(k, v, v + '!')`, { app: 'web!', tier: 'front!' }],
    ['self.labels.transformMapEntry(k, v, {v: k})', { web: 'app', front: 'tier' }],
    ['[[1, 2], [3]].all(l, l.all(n, n > 0))', true],
    ['[1].map(n, [2].map(n, n))', [[2]]],
    ['[0, 1].exists(n, 1 / n == 1)', true],
    ['[0, 2].all(n, 1 / n == 1)', false],
  ])('%s', (expression, expected) => {
    expect(valueOf(expression)).toEqual(expected);
  });

  test('a quantifier tells of a failure that nothing makes up for', () => {
    expect(() => valueOf('[0, 1].all(n, 1 / n == 1)')).toThrow('division by zero');
  });
});

describe('optionals', () => {
  test.each<[string, unknown]>([
    ['self.?count.orValue(1)', 5],
    [`self.?missing.orValue('none')`, 'none'],
    ['self.?labels.?x', 'none'],
    ['self.?labels.app', { of: 'web' }],
    ['self.numbers[?9].hasValue()', false],
    [`self.labels[?'app'].value()`, 'web'],
    [`[?self.?missing, 'a']`, ['a']],
    [`{?'a': self.?count, ?'b': optional.none()}`, { a: 5 }],
    ['self.?count.optMap(c, c + 1)', { of: 6 }],
    ['self.?missing.optFlatMap(m, self.?name)', 'none'],
    ['optional.of(1).or(optional.of(2)).value()', 1],
    ['optional.ofNonZeroValue(0).hasValue()', false],
    ['optional.of(1).orValue(1 / 0)', 1],
    ['self.numbers.first().value() + self.numbers.last().value()', 4],
    ['[optional.of(1), optional.none()].unwrapOpt()', [1]],
  ])('%s', (expression, expected) => {
    expect(valueOf(expression)).toEqual(expected);
  });
});

test('errors of optMap and optFlatMap have the text of cel-go 0.30', () => {
  const faults = (source: string): string[] => {
    const fault = issuesOf(source);
    return Array.from(fault.matchAll(/^ERROR: <input>:1:(.*)$/gm), ([, text = '']) => text);
  };
  const name = (macro: string) => `${macro}() variable name must be a simple identifier`;
  expect(faults('self.?name.optMap(1, x)')).toEqual([`19: ${name('optMap')}`]);
  expect(faults('self.?name.optFlatMap(x.y, x)')).toEqual([`24: ${name('optFlatMap')}`]);
  const overload = (what: string) => `found no matching overload for '${what}' applied to 'string.()'`;
  expect(faults('self.name.optMap(x, x).hasValue()')).toEqual([
    `17: ${overload('hasValue')}`,
    `17: ${overload('value')}`,
  ]);
  const undeclared = (what: string) => `undeclared reference to '${what}' (in container '')`;
  expect(faults('y.optMap(x, x)')).toEqual([`1: ${undeclared('y')}`, `1: ${undeclared('y')}`]);
  // In the order of their places: a function that is none stands in front of its arguments.
  expect(faults('self.?name.optMap(x)')).toEqual([`18: ${undeclared('optMap')}`, `19: ${undeclared('x')}`]);
  expect(faults(`y${'.optMap(x, x)'.repeat(40)}`)).toHaveLength(100);
});

describe('an expression does not compile', () => {
  test.each([
    [
      'self.true',
      "ERROR: <input>:1:6: Syntax error: mismatched input 'true' expecting IDENTIFIER\n | self.true\n | .....^",
    ],
    [
      "[1, 2, 'a', true]",
      "ERROR: <input>:1:8: expected type 'int' but found 'string'\n | [1, 2, 'a', true]\n | .......^",
    ],
    ['self.other', "ERROR: <input>:1:5: undefined field 'other'\n | self.other\n | ....^"],
    [
      "self.count > 'a'",
      "ERROR: <input>:1:12: found no matching overload for '_>_' applied to '(int, string)'\n | self.count > 'a'\n | ...........^",
    ],
    ['other', "ERROR: <input>:1:1: undeclared reference to 'other' (in container '')\n | other\n | ^"],
    [
      'self.name.startsWith(1)',
      "ERROR: <input>:1:21: found no matching overload for 'startsWith' applied to 'string.(int)'\n | self.name.startsWith(1)\n | ....................^",
    ],
    ['[1, "a"]', "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, \"a\"]\n | ....^"],
    [
      'self.count.all(n, true)',
      "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | self.count.all(n, true)\n | ....^",
    ],
    [
      'self.numbers.all(n, n)',
      "ERROR: <input>:1:17: found no matching overload for '_&&_' applied to '(bool, int)'\n | self.numbers.all(n, n)\n | ................^",
    ],
    [
      'self.count.x',
      "ERROR: <input>:1:11: type 'int' does not support field selection\n | self.count.x\n | ..........^",
    ],
    [
      '"ell" in "hello"',
      'ERROR: <input>:1:7: found no matching overload for \'@in\' applied to \'(string, string)\'\n | "ell" in "hello"\n | ......^',
    ],
    ["duration('abc')", "ERROR: <input>:1:10: invalid duration argument\n | duration('abc')\n | .........^"],
    [
      "self.name.matches('(')",
      "ERROR: <input>:1:19: invalid matches argument\n | self.name.matches('(')\n | ..................^",
    ],
    ['a b', "ERROR: <input>:1:3: Syntax error: extraneous input 'b' expecting <EOF>\n | a b\n | ..^"],
    ['has(self)', 'ERROR: <input>:1:5: invalid argument to has() macro\n | has(self)\n | ....^'],
    ['if', 'ERROR: <input>:1:1: reserved identifier: if\n | if\n | ^'],
    [
      'if + 99999999999999999999',
      'ERROR: <input>:1:1: reserved identifier: if\n | if + 99999999999999999999\n | ^\n' +
        'ERROR: <input>:1:6: invalid int literal\n | if + 99999999999999999999\n | .....^',
    ],
    [
      'has(1) || [1].all(1, true)',
      'ERROR: <input>:1:5: invalid argument to has() macro\n | has(1) || [1].all(1, true)\n | ....^\n' +
        'ERROR: <input>:1:19: argument must be a simple name\n | has(1) || [1].all(1, true)\n | ..................^',
    ],
    [
      'if ? 1',
      "ERROR: <input>:1:1: reserved identifier: if\n | if ? 1\n | ^\nERROR: <input>:1:7: Syntax error: mismatched input '<EOF>' expecting ':'\n | if ? 1\n | ......^",
    ],
  ])('%s', (expression, expected) => {
    expect(issuesOf(expression)).toBe(expected);
  });

  // cel-go's own tests and kube-apiserver's have these.
  const start =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
  test.each<[string, readonly string[]]>([
    [
      "self.name = 'x'",
      ["11: token recognition error at: '= '", "13: extraneous input ''x'' expecting <EOF>"],
    ],
    ['a | b', ["3: token recognition error at: '| '", "5: extraneous input 'b' expecting <EOF>"]],
    [
      '*@a | b',
      [
        `1: extraneous input '*' expecting ${start}`,
        "2: token recognition error at: '@'",
        "5: token recognition error at: '| '",
        "7: extraneous input 'b' expecting <EOF>",
      ],
    ],
    ['1 + $', ["5: token recognition error at: '$'", `6: mismatched input '<EOF>' expecting ${start}`]],
    [
      '"\\xFh"',
      [
        "1: token recognition error at: '\"\\xFh'",
        "6: token recognition error at: '\"'",
        `7: mismatched input '<EOF>' expecting ${start}`,
      ],
    ],
    ['(1 + 2', ["7: missing ')' at '<EOF>'"]],
    ['((1 + 2', ["8: mismatched input '<EOF>' expecting ')'"]],
    ['self.numbers.all(n, n > 1', ["26: missing ')' at '<EOF>'"]],
    ['(1 2)', ["4: extraneous input '2' expecting ')'"]],
    ['{"a" 1}', ["6: missing ':' at '1'"]],
    ['in', [`1: mismatched input 'in' expecting ${start}`]],
  ])('of its syntax: %s', (expression, expected) => {
    const told = issuesOf(expression).matchAll(/^ERROR: <input>:1:(.*)$/gm);
    expect(Array.from(told, ([, text = '']) => text.replace('Syntax error: ', ''))).toEqual(expected);
  });

  test('is told line and column', () => {
    expect(issuesOf('self.count > 1 &&\n  self.x')).toBe(
      "ERROR: <input>:2:7: undefined field 'x'\n |   self.x\n | ......^",
    );
  });

  test('because it is nested too deeply or too long', () => {
    expect(issuesOf(`${'('.repeat(300)}1${')'.repeat(300)}`)).toContain('recursion limit exceeded: 250');
    expect(issuesOf(`1${' + 1'.repeat(300)}`)).toContain('recursion limit exceeded: 250');
    expect(issuesOf(`[1]${'[0]'.repeat(300)}`)).toContain('recursion limit exceeded: 250');
    expect(issuesOf(' '.repeat(100_001))).toContain('size exceeds limit');
  });

  test('but a long chain of alternatives does', () => {
    expect(valueOf(Array.from({ length: 5000 }, () => 'false').join('||'))).toBe(false);
  });
});

test('no text makes the parser fail otherwise than by an error of its own', () => {
  const pieces = fc.constantFrom(
    ...'self . ? [ ] ( ) { } , : + - ! && || == in has all 1 "a" \' null x . r" // \\'.split(' '),
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      expect(issuesOf(parts.join(' '))).toMatch(/^(ERROR: <input>:|$)/);
    }),
    { numRuns: 500 },
  );
});

describe('an evaluation ends at its cost limit', () => {
  test.each([
    'self.numbers.all(a, self.numbers.all(b, self.numbers.all(c, true)))',
    `'aaaaaaaaaa'.replace('', '${'b'.repeat(400)}').size() > 0`,
    `[self.name, self.name].map(n, n + n + n).size() > 0`,
    `sets.equivalent(self.numbers, self.numbers) && self == self && self == self`,
  ])('%s', (expression) => {
    expect(() => valueOf(expression, 25)).toThrow('operation cancelled: actual cost limit exceeded');
  });

  test('and no operator makes up for that', () => {
    expect(() => valueOf('self.numbers.all(a, a > 0) || true', 5)).toThrow('actual cost limit exceeded');
  });
});
