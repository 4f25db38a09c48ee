import fc from 'fast-check';
import { expect } from 'vitest';
import {
  CompactedError,
  listPrefix,
  objectKey,
  PreconditionError,
  type Storage,
  type StorageEvent,
} from '../../src/apiserver/storage/storage.ts';

/** The naive model: every version ever, in an array. */
interface ModelVersion {
  readonly revision: number;
  readonly key: string;
  /** Undefined: deleted. */
  readonly value: string | undefined;
}

type Step =
  | { do: 'put'; key: number; expect: 'any' | 'absent' | 'right' | 'wrong' }
  | { do: 'delete'; key: number }
  | { do: 'list'; back: number; limit: number; from: number; wide: boolean }
  | { do: 'watch'; back: number; wide: boolean }
  | { do: 'settle' };

const keyCount = 120;
const keyOf = (n: number) => objectKey('', 'services', n % 3 === 0 ? 'a' : 'b', `s${(n * 7) % keyCount}`);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      key: fc.nat(keyCount - 1),
      expect: fc.constantFrom('any', 'any', 'absent', 'right', 'wrong'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), key: fc.nat(keyCount - 1) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      back: fc.nat(150),
      limit: fc.integer({ min: 1, max: 50 }),
      from: fc.nat(keyCount),
      wide: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('watch' as const), back: fc.nat(150), wide: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('settle' as const) }) },
);

/** Random histories. Long ones, so that trees split, join and pass checkpoints. */
export const histories = fc.array(step, { minLength: 1, maxLength: 400, size: 'max' });

/** Plays a history against a storage and the model, and compares every answer. `reopen` runs at each settle. */
export async function checkHistory(
  start: Storage,
  history: readonly Step[],
  reopen: (storage: Storage) => Promise<Storage> = (storage) => Promise.resolve(storage),
): Promise<Storage> {
  let storage = start;
  const versions: ModelVersion[] = [];
  let revision = 1;
  let pending: Promise<unknown>[] = [];
  let watches: { prefix: string; after: number; seen: StorageEvent[] }[] = [];
  const latest = (key: string) => versions.findLast((version) => version.key === key)?.value;
  const stateAt = (at: number, prefix: string) => {
    const state = new Map<string, ModelVersion>();
    for (const version of versions) {
      if (version.revision > at || !version.key.startsWith(prefix)) continue;
      if (version.value === undefined) state.delete(version.key);
      else state.set(version.key, version);
    }
    return [...state.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  };
  const prefixOf = (wide: boolean) => (wide ? listPrefix('', 'services') : listPrefix('', 'services', 'a'));
  const settle = async () => {
    await Promise.all(pending);
    pending = [];
    expect(storage.revision).toBe(revision);
    for (const { prefix, after, seen } of watches) {
      const expected = versions.filter(
        (version) => version.revision > after && version.key.startsWith(prefix),
      );
      expect(seen.map((event) => [event.revision, event.current.key])).toEqual(
        expected.map((version) => [version.revision, version.key]),
      );
      for (const [i, version] of expected.entries()) {
        const before = versions.findLast(
          (other) => other.key === version.key && other.revision < version.revision,
        );
        expect(seen[i]?.previous?.revision).toBe(before?.value === undefined ? undefined : before.revision);
        expect(seen[i]?.current.object.metadata).toMatchObject({
          name: version.value ?? before?.value,
          resourceVersion: `${version.revision}`,
        });
      }
    }
  };

  for (const action of history) {
    if (action.do === 'settle') {
      await settle();
      watches = [];
      storage = await reopen(storage);
      expect(storage.revision).toBe(revision);
      continue;
    }
    if (action.do === 'put' || action.do === 'delete') {
      const key = keyOf(action.key);
      const present = versions.findLast((version) => version.key === key);
      const exists = present?.value !== undefined;
      expect(storage.getForUpdate(key)?.revision).toBe(exists ? present.revision : undefined);
      const kind = action.do === 'put' ? action.expect : 'any';
      const condition =
        kind === 'right'
          ? exists
            ? present.revision
            : 'absent'
          : kind === 'wrong'
            ? (present?.revision ?? 0) + 1
            : kind;
      const fails = kind === 'wrong' || (kind === 'absent' && exists) || (action.do === 'delete' && !exists);
      const value = `v${revision + 1}`;
      const object =
        action.do === 'put' ? { apiVersion: 'v1', kind: 'Service', metadata: { name: value } } : undefined;
      const commit = storage.commit([{ key, expect: condition, object }]);
      if (fails) {
        pending.push(expect(commit).rejects.toThrow(PreconditionError));
        continue;
      }
      revision++;
      versions.push({ revision, key, value: object === undefined ? undefined : value });
      const made = revision;
      pending.push(commit.then((stored) => expect(stored[0]?.revision).toBe(made)));
      continue;
    }
    const at = Math.max(1, storage.revision - action.back);
    const prefix = prefixOf(action.wide);
    if (at < storage.compactedRevision) {
      expect(() => storage.list(prefix, { revision: at })).toThrow(CompactedError);
      expect(() => storage.watch(prefix, at, () => undefined)).toThrow(CompactedError);
      continue;
    }
    if (action.do === 'watch') {
      const seen: StorageEvent[] = [];
      storage.watch(prefix, at, (event) => seen.push(event));
      watches.push({ prefix, after: at, seen });
      continue;
    }
    const from = keyOf(action.from);
    const expected = stateAt(at, prefix).filter((version) => version.key >= from);
    const found = storage.list(prefix, { revision: at, from, limit: action.limit });
    expect(found.items.map((item) => [item.key, item.revision, item.object.metadata.name])).toEqual(
      expected.slice(0, action.limit).map((version) => [version.key, version.revision, version.value]),
    );
    expect(found.remaining).toBe(Math.max(0, expected.length - action.limit));
    if (at === storage.revision) {
      expect(storage.count(prefix)).toBe(stateAt(at, prefix).length);
      expect(storage.get(from)?.object.metadata.name).toBe(
        versions.findLast((version) => version.key === from && version.revision <= at)?.value,
      );
    }
  }
  await settle();
  const newest = storage.list(prefixOf(true)).items;
  expect(newest.map((item) => item.object.metadata.name)).toEqual(
    stateAt(revision, prefixOf(true)).map((version) => latest(version.key)),
  );
  return storage;
}
