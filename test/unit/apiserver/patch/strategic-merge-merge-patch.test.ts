import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { isRecord, jsonEqual, type JsonRecord } from '../../../../src/objects/json.ts';
import { applyMergePatch } from '../../../../src/apiserver/patch/strategic-merge.ts';

/** JSON without null, which a merge patch cannot set. */
const value = fc.letrec<{ any: unknown; object: JsonRecord }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    fc.integer(),
    fc.constantFrom('', 'x', 'y'),
    fc.boolean(),
    fc.array(tie('any'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), tie('any'), { maxKeys: 4 }),
}));

/** The smallest patch that turns one object into another. */
function diff(from: JsonRecord, to: JsonRecord): JsonRecord {
  const patch: [string, unknown][] = [];
  for (const key of Object.keys(from)) if (!Object.hasOwn(to, key)) patch.push([key, null]);
  for (const [key, next] of Object.entries(to)) {
    const before = Object.hasOwn(from, key) ? from[key] : undefined;
    if (jsonEqual(before, next)) continue;
    patch.push([key, isRecord(before) && isRecord(next) ? diff(before, next) : next]);
  }
  return Object.fromEntries(patch);
}

describe('applyMergePatch', () => {
  it('of a difference gives the target, and changes neither side', () => {
    fc.assert(
      fc.property(value.object, value.object, (from, to) => {
        const before = JSON.stringify(from);
        const patch = diff(from, to);
        expect(applyMergePatch(from, patch)).toEqual(to);
        expect(JSON.stringify(from)).toBe(before);
      }),
    );
  });

  it('is idempotent', () => {
    fc.assert(
      fc.property(value.object, value.object, (target, patch) => {
        const once = applyMergePatch(target, patch);
        expect(applyMergePatch(once, patch)).toEqual(once);
      }),
    );
  });

  it('drops nulls of new objects, sorts merged members, and leaves the rest in order', () => {
    const patched = applyMergePatch(
      { z: { b: 1, a: 1 }, m: 1 },
      { n: { x: null, y: [{ q: null }] }, m: { k: 1 } },
    );
    expect(JSON.stringify(patched)).toBe('{"m":{"k":1},"n":{"y":[{}]},"z":{"b":1,"a":1}}');
  });
});
