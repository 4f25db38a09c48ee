import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryStorage } from '../../../../src/apiserver/storage/memory-storage.ts';
import { RecentObjects } from '../../../../src/apiserver/storage/recent-objects.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { Versions } from '../../../../src/apiserver/storage/version.ts';

const named = (name: string): KubeObject => ({ metadata: { name } });

/** Versions of `count` objects, all of them cold. */
function coldVersions(count: number, recent: RecentObjects) {
  const versions = new Versions((object) => JSON.stringify(object), recent);
  return Array.from({ length: count }, (_, i) =>
    versions.loaded(`core/pods/default/p${i}`, i, Buffer.from(JSON.stringify(named(`p${i}`)))),
  );
}

describe('RecentObjects', () => {
  it('holds no more than it may, whatever is asked for in which order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9)), fc.integer({ min: 0, max: 400 }), (asked, most) => {
        const held = new Set<object>();
        const recent = new RecentObjects(most);
        let weight = 0;
        for (const which of asked) {
          const version = { forget: () => void (held.delete(version), (weight -= 40 + which)) };
          recent.hold({ version, object: named('p'), weight: 40 + which });
          held.add(version);
          weight += 40 + which;
          // The newest may be larger than all that may be held.
          expect(held.size === 1 || weight <= most).toBe(true);
          expect(held.has(version)).toBe(true);
        }
      }),
    );
  });

  it('keeps what is asked for again and again, and lets go of what is not', () => {
    const each = JSON.stringify(named('p0')).length;
    const [often, ...others] = coldVersions(10, new RecentObjects(4 * each));
    const before = often?.object;
    const seen = others.map((version) => [version.object, often?.object]);
    expect(seen.every(([, again]) => again === before)).toBe(true);
    expect(others[0]?.object).not.toBe(seen[0]?.[0]);
    expect(others[0]?.object).toEqual(seen[0]?.[0]);
  });
});

describe('a store that holds more than stays in memory as objects', () => {
  it('answers each object as it was written, frozen', async () => {
    const storage = createMemoryStorage({
      encode: (object) => JSON.stringify(object),
      retain: { revisions: 10, milliseconds: 1000 },
      clock: () => 0,
      onListenerError: (error) => {
        throw error;
      },
    });
    const padding = 'x'.repeat(10_000);
    const name = (i: number): string => `p${i}`;
    for (let i = 0; i < 300; i++) {
      const object = { metadata: { name: name(i), annotations: { padding } }, spec: { i, list: [i, null] } };
      await storage.commit([{ key: `core/pods/default/${name(i)}`, expect: 'absent', object }]);
    }
    for (let i = 0; i < 300; i++) {
      const stored = storage.get(`core/pods/default/${name(i)}`);
      expect(stored?.object).toEqual({
        metadata: { name: name(i), annotations: { padding }, resourceVersion: String(i + 2) },
        spec: { i, list: [i, null] },
      });
      expect(Object.isFrozen(stored?.object.metadata.annotations)).toBe(true);
    }
  });
});
