import type { JSONSchemaProps } from '../../../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';

import { validateSchema } from '../../../../../src/registry/apiextensions/customresourcedefinition/structural.ts';

/** What is wrong with a schema of which `spec` is the given one, the path of `spec` cut off. */
function faults(spec: JSONSchemaProps): string[] {
  const errors = validateSchema({ type: 'object', properties: { spec } }, 's');
  return errors.map(({ field, body }) => `${field.replace('s.properties[spec]', '')}: ${body}`);
}

const junctor = 'Forbidden: must be undefined to be structural';

describe('a schema is structural', () => {
  test.each<[string, JSONSchemaProps]>([
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
      'of integers or strings with a limit',
      {
        'x-kubernetes-int-or-string': true,
        allOf: [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, { maximum: 3 }],
      },
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
  test.each<[string, JSONSchemaProps, string[]]>([
    [
      'when integers or strings are named in another place than the first',
      {
        'x-kubernetes-int-or-string': true,
        allOf: [{ maximum: 3 }, { anyOf: [{ type: 'integer' }, { type: 'string' }] }],
      },
      [
        '.allOf[1].anyOf[0].type: Forbidden: must be empty to be structural',
        '.allOf[1].anyOf[1].type: Forbidden: must be empty to be structural',
      ],
    ],
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
      'with named members and no others',
      { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false },
      ['.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive'],
    ],
    [
      'with a pattern that is none in a junctor',
      { type: 'object', anyOf: [{ properties: { a: { pattern: '(' } } }] },
      [
        '.anyOf[0].properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`',
      ],
    ],
    [
      'with a map without keys',
      { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'map' },
      ['.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map'],
    ],
    [
      'with a map by keys that items may lack',
      {
        type: 'array',
        items: { type: 'object', properties: { k: { type: 'string' } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k', 'l'],
      },
      [
        '.x-kubernetes-list-map-keys: Invalid value: ["k","l"]: entries must all be names of item properties',
        '.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
      ],
    ],
    [
      'with a list type that is none',
      { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'bag' },
      ['.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"'],
    ],
    [
      'with a set of objects',
      {
        type: 'array',
        items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        'x-kubernetes-list-type': 'set',
      },
      [
        '.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set',
      ],
    ],
    [
      'with an embedded object of nothing',
      { type: 'object', 'x-kubernetes-embedded-resource': true },
      [
        '.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
      ],
    ],
    [
      'of null',
      { type: 'null' },
      [
        '.type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string"',
        '.type: Forbidden: type cannot be set to null, use nullable as an alternative',
      ],
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
      ['.allOf[0].type: Forbidden: must be empty to be structural'],
    ],
    [
      'with defaults in junctors',
      { type: 'object', not: { properties: { a: { default: 1 } } } },
      [`.not.properties[a].default: ${junctor}`],
    ],
  ])('%s', (_name, schema, expected) => {
    expect(faults(schema)).toEqual(expected);
  });
});

describe('a default', () => {
  test.each<[string, JSONSchemaProps, string[]]>([
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
      ['.default.[0]: Invalid value: "integer": [0] in body must be of type string: "integer"'],
    ],
    [
      'with an undeclared member',
      { type: 'object', properties: { a: { type: 'string' } }, default: { b: 1 } },
      ['.default: Invalid value: {"b":1}: must not have unknown fields'],
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
      validateSchema({ type: 'array', items: { type: 'string' } }, 's').map(
        ({ field, body }) => `${field}: ${body}`,
      ),
    ).toContain('s.type: Invalid value: "array": must be object at the root');
    expect(validateSchema({ properties: {} }, 's').map(({ field, body }) => `${field}: ${body}`)).toEqual([
      's.type: Required value: must not be empty at the root',
    ]);
  });
});

describe('what all objects have', () => {
  test.each<[string, Record<string, JSONSchemaProps>, string[]]>([
    ['may be declared', { kind: { type: 'string' }, metadata: { type: 'object' } }, []],
    [
      'may be restricted by name only',
      { metadata: { type: 'object', properties: { labels: { type: 'object' } } } },
      [
        's.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
      ],
    ],
    [
      'has its type',
      { kind: { type: 'integer' } },
      ['s.properties[kind].type: Invalid value: "integer": must be string'],
    ],
  ])('%s', (_name, properties, expected) => {
    const errors = validateSchema({ type: 'object', properties }, 's');
    expect(errors.map(({ field, body }) => `${field}: ${body}`)).toEqual(expected);
  });
});

describe('schemas that are meant to do harm', () => {
  function nested(depth: number): JSONSchemaProps {
    let schema: JSONSchemaProps = { type: 'string' };
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
    let part: JSONSchemaProps = { minimum: 1 };
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
    const properties: Record<string, JSONSchemaProps> = { constructor: { type: 'thing' } };
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
