import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { DamagedStorageError } from '../../../../../src/apiserver/storage/disk/directory-lock.ts';
import { contentsOf, keyOf, openStore, temporaryDirectories, writeOf } from './store-fixture.ts';
import { runs } from '../../../../support/runs.ts';

const newDirectory = temporaryDirectories();
const logFile = 'log-0000000001';

/** A directory whose log holds one frame per value, and where each frame ends. */
async function written(values: readonly string[]): Promise<{ directory: string; ends: number[] }> {
  const directory = newDirectory();
  const { storage } = await openStore(directory);
  const file = path.join(directory, logFile);
  const ends = [fs.statSync(file).size];
  for (const [i, value] of values.entries()) {
    await storage.commit([writeOf(`n${i}`, value)]);
    ends.push(fs.statSync(file).size);
  }
  await storage.close();
  return { directory, ends };
}

/** The directory with its log replaced. */
function withLog(directory: string, bytes: Buffer): string {
  const copy = newDirectory();
  fs.cpSync(directory, copy, { recursive: true });
  fs.writeFileSync(path.join(copy, logFile), bytes);
  return copy;
}

async function refusal(directory: string): Promise<DamagedStorageError> {
  const error: unknown = await openStore(directory).then(
    ({ storage }) => storage.close(),
    (reason: unknown) => reason,
  );
  if (error instanceof DamagedStorageError) return error;
  throw new Error(`opened, or failed otherwise: ${String(error)}`);
}

async function contentsOrError(directory: string): Promise<object> {
  try {
    const { storage } = await openStore(directory);
    const contents = contentsOf(storage);
    await storage.close();
    return contents;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

describe('a torn tail', () => {
  it('is cut off wherever the write ended, with a line, and writing goes on', async () => {
    const { directory, ends } = await written(['first', 'second', 'the last one']);
    const bytes = fs.readFileSync(path.join(directory, logFile));
    const start = ends.at(-2) ?? 0;
    const payload = bytes.readUInt32LE(start);
    for (let length = start; length < bytes.length; length += runs(3, 1)) {
      const copy = withLog(directory, bytes.subarray(0, length));
      const { storage, warnings } = await openStore(copy);
      const complete = length >= start + 16 + payload;
      expect(Object.keys(contentsOf(storage))).toEqual(complete ? ['n0', 'n1', 'n2'] : ['n0', 'n1']);
      expect(warnings).toHaveLength(complete || length === start ? 0 : 1);
      if (warnings[0] !== undefined) expect(warnings[0]).toContain(`"offset":${start}`);
      const [stored] = await storage.commit([writeOf('after')]);
      expect(stored?.revision).toBe(complete ? 5 : 4);
      await storage.close();
      const again = await openStore(copy);
      expect(again.warnings).toEqual([]);
      expect(again.storage.get(keyOf('after'))).toBeDefined();
      await again.storage.close();
      fs.rmSync(copy, { recursive: true });
    }
  });

  it('is recognised by sectors that never reached the disk', async () => {
    const { directory, ends } = await written(['first', 'x'.repeat(5000)]);
    const bytes = fs.readFileSync(path.join(directory, logFile));
    const start = ends[1] ?? 0;
    for (let sector = Math.ceil(start / 512) * 512; sector < bytes.length; sector += 512) {
      const torn = Buffer.from(bytes);
      torn.fill(0, sector, Math.min(sector + 512, torn.length));
      const { storage, warnings } = await openStore(withLog(directory, torn));
      expect(Object.keys(contentsOf(storage))).toEqual(['n0']);
      expect(warnings).toHaveLength(1);
      await storage.close();
    }
  });

  it('may be a whole frame of zeros, or a log that was just begun', async () => {
    const { directory, ends } = await written(['first', 'second']);
    const bytes = fs.readFileSync(path.join(directory, logFile));
    const zeros = Buffer.from(bytes);
    zeros.fill(0, ends[1]);
    const first = await openStore(withLog(directory, zeros));
    expect(Object.keys(contentsOf(first.storage))).toEqual(['n0']);
    await first.storage.close();
    for (const length of [0, 1, 31]) {
      const { storage, warnings } = await openStore(withLog(directory, bytes.subarray(0, length)));
      expect([storage.revision, warnings.length]).toEqual([1, 1]);
      await storage.commit([writeOf('after')]);
      await storage.close();
    }
  });
});

describe('a damaged file', () => {
  it('refuses the start whichever bit is flipped, names file and frame, and changes nothing', async () => {
    const { directory, ends } = await written(['first', 'second', 'third']);
    const bytes = fs.readFileSync(path.join(directory, logFile));
    const intact = { n0: 'first', n1: 'second', n2: 'third' };
    let refused = 0;
    for (let at = 0; at < bytes.length; at += runs(5, 1)) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt8(damaged.readUInt8(at) ^ (1 << (at % 8)), at);
      const copy = withLog(directory, damaged);
      const frame = ends.findLast((end) => end <= at) ?? 0;
      const padding = frame > 0 && at >= frame + 16 + bytes.readUInt32LE(frame);
      if (padding) {
        const { storage } = await openStore(copy);
        expect(contentsOf(storage)).toEqual(intact);
        await storage.close();
      } else {
        const error = await refusal(copy);
        expect([error.file, error.offset]).toEqual([path.join(copy, logFile), frame]);
        expect(error.message).toContain(`${path.join(copy, logFile)} is damaged at byte ${frame}`);
        expect(fs.readFileSync(error.file).equals(damaged)).toBe(true);
        refused++;
      }
      fs.rmSync(copy, { recursive: true });
    }
    expect(refused).toBeGreaterThan((bytes.length / runs(5, 1)) * 0.9);
  });

  it('differs from a torn tail by what follows it', async () => {
    const { directory, ends } = await written(['first', 'x'.repeat(5000), 'third']);
    const bytes = fs.readFileSync(path.join(directory, logFile));
    const start = ends[1] ?? 0;
    const lostSector = Buffer.from(bytes);
    lostSector.fill(0, 1024, 2048);
    expect((await refusal(withLog(directory, lostSector))).offset).toBe(start);
    const lostHeader = Buffer.from(bytes);
    lostHeader.fill(0, start, start + 16);
    expect((await refusal(withLog(directory, lostHeader))).message).toContain('a frame is missing');
  });

  it('may be a log that is missing, too short in the middle, or of another store', async () => {
    const directory = newDirectory();
    const { storage } = await openStore(directory, { snapshotAfter: 2000 });
    // A new log comes with a snapshot, and none is begun while the one before is written, however long that takes.
    const logs = (): number => fs.readdirSync(directory).filter((name) => name.startsWith('log-')).length;
    for (let i = 0; i < 60 || (i < 5000 && logs() <= 3); i++) {
      await storage.commit([writeOf(`n${i % 5}`, `${i}`)]);
    }
    const { revision } = storage;
    await storage.close();
    expect(logs()).toBeGreaterThan(3);
    const second = path.join(directory, 'log-0000000002');
    const bytes = fs.readFileSync(second);

    fs.truncateSync(second, bytes.length - 40);
    expect(await refusal(directory)).toMatchObject({ file: second });
    const before = fs.readFileSync(path.join(directory, logFile));
    fs.writeFileSync(second, before);
    expect((await refusal(directory)).message).toContain('goes on from revision 1');
    fs.writeFileSync(second, bytes);

    for (const name of fs.readdirSync(directory).filter((file) => file.startsWith('snapshot-'))) {
      fs.rmSync(path.join(directory, name));
    }
    const whole = await openStore(directory);
    expect(whole.storage.revision).toBe(revision);
    await whole.storage.close();
    fs.rmSync(second);
    expect(await refusal(directory)).toMatchObject({ file: second });
  });

  it('may be the last log, whose snapshot is there', async () => {
    const directory = newDirectory();
    const { storage } = await openStore(directory, { snapshotAfter: 2000 });
    const files = (): string[] => fs.readdirSync(directory);
    const lastSnapshot = (): string | undefined => files().findLast((name) => /^snapshot-\d+$/.test(name));
    for (let i = 0; i < 5000 && lastSnapshot() === undefined; i++)
      await storage.commit([writeOf('n', `${i}`)]);
    await storage.close();
    const log = lastSnapshot()?.replace('snapshot', 'log') ?? '';
    expect(files()).toContain(log);
    for (const name of files())
      if (name.startsWith('log-') && name >= log) fs.rmSync(path.join(directory, name));
    expect(await refusal(directory)).toMatchObject({ file: path.join(directory, log) });
  });

  it('may be a snapshot', async () => {
    const directory = newDirectory();
    let now = 0;
    const { storage } = await openStore(directory, { snapshotAfter: 2000, clock: () => now });
    for (let i = 0; i < 30; i++) {
      now += 300_000;
      await storage.commit([writeOf(`n${i % 5}`, `${i}`)]);
    }
    const contents = contentsOf(storage);
    await storage.close();
    const snapshots = fs.readdirSync(directory).filter((name) => name.startsWith('snapshot-'));
    expect(snapshots).toHaveLength(1);
    const file = path.join(directory, snapshots[0] ?? '');
    const bytes = fs.readFileSync(file);
    for (let at = 0; at < bytes.length; at += 7) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 4, at);
      fs.writeFileSync(file, damaged);
      // A flip in the padding is harmless; any other refuses the start.
      const result = await contentsOrError(directory);
      if (result instanceof Error) expect(result).toMatchObject({ name: 'DamagedStorageError', file });
      else expect(result).toEqual(contents);
    }
    fs.writeFileSync(file, bytes.subarray(0, bytes.length - 32));
    expect(await refusal(directory)).toMatchObject({ file });
  });
});
