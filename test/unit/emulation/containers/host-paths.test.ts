import { mkdir, mkdtemp, readdir, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { checkHostPathType, sharedPath } from '../../../../src/emulation/containers/host-paths.ts';

let all: string;
let machine: string;

beforeAll(async () => {
  all = await realpath(await mkdtemp(join(tmpdir(), 'servicenet-host-paths-')));
});
afterAll(() => rm(all, { recursive: true }));
beforeEach(async () => {
  machine = await mkdtemp(join(all, 'machine-'));
  await mkdir(join(machine, 'folder'));
  await writeFile(join(machine, 'file'), 'text');
  await mkdir(join(machine, 'root'));
});

const writable = { isWritable: true, roots: undefined };
const onlyRead = { isWritable: false, roots: undefined };

describe('the type of a hostPath', () => {
  test.each([
    ['folder', '', undefined],
    ['nothing', '', undefined],
    ['folder', 'Directory', undefined],
    ['folder', 'DirectoryOrCreate', undefined],
    ['file', 'File', undefined],
    ['file', 'FileOrCreate', undefined],
    ['file', 'Directory', 'directory'],
    ['file', 'DirectoryOrCreate', 'directory'],
    ['nothing', 'Directory', 'directory'],
    ['folder', 'File', 'file'],
    ['folder', 'FileOrCreate', 'file'],
    ['nothing', 'File', 'file'],
    ['file', 'Socket', 'socket file'],
    ['folder', 'CharDevice', 'character device'],
    ['file', 'BlockDevice', 'block device'],
  ])('%s is looked at as "%s"', async (name, type, wanted) => {
    const path = join(machine, name);
    const checked = checkHostPathType(path, type, onlyRead).catch((error: unknown) => String(error));
    const said = wanted && `Error: hostPath type check failed: ${path} is not a ${wanted}`;
    expect(await checked).toBe(said);
    expect(await readdir(machine)).toEqual(['file', 'folder', 'root']);
  });

  test('makes what is not there, where that may be written', async () => {
    const deep = join(machine, 'a', 'b');
    await checkHostPathType(deep, 'DirectoryOrCreate', writable);
    const file = join(deep, 'f');
    await checkHostPathType(file, 'FileOrCreate', writable);
    const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o7777;
    // By the mask of this process.
    expect(await modeOf(deep)).toBe(await modeOf(join(machine, 'folder')));
    expect((await stat(file)).isFile()).toBe(true);
    expect(await modeOf(file)).toBe((await modeOf(join(machine, 'file'))) & 0o644);
    // The kubelet makes no folders for a file.
    await expect(checkHostPathType(join(machine, 'x', 'f'), 'FileOrCreate', writable)).rejects.toThrow(
      'ENOENT',
    );
    for (const type of ['DirectoryOrCreate', 'FileOrCreate']) {
      const path = join(machine, 'none');
      const why = `hostPath ${path} is not there: up makes it with --writable-host-paths alone`;
      await expect(checkHostPathType(path, type, onlyRead)).rejects.toThrow(why);
    }
    expect(await readdir(machine)).toEqual(['a', 'file', 'folder', 'root']);
  });

  test('makes nothing beside what may be shown, and does not say what is there', async () => {
    const roots = [join(machine, 'root')];
    const rules = { isWritable: true, roots };
    await checkHostPathType(join(machine, 'root', 'in'), 'DirectoryOrCreate', rules);
    await symlink('../folder', join(machine, 'root', 'out'));
    await symlink('../none', join(machine, 'root', 'dangling'));
    for (const path of ['none', 'root/../none', 'root/out/new', 'file']) {
      await checkHostPathType(join(machine, path), 'DirectoryOrCreate', rules);
    }
    const dangling = join(machine, 'root', 'dangling');
    await expect(checkHostPathType(dangling, 'DirectoryOrCreate', rules)).rejects.toThrow('leads out');
    await expect(checkHostPathType(dangling, 'FileOrCreate', rules)).rejects.toThrow('EEXIST');
    expect(await readdir(join(machine, 'root'))).toEqual(['dangling', 'in', 'out']);
    expect(await readdir(machine)).toEqual(['file', 'folder', 'root']);
    expect(await readdir(join(machine, 'folder'))).toEqual([]);
  });

  test('is refused by where it would be, also behind a link', async () => {
    await symlink('/run', join(machine, 'link'));
    for (const path of [join(machine, 'link', 'servicenet-none', 'x'), '/proc/none', '/sys/none']) {
      await expect(sharedPath(path, writable)).rejects.toThrow('are not shared with containers');
      await checkHostPathType(path, 'DirectoryOrCreate', writable);
    }
    expect(await readdir('/run')).not.toContain('servicenet-none');
  });
});
