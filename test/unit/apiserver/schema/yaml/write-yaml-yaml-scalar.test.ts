import { describe, expect, test } from 'vitest';
import { RawNumber } from '../../../../../src/apiserver/schema/json.ts';
import { parseYaml } from '../../../../../src/apiserver/schema/yaml/parse-yaml.ts';

const valueOf = (text: string): unknown => parseYaml(Buffer.from(text)).value;

describe('a scalar of YAML', () => {
  test.each([
    ['1', 1],
    ['+1', 1],
    ['010', 8],
    ['0o7', 7],
    ['0x1F', 31],
    ['0b11', 3],
    ['1_000', 1000],
    ['1e3', 1000],
    ['.5', 0.5],
    ['1e400', '1e400'],
    ['1:30', '1:30'],
    ['y', true],
    ['Off', false],
    ['~', null],
    ['2001-01-01', '2001-01-01'],
    ['"1"', '1'],
    ['!!str 1', '1'],
    ['!!int "3"', 3],
    ['!!float 1', 1],
    ['!!bool "yes"', true],
    ['!!binary aGk=', 'hi'],
    ['!own 1', '1'],
    ['18446744073709551616', 18446744073709551616],
  ])('%s is %j', (text, value) => {
    expect(valueOf(`a: ${text}\n`)).toEqual({ a: value });
  });

  test('keeps the digits of integers of 64 bits', () => {
    const { value, hasRawNumbers } = parseYaml(Buffer.from('[9007199254740993, -9223372036854775808]'));
    expect([value, hasRawNumbers]).toEqual([
      [new RawNumber('9007199254740993'), new RawNumber('-9223372036854775808')],
      true,
    ]);
  });

  test.each([
    ['a: .inf', 'json: unsupported value: +Inf'],
    ['a: -.inf', 'json: unsupported value: -Inf'],
    ['a: .nan', 'json: unsupported value: NaN'],
    ['a: !!int x', 'yaml: cannot decode !!str `x` as a !!int'],
    ['a: !!null x', 'yaml: cannot decode !!str `x` as a !!null'],
    ['a: !!int', 'yaml: cannot decode !!null `` as a !!int'],
    ['a: !!binary "%%"', 'yaml: !!binary value contains invalid base64 data'],
    ['~: b', 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "b"'],
    ['? [a, 1]\n: b', 'yaml: invalid map key: []interface {}{"a", 1}'],
    ['? {a: ~}\n: b', 'yaml: invalid map key: map[interface {}]interface {}{"a":interface {}(nil)}'],
    ['%YAML 1.2\n---\na: 1', 'yaml: found incompatible YAML document'],
    ['\t', 'yaml: found character that cannot start any token'],
    ['# none\n\n \t', 'yaml: line 3: found character that cannot start any token'],
  ])('%j: %s', (text, problem) => {
    expect(() => valueOf(text)).toThrow(expect.objectContaining({ message: problem }));
  });

  test('can be a name', () => {
    expect(valueOf('1: a\n1.5: b\ntrue: c\n.inf: d\n-.inf: e\n.nan: f\n9007199254740993: g\n')).toEqual({
      ...{ 1: 'a', 1.5: 'b', true: 'c', '.inf': 'd', '-.inf': 'e', '.nan': 'f', '9007199254740993': 'g' },
    });
  });
});
