import { chmod, chown, lstat, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { VolumeFile } from '../../controllers/kubelet/container-runtime.ts';
import { isDNS1123Subdomain } from '../../objects/names.ts';

/**
 * A volume of files that are replaced as a whole (pkg/volume/util/atomic_writer.go): they are in a folder `..TIME`, the
 * link `..data` leads to it, and one link for each file or folder leads through `..data`.
 */
export class VolumeFolder {
  readonly path: string;
  #written = '';
  #folder = '';
  #count = 0;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Does nothing where the files are the same.
   *
   * @param group that may read them, too (pkg/volume/volume_linux.go `SetVolumeOwnership`).
   * @throws the system's error.
   */
  async write(files: readonly VolumeFile[], group?: number): Promise<void> {
    const text = JSON.stringify(
      files.map(({ path, content, mode }) => [path, content.toString('base64'), mode]),
    );
    if (text === this.#written) return;
    const folder = `..${new Date().toISOString().slice(0, 19).replaceAll(/[-T:]/g, '_')}.${++this.#count}`;
    for (const { path, content, mode } of files) {
      const target = join(this.path, folder, path);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, content);
      if (group !== undefined) await chown(target, 0, group);
      // Independent of the umask.
      await chmod(target, group === undefined ? mode : mode | 0o440);
    }
    await mkdir(join(this.path, folder), { recursive: true });
    await symlink(folder, join(this.path, '..data_tmp'));
    await rename(join(this.path, '..data_tmp'), join(this.path, '..data'));
    const names = new Set(files.map(({ path }) => path.split('/')[0] ?? ''));
    const present = new Set(await readdir(this.path));
    for (const name of names) {
      if (!present.has(name)) await symlink(`..data/${name}`, join(this.path, name));
    }
    for (const name of present) {
      if (!name.startsWith('..') && !names.has(name)) await rm(join(this.path, name));
    }
    if (this.#folder !== '') await rm(join(this.path, this.#folder), { recursive: true });
    this.#folder = folder;
    this.#written = text;
  }
}

/** Bytes of the files below a folder; 0 where there is none. */
export async function folderBytes(folder: string): Promise<number> {
  let size = 0;
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    // Files may go meanwhile.
    const stat = await lstat(join(entry.parentPath, entry.name)).catch(() => undefined);
    size += stat?.size ?? 0;
  }
  return size;
}

/** The folders of claims: they outlive the Pods that use them, and several may use one. */
export class ClaimFolders {
  readonly #root: string;

  /** @param root the folder that they are in; it need not exist. */
  constructor(root: string) {
    this.#root = root;
  }

  /**
   * Makes a folder where there is none, for everybody to write to; one that is there keeps the permissions that Pods gave it.
   *
   * @throws {Error} for a name that leads elsewhere; the system's error.
   */
  async make(name: string): Promise<string> {
    const path = this.#pathOf(name);
    // Other users of the machine must not come to what Pods leave there, such as a program that runs as its owner.
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    if ((await mkdir(path, { recursive: true })) !== undefined) await chmod(path, 0o777);
    return path;
  }

  /** Removes a folder with its files. @throws the same. */
  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { recursive: true, force: true });
  }

  /** The handle of a volume, which its author may choose. */
  #pathOf(name: string): string {
    const [problem] = isDNS1123Subdomain(name);
    if (problem !== undefined) throw new Error(`volumeHandle "${name}": ${problem}`);
    return join(this.#root, name);
  }
}
