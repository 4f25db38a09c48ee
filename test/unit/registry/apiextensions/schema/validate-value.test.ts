import type { JSONSchemaProps } from '../../../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';
import { validateValue } from '../../../../../src/registry/apiextensions/schema/validate-value.ts';
import { maxErrorText } from '../../../../../src/registry/validation/field-errors.ts';

function faults(schema: JSONSchemaProps, value: unknown): string[] {
  return validateValue(schema, value, 'spec').map(({ field, body }) => `${field}: ${body}`);
}

describe('a value is refused', () => {
  test.each<[JSONSchemaProps, unknown, string[]]>([
    [
      { type: 'string' },
      1,
      ['spec: Invalid value: "integer": spec in body must be of type string: "integer"'],
    ],
    [
      { type: 'integer' },
      1.5,
      [
        'spec: Invalid value: "number": spec in body must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec',
      ],
    ],
    [
      { type: 'integer', format: 'int32' },
      2 ** 31,
      ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec'],
    ],
    [
      { type: 'number', format: 'float' },
      1e39,
      ['<nil>: Invalid value: "": Checked value must be of type number with format float in spec'],
    ],
    [
      { type: 'number', multipleOf: 0.5 },
      1e300,
      ['spec: Invalid value: 1e+300: spec in body should be a multiple of 0.5'],
    ],
    [
      { type: 'string', format: 'date' },
      '2020-02-30',
      ['spec: Invalid value: "2020-02-30": spec in body must be of type date: "2020-02-30"'],
    ],
    [{ type: 'string' }, null, ['spec: Invalid value: "null": spec in body must be of type string: "null"']],
    [
      { 'x-kubernetes-int-or-string': true },
      true,
      ['spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean"'],
    ],
    [
      { type: 'integer', minimum: 2 },
      1,
      ['spec: Invalid value: 1: spec in body should be greater than or equal to 2'],
    ],
    [
      { type: 'integer', maximum: 2, exclusiveMaximum: true },
      2,
      ['spec: Invalid value: 2: spec in body should be less than 2'],
    ],
    [
      { type: 'integer', multipleOf: 3 },
      4,
      ['spec: Invalid value: 4: spec in body should be a multiple of 3'],
    ],
    // An integer is compared with the integer part of a limit, which may be nothing.
    [
      { type: 'number', multipleOf: 2.5 },
      5,
      ['spec: Invalid value: 5: spec in body should be a multiple of 2'],
    ],
    [
      { type: 'number', multipleOf: 0.5 },
      2,
      ['spec: Invalid value: 0: factor MultipleOf declared for spec must be positive: 0'],
    ],
    [
      { type: 'number', multipleOf: -1.5 },
      2.5,
      ['spec: Invalid value: -1.5: factor MultipleOf declared for spec must be positive: -1.5'],
    ],
    [
      { type: 'number', minimum: -0.5 },
      -3,
      ['spec: Invalid value: -3: spec in body should be greater than or equal to 0'],
    ],
    [
      { type: 'number', maximum: 1e19 },
      1,
      ['spec: Invalid value: 1: spec in body should be less than or equal to -9223372036854775808'],
    ],
    // Floats are shown as Go shows them.
    [
      { type: 'number', minimum: 5_000_000_000 },
      1234567.5,
      ['spec: Invalid value: 1.2345675e+06: spec in body should be greater than or equal to 5e+09'],
    ],
    // A limit that is none of the type refuses every value.
    [
      { type: 'integer', minimum: 0.5 },
      6_000_000_000,
      ['<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in spec'],
    ],
    [
      { type: 'integer', maximum: 5e9, format: 'int32' },
      6,
      ['<nil>: Invalid value: "": Maximum boundary value must be of type integer with format int32 in spec'],
    ],
    [
      { type: 'integer', multipleOf: 2.5 },
      6,
      [
        '<nil>: Invalid value: "": MultipleOf value must be of type integer (default format) in spec',
        'spec: Invalid value: 6: spec in body should be a multiple of 2.5',
      ],
    ],
    [
      { type: 'integer', format: 'int32' },
      2.5,
      [
        'spec: Invalid value: "float64": spec in body must be of type int32: "float64"',
        '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec',
      ],
    ],
    [
      { type: 'integer' },
      1e20,
      [
        'spec: Invalid value: "number": spec in body must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec',
      ],
    ],
    [
      { type: 'string', minLength: 2 },
      'ä',
      ['spec: Invalid value: "ä": spec in body should be at least 2 chars long'],
    ],
    [
      { type: 'string', pattern: '^a+$' },
      'b',
      ['spec: Invalid value: "b": spec in body should match \'^a+$\''],
    ],
    [{ type: 'string', enum: ['a', 'b'] }, 'c', ['spec: Unsupported value: "c": supported values: "a", "b"']],
    [{ type: 'object', required: ['a'] }, {}, ['spec.a: Required value']],
    [
      { type: 'string', enum: ['a', 'b'] },
      1,
      [
        'spec: Invalid value: "integer": spec in body must be of type string: "integer"',
        'spec: Unsupported value: 1: supported values: "a", "b"',
      ],
    ],
    [
      { type: 'string', maxLength: 1, pattern: '^a+$' },
      'bb',
      ['spec: Too long: may not be more than 1 bytes'],
    ],
    [
      { type: 'string', format: 'ipv4' },
      'x',
      ['spec: Invalid value: "x": spec in body must be of type ipv4: "x"'],
    ],
    [
      { type: 'string', format: 'byte' },
      '',
      ['spec: Invalid value: "": spec in body must be of type byte: ""'],
    ],
    [
      { type: 'object', required: ['a', 'c'], properties: { a: { type: 'string' }, b: { type: 'string' } } },
      { b: 1 },
      [
        'spec.b: Invalid value: "integer": spec.b in body must be of type string: "integer"',
        'spec.a: Required value',
        'spec.c: Required value',
      ],
    ],
    [
      { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      {},
      [
        '<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)',
        'spec.a: Required value',
      ],
    ],
    [
      {
        type: 'object',
        oneOf: [{ required: ['a'] }, { required: ['b'], properties: { c: { minimum: 1 } } }],
      },
      { c: 2 },
      [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid',
        'spec.b: Required value',
      ],
    ],
    [
      { type: 'integer', allOf: [{ minimum: 5 }, { minimum: 1 }] },
      3,
      [
        'spec: Invalid value: 3: spec in body should be greater than or equal to 5',
        '<nil>: Invalid value: "": "spec" must validate all the schemas (allOf)',
      ],
    ],
    [
      { type: 'integer', allOf: [{ minimum: 5 }] },
      3,
      [
        'spec: Invalid value: 3: spec in body should be greater than or equal to 5',
        '<nil>: Invalid value: "": "spec" must validate all the schemas (allOf). None validated',
      ],
    ],
    [
      { type: 'integer', oneOf: [{ minimum: 1 }, { minimum: 2 }] },
      3,
      [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives',
      ],
    ],
    [
      { type: 'integer', not: { minimum: 1 } },
      3,
      ['<nil>: Invalid value: "": "spec" must not validate the schema (not)'],
    ],
  ])('by %j: %j', (schema, value, expected) => {
    expect(faults(schema, value)).toEqual(expected);
  });
});

describe('a value holds', () => {
  test.each<[JSONSchemaProps, unknown]>([
    [{ type: 'number' }, 3],
    [{ type: 'string', nullable: true }, null],
    [{ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] }, '5%'],
    [{ 'x-kubernetes-preserve-unknown-fields': true }, [{ any: 'thing' }]],
    [{ type: 'object', additionalProperties: { type: 'string' } }, { a: 'b' }],
    [{ type: 'string', format: 'unknown' }, 'x'],
    [{ type: 'integer', format: 'int32' }, -(2 ** 31)],
    [{ type: 'number', multipleOf: 0.1 }, 0.3],
    [{ type: 'string', format: 'uri' }, '/a/b'],
    [{ type: 'string', format: 'byte' }, 'QUFB'.repeat(2000)],
  ])('%j: %j', (schema, value) => {
    expect(faults(schema, value)).toEqual([]);
  });
});

describe('what an update does not change', () => {
  const strict: JSONSchemaProps = {
    type: 'object',
    properties: {
      a: { type: 'string', maxLength: 1 },
      list: {
        type: 'array',
        items: { type: 'object', properties: { k: { type: 'string' }, v: { type: 'integer', maximum: 1 } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
      },
    },
  };

  test.each<[string, object, object, string[]]>([
    ['may stay', { a: 'long' }, { a: 'long', b: 1 }, []],
    ['may not change to another fault', { a: 'long' }, { a: 'longer' }, ['spec.a']],
    [
      'is known by the keys of its list',
      { list: [{ k: 'x', v: 5 }] },
      {
        list: [
          { k: 'y', v: 1 },
          { k: 'x', v: 5 },
        ],
      },
      [],
    ],
    [
      'is told from what is new in its list',
      { list: [{ k: 'x', v: 5 }] },
      { list: [{ k: 'y', v: 5 }] },
      ['spec.list[0].v'],
    ],
  ])('%s', (_name, old, value, expected) => {
    expect(validateValue(strict, value, 'spec', { value: old }).map(({ field }) => field)).toEqual(expected);
  });
});

describe('input that is meant to do harm', () => {
  test('is refused when it is too deep', () => {
    const schema: { type: string; additionalProperties?: JSONSchemaProps } = { type: 'object' };
    schema.additionalProperties = schema;
    let value: object = {};
    for (let i = 0; i < 50_000; i++) value = { a: value };
    expect(faults(schema, value).join()).toContain('is nested too deeply');
  });

  test('cannot make a pattern slow', () => {
    // A backtracking engine needs 2^5000 steps: it would not come back.
    expect(faults({ type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(5000)}!`)).toHaveLength(1);
  });

  test('finds no members that objects inherit', () => {
    expect(faults({ type: 'object', required: ['constructor'] }, {})).toEqual([
      'spec.constructor: Required value',
    ]);
    expect(
      faults(
        { type: 'object', properties: {}, additionalProperties: { type: 'string' } },
        JSON.parse('{"toString":1}'),
      ),
    ).toHaveLength(1);
  });
});

test('patterns of one object take so many steps together, whatever the texts', () => {
  const items: JSONSchemaProps = { type: 'string', pattern: '(a|b|c|d){1000}x' };
  const texts = (length: number): string[] => Array.from({ length: 20 }, () => 'abcd'.repeat(length));
  expect(faults({ type: 'array', items }, texts(20))).toHaveLength(20);
  expect(() => faults({ type: 'array', items }, texts(25_000))).toThrow(
    'Request entity too large: its schema takes more than',
  );
});

test('alternatives of one object take so many steps together', () => {
  const anyOf = Array.from({ length: 100 }, (_, i): JSONSchemaProps => ({ required: [`r${i}`] }));
  const schema: JSONSchemaProps = { type: 'array', items: { type: 'object', anyOf } };
  const objects = (length: number): object[] => Array.from({ length }, () => ({ r99: 1 }));
  expect(faults(schema, objects(1000))).toEqual([]);
  expect(() => faults(schema, objects(40_000))).toThrow(
    'Request entity too large: its schema takes more than',
  );
});

test('a value is one of its enum, whatever its type', () => {
  const schema: JSONSchemaProps = { enum: ['a', 1, true, { b: [1] }, [2], null] };
  for (const value of ['a', 1, true, { b: [1] }, [2]]) expect(faults(schema, value)).toEqual([]);
  for (const value of ['b', '1', 2, false, { b: [2] }, [1]]) expect(faults(schema, value)).toHaveLength(1);
});

test('a list and a map are judged no further than an answer shows', () => {
  const string: JSONSchemaProps = { type: 'string', pattern: '^[a-z]+$' };
  const values = Array.from({ length: 60_000 }, (_, i) => `A${i}`);
  const cases: [JSONSchemaProps, unknown][] = [
    [{ type: 'array', items: string }, values],
    [
      { type: 'object', additionalProperties: string },
      Object.fromEntries(values.map((text) => [text, text])),
    ],
  ];
  for (const [schema, value] of cases) {
    const errors = validateValue(schema, value, 'spec');
    const characters = errors.reduce((sum, { body }) => sum + body.length, 0);
    expect(characters).toBeGreaterThan(maxErrorText);
    expect(characters).toBeLessThan(maxErrorText + 1000);
  }
});
