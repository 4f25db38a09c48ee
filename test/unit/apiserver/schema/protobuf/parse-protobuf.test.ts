import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeBody } from '../../../../../src/apiserver/schema/decode-body.ts';
import { decodeDeleteOptions } from '../../../../../src/apiserver/schema/decode-body.ts';
import { builtinSchema } from '../../../../../src/apiserver/schema/builtin.ts';
import { parseProtobuf } from '../../../../../src/apiserver/schema/protobuf/parse-protobuf.ts';
import { listAt } from '../../../../../src/objects/json.ts';
import { StatusError } from '../../../../../src/objects/status.ts';

type Part = readonly [field: number, value: bigint | number | string | boolean | Buffer];

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}

/** A message: numbers and booleans as varints, the rest length-delimited. */
function message(...parts: readonly Part[]): Buffer {
  return Buffer.concat(
    parts.flatMap(([field, value]) => {
      if (typeof value === 'string' || Buffer.isBuffer(value)) {
        const bytes = Buffer.from(value);
        return [varint(BigInt(field * 8 + 2)), varint(BigInt(bytes.length)), bytes];
      }
      return [varint(BigInt(field * 8)), varint(BigInt(value))];
    }),
  );
}

function body(apiVersion: string, kind: string, object: Buffer): Buffer {
  const unknown = message([1, message([1, apiVersion], [2, kind])], [2, object], [3, ''], [4, '']);
  return Buffer.concat([Buffer.from('k8s\0'), unknown]);
}

const service = { group: '', version: 'v1', kind: 'Service' };
const name = message([1, 'a']);

test('numbers may come packed', () => {
  const count = 15_000;
  const groups = message([4, Buffer.concat([varint(1000n), Buffer.alloc(count, 7)])]);
  const pod = body('v1', 'Pod', message([1, name], [2, message([14, groups])]));
  const read = listAt(
    parseProtobuf(pod, { group: '', version: 'v1', kind: 'Pod' }),
    'spec',
    'securityContext',
    'supplementalGroups',
  );
  expect([read.length, read[0], read.at(-1)]).toEqual([count + 1, 1000, 7]);
});

test('a body of too many values is refused before all of them are read', () => {
  const groups = message([4, Buffer.alloc(1_000_000, 7)]);
  const pod = body('v1', 'Pod', message([1, name], [2, message([14, groups])]));
  const refused = 'Request entity too large: limit is 20000 values';
  expect(() => parseProtobuf(pod, { group: '', version: 'v1', kind: 'Pod' })).toThrow(refused);
  const empty = body(
    'v1',
    'Pod',
    message([2, Buffer.concat(Array.from({ length: 30_000 }, () => message([2, ''])))]),
  );
  expect(() => parseProtobuf(empty, { group: '', version: 'v1', kind: 'Pod' })).toThrow(refused);
});

describe('a Service as client-go sends it', () => {
  test('becomes the same object as its JSON', () => {
    const ports = [
      message([1, 'web'], [2, 'TCP'], [3, 80], [4, message([1, 1], [2, 0], [3, 'http'])], [5, 0]),
      message([1, 'dns'], [2, 'UDP'], [3, 53], [4, message([1, 0], [2, 5353], [3, ''])], [5, 30053]),
    ];
    const spec = message(
      ...ports.map((port): Part => [1, port]),
      [2, message([1, 'app'], [2, 'web'])],
      [2, message([1, '__proto__'], [2, 'x'])],
      [3, ''],
      [12, 0],
      [13, true],
      [14, message([1, message([1, 60])])],
    );
    const metadata = message([1, 'a'], [8, message([1, 1_700_000_000], [2, 0])], [5, '']);
    const object = parseProtobuf(body('v1', 'Service', message([1, metadata], [2, spec])), service);
    expect(JSON.parse(JSON.stringify(object))).toEqual(
      JSON.parse(`{"apiVersion":"v1","kind":"Service",
        "metadata":{"name":"a","uid":"","creationTimestamp":"2023-11-14T22:13:20Z"},
        "spec":{"ports":[{"name":"web","protocol":"TCP","port":80,"targetPort":"http","nodePort":0},
          {"name":"dns","protocol":"UDP","port":53,"targetPort":5353,"nodePort":30053}],
          "selector":{"app":"web","__proto__":"x"},"clusterIP":"","healthCheckNodePort":0,
          "publishNotReadyAddresses":true,"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":60}}}}`),
    );
  });

  test('takes its kind from the request when it names none', () => {
    const { object } = decodeBody({
      bytes: body('', '', message([1, name])),
      contentType: 'application/vnd.kubernetes.protobuf',
      expected: { ...service, schema: builtinSchema('io.k8s.api.core.v1.Service') },
      fieldValidation: 'Strict',
    });
    expect(object).toMatchObject({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' } });
  });
});

test('fields that Go inlines stand in the object around them, and quantities and bytes are texts', () => {
  const volume = message([1, 'v'], [2, message([2, message([1, 'Memory'], [2, message([1, '1Gi'])])])]);
  const probe = message([1, message([2, message([2, message([1, 0], [2, 8080])])])], [2, 5]);
  const container = message([1, 'c'], [10, probe]);
  const pod = parseProtobuf(
    body('v1', 'Pod', message([2, message([1, volume], [2, container], [4, -1n])])),
    service,
  );
  expect(pod['spec']).toEqual({
    volumes: [{ name: 'v', emptyDir: { medium: 'Memory', sizeLimit: '1Gi' } }],
    containers: [{ name: 'c', livenessProbe: { httpGet: { port: 8080 }, initialDelaySeconds: 5 } }],
    terminationGracePeriodSeconds: -1,
  });
  const secret = body('v1', 'Secret', message([2, message([1, 'k'], [2, Buffer.from([0, 255])])]));
  expect(parseProtobuf(secret, service)['data']).toEqual({ k: 'AP8=' });
});

test('options of a delete may come in the group version of the deleted kind', () => {
  const bytes = body('apps/v1', 'DeleteOptions', message([1, 0], [4, 'Foreground'], [5, 'All']));
  expect(decodeDeleteOptions(bytes, 'application/vnd.kubernetes.protobuf')).toMatchObject({
    gracePeriodSeconds: 0,
    propagationPolicy: 'Foreground',
    dryRun: ['All'],
  });
});

test.each([
  ['nothing', Buffer.alloc(0), 'empty data (<empty>)'],
  [
    'JSON',
    Buffer.from('{"kind":"Service"}'),
    'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({"kind":"Service"})',
  ],
  ['a cut message', body('v1', 'Service', message([1, name])).subarray(0, 20), 'unexpected EOF'],
  [
    'a text where a number belongs',
    body('v1', 'Service', message([2, message([12, 'x'])])),
    'wrong wireType = 2',
  ],
])('%s answers 400', (_, bytes, text) => {
  const decode = (): unknown =>
    decodeBody({
      bytes,
      contentType: 'application/vnd.kubernetes.protobuf',
      expected: { ...service, schema: builtinSchema('io.k8s.api.core.v1.Service') },
      fieldValidation: 'Strict',
    });
  expect(decode).toThrow(text);
  expect(decode).toThrow(StatusError);
});

test('any bytes are an object or an error of the client', () => {
  const bytesOf = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => body('v1', 'Pod', Buffer.from(bytes))),
    fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.concat([Buffer.from('k8s\0'), bytes])),
    fc.integer({ min: 0, max: 1500 }).map((depth) => {
      let schema: Buffer = Buffer.alloc(0);
      for (let n = 0; n < depth; n++) schema = message([28, schema]);
      const version = message([4, message([1, schema])]);
      return body('apiextensions.k8s.io/v1', 'CustomResourceDefinition', message([2, message([7, version])]));
    }),
  );
  fc.assert(
    fc.property(bytesOf, (bytes) => {
      try {
        decodeBody({
          bytes,
          contentType: 'application/vnd.kubernetes.protobuf',
          expected: {
            group: '',
            version: 'v1',
            kind: 'Pod',
            schema: builtinSchema('io.k8s.api.core.v1.Pod'),
          },
          fieldValidation: 'Strict',
        });
      } catch (error) {
        expect(error).toBeInstanceOf(StatusError);
      }
    }),
    { numRuns: 200 },
  );
});
