import { expect, test } from 'vitest';
import { customComponentV2 } from '../../../../../src/apiserver/discovery/openapi/document-v2.ts';

const kinds = [{ group: 'stable.example.com', kind: 'Widget', version: 'v1' }];
const preserves = { 'x-kubernetes-preserve-unknown-fields': true };
const metadata = { description: 'm', allOf: [{ $ref: '#/components/schemas/ObjectMeta' }] };

test('leaves out what OpenAPI v2 cannot say', () => {
  const properties = {
    metadata,
    port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
    checked: { type: 'number', allOf: [{ minimum: 1 }], not: { enum: [3] }, oneOf: [{ maximum: 9 }] },
  };
  expect(customComponentV2({ type: 'object', properties })).toEqual({
    type: 'object',
    properties: {
      metadata,
      port: { 'x-kubernetes-int-or-string': true },
      checked: { type: 'number' },
    },
  });
});

test('what may be null has no type, no members and is not needed', () => {
  const properties = {
    a: { type: 'object', nullable: true, properties: { b: { type: 'string' } }, default: {} },
    c: { type: 'array', nullable: true, items: { type: 'string' } },
    d: { type: 'string' },
  };
  expect(customComponentV2({ type: 'object', properties, required: ['a', 'd'] })).toEqual({
    type: 'object',
    properties: { a: { default: {} }, c: {}, d: { type: 'string' } },
    required: ['d'],
  });
  const values = {
    type: 'object',
    additionalProperties: { type: 'string', nullable: true },
    required: ['x'],
  };
  expect(customComponentV2({ type: 'object', properties: { values } })).toEqual({
    type: 'object',
    properties: { values: { type: 'object', additionalProperties: {} } },
  });
});

test('what may hold anything lists nothing', () => {
  const open = { type: 'object', properties: { a: { type: 'string' } }, ...preserves };
  const list = { type: 'array', items: { type: 'string' }, ...preserves };
  expect(customComponentV2({ type: 'object', properties: { open, list } })).toEqual({
    type: 'object',
    properties: { open: preserves, list: preserves },
  });
  const root = { ...open, description: 'd', 'x-kubernetes-group-version-kind': kinds };
  expect(customComponentV2(root)).toEqual({ type: 'object', 'x-kubernetes-group-version-kind': kinds });
});
