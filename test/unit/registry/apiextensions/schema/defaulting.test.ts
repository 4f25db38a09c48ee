import type { JSONSchemaProps } from '../../../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';
import { applyDefaults, withDefaults } from '../../../../../src/registry/apiextensions/schema/defaulting.ts';

function defaulted(schema: JSONSchemaProps, value: unknown, keepNulls = false): unknown {
  const object = { value };
  applyDefaults({ type: 'object', properties: { value: schema } }, object, keepNulls);
  return object.value;
}

const size: JSONSchemaProps = {
  type: 'object',
  properties: { size: { type: 'integer', default: 3 }, note: { type: 'string', nullable: true } },
};

describe('defaults', () => {
  test.each<[string, JSONSchemaProps, unknown, unknown]>([
    ['what is missing', size, {}, { size: 3 }],
    ['what is null and may not be', size, { size: null, note: null }, { size: 3, note: null }],
    ['nothing that is there', size, { size: 0 }, { size: 0 }],
    ['what is below something missing not', { type: 'object', properties: { a: size } }, {}, {}],
    [
      'what is below a default',
      { type: 'object', properties: { a: { ...size, default: {} } } },
      {},
      { a: { size: 3 } },
    ],
    ['items', { type: 'array', items: size }, [{}, { size: null }], [{ size: 3 }, { size: 3 }]],
    [
      'free members',
      { type: 'object', additionalProperties: size },
      { a: {}, b: { size: 1 } },
      { a: { size: 3 }, b: { size: 1 } },
    ],
    [
      'free members that are null',
      { type: 'object', additionalProperties: { type: 'string', default: 'x' } },
      { a: null },
      { a: 'x' },
    ],
  ])('fill in %s', (_name, schema, value, expected) => {
    expect(defaulted(schema, value)).toEqual(expected);
  });

  test('are copies', () => {
    const schema: JSONSchemaProps = {
      type: 'object',
      properties: { list: { type: 'array', items: { type: 'string' }, default: [] } },
    };
    const first = defaulted(schema, {});
    const second = defaulted(schema, {});
    expect(Reflect.get(Object(first), 'list')).not.toBe(Reflect.get(Object(second), 'list'));
  });

  test.each<[JSONSchemaProps, unknown]>([
    [{ type: 'object', properties: { a: { type: 'string' } } }, { a: null }],
    [{ type: 'object', properties: { a: { 'x-kubernetes-int-or-string': true } } }, { a: null }],
    [{ type: 'object', additionalProperties: { type: 'string' } }, { a: null }],
  ])('a null that is no value goes where there is none: %j', (schema, value) => {
    expect(defaulted(schema, value)).toEqual({});
  });

  test('values of a depth that only an attacker sends are left alone', () => {
    const schema: { type: string; additionalProperties?: JSONSchemaProps } = { type: 'object' };
    schema.additionalProperties = schema;
    let value: object = { a: null };
    for (let i = 0; i < 50_000; i++) value = { a: value };
    expect(() => defaulted(schema, value)).not.toThrow();
  });

  test('of a member __proto__ are members', () => {
    const properties: Record<string, JSONSchemaProps> = {};
    const property = { value: { type: 'integer', default: 1 }, enumerable: true };
    Object.defineProperty(properties, '__proto__', property);
    const value = defaulted({ type: 'object', properties }, {});
    expect(Object.getOwnPropertyNames(value)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });
});

describe('defaults of a newer schema', () => {
  test('come into a copy', () => {
    const schema: JSONSchemaProps = { type: 'object', properties: { a: { type: 'string', default: 'A' } } };
    const stored = Object.freeze({ b: 1 });
    expect(withDefaults(schema, stored)).toEqual({ b: 1, a: 'A' });
    expect(stored).toEqual({ b: 1 });
  });

  test('are looked for only where a schema has some', () => {
    const stored = { b: 1 };
    expect(withDefaults({ type: 'object', properties: { a: { type: 'string' } } }, stored)).toBe(stored);
  });

  test('are left out of an object that they would make too large', () => {
    const items: JSONSchemaProps = { type: 'object', properties: { a: { default: 'x'.repeat(1024) } } };
    const schema: JSONSchemaProps = { type: 'object', properties: { list: { type: 'array', items } } };
    const stored = { list: Array.from({ length: 20_000 }, () => ({})) };
    expect(withDefaults(schema, stored)).toBe(stored);
  });
});

test('nulls that are not allowed go, but for those of an apply, which are refused', () => {
  const schema: JSONSchemaProps = { type: 'object', properties: { a: { type: 'object' } } };
  expect(defaulted(schema, { a: null })).toEqual({});
  expect(defaulted(schema, { a: null }, true)).toEqual({ a: null });
  expect(defaulted(size, { size: null }, true)).toEqual({ size: 3 });
});
