import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { descriptorPath, openBelow, SubPathError } from '../../../../src/emulation/containers/subpath.ts';

let folder: string;
let volume: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servicenet-subpath-'));
});
afterAll(() => rm(folder, { recursive: true }));
beforeEach(async () => {
  volume = await mkdtemp(join(folder, 'volume-'));
  await mkdir(join(folder, 'machine'), { recursive: true });
  await writeFile(join(folder, 'machine', 'secret'), 'the machine');
});

/** The text of a file below what a path leads to. */
async function textAt(path: string, file: string, makes = false): Promise<string> {
  const opened = await openBelow(volume, path, makes);
  try {
    return await readFile(join(descriptorPath(opened), file), 'utf8');
  } finally {
    await opened.close();
  }
}

describe('a path below a folder that others write to', () => {
  test('is opened, also through links that stay in it', async () => {
    await mkdir(join(volume, 'a', 'b'), { recursive: true });
    await writeFile(join(volume, 'a', 'b', 'file'), 'own');
    await symlink('a', join(volume, 'link'));
    await symlink(join(volume, 'a', 'b'), join(volume, 'absolute'));
    expect(await textAt('a/b', 'file')).toBe('own');
    expect(await textAt('link/b', 'file')).toBe('own');
    expect(await textAt('absolute', 'file')).toBe('own');
    await symlink('../link/b/../b', join(volume, 'a', 'winding'));
    expect(await textAt('a/winding', 'file')).toBe('own');
  });

  test('is not looked for where a link leads out, so that nobody learns what is there', async () => {
    await symlink(join(folder, 'machine', 'secret'), join(volume, 'there'));
    await symlink(join(folder, 'machine', 'nothing'), join(volume, 'missing'));
    await symlink('..', join(volume, 'up'));
    for (const path of ['there', 'missing', 'up/machine', 'up/nothing']) {
      await expect(openBelow(volume, path, false), path).rejects.toThrow(SubPathError);
    }
    await symlink('loop', join(volume, 'loop'));
    await expect(openBelow(volume, 'loop', false)).rejects.toThrow(SubPathError);
  });

  test.each([
    ['an absolute link', () => symlink(join(folder, 'machine'), join(volume, 'out')), 'out'],
    ['a link of dots', () => symlink('../machine', join(volume, 'out')), 'out'],
    ['a link further up', () => symlink(folder, join(volume, 'out')), 'out/machine'],
    ['a link to the root', () => symlink('/', join(volume, 'out')), 'out/etc'],
    ['a folder to be made behind a link', () => symlink(folder, join(volume, 'out')), 'out/machine/made'],
    ['dots', () => Promise.resolve(), 'a/../../machine'],
  ])('is refused where it leads out: %s', async (_, prepare, path) => {
    await prepare();
    await expect(openBelow(volume, path, true)).rejects.toThrow(SubPathError);
    await expect(readFile(join(folder, 'machine', 'made'))).rejects.toThrow('ENOENT');
  });

  test('makes nothing where a link goes up from what is not there', async () => {
    await symlink('no/../../machine/made', join(volume, 'out'));
    await expect(openBelow(volume, 'out', true)).rejects.toThrow('ENOENT');
    expect(await readdir(join(folder, 'machine'))).toEqual(['secret']);
    expect(await readdir(volume)).toEqual(['out']);
  });

  test('is made where it is missing, and only if that is wanted', async () => {
    await expect(openBelow(volume, 'x/y', false)).rejects.toThrow('ENOENT');
    const opened = await openBelow(volume, 'x/y', true);
    await writeFile(join(descriptorPath(opened), 'file'), 'made');
    await opened.close();
    expect(await readFile(join(volume, 'x', 'y', 'file'), 'utf8')).toBe('made');
  });

  test('stays what it was when it was opened, whatever takes its name afterwards', async () => {
    await mkdir(join(volume, 'data'));
    await writeFile(join(volume, 'data', 'file'), 'own');
    const opened = await openBelow(volume, 'data', false);
    await rename(join(volume, 'data'), join(volume, 'moved'));
    await symlink(join(folder, 'machine'), join(volume, 'data'));
    expect(await readFile(join(descriptorPath(opened), 'file'), 'utf8')).toBe('own');
    await opened.close();
  });

  test('never leads out while another process exchanges it for a link', async () => {
    const place = join(volume, 'race');
    let isOver = false;
    const exchange = async (): Promise<void> => {
      while (!isOver) {
        await mkdir(place, { recursive: true });
        await rm(place, { recursive: true, force: true });
        // A folder may have been made meanwhile.
        await symlink(join(folder, 'machine'), place).catch(() => undefined);
        await rm(place, { recursive: true, force: true });
      }
    };
    const exchanging = exchange();
    const found: string[] = [];
    for (let round = 0; round < 300; round++) {
      // Each attempt may fail; it may not show a file of the machine.
      await textAt('race', 'secret', true).then(
        (text) => found.push(text),
        () => undefined,
      );
    }
    isOver = true;
    await exchanging;
    expect(found).toEqual([]);
  });
});
