import { mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { VolumeFolder } from '../../../../src/emulation/containers/volume-folder.ts';

const file = (path: string, text: string, mode = 0o644): { path: string; content: Buffer; mode: number } => ({
  ...{ path, mode, content: Buffer.from(text) },
});

it('a volume changes as a whole, through one link', async () => {
  const path = await mkdtemp(join(tmpdir(), 'volume-'));
  onTestFinished(() => rm(path, { recursive: true }));
  const volume = new VolumeFolder(path);
  await volume.write([file('a', 'old'), file('b/c', 'old', 0o400)]);
  const before = await readlink(join(path, '..data'));
  await volume.write([file('a', 'old'), file('b/c', 'old', 0o400)]);
  expect(await readlink(join(path, '..data'))).toBe(before);
  expect((await stat(join(path, 'b/c'))).mode & 0o777).toBe(0o400);

  // A reader sees the files of one moment, whenever it follows the link.
  const progress = { written: 0 };
  const writes = (async () => {
    for (; progress.written < 50; progress.written++) {
      const text = `${progress.written}`;
      await volume.write([file('a', text), file('d', text)]);
    }
  })();
  while (progress.written < 50) {
    const folder = await readlink(join(path, '..data'));
    const read = (name: string): Promise<string> =>
      readFile(join(path, folder, name), 'utf8').catch(() => 'gone');
    const [a, d] = [await read('a'), await read('d')];
    if (folder !== before && a !== 'gone' && d !== 'gone') expect(d).toBe(a);
  }
  await writes;
  const after = await readlink(join(path, '..data'));
  expect((await readdir(path)).sort()).toEqual([after, '..data', 'a', 'd'].sort());
  expect(await readFile(join(path, 'd'), 'utf8')).toBe('49');
});
