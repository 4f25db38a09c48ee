import { expect, it } from 'vitest';
import { partOfV2, withRemoteV2 } from '../../../../../src/apiserver/discovery/openapi/document-v2.ts';
import type { JsonRecord } from '../../../../../src/objects/json.ts';

const ref = (name: string): object => ({ $ref: `#/definitions/${name}` });
const get = (name: string): object => ({ get: { responses: { '200': { schema: ref(name) } } } });
const run = <T>(steps: Generator<undefined, T, undefined>): T => {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
};

const document = {
  swagger: '2.0',
  paths: {
    '/apis/a/v1/things': get('ThingList'),
    '/apis/b/v1/others': get('Other'),
    '/version': get('Info'),
  },
  definitions: {
    ThingList: { properties: { items: { items: ref('Thing') } } },
    Thing: { properties: { metadata: ref('Meta') } },
    Meta: { type: 'object', description: 'theirs' },
    Other: { type: 'object' },
    Info: { type: 'object' },
    Unused: { type: 'string' },
  },
};

it('keeps of a document the paths of a group version, and what only others use not', () => {
  const part = partOfV2(document, '/apis/a/v1/');
  expect(Object.keys(part?.paths ?? {})).toEqual(['/apis/a/v1/things']);
  expect(Object.keys(part?.definitions ?? {})).toEqual(['ThingList', 'Thing', 'Meta', 'Unused']);
});

it.each([undefined, 'text', {}, { swagger: '3' }])('takes %j as no document', (what) => {
  expect(partOfV2(what, '/apis/a/v1/')).toBeUndefined();
});

it('adds paths and definitions; another definition of the same name gets its own name, also where it is used', () => {
  const own: JsonRecord = {
    swagger: '2.0',
    paths: { '/version': get('Info') },
    definitions: { Meta: { type: 'object', description: 'ours' }, Unused: { type: 'string' } },
  };
  const part = partOfV2(document, '/apis/a/v1/');
  const merged = run(withRemoteV2(own, part === undefined ? [] : [part]));
  expect(merged).toEqual({
    swagger: '2.0',
    paths: { '/version': get('Info'), '/apis/a/v1/things': get('ThingList') },
    definitions: {
      Meta: { type: 'object', description: 'ours' },
      Meta_v2: { type: 'object', description: 'theirs' },
      Unused: { type: 'string' },
      ThingList: { properties: { items: { items: ref('Thing') } } },
      Thing: { properties: { metadata: ref('Meta_v2') } },
    },
  });
  expect(run(withRemoteV2(own, []))).toBe(own);
});

it('leaves a path that is there as it is', () => {
  const own: JsonRecord = { paths: { '/a': { get: 'ours' } }, definitions: {} };
  const merged = run(withRemoteV2(own, [{ paths: { '/a': { get: 'theirs' } }, definitions: {} }]));
  expect(merged['paths']).toEqual({ '/a': { get: 'ours' } });
});
