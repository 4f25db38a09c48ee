import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type FileLayer,
  fileSystem,
  type WritableFile,
} from '../../../../../src/apiserver/storage/disk/files.ts';
import type { Storage } from '../../../../../src/apiserver/storage/storage.ts';
import {
  configMapsPrefix,
  contentsOf,
  keyOf,
  openStore,
  temporaryDirectories,
  writeOf,
} from './store-fixture.ts';

const newDirectory = temporaryDirectories();

type Operation = 'create' | 'write' | 'sync' | 'truncate' | 'rename' | 'remove' | 'syncDirectory';

/** The file system, in which operations fail while the test says so. A failing write leaves half its bytes. */
function failingFiles(): FileLayer & { failing: Set<Operation> } {
  const failing = new Set<Operation>();
  const check = (operation: Operation) => {
    if (failing.has(operation))
      throw Object.assign(new Error(`${operation}: no space left`), { code: 'ENOSPC' });
  };
  const wrap = (file: WritableFile): WritableFile => ({
    async write(bytes, position) {
      if (failing.has('write')) await file.write(bytes.subarray(0, bytes.length >> 1), position);
      check('write');
      await file.write(bytes, position);
    },
    async sync() {
      check('sync');
      await file.sync();
    },
    truncate(length) {
      check('truncate');
      file.truncate(length);
    },
    close: () => file.close(),
  });
  return {
    failing,
    create(path) {
      check('create');
      return wrap(fileSystem.create(path));
    },
    open: (path) => wrap(fileSystem.open(path)),
    rename(from, to) {
      check('rename');
      fileSystem.rename(from, to);
    },
    remove(path) {
      check('remove');
      fileSystem.remove(path);
    },
    syncDirectory(path) {
      check('syncDirectory');
      fileSystem.syncDirectory(path);
    },
  };
}

async function reopened(directory: string): Promise<Record<string, string | undefined>> {
  const { storage } = await openStore(directory);
  const contents = contentsOf(storage);
  await storage.close();
  return contents;
}

describe('a disk that fails', () => {
  it.each<Operation[]>([
    ['write'],
    ['sync'],
    ['write', 'truncate'],
    ['sync', 'truncate'],
    ['sync', 'create'],
  ])('rejects writes, keeps reads and recovers: %s, %s', async (...operations) => {
    const directory = newDirectory();
    const files = failingFiles();
    const { storage } = await openStore(directory, { files });
    const seen: number[] = [];
    storage.watch(configMapsPrefix, 1, (event) => seen.push(event.revision));
    await storage.commit([writeOf('a', '1'), writeOf('b', '1')]);

    for (const operation of operations) files.failing.add(operation);
    for (let round = 0; round < 3; round++) {
      const first = storage.commit([writeOf('a', '2')]);
      const second = storage.commit([writeOf('c', '2'), { ...writeOf('b'), object: undefined }]);
      expect(storage.getForUpdate(keyOf('b'))).toBeUndefined();
      await Promise.all([first, second].map((commit) => expect(commit).rejects.toThrow('no space left')));
      expect(contentsOf(storage)).toEqual({ a: '1', b: '1' });
      expect(storage.getForUpdate(keyOf('b'))?.revision).toBe(3);
      expect(storage.getForUpdate(keyOf('c'))).toBeUndefined();
      expect(storage.revision).toBe(3);
    }
    files.failing.clear();
    const [stored] = await storage.commit([writeOf('a', '3')]);
    expect(stored?.revision).toBe(4);
    await storage.commit([writeOf('d', '3')]);
    expect(seen).toEqual([2, 3, 4, 5]);
    await storage.close();
    expect(await reopened(directory)).toEqual({ a: '3', b: '1', d: '3' });
  });

  it('takes back what was staged while the failing sync was under way', async () => {
    const files = failingFiles();
    const { storage } = await openStore(newDirectory(), { files });
    files.failing.add('sync');
    const first = storage.commit([writeOf('a')]);
    const results: Promise<void>[] = [expect(first).rejects.toThrow('no space')];
    await new Promise(setImmediate);
    results.push(expect(storage.commit([writeOf('b')])).rejects.toThrow('no space'));
    await Promise.all(results);
    expect([storage.getForUpdate(keyOf('a')), storage.getForUpdate(keyOf('b'))]).toEqual([
      undefined,
      undefined,
    ]);
    await storage.close();
  });

  it.each<Operation>(['create', 'rename', 'remove', 'syncDirectory'])(
    'goes on when a rotation fails: %s',
    async (operation) => {
      const directory = newDirectory();
      const files = failingFiles();
      let now = 0;
      const { storage, warnings } = await openStore(directory, {
        files,
        snapshotAfter: 2000,
        clock: () => now,
      });
      const acknowledged: Record<string, string> = {};
      const write = async (i: number) => {
        now += 300_000;
        try {
          await storage.commit([writeOf(`n${i % 9}`, `${i}`)]);
          acknowledged[`n${i % 9}`] = `${i}`;
        } catch {
          // Not acknowledged.
        }
      };
      for (let i = 0; i < 20; i++) await write(i);
      files.failing.add(operation);
      for (let i = 20; i < 60; i++) await write(i);
      expect(warnings.length).toBeGreaterThan(0);
      expect(contentsOf(storage)).toEqual(acknowledged);
      files.failing.clear();
      for (let i = 60; i < 100; i++) await write(i);
      await storage.close();
      expect(await reopened(directory)).toEqual(acknowledged);
      expect(acknowledged['n0']).toBe('99');
    },
  );
});

describe('a full disk', () => {
  it('rejects writes until there is space again', async ({ skip }) => {
    const mount = newDirectory();
    fs.mkdirSync(mount);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', mount]);
    if (mounted.status !== 0) skip('only root can mount a small disk');
    try {
      const { storage } = await openStore(`${mount}/data`);
      const value = 'x'.repeat(50_000);
      const written = await fill(storage, value);
      expect(written).toBeGreaterThan(5);
      await expect(storage.commit([writeOf('more', value)])).rejects.toMatchObject({ code: 'ENOSPC' });
      expect(Object.keys(contentsOf(storage))).toHaveLength(written);
      expect(storage.revision).toBe(written + 1);
      await storage.close();

      // Bigger now; the store starts on the full disk's contents.
      expect(spawnSync('mount', ['-o', 'remount,size=3m', mount]).status).toBe(0);
      const { storage: again } = await openStore(`${mount}/data`);
      expect(Object.keys(contentsOf(again))).toHaveLength(written);
      await fill(again, value);
      expect(spawnSync('mount', ['-o', 'remount,size=6m', mount]).status).toBe(0);
      const [stored] = await again.commit([writeOf('more', value)]);
      expect(stored?.revision).toBe(again.revision);
      const contents = contentsOf(again);
      await again.close();
      expect(await reopened(`${mount}/data`)).toEqual(contents);
    } finally {
      spawnSync('umount', [mount]);
    }
  });
});

/** Writes until the disk is full; how many are stored then. */
async function fill(storage: Storage, value: string): Promise<number> {
  for (;;) {
    try {
      await storage.commit([writeOf(`f${storage.revision}`, value)]);
    } catch {
      return storage.count(configMapsPrefix);
    }
  }
}
