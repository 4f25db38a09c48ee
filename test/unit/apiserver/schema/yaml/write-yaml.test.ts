import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseYaml } from '../../../../../src/apiserver/schema/yaml/parse-yaml.ts';
import { writeYaml, yamlParts } from '../../../../../src/apiserver/schema/yaml/write-yaml.ts';
import { anyCharacter } from '../../../../support/any-character.ts';
import { runs } from '../../../../support/runs.ts';

/** What a text means to readers of YAML 1.2 and 1.1. */
function readings(text: string): unknown[] {
  return [parse(text), parse(text, { version: '1.1' })];
}

/** Parts of texts that mean something to YAML, or that some version of it reads as another type. */
const word = fc.constantFrom(
  ...['a', 'é', '😀', ' ', '\n', '\t', '\r', '\x7f', '\x85', '\u2028', '\ufeff', '\ufffe'],
  ...['#', ':', '-', '?', '"', "'", '|', '>', '%', '&', '*', '!', '[', ']', '{', '}', ',', '\\', '=', '~'],
  ...['---', '...', '<<', 'null', 'yes', 'on', 'n', 'inf', 'nan', '2001-01-01', '12:30'],
  ...['0', '7', '.', '_', 'e', '+', '0x', '0X', '0o', '0b', '1e999', '.5'],
);
const text = fc.oneof(
  fc.array(word, { maxLength: 6 }).map((words) => words.join('')),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    text,
    fc.constantFrom(0, -1, 1.5, 1e-7, 1e21, 2 ** 53 - 1, true, false, null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4 }),
  ),
}));
/** As a body has it, without prototypes of its own. */
const json = value.map((any): unknown => JSON.parse(JSON.stringify(any)));

describe('YAML', () => {
  test('is read by YAML 1.1, YAML 1.2 and go-yaml as what was written', () => {
    fc.assert(
      fc.property(json, (written) => {
        const yaml = writeYaml(written);
        for (const read of readings(yaml)) expect(read).toEqual(written);
        // As go-yaml reads it.
        expect(parseYaml(Buffer.from(yaml)).value).toEqual(written);
      }),
      { numRuns: runs(150, 500) },
    );
  });

  // as sigs.k8s.io/yaml 1.6.0 writes them
  test.each<[written: unknown, yaml: string]>([
    [
      { kind: 'X', apiVersion: 'v1', b: [{ d: 1, c: [] }], a: {} },
      'a: {}\napiVersion: v1\nb:\n- c: []\n  d: 1\nkind: X\n',
    ],
    [['yes', '012', '1e3', '12:30', '', '~'], '- "yes"\n- "012"\n- "1e3"\n- "12:30"\n- ""\n- "~"\n'],
    [{ a: 'b\n  c\n', d: 'e\nf' }, 'a: |\n  b\n    c\nd: |-\n  e\n  f\n'],
  ])('of %j', (written, yaml) => {
    expect(writeYaml(written)).toBe(yaml);
  });

  test('keeps long texts in one line', () => {
    const line = 'the quick brown fox '.repeat(20).trim();
    expect(writeYaml({ line })).toBe(`line: ${line}\n`);
  });
});

describe('parts of a large value', () => {
  const many = <T>(count: number, item: (i: number) => T): T[] =>
    Array.from({ length: count }, (_, i) => item(i));
  const nested = (levels: number, of: unknown): unknown =>
    many(levels, (i) => i).reduce<unknown>((inner, i) => (i % 2 === 0 ? { a: inner } : [inner]), of);

  test.each<[about: string, value: unknown]>([
    ['a long list', { a: many(10_000, (i) => `item ${i}`), b: 'x\ny\n' }],
    ['a large map', Object.fromEntries(many(3_000, (i) => [`key: ${i}`, '1\n2']))],
    ['a list of lists', many(5, () => many(1_500, (i) => [i]))],
    ['large members of maps in lists', [{ a: many(5_000, (i) => i), b: [many(5_000, () => 'x\n\n y')] }, 1]],
    ['a large member of a long name', { ['k'.repeat(2_000)]: many(5_000, (i) => ({ i })), ['l\n']: 1 }],
    ['a deep value', { a: nested(900, 'x'), b: 1 }],
  ])('%s', (_about, large) => {
    const parts = [...yamlParts(large)];
    expect(parts.length).toBeGreaterThan(1);
    for (const read of readings(parts.join(''))) expect(read).toEqual(large);
  });

  test('the depth of a value does not multiply its text', () => {
    expect(
      writeYaml(
        nested(
          900,
          many(1_000, (i) => i),
        ),
      ).length,
    ).toBeLessThan(200_000);
  });
});
