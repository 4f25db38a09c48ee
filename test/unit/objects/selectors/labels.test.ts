import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compileLabelSelector,
  containsLabels,
  matchesLabels,
  parseLabelSelector,
  renderLabelSelector,
} from '../../../../src/objects/selectors/labels.ts';

const keyRule =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const valueRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

describe('parseLabelSelector', () => {
  it.each([
    ['', ''],
    ['a=b', 'a=b'],
    [' a == b , c ', 'a==b,c'],
    ['z,a', 'a,z'],
    ['a in (y,x,y)', 'a in (x,y)'],
    ['a in ()', 'a in ()'],
    ['a in (,)', 'a in ()'],
    ['a in (,b)', 'a in (,b)'],
    ['a in (b,)', 'a in (,b)'],
    ['a in (b,,c)', 'a in (,b,c)'],
    ['a notin (in,notin)', 'a notin (in,notin)'],
    ['in in (in)', 'in in (in)'],
    ['!a,b!=', '!a,b!='],
    ['a>3,b<4', 'a>3,b<4'],
    ['example.com/a=b', 'example.com/a=b'],
    ['constructor=x,a', 'a,constructor=x'],
  ])('reads %j as %j', (text, canonical) => {
    expect(renderLabelSelector(parseLabelSelector(text))).toBe(canonical);
  });

  it.each([
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['a in', "unable to parse requirement: found '' expected: '('"],
    ['a in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
    ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['a in (b c)', "unable to parse requirement: found 'c', expected: ',' or ')'"],
    ['a in (,', "unable to parse requirement: found '', expected: ',', or identifier"],
    ['a=(', "unable to parse requirement: found '(', expected: identifier"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['!!a', "unable to parse requirement: found '!', expected: identifier"],
    ['a,', "found '', expected: identifier after ','"],
    ['a,,b', "found ',', expected: identifier after ','"],
    ['a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['=a', "found '=', expected: !, identifier, or 'end of string'"],
    [',a', "found ',', expected: !, identifier, or 'end of string'"],
    ['a=b=c', "found '=', expected: ',' or 'end of string'"],
    ['a===b', "unable to parse requirement: found '=', expected: identifier"],
    ['!a=b', "found '=', expected: ',' or 'end of string'"],
    ['-a=b', `unable to parse requirement: <nil>: Invalid value: "-a": ${keyRule}`],
    ['a=-b', `unable to parse requirement: values[0][a]: Invalid value: "-b": ${valueRule}`],
    [
      'a in (-b,b,-c)',
      `unable to parse requirement: [values[0][a]: Invalid value: "-b": ${valueRule}, ` +
        `values[1][a]: Invalid value: "-c": ${valueRule}]`,
    ],
    [
      'a>b',
      "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
    ],
  ])('refuses %j', (text, message) => {
    let caught: unknown;
    try {
      parseLabelSelector(text);
    } catch (error) {
      caught = error;
    }
    expect(caught).toMatchObject({ code: 400, reason: 'BadRequest' });
    expect(caught).toHaveProperty('message', message);
  });

  it('never throws anything but a 400, and reads back what it renders', () => {
    const word = fc.constantFrom(
      'a',
      'b',
      'in',
      'notin',
      '=',
      '==',
      '!=',
      '!',
      ',',
      '(',
      ')',
      '<',
      '>',
      ' ',
      '\0',
      '7',
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (words) => {
        const text = words.join('');
        let requirements;
        try {
          requirements = parseLabelSelector(text);
        } catch (error) {
          expect(error).toHaveProperty('code', 400);
          return;
        }
        const rendered = renderLabelSelector(requirements);
        expect(renderLabelSelector(parseLabelSelector(rendered))).toBe(rendered);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('matchesLabels', () => {
  const labels = { tier: 'web', env: '', n: '10' };
  it.each([
    ['tier=web', true],
    ['tier==db', false],
    ['tier!=db', true],
    ['gone!=db', true],
    ['tier in (web,db)', true],
    ['gone in (web)', false],
    ['gone in ()', false],
    ['env in ()', true],
    ['tier notin (web)', false],
    ['gone notin (web)', true],
    ['env', true],
    ['!env', false],
    ['!gone', true],
    ['n>9', true],
    ['n>10', false],
    ['n<11', true],
    ['tier>1', false],
    ['gone<1', false],
    ['env=', true],
    ['gone=', false],
    ['toString', false],
    ['', true],
  ])('%s: %s', (text, expected) => {
    expect(matchesLabels(parseLabelSelector(text), labels)).toBe(expected);
  });

  it('counts absent labels as none', () => {
    expect(matchesLabels(parseLabelSelector('!a'), undefined)).toBe(true);
    expect(containsLabels(undefined, {})).toBe(true);
    expect(containsLabels(undefined, { a: 'b' })).toBe(false);
  });
});

describe('compileLabelSelector', () => {
  it('selects nothing when absent and everything when empty', () => {
    expect(matchesLabels(compileLabelSelector(undefined), { a: 'b' })).toBe(false);
    expect(matchesLabels(compileLabelSelector({}), { a: 'b' })).toBe(true);
  });

  it('joins labels and expressions', () => {
    const selector = compileLabelSelector({
      matchLabels: { a: 'b' },
      matchExpressions: [
        { key: 'c', operator: 'In', values: ['x', 'y'] },
        { key: 'd', operator: 'DoesNotExist' },
      ],
    });
    expect(matchesLabels(selector, { a: 'b', c: 'y' })).toBe(true);
    expect(matchesLabels(selector, { a: 'b', c: 'y', d: '' })).toBe(false);
    expect(matchesLabels(selector, { c: 'y' })).toBe(false);
  });

  it('refuses unknown operators and empty sets', () => {
    expect(() => compileLabelSelector({ matchExpressions: [{ key: 'a', operator: 'Is' }] })).toThrow(
      '"Is" is not a valid label selector operator',
    );
    expect(() => compileLabelSelector({ matchExpressions: [{ key: 'a', operator: 'In' }] })).toThrow(
      "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
    );
  });
});

it('has a bound of words: a watch keeps them', () => {
  const keys = (count: number): string => Array.from({ length: count }, (_, n) => `k${n}`).join(',');
  expect(parseLabelSelector(keys(10_000))).toHaveLength(10_000);
  expect(() => parseLabelSelector(keys(60_000))).toThrow('more than 20000 words');
  expect(() => parseLabelSelector(`a in (${keys(60_000)})`)).toThrow('more than 20000 words');
});
