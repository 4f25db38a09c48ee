import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { isRecord } from '../../../../src/objects/json.ts';
import { builtinSchema, registeredKind } from '../../../../src/apiserver/schema/builtin.ts';
import { decodeValue } from '../../../../src/apiserver/schema/decode.ts';
import { encodeObject, encodeSorted } from '../../../../src/apiserver/schema/encode.ts';
import { readTranscript, transcriptFiles } from '../../../conformance/transcript.ts';

const service = builtinSchema('io.k8s.api.core.v1.Service');
const configMap = builtinSchema('io.k8s.api.core.v1.ConfigMap');

describe('encodeObject', () => {
  it('writes fields in Go struct order and map keys sorted', () => {
    const value = {
      status: { loadBalancer: {} },
      spec: { clusterIP: 'None', ports: [{ port: 80, name: 'x' }], selector: { b: '2', a: '1' } },
      metadata: { labels: { z: '', B: '', a: '' }, name: 'a' },
      apiVersion: 'v1',
      kind: 'Service',
      unknown: 1,
    };
    expect(encodeObject(service, value)).toBe(
      '{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","labels":{"B":"","a":"","z":""}},"spec":{"ports":[{"name":"x","port":80}],"selector":{"a":"1","b":"2"},"clusterIP":"None"},"status":{"loadBalancer":{}}}',
    );
  });

  it('fills in what Go always writes', () => {
    expect(encodeObject(service, {})).toBe('{"metadata":{},"spec":{},"status":{"loadBalancer":{}}}');
    expect(encodeObject(builtinSchema('io.k8s.api.discovery.v1.EndpointSlice'), { metadata: {} })).toBe(
      '{"metadata":{},"addressType":"","endpoints":null,"ports":null}',
    );
    expect(encodeObject(service, { metadata: { managedFields: [] } })).toContain('"metadata":{}');
  });

  it('escapes as Go does', () => {
    const data = { k: '<a href="x">&\u2028\u0001\u007f\ud800' };
    expect(encodeObject(configMap, { metadata: {}, data })).toBe(
      '{"metadata":{},"data":{"k":"\\u003ca href=\\"x\\"\\u003e\\u0026\\u2028\\u0001\u007f\ufffd"}}',
    );
  });

  it('sorts keys by code point', () => {
    expect(encodeSorted({ '\u{1f600}': 1, '\uffff': 2, a: { c: 1, b: undefined } })).toBe(
      '{"a":{"c":1},"\uffff":2,"\u{1f600}":1}',
    );
  });

  it('reads back what it writes', () => {
    const text = fc.string({ unit: 'grapheme' });
    fc.assert(
      fc.property(fc.dictionary(text, text), (data) => {
        const written: unknown = JSON.parse(encodeObject(configMap, { metadata: {}, data }));
        expect(written).toEqual({ metadata: {}, data });
      }),
    );
  });
});

/** Times and ports that the recordings mask. */
function unmask(value: unknown, key = ''): unknown {
  if (value === '<time>') {
    return /^(eventTime|renewTime|acquireTime|lastObservedTime)$/.test(key)
      ? '2024-01-01T00:00:00.000000Z'
      : '2024-01-01T00:00:00Z';
  }
  if (value === '<nodePort>') return 30001;
  if (Array.isArray(value)) return value.map((item) => unmask(item));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, unmask(member, name)]));
}

describe('every recorded object', () => {
  it.each(transcriptFiles())('of %s decodes and encodes to itself', (file) => {
    let checked = 0;
    const check = (body: unknown): void => {
      if (!isRecord(body) || typeof body['kind'] !== 'string' || body['kind'].endsWith('List')) return;
      const [group = '', version = ''] = `/${String(body['apiVersion'])}`.split('/').slice(-2);
      const component = registeredKind(group, version, body['kind'])?.schema;
      if (component === undefined) return;
      const schema = builtinSchema(component);
      const value = unmask(body);
      const { object, strictErrors } = decodeValue(schema, value);
      expect(strictErrors).toEqual([]);
      expect(encodeObject(schema, object)).toBe(encodeEscaped(value));
      checked++;
    };
    for (const { request, response } of readTranscript(file).flatMap(({ steps }) => steps)) {
      if (request.pick === undefined) check(response.body);
    }
    expect(checked).toBeGreaterThan(0);
  });
});

function encodeEscaped(value: unknown): string {
  return JSON.stringify(value).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
}
