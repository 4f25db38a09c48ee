import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

/** A path that leads out of its volume, or through a link that came while it was opened. */
export class SubPathError extends Error {
  override readonly name = 'SubPathError';
  readonly code = 'EACCES';
}

/**
 * Opens a path below a folder that programs of a Pod write to, as the kubelet does (pkg/volume/util/subpath
 * `doSafeOpen`): links that stay in the folder are resolved first, and then each name is opened below the one before it
 * without following a link. What is open cannot be exchanged any more: use it by {@link descriptorPath}.
 *
 * @param root a folder, which is trusted.
 * @param path below it; the folders of it that are missing are made where `makes` is true.
 * @throws {SubPathError} where it leads out of the folder; the system's error, `ENOENT` among others.
 */
export async function openBelow(root: string, path: string, makes: boolean): Promise<FileHandle> {
  const base = await realpath(root);
  const names = await namesBelow(base, path, makes);
  let handle = await open(base, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  for (const name of names) {
    const parent = handle;
    try {
      handle = await openChild(parent, name, makes);
    } finally {
      await parent.close();
    }
  }
  return handle;
}

/** The path of what is open, as long as it is. For this process and its children. */
export function descriptorPath({ fd }: FileHandle): string {
  return `/proc/${process.pid}/fd/${fd}`;
}

/** Links on a way, as the kernel follows them. */
const maxLinks = 40;

/**
 * The names on the way, without links. Those that are missing may only be made below what is there. A link is read, and
 * never followed: what it leads to outside is not even looked for.
 */
async function namesBelow(base: string, path: string, makes: boolean): Promise<readonly string[]> {
  let left = partsOf(path);
  if (left.includes('..')) throw new SubPathError(`${path} must not contain ".."`);
  const names: string[] = [];
  let links = 0;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    if (name === '..') {
      if (names.pop() === undefined) throw new SubPathError(`${path} leads out of the volume`);
      continue;
    }
    let target: string | undefined;
    try {
      target = await linkAt(join(base, ...names, name));
    } catch (error) {
      // Behind what is missing, `..` of a link would lead to a place that was not checked.
      if (!isMissing(error) || !makes || left.includes('..')) throw error;
      return [...names, name, ...left];
    }
    if (target === undefined) {
      names.push(name);
      continue;
    }
    if (++links > maxLinks) throw new SubPathError(`${path} has too many links`);
    const isAbsolute = target.startsWith(sep);
    const inside = isAbsolute ? relative(base, target) : target;
    if (isAbsolute && (inside === '..' || inside.startsWith(`..${sep}`))) {
      throw new SubPathError(`${path} leads out of the volume`);
    }
    if (isAbsolute) names.length = 0;
    left = [...partsOf(inside), ...left];
  }
  return names;
}

function partsOf(path: string): string[] {
  return path.split(sep).filter((name) => name !== '' && name !== '.');
}

/** Where a link leads; undefined: it is none. @throws the system's error. */
async function linkAt(path: string): Promise<string | undefined> {
  return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
}

async function openChild(parent: FileHandle, name: string, makes: boolean): Promise<FileHandle> {
  const path = join(descriptorPath(parent), name);
  // Without O_NONBLOCK, a pipe would be waited for.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    return await open(path, flags);
  } catch (error) {
    if (codeOf(error) === 'ELOOP') throw new SubPathError(`${name} became a link`);
    if (!isMissing(error) || !makes) throw error;
  }
  await mkdir(path).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
  return await open(path, flags | constants.O_DIRECTORY);
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

/** `ENOENT` and the like. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
