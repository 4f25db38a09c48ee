import { describe, expect, test } from 'vitest';
import { publishedSchema } from '../../../../../src/apiserver/discovery/openapi/components.ts';
import { customComponentV2 } from '../../../../../src/apiserver/discovery/openapi/document-v2.ts';
import { at } from '../../../../../src/objects/json.ts';

const types = [{ type: 'integer' }, { type: 'string' }];
const embedded = { type: 'object', 'x-kubernetes-embedded-resource': true };
const text: unknown = expect.any(String);
const typed = { type: 'string', description: text };
const members = {
  apiVersion: typed,
  kind: typed,
  metadata: {
    description: text,
    allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
  },
};

// What BuildOpenAPIV3 and BuildOpenAPIV2 of apiextensions-apiserver 0.36.4 make of the same definitions.
describe('a resource in a custom resource', () => {
  const template = {
    ...embedded,
    required: ['kind', 'x'],
    properties: { x: { type: 'string' }, kind: { type: 'string', enum: ['A'] } },
  };

  test('has what all resources have, wherever it is', () => {
    const wanted = {
      ...embedded,
      required: ['kind', 'x', 'apiVersion'],
      properties: { x: { type: 'string' }, ...members },
    };
    const schema = {
      type: 'object',
      properties: {
        one: template,
        list: { type: 'array', items: template },
        map: { type: 'object', additionalProperties: template },
      },
    };
    for (const v2 of [false, true]) {
      expect(publishedSchema(schema, v2)['properties']).toEqual({
        one: wanted,
        list: { type: 'array', items: wanted },
        map: { type: 'object', additionalProperties: wanted },
      });
    }
  });

  test('lists nothing in v2 where it may hold anything', () => {
    const open = { ...embedded, 'x-kubernetes-preserve-unknown-fields': true };
    expect(publishedSchema(open, false)).toEqual({
      ...open,
      required: ['kind', 'apiVersion'],
      properties: members,
    });
    const { properties } = customComponentV2({ type: 'object', properties: { open } });
    expect(at(properties, 'open')).toEqual({
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    });
  });
});

test.each([
  [{}, { anyOf: types }],
  [
    { anyOf: types, maximum: 3 },
    { anyOf: types, maximum: 3 },
  ],
  [{ allOf: [{ anyOf: types }, { maximum: 3 }] }, { allOf: [{ anyOf: types }, { maximum: 3 }] }],
  [{ anyOf: [{ maximum: 3 }] }, { anyOf: [{ maximum: 3 }], allOf: [{ anyOf: types }] }],
])('an integer or string with %j says so in standard words', (more, wanted) => {
  const extension = { 'x-kubernetes-int-or-string': true };
  expect(publishedSchema({ ...extension, ...more }, false)).toEqual({ ...extension, ...wanted });
  expect(publishedSchema({ ...extension, ...more }, true)).toEqual({ ...extension, ...more });
});

test('an extension that is false is left out', () => {
  expect(publishedSchema({ type: 'object', 'x-kubernetes-preserve-unknown-fields': false }, false)).toEqual({
    type: 'object',
  });
});
