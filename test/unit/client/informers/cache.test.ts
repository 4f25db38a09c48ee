import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Cache } from '../../../../src/client/informers/cache.ts';
import {
  byNode,
  byOwner,
  indexByLabel,
  indexByNamespace,
  indexByNode,
  indexByOwner,
} from '../../../../src/client/informers/cache.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';

const object = (name: string, labels: Record<string, string> = {}): KubeObject => ({
  metadata: { name, namespace: 'n', labels },
});

describe('Cache', () => {
  it('keeps its indexes equal to a search, whatever happens', () => {
    const name = fc.constantFrom('a', 'b', 'c', '__proto__');
    const labels = fc.dictionary(
      fc.constantFrom('x', 'y', '__proto__'),
      fc.constantFrom('1', '2', 'constructor'),
    );
    const step = fc.oneof(
      fc.record({ do: fc.constant('set' as const), name, labels }),
      fc.record({ do: fc.constant('delete' as const), name }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat(40), (steps, indexAt) => {
        const cache = new Cache<KubeObject>();
        const model = new Map<string, KubeObject>();
        for (const [at, one] of steps.entries()) {
          if (at === Math.min(indexAt, steps.length - 1)) cache.addIndex('x', indexByLabel('x'));
          if (one.do === 'set') {
            const stored = object(one.name, one.labels);
            expect(cache.set(stored)).toBe(model.get(keyOf(stored)));
            model.set(keyOf(stored), stored);
          } else {
            const key = `n/${one.name}`;
            expect(cache.delete(key)).toBe(model.get(key));
            model.delete(key);
          }
        }
        if (steps.length === 0) return;
        expect(new Set(cache.values())).toEqual(new Set(model.values()));
        for (const value of ['1', '2', 'constructor']) {
          const expected = [...model.values()].filter(
            ({ metadata: { labels: own = {} } }) => Object.hasOwn(own, 'x') && own['x'] === value,
          );
          expect(new Set(cache.byIndex('x', `n/${value}`))).toEqual(new Set(expected));
          expect(cache.countByIndex('x', `n/${value}`)).toBe(expected.length);
        }
      }),
    );
  });

  it('shares an index of the same function and refuses another of its name', () => {
    const cache = new Cache<KubeObject>();
    cache.addIndex('app', indexByLabel('app'));
    cache.addIndex('app', indexByLabel('app'));
    expect(() => cache.addIndex('app', indexByNamespace)).toThrow('another index "app"');
    expect(() => cache.byIndex('none', '')).toThrow('no index "none"');
  });
});

describe('indexes', () => {
  it.each([
    [
      byOwner,
      indexByOwner,
      { metadata: { name: 'a', ownerReferences: [{ uid: 'u' }, { uid: 'v' }] } },
      ['u', 'v'],
    ],
    [byOwner, indexByOwner, { metadata: { name: 'a', ownerReferences: 7 } }, []],
    [byOwner, indexByOwner, { metadata: { name: 'a', ownerReferences: [null, {}, { uid: 3 }] } }, []],
    [byNode, indexByNode, { metadata: { name: 'a' }, spec: { nodeName: 'n1' } }, ['n1']],
    [byNode, indexByNode, { metadata: { name: 'a' }, spec: { nodeName: '' } }, []],
    [byNode, indexByNode, { metadata: { name: 'a' }, spec: 'x' }, []],
    ['label', indexByLabel('toString'), { metadata: { name: 'a', labels: {} } }, []],
    ['label', indexByLabel('a'), { metadata: { name: 'a', labels: { a: 7 } } }, []],
    ['label', indexByLabel('a'), { metadata: { name: 'a', labels: null } }, []],
  ])('%s survives any shape: %#', (_, index, value, expected) => {
    const parsed: unknown = JSON.parse(JSON.stringify(value));
    if (!isNamed(parsed)) throw new Error('the case is no object');
    expect(index(parsed)).toEqual(expected);
  });
});

function isNamed(value: unknown): value is KubeObject {
  return typeof value === 'object' && value !== null && 'metadata' in value;
}
