import { describe, expect, it } from 'vitest';

import {
  changedFields,
  fieldsOf,
  removedFields,
} from '../../../../../src/apiserver/patch/apply/typed-value.ts';
import { fieldPathsOf } from '../../../../../src/apiserver/patch/apply/field-set.ts';
import { builtinSchema } from '../../../../../src/apiserver/schema/builtin.ts';

const pod = builtinSchema('io.k8s.api.core.v1.Pod');
const above = 'f:spec f:hostAliases ';

function withAliases(...ips: string[]): object {
  return { spec: { hostAliases: ips.map((ip) => ({ ip })) } };
}

function paths(set: ReturnType<typeof fieldsOf>): string[] {
  return fieldPathsOf(set)
    .map((path) => path.join(' '))
    .filter((path) => path.startsWith(above))
    .map((path) => path.slice(above.length))
    .sort();
}

const [item, ip] = ['k:{"ip":"a"}', 'k:{"ip":"a"} f:ip'];

describe('items that come twice', () => {
  it.each([
    ['appear', ['a'], ['a', 'a'], [item], [item, ip]],
    ['go', ['a', 'a'], ['a'], [item, ip], [item]],
    ['go altogether', ['a', 'a'], [], [], [item]],
    ['are new', [], ['a', 'a'], [item], []],
    ['stay', ['a', 'a'], ['a', 'a'], [], []],
    ['become three', ['a', 'a'], ['a', 'a', 'a'], [item], []],
  ])('%s', (_what, before, after, changed, removed) => {
    const [from, to] = [withAliases(...before), withAliases(...after)];
    expect(paths(changedFields(pod, from, to))).toEqual(changed);
    expect(paths(removedFields(pod, from, to))).toEqual(removed);
  });

  it('are owned as a whole', () => {
    expect(paths(fieldsOf(pod, withAliases('a', 'a')))).toEqual([item]);
    expect(paths(fieldsOf(pod, withAliases('a')))).toEqual([item, ip]);
  });
});
