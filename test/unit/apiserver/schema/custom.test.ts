import { describe, expect, it } from 'vitest';

import { schemaFromCustomResource } from '../../../../src/apiserver/schema/custom-object.ts';
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
          loose: { type: 'object', additionalProperties: true },
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

  // as the real server read them on 2026-11-22
  it.each<[string, object, object, string[]]>([
    ['an object for a text', { note: { a: 1 } }, { note: {} }, ['spec.note.a']],
    ['objects in a list for a text', { note: [{ a: 1 }] }, { note: [{}] }, ['spec.note[0].a']],
    ['an object for a number or text', { port: { a: 1 } }, { port: {} }, ['spec.port.a']],
    ['an object for a list', { items: { a: 1 } }, { items: {} }, ['spec.items.a']],
    ['a list in a list', { items: [[{ a: 1 }]] }, { items: [[{}]] }, ['spec.items[0][0].a']],
    ['an object in a map of texts', { labels: { a: { b: 1 } } }, { labels: { a: {} } }, ['spec.labels.a.b']],
    [
      'objects in a map of anything',
      { loose: { a: { b: 1 }, c: [{ d: 1 }], e: 1 } },
      { loose: { a: {}, c: [{}], e: 1 } },
      ['spec.loose.a.b', 'spec.loose.c[0].d'],
    ],
    ['a list for an object that keeps everything', { free: [{ a: 1 }] }, { free: [{ a: 1 }] }, []],
    [
      'metadata of an embedded object, behind all else',
      { zebra: 1, template: { kind: 'Pod', metadata: { name: 'a', zz: 1 } } },
      { template: { kind: 'Pod', metadata: { name: 'a' } } },
      ['spec.zebra', 'spec.template.metadata.zz'],
    ],
  ])('lose what is undeclared in %s', (_name, spec, kept, unknown) => {
    const { object, warnings } = decode({ spec });
    expect(object).toMatchObject({ spec: kept });
    expect(Object.keys(kept)).toHaveLength(1);
    expect(warnings).toEqual(unknown.map((path) => `unknown field "${path}"`));
  });

  it.each([
    [{ kind: 1 }, 'spec.template.kind: Invalid value: 1: must be a string'],
    [
      { metadata: 'x' },
      'spec.template.metadata: Invalid value: "x": json: cannot unmarshal string into Go value of type v1.ObjectMeta',
    ],
    [
      { metadata: { z: 1, labels: { a: 1 } } },
      'spec.template.metadata: Invalid value: {"labels":{"a":1},"z":1}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
    ],
  ])('refuse an embedded object that is none: %j', (template, reason) => {
    expect(() => decode({ spec: { template } })).toThrow(
      `Widget in version "v1" cannot be handled as a Widget: ${reason}`,
    );
  });

  it('refuse numbers that Go has no type for', () => {
    const bytes = Buffer.from(
      '{"apiVersion":"example.com/v1","kind":"Widget","spec":{"free":{"a":[1e400]}}}',
    );
    expect(() =>
      decodeBody({ bytes, contentType: 'application/json', expected, fieldValidation: 'Warn' }),
    ).toThrow('json: cannot unmarshal number 1e400 into Go value of type float64');
  });

  it('are read by the schema of the version that they are of', () => {
    const warned: string[] = [];
    const other = schemaFromCustomResource({ type: 'object', properties: { old: { type: 'string' } } }, '');
    const read = (version: string) => () =>
      decodeBody({
        bytes: Buffer.from(`{"apiVersion":"example.com/${version}","kind":"Widget","old":"a","spec":{}}`),
        contentType: 'application/json',
        expected: { ...expected, schemaOfVersion: (name) => (name === 'v0' ? other : undefined) },
        fieldValidation: 'Warn',
        warn: (text) => warned.push(text),
      });
    expect(read('v0')).toThrow('does not match the expected API version');
    expect(warned).toEqual(['unknown field "spec"']);
    expect(read('v9')).toThrow('does not match the expected API version');
    expect(warned.slice(1)).toEqual(['unknown field "old"', 'unknown field "spec"']);
  });

  it('need to say their version', () => {
    expect(() => decode({ apiVersion: undefined, spec: {} })).toThrow(
      'the API version in the data () does not match the expected API version (example.com/v1)',
    );
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
