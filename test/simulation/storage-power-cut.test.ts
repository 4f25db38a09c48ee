import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { openDiskStorage } from '../../src/apiserver/storage/disk/disk-storage.ts';
import type { FileLayer } from '../../src/apiserver/storage/disk/files.ts';
import type { Storage } from '../../src/apiserver/storage/storage.ts';
import { PowerCutFiles } from './power-cut-files.ts';

/** Killing a process leaves its page cache; cutting the power does not. This holds the syncs to account. */

interface Written {
  readonly key: string;
  /** Undefined: deleted. */
  readonly value: string | undefined;
}

const keyCount = 12;

function stateAfter(history: readonly Written[]): Map<string, string> {
  const state = new Map<string, string>();
  for (const { key, value } of history) {
    if (value === undefined) state.delete(key);
    else state.set(key, value);
  }
  return state;
}

function stateOf(storage: Storage): Map<string, string> {
  const { items } = storage.list('core/configmaps/');
  return new Map(items.map((item) => [item.key, item.object.metadata.annotations?.['value'] ?? '']));
}

/** Writes in bursts until the power goes off; returns the newest revision that was acknowledged. */
async function writeUntilDark(
  storage: Storage,
  files: PowerCutFiles,
  history: Written[],
  random: () => number,
  tick: () => void,
): Promise<number> {
  let acknowledged = storage.revision;
  while (!files.off) {
    tick();
    const burst: Promise<void>[] = [];
    for (let i = 0; i <= random() * 5; i++) {
      const key = `core/configmaps/default/k${Math.floor(random() * keyCount)}`;
      const remove = random() < 0.2 && storage.getForUpdate(key) !== undefined;
      const value = remove ? undefined : `${history.length}-${'x'.repeat(random() * 900)}`;
      const object =
        value === undefined
          ? undefined
          : { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: key, annotations: { value } } };
      const commit = storage.commit([{ key, expect: 'any', object }]);
      history.push({ key, value });
      burst.push(
        commit.then(
          ([stored]) => {
            acknowledged = Math.max(acknowledged, stored?.revision ?? 0);
          },
          (error: unknown) => expect(error).toMatchObject({ message: 'the power is off' }),
        ),
      );
    }
    await Promise.all(burst);
  }
  return acknowledged;
}

/** Stores that lose their power one to six times each. */
const lifeCount = Number(process.env['SERVICENET_POWER_CUTS'] ?? 20);

it('loses no acknowledged write when the power is cut between any two operations', async () => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-power-'));
  let lives = 0;
  const life = fc.record({ operations: fc.integer({ min: 1, max: 400 }), seed: fc.nat() });
  const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 6 }), async (plan) => {
    const directory = path.join(root, String(lives++));
    fs.mkdirSync(directory);
    let now = 0;
    const open = (files?: FileLayer) =>
      openDiskStorage(directory, {
        encode: (object) => JSON.stringify(object),
        retain: { revisions: 1000, milliseconds: 60_000 },
        clock: () => now,
        onListenerError: (error) => {
          throw error;
        },
        log: { warn: () => undefined },
        snapshotAfter: 5000,
        ...(files === undefined ? {} : { files }),
      });
    /** The write with revision r is at index r - 2. */
    let history: Written[] = [];
    for (const { operations, seed } of plan) {
      lives++;
      const random = generator(seed);
      const files = new PowerCutFiles(directory, operations, random);
      let acknowledged = history.length + 1;
      try {
        const storage = await open(files);
        acknowledged = await writeUntilDark(storage, files, history, random, () => (now += 1000));
        await storage.close();
      } catch (error) {
        expect(error).toMatchObject({ message: 'the power is off' });
      }
      files.settle();

      const storage = await open();
      expect(storage.revision).toBeGreaterThanOrEqual(acknowledged);
      history = history.slice(0, storage.revision - 1);
      expect(history).toHaveLength(storage.revision - 1);
      expect(stateOf(storage)).toEqual(stateAfter(history));
      const replayed: number[] = [];
      const after = storage.compactedRevision;
      storage.watch('core/configmaps/', after, (event) => replayed.push(event.revision));
      expect(replayed).toEqual(Array.from({ length: storage.revision - after }, (_, i) => after + 1 + i));
      await storage.close();
    }
    fs.rmSync(directory, { recursive: true });
  });
  try {
    await fc.assert(property, { numRuns: lifeCount });
  } finally {
    fs.rmSync(root, { recursive: true });
  }
}, 600_000);

/** Numbers from 0 to 1 that depend on the seed only (mulberry32). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
