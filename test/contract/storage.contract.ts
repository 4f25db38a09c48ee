import { afterEach, describe, expect, it } from 'vitest';
import type { Retention } from '../../src/apiserver/storage/event-window.ts';
import {
  CompactedError,
  FutureRevisionError,
  listPrefix,
  objectKey,
  PreconditionError,
  type Storage,
  type StorageEvent,
} from '../../src/apiserver/storage/storage.ts';
import type { KubeObject } from '../../src/objects/meta.ts';

export interface StorageUnderTest {
  readonly retain: Retention;
  readonly clock: () => number;
  readonly onListenerError: (error: unknown, event: StorageEvent) => void;
}

const servicesPrefix = listPrefix('', 'services');
const key = (name: string, namespace = 'default') => objectKey('', 'services', namespace, name);

/** A minimal Service whose label `v` tells versions apart. */
export function sample(name: string, v = '1', namespace = 'default'): KubeObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace, labels: { v } } };
}

/** What every implementation of {@link Storage} does. */
export function describeStorage(
  implementation: string,
  open: (options: StorageUnderTest) => Promise<Storage>,
): void {
  describe(`${implementation}: the storage contract`, () => {
    const opened: Storage[] = [];
    let now = 0;
    let listenerErrors: unknown[] = [];
    afterEach(async () => {
      for (const storage of opened.splice(0)) await storage.close();
      listenerErrors = [];
    });
    async function fresh(retain: Partial<Retention> = {}): Promise<Storage> {
      now = 1_000_000;
      const storage = await open({
        retain: { revisions: 1000, milliseconds: 300_000, ...retain },
        clock: () => now,
        onListenerError: (error) => listenerErrors.push(error),
      });
      opened.push(storage);
      return storage;
    }
    const names = (storage: Storage, options: Parameters<Storage['list']>[1] = {}) =>
      storage.list(servicesPrefix, options).items.map((item) => item.object.metadata.name);
    async function put(storage: Storage, name: string, v = '1'): Promise<number> {
      const [stored] = await storage.commit([{ key: key(name), expect: 'any', object: sample(name, v) }]);
      return stored?.revision ?? 0;
    }
    async function remove(storage: Storage, name: string): Promise<number> {
      const [stored] = await storage.commit([{ key: key(name), expect: 'any', object: undefined }]);
      return stored?.revision ?? 0;
    }
    function record(storage: Storage, after: number, prefix = servicesPrefix) {
      const seen: string[] = [];
      const stop = storage.watch(prefix, after, (event) => {
        seen.push(`${event.type} ${event.current.object.metadata.name ?? ''} ${event.revision}`);
      });
      return { seen, stop };
    }

    it('is empty at revision 1', async () => {
      const storage = await fresh();
      expect(storage.revision).toBe(1);
      expect(storage.compactedRevision).toBe(1);
      expect(storage.list(servicesPrefix)).toEqual({ items: [], revision: 1, remaining: 0 });
      expect(storage.count(servicesPrefix)).toBe(0);
      expect(storage.get(key('a'))).toBeUndefined();
    });

    it('gives every write a revision of its own and writes it into the object', async () => {
      const storage = await fresh();
      const stored = await storage.commit([
        { key: key('a'), expect: 'absent', object: sample('a') },
        { key: key('b'), expect: 'absent', object: sample('b') },
      ]);
      expect(stored.map((item) => item.revision)).toEqual([2, 3]);
      expect(stored.map((item) => item.object.metadata.resourceVersion)).toEqual(['2', '3']);
      expect(storage.revision).toBe(3);
      expect(storage.get(key('a'))).toBe(stored[0]);
      expect(storage.getForUpdate(key('b'))).toBe(stored[1]);
    });

    it('makes a text of the frozen object', async () => {
      const storage = await fresh();
      await put(storage, 'a');
      const stored = storage.get(key('a'));
      expect(JSON.parse(stored?.text() ?? '')).toEqual(stored?.object);
      expect(Object.isFrozen(stored?.object)).toBe(true);
      expect(Object.isFrozen(stored?.object.metadata.labels)).toBe(true);
    });

    it('keeps the text of an object and nothing else: what its writer does with it later shows nowhere', async () => {
      const storage = await fresh();
      const object = sample('a');
      await storage.commit([{ key: key('a'), expect: 'absent', object }]);
      object.metadata.labels = { v: 'later' };
      expect(storage.get(key('a'))?.object.metadata.labels).toEqual({ v: '1' });
      expect(storage.get(key('a'))?.text()).not.toContain('later');
    });

    it('counts what comes and goes after it was first asked', async () => {
      const storage = await fresh();
      const counts = [storage.count(servicesPrefix)];
      for (const name of ['a', 'b', 'a']) {
        await put(storage, name);
        counts.push(storage.count(servicesPrefix));
      }
      await remove(storage, 'a');
      expect([...counts, storage.count(servicesPrefix)]).toEqual([0, 1, 2, 2, 1]);
    });

    it('takes an object that shares frozen parts with the version before', async () => {
      const storage = await fresh();
      await put(storage, 'a');
      const before = storage.get(key('a'));
      if (before === undefined) throw new Error('not stored');
      await storage.commit([{ key: key('a'), expect: before.revision, object: before.object }]);
      expect(before.object.metadata.resourceVersion).toBe('2');
      expect(storage.get(key('a'))?.object.metadata.resourceVersion).toBe('3');
    });

    it.each([
      ['absent', true, false],
      ['absent', false, true],
      ['any', true, true],
      ['any', false, true],
      [2, true, true],
      [3, true, false],
      [2, false, false],
    ] as const)('expect %s, present %s: stored %s', async (condition, present, ok) => {
      const storage = await fresh();
      if (present) await put(storage, 'a');
      const attempt = storage.commit([{ key: key('a'), expect: condition, object: sample('a', '2') }]);
      if (ok) await attempt;
      else await expect(attempt).rejects.toThrow(PreconditionError);
      expect(storage.get(key('a'))?.object.metadata.labels?.['v']).toBe(ok ? '2' : present ? '1' : undefined);
    });

    it('tells which version stood in the way', async () => {
      const storage = await fresh();
      await put(storage, 'a');
      await expect(
        storage.commit([{ key: key('a'), expect: 'absent', object: sample('a') }]),
      ).rejects.toMatchObject({ key: key('a'), present: { revision: 2 } });
    });

    it('refuses to delete what is absent', async () => {
      const storage = await fresh();
      await expect(remove(storage, 'a')).rejects.toThrow(PreconditionError);
      expect(storage.revision).toBe(1);
    });

    it('stores all writes of a commit or none', async () => {
      const storage = await fresh();
      await put(storage, 'taken');
      const { seen } = record(storage, 2);
      await expect(
        storage.commit([
          { key: key('a'), expect: 'absent', object: sample('a') },
          { key: key('taken'), expect: 'absent', object: sample('taken', '2') },
        ]),
      ).rejects.toThrow(PreconditionError);
      expect(names(storage)).toEqual(['taken']);
      expect(storage.getForUpdate(key('a'))).toBeUndefined();
      expect(seen).toEqual([]);
      expect(await put(storage, 'b')).toBe(3);
    });

    it('lets later writes of a commit see earlier ones', async () => {
      const storage = await fresh();
      await storage.commit([
        { key: key('a'), expect: 'absent', object: sample('a', '1') },
        { key: key('a'), expect: 2, object: sample('a', '2') },
        { key: key('a'), expect: 3, object: undefined },
      ]);
      expect(storage.revision).toBe(4);
      expect(storage.get(key('a'))).toBeUndefined();
    });

    it('checks preconditions against writes that are still on their way', async () => {
      const storage = await fresh();
      const first = storage.commit([{ key: key('a'), expect: 'absent', object: sample('a') }]);
      expect(storage.getForUpdate(key('a'))?.revision).toBe(2);
      const second = storage.commit([{ key: key('a'), expect: 'absent', object: sample('a') }]);
      const third = storage.commit([{ key: key('a'), expect: 2, object: sample('a', '2') }]);
      await Promise.all([first, expect(second).rejects.toThrow(PreconditionError)]);
      expect((await third)[0]?.revision).toBe(3);
    });

    it('shows a write to readers and watchers when its promise resolves', async () => {
      const storage = await fresh();
      const { seen } = record(storage, 1);
      await put(storage, 'a');
      expect(storage.get(key('a'))?.revision).toBe(2);
      expect(storage.revision).toBe(2);
      expect(seen).toEqual(['ADDED a 2']);
    });

    it('lists by key, only below the prefix', async () => {
      const storage = await fresh();
      for (const [namespace, name] of [
        ['b', 'x'],
        ['a', 'z'],
        ['a-b', 'y'],
        ['a', 'B'],
      ] as const) {
        await storage.commit([
          { key: key(name, namespace), expect: 'absent', object: sample(name, '1', namespace) },
        ]);
      }
      await storage.commit([
        { key: objectKey('', 'services2', 'a', 'other'), expect: 'absent', object: sample('other') },
        { key: objectKey('', 'nodes', '', 'n'), expect: 'absent', object: sample('n') },
      ]);
      const found = storage.list(servicesPrefix).items.map((item) => item.key);
      expect(found).toEqual([key('y', 'a-b'), key('B', 'a'), key('z', 'a'), key('x', 'b')]);
      expect(storage.list(listPrefix('', 'services', 'a')).items.map((item) => item.key)).toEqual([
        key('B', 'a'),
        key('z', 'a'),
      ]);
      expect(storage.list(listPrefix('', 'nodes', '')).items).toHaveLength(1);
      expect(storage.count(servicesPrefix)).toBe(4);
      expect(storage.count(listPrefix('', 'services', 'a'))).toBe(2);
      expect(storage.count(listPrefix('', 'nodes'))).toBe(1);
    });

    it('pages through one snapshot while others write', async () => {
      const storage = await fresh();
      for (let i = 0; i < 250; i++) await put(storage, `s${String(i).padStart(3, '0')}`);
      const expected = names(storage);
      const first = storage.list(servicesPrefix, { limit: 100 });
      expect(first.remaining).toBe(150);
      for (let i = 0; i < 250; i += 2) await remove(storage, `s${String(i).padStart(3, '0')}`);
      for (let i = 0; i < 50; i++) await put(storage, `new${i}`);
      const behind = (items: typeof first) => `${items.items.at(-1)?.key ?? ''}\0`;
      const { revision } = first;
      const second = storage.list(servicesPrefix, { limit: 100, revision, from: behind(first) });
      expect(second.remaining).toBe(50);
      const third = storage.list(servicesPrefix, { limit: 100, revision, from: behind(second) });
      expect(third.remaining).toBe(0);
      const paged = [...first.items, ...second.items, ...third.items];
      expect(paged.map((item) => item.object.metadata.name)).toEqual(expected);
      expect(third.revision).toBe(revision);
    });

    it('reads events of the past in parts, of a resource and of a namespace', async () => {
      const storage = await fresh();
      for (const name of ['a', 'b', 'c']) {
        await put(storage, name);
        await storage.commit([
          { key: key(name, 'other'), expect: 'absent', object: sample(name, '1', 'other') },
        ]);
      }
      const revisions = (prefix: string, after: number, limit: number): number[] =>
        storage.events(prefix, after, limit).map(({ revision }) => revision);
      expect(revisions(servicesPrefix, 1, 4)).toEqual([2, 3, 4, 5]);
      expect(revisions(servicesPrefix, 5, 4)).toEqual([6, 7]);
      expect(revisions(servicesPrefix, 7, 4)).toEqual([]);
      expect(revisions(listPrefix('', 'services', 'other'), 3, 4)).toEqual([5, 7]);
      expect(revisions(listPrefix('', 'nodes'), 1, 4)).toEqual([]);
    });

    it('goes on from a key, from one that is not there, and from before the prefix', async () => {
      const storage = await fresh();
      for (const name of ['a', 'c', 'd']) await put(storage, name);
      expect(names(storage, { from: key('b') })).toEqual(['c', 'd']);
      expect(names(storage, { from: key('c') })).toEqual(['c', 'd']);
      expect(names(storage, { from: `${key('c')}\0` })).toEqual(['d']);
      expect(names(storage, { from: key('z') })).toEqual([]);
      expect(names(storage, { from: 'a' })).toEqual(['a', 'c', 'd']);
      expect(storage.list(servicesPrefix, { limit: 0 })).toMatchObject({ items: [], remaining: 3 });
    });

    it('lists any revision that is kept', async () => {
      const storage = await fresh();
      await put(storage, 'a', '1');
      await put(storage, 'a', '2');
      await remove(storage, 'a');
      await put(storage, 'a', '3');
      const versions = [1, 2, 3, 4, 5].map((revision) =>
        storage.list(servicesPrefix, { revision }).items.map((item) => item.object.metadata.labels?.['v']),
      );
      expect(versions).toEqual([[], ['1'], ['2'], [], ['3']]);
      expect(() => storage.list(servicesPrefix, { revision: 6 })).toThrow(FutureRevisionError);
    });

    it('replays what happened, then goes on live', async () => {
      const storage = await fresh();
      await put(storage, 'a');
      await put(storage, 'b');
      const { seen, stop } = record(storage, 2);
      expect(seen).toEqual(['ADDED b 3']);
      await put(storage, 'a', '2');
      await remove(storage, 'b');
      expect(seen).toEqual(['ADDED b 3', 'MODIFIED a 4', 'DELETED b 5']);
      stop();
      stop();
      await put(storage, 'c');
      expect(seen).toHaveLength(3);
    });

    it('carries both versions in an event, and the revision of the delete in the last object', async () => {
      const storage = await fresh();
      const events: StorageEvent[] = [];
      storage.watch(servicesPrefix, 1, (event) => events.push(event));
      await put(storage, 'a', '1');
      await put(storage, 'a', '2');
      await remove(storage, 'a');
      expect(events.map((event) => event.previous?.revision)).toEqual([undefined, 2, 3]);
      const deleted = events[2]?.current;
      expect(deleted?.revision).toBe(4);
      expect(deleted?.object.metadata).toMatchObject({
        name: 'a',
        labels: { v: '2' },
        resourceVersion: '4',
      });
      expect(Object.isFrozen(deleted?.object.metadata)).toBe(true);
      expect(JSON.parse(deleted?.text() ?? '')).toEqual(deleted?.object);
      expect(events[2]?.previous?.object.metadata.resourceVersion).toBe('3');
    });

    it('tells watchers of a namespace or a resource nothing of others', async () => {
      const storage = await fresh();
      const all = record(storage, 1);
      const one = record(storage, 1, listPrefix('', 'services', 'ns'));
      const nodes = record(storage, 1, listPrefix('', 'nodes'));
      await put(storage, 'a');
      await storage.commit([{ key: key('b', 'ns'), expect: 'absent', object: sample('b', '1', 'ns') }]);
      await storage.commit([{ key: objectKey('', 'nodes', '', 'n'), expect: 'absent', object: sample('n') }]);
      expect(all.seen).toEqual(['ADDED a 2', 'ADDED b 3']);
      expect(one.seen).toEqual(['ADDED b 3']);
      expect(nodes.seen).toEqual(['ADDED n 4']);
      expect(record(storage, 1, listPrefix('', 'services', 'ns')).seen).toEqual(one.seen);
    });

    it('waits for revisions that a watch has not reached', async () => {
      const storage = await fresh();
      const { seen } = record(storage, 3);
      for (const name of ['a', 'b', 'c']) await put(storage, name);
      expect(seen).toEqual(['ADDED c 4']);
    });

    it('shields writers and other listeners from one that throws', async () => {
      const storage = await fresh();
      storage.watch(servicesPrefix, 1, () => {
        throw new Error('listener is broken');
      });
      const { seen } = record(storage, 1);
      await put(storage, 'a');
      await put(storage, 'b');
      expect(seen).toEqual(['ADDED a 2', 'ADDED b 3']);
      expect(listenerErrors).toHaveLength(2);
    });

    it('keeps the order for all when listeners write, subscribe and unsubscribe', async () => {
      const storage = await fresh();
      const nested: Promise<unknown>[] = [];
      const late: string[] = [];
      storage.watch(servicesPrefix, 1, (event) => {
        if (event.current.object.metadata.name !== 'a') return;
        nested.push(put(storage, 'b'));
        storage.watch(servicesPrefix, 1, (other) => late.push(`${other.revision}`));
      });
      const { seen } = record(storage, 1);
      const once: number[] = [];
      const stop = storage.watch(servicesPrefix, 1, (event) => {
        once.push(event.revision);
        stop();
      });
      await put(storage, 'a');
      await Promise.all(nested);
      await put(storage, 'c');
      expect(seen).toEqual(['ADDED a 2', 'ADDED b 3', 'ADDED c 4']);
      expect(late).toEqual(['2', '3', '4']);
      expect(once).toEqual([2]);
    });

    it('forgets by age', async () => {
      const storage = await fresh({ milliseconds: 1000 });
      await put(storage, 'a');
      now += 999;
      await put(storage, 'b');
      expect(storage.compactedRevision).toBe(1);
      now += 1;
      expect(storage.compactedRevision).toBe(2);
      expect(() => storage.list(servicesPrefix, { revision: 1 })).toThrow(CompactedError);
      expect(() => record(storage, 1)).toThrow(CompactedError);
      expect(names(storage, { revision: 2 })).toEqual(['a']);
      expect(record(storage, 2).seen).toEqual(['ADDED b 3']);
      now += 5000;
      expect(storage.compactedRevision).toBe(3);
      expect(names(storage, { revision: 3 })).toEqual(['a', 'b']);
    });

    it('forgets by count', async () => {
      const storage = await fresh({ revisions: 10 });
      for (let i = 0; i < 200; i++) await put(storage, `s${i % 7}`, `${i}`);
      expect(storage.revision).toBe(201);
      expect(storage.compactedRevision).toBe(191);
      expect(storage.list(servicesPrefix, { revision: 191 }).items).toHaveLength(7);
      expect(() => storage.list(servicesPrefix, { revision: 190 })).toThrow(CompactedError);
      expect(record(storage, 191).seen).toHaveLength(10);
    });

    it('forgets by weight', async () => {
      const storage = await fresh({ bytes: 100_000 });
      for (let i = 0; i < 50; i++) await put(storage, 'big', 'x'.repeat(20_000));
      expect(storage.compactedRevision).toBeGreaterThan(40);
      expect(storage.compactedRevision).toBeLessThan(51);
    });

    it('rejects prefixes that name neither a resource nor a namespace', async () => {
      const storage = await fresh();
      expect(() => storage.list('core/services')).toThrow(RangeError);
      expect(() => storage.watch('core/', 1, () => undefined)).toThrow(RangeError);
    });

    it('rejects commits after close', async () => {
      const storage = await fresh();
      await put(storage, 'a');
      await storage.close();
      await expect(put(storage, 'b')).rejects.toThrow(/closed/);
      expect(names(storage)).toEqual(['a']);
    });
  });
}
