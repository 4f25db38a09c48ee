import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { builtinSchema, registeredKind } from '../../../../../src/apiserver/schema/builtin.ts';
import { decodeValue } from '../../../../../src/apiserver/schema/decode.ts';
import { parseProtobuf } from '../../../../../src/apiserver/schema/protobuf/parse-protobuf.ts';
import { messageOfKind } from '../../../../../src/apiserver/schema/protobuf/wire.ts';
import { parseVersion } from '../../../../../src/apiserver/schema/builtin.ts';
import { WireWriter } from '../../../../../src/apiserver/schema/protobuf/wire.ts';
import { wireValues } from '../../../../../src/apiserver/schema/protobuf/wire.ts';
import {
  writeProtobuf,
  writeProtobufEvent,
} from '../../../../../src/apiserver/schema/protobuf/write-protobuf.ts';
import { isRecord, type JsonRecord } from '../../../../../src/objects/json.ts';
import { recordAt } from '../../../../../src/objects/json.ts';
import { StatusError } from '../../../../../src/objects/status.ts';
import { readTranscript, transcriptFiles } from '../../../../conformance/transcript.ts';
import vectors from './protobuf-vectors.generated.json' with { type: 'json' };

/** The recorded objects that have a kind with a message, with values for the tokens that are no text. */
function recordedObjects(): JsonRecord[] {
  const objects: JsonRecord[] = [];
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect);
    if (!isRecord(value)) return;
    const { apiVersion, kind } = value;
    if (typeof apiVersion === 'string' && typeof kind === 'string' && isWritten(value)) {
      const { group, version } = parseVersion(apiVersion);
      if (messageOfKind(group, version, kind) !== undefined) objects.push(value);
    }
    Object.values(value).forEach(collect);
  };
  for (const { steps } of transcriptFiles().flatMap(readTranscript)) {
    const text = JSON.stringify(steps.map(({ response }) => response))
      .replaceAll(/("(?:event|renew|acquire)Time":)"<time>"/g, '$1"2026-01-02T03:04:05.000006Z"')
      .replaceAll('"<time>"', '"2026-01-02T03:04:05Z"')
      .replaceAll('"<nodePort>"', '30001')
      .replaceAll('"<count>"', '3');
    collect(JSON.parse(text));
  }
  return objects;
}

/** Not the `kind` and `apiVersion` that a Table's or an owner's members have. */
function isWritten(value: JsonRecord): boolean {
  return isRecord(value['metadata']) && value['kind'] !== 'Table';
}

/** Without what protobuf does not tell from nothing: null, zero values, and empty lists and maps. */
function pruned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pruned);
  if (!isRecord(value)) return value;
  const kept: JsonRecord = {};
  for (const [key, member] of Object.entries(value)) {
    if (!Boolean(member) || (Array.isArray(member) && member.length === 0)) continue;
    const rest = pruned(member);
    if (isRecord(rest) && Object.keys(rest).length === 0) continue;
    kept[key] = rest;
  }
  return kept;
}

const defaults = { group: '', version: 'v1', kind: 'Service' };

// Random objects, with the bytes that k8s.io/api 0.36.4 and its protobuf serializer made of their JSON on 2026-11-22: of
// each kind one with nothing in it, and one with about half of its fields. CSINodes are of 0.37.2: they have a status.
describe.each(vectors.map(({ object, bytes }) => ({ object: recordAt(object), bytes })))(
  "$object.apiVersion $object.kind in Go's bytes",
  ({ object, bytes }) => {
    const protobuf = Buffer.from(bytes, 'base64');

    test('is written so', () => {
      expect(writeProtobuf(object).toString('hex')).toBe(protobuf.toString('hex'));
    });

    test('is read as its JSON is', () => {
      const { apiVersion, kind } = object;
      const { group, version } = parseVersion(String(apiVersion));
      const schema = registeredKind(group, version, String(kind))?.schema;
      const read = parseProtobuf(protobuf, defaults);
      if (schema === undefined) expect(pruned(read)).toEqual(pruned(object));
      else
        expect(decodeValue(builtinSchema(schema), read).object).toEqual(
          decodeValue(builtinSchema(schema), object).object,
        );
    });
  },
);

test('a ConfigMap has the bytes that the format says', () => {
  const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' }, data: { k: 'v', b: '' } };
  const expected = [
    ...[0x6b, 0x38, 0x73, 0x00],
    ...[0x0a, 15, 0x0a, 2, ...Buffer.from('v1'), 0x12, 9, ...Buffer.from('ConfigMap')],
    ...[0x12, 34],
    // the other fields of metadata that are held by value are there, and empty
    ...[
      0x0a,
      17,
      0x0a,
      1,
      ...Buffer.from('a'),
      0x12,
      0,
      0x1a,
      0,
      0x22,
      0,
      0x2a,
      0,
      0x32,
      0,
      0x38,
      0,
      0x42,
      0,
    ],
    ...[0x12, 5, 0x0a, 1, ...Buffer.from('b'), 0x12, 0],
    ...[0x12, 6, 0x0a, 1, ...Buffer.from('k'), 0x12, 1, ...Buffer.from('v')],
    ...[0x1a, 0, 0x22, 0],
  ];
  expect([...writeProtobuf(object)]).toEqual(expected);
});

describe('recorded answers of kube-apiserver', () => {
  const objects = recordedObjects();

  test('are read back as they were written', () => {
    const kinds = new Set(objects.map(({ kind }) => kind));
    for (const kind of ['Service', 'ConfigMapList', 'EndpointSlice', 'Pod', 'Status', 'Ingress']) {
      expect(kinds).toContain(kind);
    }
    for (const object of objects) {
      expect(pruned(parseProtobuf(writeProtobuf(object), defaults))).toEqual(pruned(object));
    }
  });
});

test('an event is a frame with its length in front', () => {
  const object = { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'a' }, data: { k: 'AP8=' } };
  const frame = writeProtobufEvent('ADDED', object);
  expect(frame.readUInt32BE(0)).toBe(frame.length - 4);
  const [type, raw] = [...wireValues(frame.subarray(4))];
  expect([type?.field, type?.bytes.toString(), raw?.field]).toEqual([1, 'ADDED', 2]);
  const [bytes] = [...wireValues(raw?.bytes ?? Buffer.alloc(0))];
  expect(bytes?.field).toBe(1);
  expect(pruned(parseProtobuf(bytes?.bytes ?? Buffer.alloc(0), defaults))).toEqual(object);
});

test('what JSON writes in a way of its own is written as its message', () => {
  const definition = {
    kind: 'CustomResourceDefinition',
    apiVersion: 'apiextensions.k8s.io/v1',
    spec: {
      versions: [
        {
          name: 'v1',
          schema: {
            openAPIV3Schema: {
              type: 'object',
              default: { a: [1, null] },
              maximum: 1.5,
              additionalProperties: { type: 'string' },
              properties: { a: { items: { type: 'string' } }, b: { additionalProperties: true } },
            },
          },
        },
      ],
    },
  };
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { creationTimestamp: '2026-01-02T03:04:05Z', generation: 3 },
    spec: {
      terminationGracePeriodSeconds: -1,
      volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Gi' } }],
      containers: [{ name: 'c', livenessProbe: { httpGet: { port: 'web' }, periodSeconds: 2 ** 31 } }],
    },
  };
  const lease = {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    spec: { renewTime: '2026-01-02T03:04:05.000006Z', leaseDurationSeconds: 15 },
  };
  const review = {
    kind: 'SelfSubjectReview',
    apiVersion: 'authentication.k8s.io/v1',
    status: { userInfo: { username: 'u', extra: { k: ['a', 'b'] } } },
  };
  for (const object of [definition, pod, lease, review]) {
    expect(pruned(parseProtobuf(writeProtobuf(object), defaults))).toEqual(pruned(object));
  }
});

test.each([
  ['a custom resource', { kind: 'Widget', apiVersion: 'example.com/v1' }],
  ['a table', { kind: 'Table', apiVersion: 'meta.k8s.io/v1' }],
])('%s has no protobuf', (_, object) => {
  expect(() => writeProtobuf(object)).toThrow(StatusError);
  expect(() => writeProtobuf(object)).toThrow(/does not implement the protobuf marshalling interface/);
});

test('the wire writer writes what the reader reads', () => {
  const value = fc.oneof(
    fc.record({ number: fc.maxSafeInteger() }),
    fc.record({ text: fc.string({ unit: 'grapheme', maxLength: 3000 }) }),
    fc.record({ double: fc.double({ noNaN: true }) }),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 2 ** 28 }), value), { maxLength: 20 }),
      (fields) => {
        const writer = new WireWriter();
        for (const [field, each] of fields.toReversed()) {
          if ('number' in each) writer.integer(field, each.number);
          else if ('text' in each) writer.text(field, each.text);
          else writer.double(field, each.double);
        }
        const read = [...wireValues(writer.take())].map(({ field, wireType, number, bytes }) => {
          if (wireType === 0) return [field, { number: Number(BigInt.asIntN(64, number)) }];
          return [field, wireType === 1 ? { double: bytes.readDoubleLE() } : { text: bytes.toString() }];
        });
        expect(read).toEqual(fields);
      },
    ),
  );
});
