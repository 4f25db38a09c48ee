import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { openDiskStorage } from '../../src/apiserver/storage/disk/disk-storage.ts';
import { listPrefix, objectKey } from '../../src/apiserver/storage/storage.ts';
import { runs } from '../support/runs.ts';
import { checkHistory, histories } from './storage-model.ts';
import { describeStorage, sample } from './storage.contract.ts';

/** In memory where there is such a place: how long a disk takes is nothing that these tests are about. */
const scratch = fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir();
const root = fs.mkdtempSync(path.join(scratch, 'servicenet-storage-'));
let directories = 0;
const newDirectory = () => path.join(root, String(directories++), 'data');
afterAll(() => fs.rmSync(root, { recursive: true }));

const encode = (object: object) => JSON.stringify(object);
const log = {
  warn: (details: object, message: string) => {
    throw new Error(`${message} ${JSON.stringify(details)}`);
  },
};
const onListenerError = (error: unknown) => {
  throw error;
};
const servicesPrefix = listPrefix('', 'services');

describeStorage('disk', (options) => openDiskStorage(newDirectory(), { ...options, encode, log }));

describe('disk: random histories', () => {
  it('answers like an array of all versions, through restarts, rotations and snapshots', async () => {
    const inputs = [
      histories,
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 500, max: 20_000 }),
    ] as const;
    await fc.assert(
      fc.asyncProperty(...inputs, async (history, revisions, snapshotAfter) => {
        const directory = newDirectory();
        const retain = { revisions, milliseconds: 1000 };
        const options = { encode, retain, clock: () => 0, onListenerError, log, snapshotAfter };
        const last = await checkHistory(
          await openDiskStorage(directory, options),
          history,
          async (storage) => {
            await storage.close();
            return openDiskStorage(directory, options);
          },
        );
        await last.close();
        fs.rmSync(directory, { recursive: true });
      }),
      { numRuns: runs(25, 120) },
    );
  }, 600_000);
});

describe('disk: restarts', () => {
  let now = 0;
  const open = (directory: string, snapshotAfter = 1_000_000) =>
    openDiskStorage(directory, {
      encode,
      retain: { revisions: 1000, milliseconds: 300_000 },
      clock: () => now,
      onListenerError,
      log,
      snapshotAfter,
    });
  const key = (name: string) => objectKey('', 'services', 'default', name);
  const write = (name: string, v = '1') => [
    { key: key(name), expect: 'any' as const, object: sample(name, v) },
  ];

  it('continues with the revision of a delete, and answers watches from before', async () => {
    const directory = newDirectory();
    const before = await open(directory);
    await before.commit(write('a'));
    await before.commit(write('b'));
    await before.commit([{ key: key('b'), expect: 3, object: undefined }]);
    const text = before.get(key('a'))?.text();
    await before.close();

    const after = await open(directory);
    expect(after.revision).toBe(4);
    expect(after.get(key('a'))?.text()).toBe(text);
    expect(Object.isFrozen(after.get(key('a'))?.object.metadata)).toBe(true);
    const seen: unknown[] = [];
    after.watch(servicesPrefix, 2, ({ type, current, previous }) =>
      seen.push([type, current.object.metadata.resourceVersion, previous?.object.metadata.resourceVersion]),
    );
    const [stored] = await after.commit(write('c'));
    expect(stored?.revision).toBe(5);
    expect(seen).toEqual([
      ['ADDED', '3', undefined],
      ['DELETED', '4', '3'],
      ['ADDED', '5', undefined],
    ]);
    await after.close();
  });

  it('forgets the past with time, also across restarts, and then removes its files', async () => {
    const directory = newDirectory();
    now = 1000;
    const before = await open(directory, 10_000);
    for (let i = 0; i < 300; i++) await before.commit(write(`s${i % 20}`, `${i}`));
    const logs = () => fs.readdirSync(directory).filter((name) => name.startsWith('log-'));
    expect(logs().length).toBeGreaterThan(2);
    await before.close();

    now += 299_000;
    const same = await open(directory, 10_000);
    expect(same.compactedRevision).toBe(1);
    await same.close();

    now += 1000;
    const later = await open(directory, 10_000);
    expect(later.compactedRevision).toBe(301);
    expect(later.list(servicesPrefix).items).toHaveLength(20);
    expect(logs().length).toBe(1);
    await later.close();
    const again = await open(directory, 10_000);
    expect(
      again
        .list(servicesPrefix)
        .items.map((item) => item.object.metadata.labels?.['v'])
        .sort(),
    ).toEqual(Array.from({ length: 20 }, (_, i) => `${280 + i}`).sort());
    await again.close();
  });

  it('shows a write to readers only when it is durable', async () => {
    const storage = await open(newDirectory());
    const commit = storage.commit(write('a'));
    expect(storage.get(key('a'))).toBeUndefined();
    expect(storage.revision).toBe(1);
    expect(storage.getForUpdate(key('a'))?.revision).toBe(2);
    await commit;
    expect(storage.revision).toBe(2);
    await storage.close();
  });

  it('finishes what was committed before close', async () => {
    const directory = newDirectory();
    const storage = await open(directory);
    const commits = Array.from({ length: 50 }, (_, i) => storage.commit(write(`s${i}`)));
    await storage.close();
    await Promise.all(commits);
    const again = await open(directory);
    expect(again.count(servicesPrefix)).toBe(50);
    await again.close();
  });

  it('refuses an object that cannot be encoded, and nothing else', async () => {
    const storage = await open(newDirectory());
    const cyclic = sample('a');
    Object.assign(cyclic, { cyclic });
    const first = storage.commit(write('b'));
    const bad = storage.commit([{ key: key('a'), expect: 'any', object: cyclic }]);
    const last = storage.commit(write('c'));
    await expect(bad).rejects.toThrow(TypeError);
    await Promise.all([first, last]);
    expect(storage.list(servicesPrefix).items.map((item) => item.revision)).toEqual([2, 3]);
    await storage.close();
  });
});
