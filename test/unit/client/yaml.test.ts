import { expect, test } from 'vitest';
import { readYaml } from '../../../src/client/yaml.ts';

test('files are read as kubectl reads them, by YAML 1.1', () => {
  const text = 'mode: 0644\non: yes\nday: 2026-01-02\ntime: 12:30:45\nsize: 1_000\n.: .\n';
  expect(readYaml(text)).toEqual([
    { mode: 0o644, true: true, day: '2026-01-02', time: '12:30:45', size: 1000, '.': '.' },
  ]);
});

test('each document has a value', () => {
  expect(readYaml('a: 1\n---\n---\n- &x b\n- *x\n')).toEqual([{ a: 1 }, null, ['b', 'b']]);
  expect(readYaml('a: &a {b: 1}\nc:\n  <<: *a\n  d: 2\n')).toEqual([{ a: { b: 1 }, c: { b: 1, d: 2 } }]);
});

test('what is no YAML is refused with its place', () => {
  expect(() => readYaml('a: 1\n---\nb: [')).toThrow(/line 3, column 5/);
  expect(() => readYaml('a: 1\na: 2\n')).toThrow(/unique.*line 2, column 1/);
});

test('aliases cannot repeat without end', () => {
  const lines = ['a: &a0 [x, x, x, x]'];
  for (let i = 1; i < 9; i++) lines.push(`b${i}: &a${i} [*a${i - 1}, *a${i - 1}, *a${i - 1}, *a${i - 1}]`);
  expect(() => readYaml(lines.join('\n'))).toThrow('Excessive alias count');
});
