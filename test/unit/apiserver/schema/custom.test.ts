import { describe, expect, it } from 'vitest';

import { schemaFromCustomResource } from '../../../../src/apiserver/schema/custom-schema.ts';
import { decodeBody } from '../../../../src/apiserver/schema/decode-body.ts';
import { encodeObject } from '../../../../src/apiserver/schema/encode.ts';

const schema = schemaFromCustomResource(
  {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          size: { type: 'integer', default: 3 },
          port: { 'x-kubernetes-int-or-string': true },
          note: { type: 'string', nullable: true },
          free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          labels: { type: 'object', additionalProperties: { type: 'string' } },
          items: {
            type: 'array',
            items: { type: 'object', properties: { name: { type: 'string', default: 'x' } } },
          },
          template: {
            type: 'object',
            'x-kubernetes-embedded-resource': true,
            properties: { spec: { type: 'object' } },
          },
        },
      },
    },
  },
  'Widget',
);
const expected = { group: 'example.com', version: 'v1', kind: 'Widget', schema };

function decode(body: object, fieldValidation: 'Warn' | 'Strict' = 'Warn') {
  const bytes = Buffer.from(JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Widget', ...body }));
  return decodeBody({ bytes, contentType: 'application/json', expected, fieldValidation });
}

describe('custom resources', () => {
  it('lose undeclared fields, and say so', () => {
    const { object, warnings } = decode({
      zebra: 1,
      metadata: { name: 'a', colour: 'red' },
      spec: { bogus: 1, free: { any: { thing: 1 } }, labels: { a: 'b' }, items: [{ name: 'n', more: 1 }] },
    });
    expect(object).toEqual({
      apiVersion: 'example.com/v1',
      kind: 'Widget',
      metadata: { name: 'a' },
      spec: { free: { any: { thing: 1 } }, labels: { a: 'b' }, items: [{ name: 'n' }] },
    });
    expect(warnings).toEqual([
      'unknown field "metadata.colour"',
      'unknown field "spec.bogus"',
      'unknown field "spec.items[0].more"',
      'unknown field "zebra"',
    ]);
  });

  it('keep values of a wrong type, for validation to refuse', () => {
    expect(decode({ spec: { size: 'big', items: 'none' } }).object).toMatchObject({
      spec: { size: 'big', items: 'none' },
    });
  });

  it('keep apiVersion, kind and metadata of embedded objects', () => {
    const template = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {}, status: {} };
    expect(decode({ spec: { template } }).object).toMatchObject({
      spec: { template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {} } },
    });
  });

  it('need a kind, and the version of the path', () => {
    const bytes = Buffer.from('{"metadata":{}}');
    const body = { bytes, contentType: 'application/json', expected, fieldValidation: 'Warn' } as const;
    expect(() => decodeBody(body)).toThrow("Object 'Kind' is missing in '{\"metadata\":{}}'");
    expect(() => decode({ apiVersion: 'example.com/v2' })).toThrow(
      'the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)',
    );
    expect(() => decode({ metadata: { labels: { a: 1 } } })).toThrow(/ObjectMeta.labels of type string/);
  });

  it('are encoded with all keys sorted', () => {
    expect(
      encodeObject(schema, { spec: { b: 1, a: [{ d: 1, c: 2 }] }, metadata: {}, apiVersion: 'x', kind: 'Y' }),
    ).toBe('{"apiVersion":"x","kind":"Y","metadata":{},"spec":{"a":[{"c":2,"d":1}],"b":1}}');
  });

  it('survive schemas of any shape', () => {
    let deep: object = { type: 'string' };
    for (let i = 0; i < 5_000; i++) deep = { type: 'object', properties: { a: deep } };
    for (const shape of [undefined, 1, [], { properties: 1, items: 2 }, deep]) {
      expect(schemaFromCustomResource(shape, 'X').byName.has('metadata')).toBe(true);
    }
  });
});
