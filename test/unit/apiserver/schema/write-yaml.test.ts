import { expect, test } from 'vitest';
import { writeYaml } from '../../../../src/apiserver/schema/write-yaml.ts';

// Recorded of sigs.k8s.io/yaml 1.6.0 (JSONToYAML).
test.each<[value: unknown, yaml: string]>([
  [null, 'null\n'],
  [true, 'true\n'],
  [1.5, '1.5\n'],
  [100000000000000000000, '1e+20\n'],
  [6000000000, '6000000000\n'],
  [1234567.5, '1.2345675e+06\n'],
  [1e-7, '1e-07\n'],
  ['', '""\n'],
  ['yes', '"yes"\n'],
  ['~', '"~"\n'],
  ['1', '"1"\n'],
  ['012', '"012"\n'],
  ['0b-1', '"0b-1"\n'],
  ['1e3', '"1e3"\n'],
  ['1e999', '1e999\n'],
  ['.5', '".5"\n'],
  ['.', '.\n'],
  ['2001-01-01', '"2001-01-01"\n'],
  ['2001-02-30', '2001-02-30\n'],
  ['2001-1-1t1:1:1.5+01:00', '"2001-1-1t1:1:1.5+01:00"\n'],
  ['12:30', '"12:30"\n'],
  ['<<', '<<\n'],
  ['- a', "'- a'\n"],
  ['a: b', "'a: b'\n"],
  ['a:b', 'a:b\n'],
  ['a #b', "'a #b'\n"],
  ['#a', "'#a'\n"],
  [' a', "' a'\n"],
  ['a ', "'a '\n"],
  ["it's: so", "'it''s: so'\n"],
  ['tab\there', '"tab\\there"\n'],
  ['😀', '"\\U0001F600"\n'],
  ['\ufeffa', '"\\uFEFF\\x61"\n'],
  ['a\u2028 b', '"a\\L b"\n'],
  ['a\u2028b', "'a\u2028  b'\n"],
  ['a\nb', '|-\n  a\n  b\n'],
  ['a\nb\n', '|\n  a\n  b\n'],
  ['a\n\n', '|+\n  a\n\n'],
  ['\na', '|2-\n\n  a\n'],
  [' a\nb', '|2-\n   a\n  b\n'],
  ['a \nb', '"a \\nb"\n'],
  ['a\nb ', '"a\\nb "\n'],
  [[], '[]\n'],
  [{}, '{}\n'],
  [[[1, [2]], []], '- - 1\n  - - 2\n- []\n'],
  [
    { a: [], b: {}, c: [{ d: 1, e: [1] }], f: { g: ['x'] } },
    'a: []\nb: {}\nc:\n- d: 1\n  e:\n  - 1\nf:\n  g:\n  - x\n',
  ],
  [{ a10: 1, a9: 2, A: 3, a_b: 4, aB: 5, a: 6, '.': 7 }, '.: 7\nA: 3\na: 6\na_b: 4\na9: 2\na10: 1\naB: 5\n'],
  [
    {
      kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk:
        { a: 1 },
      lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll:
        ['x'],
    },
    '? kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\n: a: 1\n? lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll\n: - x\n',
  ],
  [{ '': 1, 'a: b': 2, no: 3 }, '"": 1\n\'a: b\': 2\n"no": 3\n'],
  [
    { a: 'the quick brown fox jumps over the lazy dog the quick brown fox jumps over the lazy dog' },
    'a: the quick brown fox jumps over the lazy dog the quick brown fox jumps over the\n  lazy dog\n',
  ],
  [
    {
      a: {
        b: '- the quick brown fox jumps over the lazy dog the quick brown fox jumps over the lazy dog the quick brown fox jumps over the lazy dog',
      },
    },
    "a:\n  b: '- the quick brown fox jumps over the lazy dog the quick brown fox jumps over\n    the lazy dog the quick brown fox jumps over the lazy dog'\n",
  ],
  [
    {
      a: [
        'yes:\tthe quick brown fox jumps over the lazy dog  the quick brown fox jumps over the lazy dog the quick brown fox jumps over the lazy dog',
      ],
    },
    'a:\n- "yes:\\tthe quick brown fox jumps over the lazy dog  the quick brown fox jumps over\n  the lazy dog the quick brown fox jumps over the lazy dog"\n',
  ],
  [
    {
      a: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y  z w',
    },
    'a: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n  y  z w\n',
  ],
])('%j as YAML', (value, yaml) => {
  expect(writeYaml(value)).toBe(yaml);
});
