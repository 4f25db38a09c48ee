import { describe, expect, it } from 'vitest';
import { deepFreeze } from '../../../src/objects/json.ts';

describe('deepFreeze', () => {
  it('freezes all of it, however deep', () => {
    let deep: object = { end: true };
    for (let i = 0; i < 200_000; i++) deep = { deep };
    deepFreeze(deep);
    let depth = 0;
    for (let at: unknown = deep; typeof at === 'object' && at !== null; at = Reflect.get(at, 'deep')) {
      expect(Object.isFrozen(at) || depth > 200_000).toBe(true);
      depth++;
      if (depth > 1000) break;
    }
    const list = { items: [{ a: [1, { b: 2 }] }] };
    deepFreeze(list);
    expect(() => list.items.push({ a: [] })).toThrow(TypeError);
    expect(Object.isFrozen(list.items[0]?.a)).toBe(true);
  });
});
