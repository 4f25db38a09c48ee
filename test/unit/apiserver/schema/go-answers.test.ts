/** What Go's decoder, encoder and strategic merge (apimachinery 0.36.4) were seen to answer, where ours once differed. */
import { describe, expect, it } from 'vitest';
import { StatusError } from '../../../../src/objects/status.ts';
import { patchObject, type PatchType } from '../../../../src/apiserver/patch/patch.ts';
import { builtinSchema, registeredKind } from '../../../../src/apiserver/schema/builtin.ts';
import { decodeBody, type ExpectedKind } from '../../../../src/apiserver/schema/decode-body.ts';
import { encodeObject } from '../../../../src/apiserver/schema/encode.ts';
import type { FieldValidation } from '../../../../src/apiserver/schema/schema.ts';

function expectedKind(apiVersion: string, kind: string): ExpectedKind {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const component = registeredKind(group, version, kind)?.schema ?? '';
  return { group, version, kind, schema: builtinSchema(component) };
}

function read(apiVersion: string, kind: string, text: string) {
  const expected = expectedKind(apiVersion, kind);
  const decoded = decodeBody({
    bytes: Buffer.from(text),
    contentType: 'application/json',
    expected,
    fieldValidation: 'Warn',
  });
  return { ...decoded, json: encodeObject(expected.schema, decoded.object) };
}

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof StatusError)
      return error.cause instanceof Error ? error.cause.message : error.message;
    throw error;
  }
  return 'none';
}

describe('an object', () => {
  it.each([
    [
      'batch/v1',
      'Job',
      '{"spec":{"podFailurePolicy":{"rules":[{"action":"Count","onPodConditions":[]},{"action":"FailJob","onExitCodes":{"operator":"In","values":[1]}}]}}}',
      '"rules":[{"action":"Count"},{"action":"FailJob","onExitCodes":{"operator":"In","values":[1]}}]',
    ],
    [
      'v1',
      'Node',
      '{"status":{"runtimeHandlers":[{"features":{"userNamespaces":false}}]}}',
      '"runtimeHandlers":[{"name":"","features":{"userNamespaces":false}}]',
    ],
    [
      'v1',
      'PersistentVolume',
      '{"spec":{"volumeMode":"","nfs":{"server":"s","path":"/"},"local":{"path":"/","fsType":""}},"status":{"phase":"Bound"}}',
      '"spec":{"nfs":{"server":"s","path":"/"},"local":{"path":"/","fsType":""},"volumeMode":""},"status":{"phase":"Bound"}',
    ],
    ['networking.k8s.io/v1', 'IPAddress', '{"spec":{}}', '"spec":{}'],
    ['apps/v1', 'ControllerRevision', '{"data":{},"revision":1}', '"data":{},"revision":1'],
    ['apps/v1', 'ControllerRevision', '{"data":false,"revision":1}', '"data":false,"revision":1'],
    ['apps/v1', 'ControllerRevision', '{"data":null,"revision":1}', '"data":null,"revision":1'],
    ['v1', 'ConfigMap', '{"data":{"\\ue000":"b","😀":"a"}}', '"data":{"\ue000":"b","😀":"a"}'],
    ['v1', 'ConfigMap', '{"binaryData":{"a":[1,255,null]}}', '"binaryData":{"a":"Af8A"}'],
  ])('of %s %s, %s, holds %s', (apiVersion, kind, body, part) => {
    expect(read(apiVersion, kind, body).json).toContain(part);
  });

  it('is complained of in the words of %q', () => {
    const { warnings } = read('v1', 'ConfigMap', '{"\\u0007<é😀\\u007f\\u2028":1,"x\\"y":2}');
    expect(warnings).toEqual(['unknown field "\\a<é😀\\x7f\\u2028"', 'unknown field "x\\"y"']);
  });

  it('has no strictness where a type reads itself', () => {
    const schema = '{"type":"array","unknown":1,"items":{"type":"string","unknown":1,"type":"string"}}';
    const body = `{"spec":{"versions":[{"schema":{"openAPIV3Schema":${schema}}}]}}`;
    const { warnings } = read('apiextensions.k8s.io/v1', 'CustomResourceDefinition', body);
    expect(warnings).toEqual(['unknown field "spec.versions[0].schema.openAPIV3Schema.unknown"']);
  });

  it.each([
    [
      '{"metadata":{"labels":{"a":1}},"spec":{"limits":[{"max":{"cpu":"x"}}]}}',
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
    [
      '{"metadata":{"labels":{"a":1},"creationTimestamp":"x"}}',
      'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
    ],
    [
      '{"metadata":{"labels":{"a":1},"finalizers":1}}',
      'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
    ],
    [
      '{"spec":{"limits":[{"max":7}]}}',
      'json: cannot unmarshal number into Go struct field LimitRangeItem.spec.limits.max of type v1.ResourceList',
    ],
  ])('%s fails for what its types themselves refuse, or else for the first misfit', (body, reason) => {
    const message = refusal(() => read('v1', 'LimitRange', body));
    expect(message).toBe(`LimitRange in version "v1" cannot be handled as a LimitRange: ${reason}`);
  });
});

describe('a patch', () => {
  const live = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a' },
    data: { x: '1' },
  };
  const expected = expectedKind('v1', 'ConfigMap');
  function patch(type: PatchType, body: string, fieldValidation: FieldValidation = 'Strict') {
    return patchObject({ type, bytes: Buffer.from(body), live, expected, fieldValidation }).object;
  }

  it.each<[PatchType, string, string]>([
    [
      'strategic',
      '{"metadata":{"finalizers":[],"$setElementOrder/finalizers":[]}}',
      'no elements in any of the given slices',
    ],
    [
      'strategic',
      '{"metadata":{"$setElementOrder/finalizers":null}}',
      'expected a []interface {}, but received a %!s(<nil>)',
    ],
    [
      'strategic',
      '{"metadata":{"$setElementOrder/finalizers":9223372036854775808}}',
      'expected a []interface {}, but received a float64',
    ],
    [
      'strategic',
      '{"metadata":{"$setElementOrder/finalizers":9223372036854775807}}',
      'expected a []interface {}, but received a int64',
    ],
    ['strategic', '{"x":[{"y":1e400}]}', 'json: cannot unmarshal number 1e400 into Go value of type float64'],
    [
      'merge',
      '{"x":1e400}',
      'error decoding patch: json: cannot unmarshal number 1e400 into Go value of type float64',
    ],
    [
      'strategic',
      '{"binaryData":{"a":"x"}}',
      ' "" is invalid: patch: Invalid value: "map[binaryData:map[a:x]]": error decoding from json: illegal base64 data at input byte 0',
    ],
    [
      'strategic',
      '{"metadata":1e19}',
      ' "" is invalid: patch: Invalid value: "map[metadata:1e+19]": cannot restore struct from: float64',
    ],
    [
      'strategic',
      '{"metadata":[1e6,0.00001,1.5,80.0,-0.0,100000.5]}',
      ' "" is invalid: patch: Invalid value: "map[metadata:[1e+06 1e-05 1.5 80 -0 100000.5]]": cannot restore struct from: slice',
    ],
    [
      'merge',
      '{"metadata":{"ownerReferences":[{"uid":"u","name":"n","b":1,"a":null}]}}',
      ' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",\\"data\\":{\\"x\\":\\"1\\"},\\"kind\\":\\"ConfigMap\\",\\"metadata\\":{\\"name\\":\\"a\\",\\"ownerReferences\\":[{\\"b\\":1,\\"name\\":\\"n\\",\\"uid\\":\\"u\\"}]}}": strict decoding error: unknown field "metadata.ownerReferences[0].b"',
    ],
  ])('%s %s is refused: %s', (type, body, message) => {
    expect(refusal(() => patch(type, body)).trim()).toBe(message.trim());
  });

  it('that replaces null leaves nothing', () => {
    const deployment = expectedKind('apps/v1', 'Deployment');
    const unselected = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {},
      spec: { selector: null },
    };
    const { object } = patchObject({
      type: 'strategic',
      bytes: Buffer.from('{"spec":{"selector":{"matchLabels":{"a":"b"},"$patch":"replace"}}}'),
      live: unselected,
      expected: deployment,
      fieldValidation: 'Strict',
    });
    expect(encodeObject(deployment.schema, object)).toContain('"spec":{"selector":null,');
  });

  it('that orders a new list may have null for a merge key', () => {
    const reference = '{"uid":null,"name":"n"}';
    const { metadata } = patch(
      'strategic',
      `{"metadata":{"ownerReferences":[${reference}],"$setElementOrder/ownerReferences":[{"uid":null}]}}`,
    );
    expect(metadata.ownerReferences).toEqual([{ apiVersion: '', kind: '', name: 'n', uid: '' }]);
  });
});
