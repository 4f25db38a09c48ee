import { describe, expect, test } from 'vitest';
import type { JsonSchema } from '../../../../src/registry/customresourcedefinition/json-schema.ts';
import { validateStructural } from '../../../../src/registry/customresourcedefinition/structural.ts';

/** What is wrong with a schema of which `spec` is the given one, the path of `spec` cut off. */
function faults(spec: JsonSchema): string[] {
  const errors = validateStructural({ type: 'object', properties: { spec } }, 's');
  return errors.map(({ field, body }) => `${field.replace('s.properties[spec]', '')}: ${body}`);
}

const junctor = 'Forbidden: must be undefined to be structural';

describe('a schema is structural', () => {
  test.each<[string, JsonSchema]>([
    [
      'with a type at every level',
      { type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } },
    ],
    ['with free members', { type: 'object', additionalProperties: { type: 'integer' } }],
    ['where anything goes', { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }],
    ['without a type where unknown fields stay', { 'x-kubernetes-preserve-unknown-fields': true }],
    [
      'of integers or strings',
      { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
    ],
    [
      'with only values in junctors',
      {
        type: 'object',
        properties: { a: { type: 'integer' } },
        oneOf: [{ required: ['a'] }, { properties: { a: { minimum: 3 } } }],
      },
    ],
    [
      'with a default that holds',
      { type: 'object', properties: { a: { type: 'integer', default: 3 } }, default: { a: 4 } },
    ],
    [
      'with lists that are maps',
      {
        type: 'array',
        items: { type: 'object', required: ['k'], properties: { k: { type: 'string' } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
      },
    ],
  ])('%s', (_name, schema) => {
    expect(faults(schema)).toEqual([]);
  });
});

describe('a schema is not structural', () => {
  test.each<[string, JsonSchema, string[]]>([
    [
      'without a type',
      { properties: {} },
      ['.type: Required value: must not be empty for specified object fields'],
    ],
    [
      'with items without a type',
      { type: 'array', items: {} },
      ['.items.type: Required value: must not be empty for specified array items'],
    ],
    ['with a list of nothing', { type: 'array' }, ['.items: Required value: must be specified']],
    [
      'with named and free members at once',
      { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } },
      ['.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive'],
    ],
    [
      'that allows no further members',
      { type: 'object', additionalProperties: false },
      ['.additionalProperties: Forbidden: additionalProperties cannot be set to false'],
    ],
    [
      'that refers to another one',
      { type: 'object', $ref: '#/definitions/x' },
      ['.$ref: Forbidden: $ref is not supported'],
    ],
    [
      'with unique items',
      { type: 'array', items: { type: 'string' }, uniqueItems: true },
      [
        '.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ],
    ],
    [
      'with types in junctors',
      { type: 'object', allOf: [{ type: 'object' }] },
      [`.allOf[0].type: ${junctor}`],
    ],
    [
      'with defaults in junctors',
      { type: 'object', not: { properties: { a: { default: 1 } } } },
      [`.not.properties[a].default: ${junctor}`],
    ],
    [
      'with CEL',
      { type: 'object', 'x-kubernetes-validations': [{ rule: 'true' }] },
      [
        '.x-kubernetes-validations: Forbidden: this server does not evaluate CEL rules; remove them, or use a cluster, rather than have them ignored',
      ],
    ],
  ])('%s', (_name, schema, expected) => {
    expect(faults(schema)).toEqual(expected);
  });
});

describe('a default', () => {
  test.each<[string, JsonSchema, string[]]>([
    [
      'of another type',
      { type: 'string', default: 5 },
      ['.default: Invalid value: "integer":  in body must be of type string: "integer"'],
    ],
    [
      'with a member of another type',
      { type: 'object', properties: { a: { type: 'string' } }, default: { a: 1 } },
      ['.default.a: Invalid value: "integer": a in body must be of type string: "integer"'],
    ],
    [
      'with an item of another type',
      { type: 'array', items: { type: 'string' }, default: [1] },
      ['.default[0]: Invalid value: "integer": [0] in body must be of type string: "integer"'],
    ],
    [
      'that is too small',
      { type: 'integer', minimum: 3, default: 2 },
      ['.default: Invalid value: 2:  in body should be greater than or equal to 3'],
    ],
  ])('%s is refused', (_name, schema, expected) => {
    expect(faults(schema)).toEqual(expected);
  });
});

describe('the root', () => {
  test('is an object', () => {
    expect(
      validateStructural({ type: 'array', items: { type: 'string' } }, 's').map(
        ({ field, body }) => `${field}: ${body}`,
      ),
    ).toContain('s.type: Invalid value: "array": must be object at the root');
    expect(
      validateStructural({ 'x-kubernetes-preserve-unknown-fields': true }, 's').map(
        ({ field, body }) => `${field}: ${body}`,
      ),
    ).toEqual(['s.type: Required value: must not be empty at the root']);
  });
});

describe('schemas that are meant to do harm', () => {
  function nested(depth: number): JsonSchema {
    let schema: JsonSchema = { type: 'string' };
    for (let i = 0; i < depth; i++) schema = { type: 'object', properties: { a: schema } };
    return schema;
  }

  test('are refused when they are too deep, whatever the depth', () => {
    expect(faults(nested(90))).toEqual([]);
    for (const depth of [120, 20_000]) {
      const [only, ...more] = faults(nested(depth));
      expect(more).toEqual([]);
      expect(only).toContain('schemas may be nested 100 levels deep');
    }
  });

  test('do not stop the server when junctors are too deep', () => {
    let part: JsonSchema = { minimum: 1 };
    for (let i = 0; i < 20_000; i++) part = { not: part };
    expect(() => faults({ type: 'integer', not: part })).not.toThrow();
  });

  test('are checked when they are wide', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, i) => [`p${i}`, { type: 'string' }]),
    );
    expect(faults({ type: 'object', properties })).toEqual([]);
  });

  test('cannot name what objects inherit', () => {
    const properties: Record<string, JsonSchema> = { constructor: { type: 'thing' } };
    Object.defineProperty(properties, '__proto__', { value: { type: 'string' }, enumerable: true });
    expect(faults({ type: 'object', properties })).toEqual([
      '.properties[constructor].type: Unsupported value: "thing": supported values: "array", "boolean", "integer", "number", "object", "string"',
    ]);
  });

  test('with a pattern that is none are refused', () => {
    expect(faults({ type: 'string', pattern: '(' })).toEqual([
      expect.stringContaining('.pattern: Invalid value: "("'),
    ]);
  });
});
