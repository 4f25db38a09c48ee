import { describe, expect, test } from 'vitest';
import { gnosticYaml } from '../../../../src/apiserver/openapi/gnostic-yaml.ts';

/** Texts that go-yaml v3 writes for these values (gnostic-models `compiler.Marshal`). */
describe('YAML as gnostic writes it', () => {
  test.each<[unknown, string]>([
    ['get', 'get\n'],
    ['', '""\n'],
    [null, 'null\n'],
    [true, 'true\n'],
    [1.5e-7, '1.5e-7\n'],
    [{}, '{}\n'],
    [[], '[]\n'],
    [[{ group: '', kind: 'Service', version: 'v1' }], '- group: ""\n  kind: Service\n  version: v1\n'],
    [{ k: ['v', ''], z: [] }, 'k:\n    - v\n    - ""\nz: []\n'],
    // a mapping in a list stands two columns in, what it holds at the next four
    [[{ by: { profile: 'Profile' } }], '- by:\n    profile: Profile\n'],
    [{ a: [{ b: { c: 1 } }] }, 'a:\n    - b:\n        c: 1\n'],
    [
      [
        [1, [2]],
        [{}, []],
      ],
      '- - 1\n  - - 2\n- - {}\n  - []\n',
    ],
  ])('%j', (value, text) => {
    expect(gnosticYaml(value)).toBe(text);
  });

  test.each([
    ['*', "'*'"],
    ["it's", "it's"],
    ["'", "''''"],
    ['a: b', "'a: b'"],
    ['a:', "'a:'"],
    ['a:b', 'a:b'],
    ['a #b', "'a #b'"],
    ['a#b', 'a#b'],
    ['- a', "'- a'"],
    ['-a', '-a'],
    ['---', "'---'"],
    [' a', "' a'"],
    ['a ', "'a '"],
    ['^[a-z]+$', '^[a-z]+$'],
    // other types when bare
    ['true', '"true"'],
    ['yes', 'yes'],
    ['null', '"null"'],
    ['~', '"~"'],
    ['1', '"1"'],
    ['1_000', '"1_000"'],
    ['0x1f', '"0x1f"'],
    ['.5', '".5"'],
    ['.', '.'],
    ['1.2.3', '1.2.3'],
    ['-.inf', '"-.inf"'],
    ['2020-01-02', '"2020-01-02"'],
    // what cannot be printed
    ['a\tb', '"a\\tb"'],
    ['é', 'é'],
    ['😀', '"\\U0001F600"'],
  ])('of the text %j is %s', (text, written) => {
    expect(gnosticYaml(text)).toBe(`${written}\n`);
  });

  test('keeps lines where they read as they were', () => {
    expect(gnosticYaml({ rule: 'a\n\nb' })).toBe('rule: |-\n    a\n\n    b\n');
    expect(gnosticYaml(['a\nb\n'])).toBe('- |\n  a\n  b\n');
    expect(gnosticYaml('a\n\n')).toBe('|+\n    a\n\n');
    expect(gnosticYaml('a \nb')).toBe('"a \\nb"\n');
    expect(gnosticYaml('\n a')).toBe('"\\n a"\n');
  });
});
