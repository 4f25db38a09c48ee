import type { JSONSchemaProps } from '../../../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';

import { validateSchema } from '../../../../../src/registry/apiextensions/customresourcedefinition/structural.ts';

const hint =
  '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)';
const share = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
const total = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';

function faults(spec: JSONSchemaProps): string[] {
  const schema: JSONSchemaProps = { type: 'object', properties: { spec } };
  return validateSchema(schema, 's').map(({ field, body }) => `${field}: ${body}`);
}

function tags(
  bounds: { maxItems?: number; maxLength?: number },
  ...rules: readonly string[]
): JSONSchemaProps {
  const { maxLength, ...more } = bounds;
  return {
    type: 'array',
    items: { type: 'string', ...(maxLength === undefined ? {} : { maxLength }) },
    ...more,
    'x-kubernetes-validations': rules.map((rule) => ({ rule })),
  };
}

const contains = "self.all(x, x.contains('gpu'))";

describe('a rule that may cost too much', () => {
  test('is told with its share of the total and the total', () => {
    const at = 's.properties[spec].x-kubernetes-validations[0].rule: Forbidden:';
    expect(faults(tags({}, contains))).toEqual([
      `${at} estimated rule cost exceeds budget by factor of more than 100x ${hint}`,
      `${at} ${share}`,
      `s: Forbidden: ${total} exceeds budget by factor of more than 100x ${hint}`,
    ]);
  });

  // The most items that kube-apiserver 1.36 takes, measured.
  test.each([
    { maxLength: 16, most: 909_090 },
    { maxLength: 63, most: 333_333 },
    { maxLength: 253, most: 94_339 },
    { maxLength: 1024, most: 24_154 },
  ])('is accepted with bounds: $most items of $maxLength characters', ({ maxLength, most }) => {
    expect(faults(tags({ maxLength, maxItems: most }, contains))).toEqual([]);
    expect(faults(tags({ maxLength, maxItems: most + 1 }, contains))).toEqual([
      expect.stringContaining('estimated rule cost exceeds budget by factor of 1.0000'),
    ]);
  });

  test('is told by which factor', () => {
    expect(faults(tags({ maxLength: 16, maxItems: 5_000_000 }, contains))).toEqual([
      expect.stringContaining('estimated rule cost exceeds budget by factor of 5.5x (try'),
    ]);
  });

  test('is multiplied by the values that it may be asked about', () => {
    const rule = { rule: "self.matches('^a+$')" };
    const item: JSONSchemaProps = { type: 'string', maxLength: 1000, 'x-kubernetes-validations': [rule] };
    expect(faults({ type: 'array', maxItems: 100, items: item })).toEqual([]);
    expect(faults({ type: 'array', items: item })).toHaveLength(3);
    const nested = { type: 'array', maxItems: 2000, items: { type: 'array', maxItems: 20, items: item } };
    expect(faults(nested)).toEqual([expect.stringContaining('exceeds budget by factor of 1.6x')]);
  });

  // The name of an object has at most 253 characters, whatever its schema says.
  test.each([
    ['self.metadata.name', 0],
    ['self.spec', 1],
  ])('knows the length of names: %s', (text, count) => {
    const rule = `${text}.split('').all(x, ${text}.split('').all(y, ${text}.contains(x + y)))`;
    const schema: JSONSchemaProps = {
      type: 'object',
      properties: { metadata: { type: 'object' }, spec: { type: 'string', maxLength: 3_000 } },
      'x-kubernetes-validations': [{ rule }],
    };
    const found = validateSchema(schema, 's').filter(({ body }) => body.includes('exceeds budget by factor'));
    expect(found.length > 0).toBe(count > 0);
  });

  test('counts with others: each is cheap enough, and all are not', () => {
    const rules = Array.from({ length: 12 }, () => contains);
    const spec = tags({ maxLength: 16, maxItems: 900_000 }, ...rules);
    const at = (i: number) => `s.properties[spec].x-kubernetes-validations[${i}].rule: Forbidden: ${share}`;
    expect(faults(spec)).toEqual([
      ...[0, 1, 2, 3].map(at),
      `s: Forbidden: ${total} exceeds budget by factor of 1.188000x ${hint}`,
    ]);
  });
});

test('a message may cost too much: numbers have texts of any length', () => {
  const spec: JSONSchemaProps = {
    type: 'object',
    properties: { min: { type: 'integer' } },
    'x-kubernetes-validations': [
      { rule: 'self.min > 0', messageExpression: "'min (' + string(self.min) + ') is too small'" },
    ],
  };
  expect(faults(spec)).toEqual([
    `s.properties[spec].x-kubernetes-validations[0].messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x ${hint}`,
    `s.properties[spec].x-kubernetes-validations[0].messageExpression: Forbidden: ${share}`,
    `s: Forbidden: ${total} exceeds budget by factor of more than 100x ${hint}`,
  ]);
});
