import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, realpath } from 'node:fs/promises';
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

/** The names on the way, without links. Those that are missing may only be made below what is there. */
async function namesBelow(base: string, path: string, makes: boolean): Promise<readonly string[]> {
  const wanted = path.split(sep).filter((name) => name !== '' && name !== '.');
  if (wanted.includes('..')) throw new SubPathError(`${path} must not contain ".."`);
  const missing: string[] = [];
  for (;;) {
    try {
      const found = relative(base, await realpath(join(base, ...wanted)));
      if (found === '..' || found.startsWith(`..${sep}`))
        throw new SubPathError(`${path} leads out of the volume`);
      return [...found.split(sep).filter((name) => name !== ''), ...missing];
    } catch (error) {
      const last = isMissing(error) && makes ? wanted.pop() : undefined;
      if (last === undefined) throw error;
      missing.unshift(last);
    }
  }
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

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
