import fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, test } from 'vitest';
import { CostLimitError, Meter } from '../../../src/cel/meter.ts';
import { compilePattern, findMatches, hasMatch } from '../../../src/cel/patterns/program.ts';
import { Program } from '../../../src/cel/program.ts';
import { stringType } from '../../../src/cel/types.ts';
import { compileSteps } from '../../../src/cel/patterns/syntax.ts';
import { issuesOf, valueOf } from './evaluating.ts';
import { runs } from '../../support/runs.ts';

function meter(): Meter {
  return new Meter(1_000_000);
}

function all(pattern: string, text: string): string[] {
  return findMatches(compilePattern(pattern), text, -1, meter());
}

/** Patterns over a few characters, with all that patterns can do to each other. */
const pattern = fc.letrec<{ pattern: string; atom: string }>((tie) => ({
  atom: fc.oneof(
    { withCrossShrink: true },
    fc.constantFrom(
      'a',
      'b',
      '.',
      '[ab]',
      '[^a]',
      '\\b',
      '\\B',
      '^',
      '$',
      '(?m:^)',
      '(?m:$)',
      '(?i:A)',
      '😀',
    ),
    fc.constantFrom(
      '',
      '\\w',
      '(?s:.)',
      '\\pL',
      '\\x{1F600}',
      '[^\\W\\pL]',
      '[[:^upper:]]',
      '\\Qa|b\\E',
      '\\141',
      '{1',
    ),
    fc
      .tuple(
        tie('pattern'),
        fc.constantFrom('*', '+', '?', '*?', '+?', '??', '{2}', '{1,3}', '{0,2}?', '{2,}', '{0}', ''),
      )
      .map(([inner, repeated]) => `(${inner})${repeated}`),
    fc
      .tuple(fc.constantFrom('(?i:', '(?U:', '(?-s)(?:', '(?ims)('), tie('pattern'))
      .map(([begin, inner]) => `${begin}${inner})`),
  ),
  pattern: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('atom'),
    fc.tuple(tie('atom'), tie('pattern')).map(([first, rest]) => first + rest),
    fc.tuple(tie('pattern'), tie('pattern')).map(([first, second]) => `${first}|${second}`),
  ),
})).pattern;
const subject = fc.string({ unit: fc.constantFrom('a', 'b', 'A', '\n', ' ', '😀'), maxLength: 12 });

/** Go's `FindAllString`, by the library's own search from each match on. */
function expected(source: string, text: string): string[] {
  const matcher = RE2JS.compile(source).matcher(text);
  const found: string[] = [];
  let before = -1;
  while (matcher.find()) {
    if (matcher.end() > matcher.start() || matcher.start() !== before) found.push(matcher.group() ?? '');
    before = matcher.end();
  }
  return found;
}

describe('matches of a pattern', () => {
  test('are the ones that the library finds, for every pattern and text', () => {
    fc.assert(
      fc.property(pattern, subject, (source, text) => {
        const found = all(source, text);
        expect(found).toEqual(expected(source, text));
        expect(hasMatch(compilePattern(source), text, meter())).toBe(found.length > 0);
      }),
      { numRuns: runs(500, 2000) },
    );
  });

  test.each([
    ['.*x|a', 'aaa', ['a', 'a', 'a']],
    ['a*', 'baac', ['', 'aa', '']],
    ['a*?', 'aa', ['', '', '']],
    ['(|a)*', 'aa', ['', '', '']],
    ['(a|ab)(c|bcd)', 'abcd', ['abcd']],
    ['[0-9]*', '123 abc 456', ['123', '', '', '', '', '456']],
    ['\\bfoo\\b', 'foo foobar foo', ['foo', 'foo']],
    ['(?P<one>a)(?<two>b)', 'abab', ['ab', 'ab']],
    ['(?i)k\\x73', 'KS \u212a\u017f ks', ['KS', '\u212a\u017f', 'ks']],
    ['a{,2}', 'a{,2} aa', ['a{,2}']],
    ['\\p{Greek}+|\\p{^L}', 'αβ1', ['αβ', '1']],
  ])('%s in %j', (source, text, found) => {
    expect(all(source, text)).toEqual(found);
  });

  test('are found by the hundreds in a long text', () => {
    expect(all('[a-z]+', 'abc def '.repeat(2000))).toHaveLength(4000);
    expect(all('\\pL+', 'αβγ שלום '.repeat(1000))).toHaveLength(2000);
  });

  test('as many as are asked for', () => {
    expect(findMatches(compilePattern('a'), 'aaa', 2, meter())).toEqual(['a', 'a']);
    expect(findMatches(compilePattern('a'), 'aaa', 0, meter())).toEqual([]);
  });
});

/** Steps that finding all matches takes. */
function steps(source: string, text: string): number {
  const counted = new Meter(Number.MAX_SAFE_INTEGER);
  findMatches(compilePattern(source), text, -1, counted);
  return counted.steps;
}

describe('steps', () => {
  /** Those with which searching again from each match goes to the end of the text each time. */
  const hostile = [
    '.*x|a',
    '(.*)(.*)(.*)x|a',
    '(a*)*x|a',
    '(a|aa)*x|a',
    'a.*a.*a.*x|a',
    '(?:.{0,50}x|a)',
    '\\b.*x|a',
  ];

  test.each(hostile)('%s takes twice as many over a text twice as long', (source) => {
    const short = steps(source, 'a'.repeat(1000));
    const long = steps(source, 'a'.repeat(2000));
    expect(long).toBeLessThan(2.1 * short);
  });

  test('no pattern takes more than a fixed number for a character and an instruction', () => {
    fc.assert(
      fc.property(pattern, subject, (source, text) => {
        const size = compilePattern(source).instructions.length;
        // re2js is asked about characters beyond ASCII.
        const most = text.includes('😀') ? 44 : 8;
        expect(steps(source, text)).toBeLessThanOrEqual(most * (size + 1) * (text.length + 1));
      }),
    );
  });

  test('an evaluation that takes too many is ended', () => {
    const program = compilePattern('^(.{0,500}x)+$');
    const text = `${'a'.repeat(400)}x`.repeat(250);
    expect(() => findMatches(program, text, -1, meter())).toThrow(CostLimitError);
    expect(() => hasMatch(program, `\n${text}`, meter())).toThrow(CostLimitError);
  });
});

describe('compiling', () => {
  test.each([
    ['.{0,1000}'.repeat(100)],
    ['((a{10}){10}){10}'.repeat(40)],
    ['(?i)\\pL'.repeat(1000)],
    [`(${'ab?'.repeat(100)}){900}`],
    ['[[:alpha:]\\p{Greek}]'.repeat(1000)],
  ])('a pattern that would take long is refused before it is begun (%#)', (source) => {
    expect(() => compilePattern(source)).toThrow('error parsing regexp: expression too large');
    expect(() => valueOf(`self.name.matches(self.name + ${JSON.stringify(source)})`)).toThrow(
      'actual cost limit exceeded',
    );
  });

  test('each pattern counts once in an evaluation', () => {
    const counted = new Meter(1000);
    counted.compile('a', 9000);
    counted.compile('a', 9000);
    expect(() => {
      counted.compile('b', 9000);
    }).toThrow(CostLimitError);
  });

  test('takes a budget of several evaluations only where it is done', () => {
    const counted = new Meter(1000);
    counted.compile('a', 9000, true);
    expect(counted.burden).toBe(0);
    counted.compile('b', 900);
    expect(counted.burden).toBe(45);
    counted.charge(46);
    expect(counted.burden).toBe(46);
  });

  test('the number of steps is never less than 500 for an instruction of the library', () => {
    fc.assert(
      fc.property(pattern, (source) => {
        expect(compileSteps(source)).toBeGreaterThanOrEqual(500 * compilePattern(source).instructions.length);
      }),
    );
  });

  test.each([
    ['^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$', 500_000],
    ['[\\p{L}\\p{N}]{1,253}', 400_000],
    ['\\x{1000}[]a{1000}]\\{1000}', 20_000],
    ['[a', 20_000],
    ['a)b', 20_000],
  ])('%s takes no more than it must', (source, most) => {
    expect(compileSteps(source)).toBeLessThan(most);
  });
});

describe('what an evaluation takes off a budget', () => {
  const program = new Program(
    'text.findAll(pattern).size() >= 0',
    new Map([
      ['text', stringType],
      ['pattern', stringType],
    ]),
  );
  const outcome = (pattern: string, text: string) => {
    // The first time compiles the pattern.
    const evaluate = () =>
      program.evaluate(
        new Map([
          ['text', text],
          ['pattern', pattern],
        ]),
        1_000_000,
      );
    evaluate();
    return evaluate();
  };

  test('is its cost where that says how long it takes', () => {
    const { cost, burden } = outcome(
      '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
      'a.b-c.example.com',
    );
    expect(burden).toBe(cost);
  });

  test('is more where many things are looked at for little cost', () => {
    const { cost, burden } = outcome('(.{0,300}x)+y|a', 'ax'.repeat(1000));
    expect(burden).toBeGreaterThan(3 * cost);
  });
});

describe('what is no pattern', () => {
  test('fails in the words of the function that was asked', () => {
    expect(() => valueOf(`self.name.find(self.name + '(')`)).toThrow(
      'Illegal regex: error parsing regexp: missing closing )',
    );
    expect(() => valueOf(`self.name.matches(self.name + '(')`)).toThrow(
      /^error parsing regexp: missing closing \)/,
    );
  });

  test('is refused with the expression when it is written down', () => {
    expect(issuesOf(`self.name.find('(')`)).toContain('error parsing regexp: missing closing )');
    expect(issuesOf(`self.name.findAll('(', 1)`)).toContain('error parsing regexp: missing closing )');
  });
});
