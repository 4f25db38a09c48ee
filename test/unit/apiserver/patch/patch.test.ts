import { describe, expect, it } from 'vitest';

import type { KubeObject } from '../../../../src/objects/meta.ts';
import { StatusError } from '../../../../src/objects/status.ts';
import { checkPatchBody, patchObject, type PatchType } from '../../../../src/apiserver/patch/patch.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';
import type { FieldValidation } from '../../../../src/apiserver/schema/schema.ts';

const expected = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  schema: builtinSchema('io.k8s.api.core.v1.ConfigMap'),
};
const live: KubeObject & { data: object } = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a' },
  data: { x: '1' },
};

function patch(type: PatchType, body: string | object, fieldValidation: FieldValidation = 'Warn') {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return patchObject({ type, bytes, live, expected, fieldValidation });
}

function errorOf(run: () => unknown): StatusError {
  try {
    run();
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('patchObject', () => {
  it.each([
    ['json', [{ op: 'add', path: '/data/y', value: '2' }]],
    ['merge', { data: { y: '2' } }],
    ['strategic', { data: { y: '2' } }],
  ] as const)('%s makes a new object and leaves the live one alone', (type, body) => {
    const before = JSON.stringify(live);
    expect(patch(type, body).object).toEqual({ ...live, data: { x: '1', y: '2' } });
    expect(JSON.stringify(live)).toBe(before);
  });

  it.each([
    [
      'merge',
      '[]',
      400,
      'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
    ],
    ['merge', 'null', 400, 'Invalid JSON Patch'],
    ['merge', '{"a":', 400, 'error decoding patch: unexpected end of JSON input'],
    ['strategic', '{"a":', 400, 'unexpected end of JSON input'],
    [
      'json',
      '{}',
      400,
      'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
    ],
    [
      'json',
      '[7]',
      400,
      'error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp',
    ],
    [
      'json',
      '[{"op":"add","path":7}]',
      400,
      'error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string',
    ],
    ['json', '[null]', 422, 'the server rejected our request due to an error in our request'],
    [
      'json',
      '[{"op":"remove","path":"/nope"}]',
      422,
      'the server rejected our request due to an error in our request',
    ],
    ['strategic', '{"data":{"$patch":"x"}}', 500, 'unknown patch type: x in map: map[$patch:x]'],
    ['strategic', '{"metadata":{"$retainKeys":1}}', 400, 'invalid patch format of retainKeys'],
    [
      'strategic',
      '{"data":{"k":5}}',
      422,
      ' "" is invalid: patch: Invalid value: "map[data:map[k:5]]": cannot convert int64 to string',
    ],
    [
      'strategic',
      '{"data":5}',
      422,
      ' "" is invalid: patch: Invalid value: "map[data:5]": cannot restore map from int64',
    ],
    [
      'merge',
      '{"data":"<x>"}',
      422,
      ' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",\\"data\\":\\"\\\\u003cx\\\\u003e\\",\\"kind\\":\\"ConfigMap\\",\\"metadata\\":{\\"name\\":\\"a\\"}}": json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string',
    ],
    [
      'merge',
      '{"kind":"Pod"}',
      422,
      ' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",\\"data\\":{\\"x\\":\\"1\\"},\\"kind\\":\\"Pod\\",\\"metadata\\":{\\"name\\":\\"a\\"}}": converting (v1.Pod) to (core.ConfigMap): unknown conversion',
    ],
  ] as const)('%s %s answers %d', (type, body, code, message) => {
    const error = errorOf(() => patch(type, body));
    expect(error.code).toBe(code);
    expect(error.message).toBe(message);
    if (code === 422) expect(error.details?.kind).toBeUndefined();
  });

  it('ignores kind and apiVersion of a strategic patch', () => {
    expect(patch('strategic', { kind: 'Secret', apiVersion: 'v9' }).object).toEqual(live);
  });

  it('tells of unknown and repeated fields as it is asked to', () => {
    const body = '{"bogus":1,"data":{"k":"1","k":"2"}}';
    for (const type of ['merge', 'strategic'] as const) {
      expect(patch(type, body).warnings).toEqual(['duplicate field "data.k"', 'unknown field "bogus"']);
      expect(patch(type, body, 'Ignore').warnings).toEqual([]);
      expect(errorOf(() => patch(type, body, 'Strict')).message).toContain(
        'strict decoding error: duplicate field "data.k", unknown field "bogus"',
      );
    }
  });

  it('tells of unknown and repeated fields of operations', () => {
    const body = '[{"op":"remove","op":"add","path":"/data/y","value":"1","why":2}]';
    const complaints = ['json patch duplicate field "[0].op"', 'json patch unknown field "[0].why"'];
    expect(patch('json', body).warnings).toEqual(complaints);
    expect(patch('json', body, 'Ignore').warnings).toEqual([]);
    expect(errorOf(() => patch('json', body, 'Strict')).message).toContain(
      `strict decoding error: ${complaints.join(', ')}`,
    );
    const repeated = '[{"op":"add","path":"/data","value":{"y":"1","y":"2"}}]';
    expect(patch('json', repeated).warnings).toEqual(['json patch duplicate field "[0].value.y"']);
  });

  it.each([
    ['json', '', 'invalid JSON patch'],
    ['merge', '{"a":', 'invalid JSON patch'],
    ['strategic', '{} {}', 'invalid JSON patch'],
    ['apply', 'a: [', 'error encoding patch: yaml: line 1: did not find expected node content'],
  ] as const)('refuses the body of a %s patch that cannot be read: %j', (type, body, message) => {
    const error = errorOf(() => checkPatchBody(type, Buffer.from(body)));
    expect([error.code, error.message]).toEqual([400, message]);
  });

  it.each([
    ['json', '7'],
    ['merge', ' null '],
    ['apply', ''],
    // Looks like JSON: decoding says what is wrong.
    ['apply', '\n{"a":'],
  ] as const)('leaves the rest of a %s patch to its type: %j', (type, body) => {
    expect(() => checkPatchBody(type, Buffer.from(body))).not.toThrow();
  });

  it.each([
    ['json', '{}', 'json: cannot unmarshal object into Go value of type jsonpatch.Patch'],
    ['json', '[7]', 'json: cannot unmarshal number into Go value of type jsonpatch.Operation'],
    ['json', '[', 'unexpected end of JSON input'],
    ['merge', '{', 'Invalid JSON Patch'],
    ['merge', '"x"', 'Invalid JSON Patch'],
    ['merge', 'null', 'Invalid JSON Patch'],
    ['strategic', '[]', 'json: cannot unmarshal array into Go value of type map[string]interface {}'],
  ] as const)('with Ignore a %s patch %s is read once, with other words', (type, body, message) => {
    const error = errorOf(() => patch(type, body, 'Ignore'));
    expect(error.code).toBe(400);
    expect(error.message).toBe(message);
  });

  it('takes a list for the whole object where the merge library does', () => {
    const error = errorOf(() => patch('merge', '[{"a":null}]', 'Ignore'));
    expect(error.code).toBe(422);
    expect(error.message).toMatch(
      /Invalid value: "\[\{\}\]": couldn't get version\/kind; json parse error: json: cannot unmarshal array/,
    );
  });

  it('bounds nesting', () => {
    const body = '{"a":'.repeat(2_000) + '1' + '}'.repeat(2_000);
    for (const type of ['merge', 'strategic'] as const) {
      expect(errorOf(() => patch(type, body)).code).toBe(400);
    }
  });
});
