import { describe, expect, test } from 'vitest';
import type { DiscoveredResource } from '../../../../../src/apiserver/discovery/discovered-resource.ts';
import { openApiHandler } from '../../../../../src/apiserver/discovery/openapi/handler.ts';
import { writeGnosticV2 } from '../../../../../src/apiserver/discovery/openapi/gnostic.ts';
import { writeGnosticV3 } from '../../../../../src/apiserver/discovery/openapi/gnostic.ts';
import { runInSlices } from '../../../../../src/telemetry/time-slice.ts';
import { wireValues } from '../../../../../src/apiserver/schema/protobuf/wire.ts';
import { call } from '../exchange-fake.ts';

/** No extension API server. */
const noRemote: readonly never[] = [];

const service: DiscoveredResource = {
  ...{ group: '', version: 'v1', plural: 'services', singular: 'service', kind: 'Service' },
  ...{ schema: 'io.k8s.api.core.v1.Service', verbs: ['get', 'list'], namespaced: true },
  ...{ shortNames: [], categories: [], subresources: [], custom: false },
};
const resources = [service];
const handler = openApiHandler(
  () => resources,
  () => noRemote,
  () => undefined,
);

/** The fields of a number in a message that is reached by the first fields of other numbers. */
function fields(bytes: Buffer, ...path: number[]): Buffer[] {
  const [field, ...rest] = path;
  const found = [...wireValues(bytes)].filter((value) => value.field === field).map((value) => value.bytes);
  if (rest.length === 0) return found;
  const [first] = found;
  if (first === undefined) throw new Error(`no field ${field}`);
  return fields(first, ...rest);
}

function texts(bytes: Buffer, ...path: number[]): string[] {
  return fields(bytes, ...path).map(String);
}

/** The value of an entry of a map, whose entries are in field 1 or another one. */
function entry(map: Buffer | undefined, name: string, field = 1): Buffer {
  const found = fields(map ?? Buffer.alloc(0), field).find((each) => texts(each, 1)[0] === name);
  const [value] = found === undefined ? [] : fields(found, 2);
  if (value === undefined) throw new Error(`no ${name}`);
  return value;
}

describe('the protobuf form of OpenAPI', () => {
  test.each([
    ['v2', '/openapi/v2'],
    ['v3', '/openapi/v3/api/v1'],
  ])('%s has the names of kube-openapi and the ETag of the JSON', async (version, path) => {
    const json = await call(handler, path);
    for (const asked of [
      `application/com.github.proto-openapi.spec.${version}@v1.0+protobuf`,
      `application/com.github.proto-openapi.spec.${version}.v1.0+protobuf`,
      `application/json;q=0.5, application/com.github.proto-openapi.spec.${version}@v1.0+protobuf`,
    ]) {
      const answer = await call(handler, path, { headers: { accept: asked } });
      expect([answer.status, answer.contentType]).toEqual([
        200,
        `application/com.github.proto-openapi.spec.${version}.v1.0+protobuf`,
      ]);
      expect(answer.headers).toEqual(json.headers);
      expect(answer.headers['Vary']).toBe('Accept');
      expect(texts(answer.bytes, 2, 1)).toEqual(['Kubernetes']);
      const again = { accept: asked, 'if-none-match': answer.headers['Etag'] ?? '' };
      expect((await call(handler, path, { headers: again })).status).toBe(304);
    }
    for (const accept of ['*/*', 'application/*', 'application/json', '']) {
      expect((await call(handler, path, { headers: { accept } })).contentType).toBe('application/json');
    }
  });

  test.each(['/openapi/v2', '/openapi/v3/api/v1'])('%s is 406 without a body for others', async (path) => {
    const answer = await call(handler, path, { headers: { accept: 'text/html' } });
    expect(answer).toMatchObject({ status: 406, body: '', headers: { Vary: 'Accept' } });
  });

  test('the index of v3 is JSON for all', async () => {
    const answer = await call(handler, '/openapi/v3', { headers: { accept: 'text/html' } });
    expect([answer.status, answer.contentType]).toEqual([200, 'text/plain; charset=utf-8']);
  });

  test('v2 holds paths and definitions', async () => {
    const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
    const { bytes } = await call(handler, '/openapi/v2', { headers: { accept } });
    expect(texts(bytes, 1)).toEqual(['2.0']);
    const path = entry(fields(bytes, 8)[0], '/api/v1/namespaces/{namespace}/services/{name}', 2);
    expect(texts(path, 2, 5)).toEqual(['readCoreV1NamespacedService']);
    expect(fields(path, 2, 13).map((each) => texts(each, 1)[0])).toEqual([
      'x-kubernetes-action',
      'x-kubernetes-group-version-kind',
    ]);
    expect(texts(fields(path, 2, 13)[1] ?? Buffer.alloc(0), 2, 2)).toEqual([
      'group: ""\nkind: Service\nversion: v1\n',
    ]);
    // ParametersItem, Parameter, NonBodyParameter, PathParameterSubSchema: its name
    expect(texts(path, 9, 1, 2, 4, 4)).toEqual(['name']);
    const ports = entry(fields(entry(fields(bytes, 9)[0], 'io.k8s.api.core.v1.ServiceSpec'), 25)[0], 'ports');
    expect(texts(ports, 22, 1)).toEqual(['array']);
    expect(texts(ports, 23, 1, 1)).toEqual(['#/definitions/io.k8s.api.core.v1.ServicePort']);
  });

  test('v3 holds paths and components', async () => {
    const accept = 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf';
    const { bytes } = await call(handler, '/openapi/v3/api/v1', { headers: { accept } });
    expect(texts(bytes, 1)).toEqual(['3.0.0']);
    const path = entry(fields(bytes, 4)[0], '/api/v1/namespaces/{namespace}/services/{name}');
    expect(texts(path, 4, 5)).toEqual(['readCoreV1NamespacedService']);
    const spec = entry(fields(bytes, 5, 1)[0], 'io.k8s.api.core.v1.ServiceSpec');
    const ports = entry(fields(spec, 1, 31)[0], 'ports');
    expect(texts(ports, 1, 25)).toEqual(['array']);
    // SchemaOrReference with a Reference
    expect(texts(ports, 1, 30, 1, 2, 1)).toEqual(['#/components/schemas/io.k8s.api.core.v1.ServicePort']);
  });

  // the bytes are those that gnostic-models makes of these documents
  test('leaves zero values out but in a oneof', async () => {
    const info = { title: 't', version: '1' };
    const zeros = { description: '', minLength: 0, maximum: 0, uniqueItems: false, default: 0 };
    const definitions = { a: { ...zeros, required: [''], additionalProperties: false } };
    const v2 = await runInSlices(writeGnosticV2({ swagger: '2.0', info, paths: {}, definitions }));
    expect(v2.toString('hex')).toBe(
      '0a03322e3012060a017412013142004a150a130a0161120e2a041202300a9a0100aa01021000',
    );
    const properties = {
      n: { type: 'integer', default: 0 },
      t: { default: '' },
      b: { default: false, additionalProperties: false },
      o: { default: {} },
      d: { minimum: -1.5, maximum: 1e21, maxLength: 300 },
    };
    const components = { schemas: { a: { properties } } };
    const v3 = await runInSlices(writeGnosticV3({ openapi: '3.0.0', info, paths: {}, components }));
    expect(v3.toString('hex')).toBe(
      '0a05332e302e3012060a017432013122002a780a760a740a0161126f0a6dfa016a0a1d0a016e12180a16ca0107696e7465' +
        '6765728a02090900000000000000000a0c0a017412070a058a02021a000a110a0162120c0a0a82020210008a02021000' +
        '0a0a0a016f12050a038a02000a1c0a016412170a155950efe2d6e41a4b4469000000000000f8bf78ac02',
    );
  });
});
