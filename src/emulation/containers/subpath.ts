import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath } from 'node:fs/promises';
import { join, relative, sep, basename, dirname } from 'node:path';
import { ContainerError } from '../../controllers/kubelet/container-runtime.ts';
import { errorMessage } from '../../objects/status.ts';
import type { Mount } from './container-root.ts';

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

/** Mounts something, with all that is mounted in it, to a place of a name that no program of the Pod sees; its path. */
export type BindAside = (
  name: string,
  mount: Pick<Mount, 'from' | 'isFile' | 'isReadOnly'>,
) => Promise<string>;

/**
 * Mounts what lies inside of a volume into a view of that volume, by descriptors: on a path through what programs of the
 * Pod write, a link could lead to the machine, where the place of a mount is made if it is missing.
 *
 * @param mountInto mounts a path, with all that is mounted in it, to what a descriptor's path leads to.
 * @returns the mounts that lie in no volume, the views among them.
 * @throws {ContainerError} for a place that leads out of its volume.
 */
export async function nestMounts(
  mounts: readonly Mount[],
  bindAside: BindAside,
  mountInto: (from: string, to: string) => Promise<void>,
): Promise<readonly Mount[]> {
  const byPath = new Map(mounts.map((mount) => [mount.at, mount]));
  const viewed = new Set<string>();
  // The deepest first: a view has all that is in it when it goes into another one.
  for (const { at } of mounts.toSorted((a, b) => b.at.length - a.at.length)) {
    const mount = byPath.get(at);
    const outer = outerOf(at, [...byPath.values()]);
    if (mount === undefined || outer === undefined || outer.isOfMachine === true) continue;
    try {
      if (mount.isOfMachine === true) throw new Error('a folder of the machine cannot be inside of a volume');
      const isNew = !viewed.has(outer.at);
      const view = isNew ? await bindAside(`view-${outer.at}`, { ...outer, isReadOnly: false }) : outer.from;
      viewed.add(outer.at);
      byPath.set(outer.at, { ...outer, from: view });
      const seen = await bindAside(`seen-${at}`, mount);
      const place = await openPlace(view, relative(outer.at, at), mount.isFile);
      try {
        await mountInto(seen, descriptorPath(place));
      } finally {
        await place.close();
      }
      byPath.delete(at);
    } catch (error) {
      throw new ContainerError('CreateContainerConfigError', `cannot mount at ${at}: ${errorMessage(error)}`);
    }
  }
  return [...byPath.values()];
}

/** The mount that a path lies in: the innermost one; undefined: none. */
export function outerOf(at: string, mounts: readonly Mount[]): Mount | undefined {
  return mounts
    .filter((each) => !each.isFile && at.startsWith(`${each.at.replace(/\/$/, '')}/`))
    .toSorted((a, b) => b.at.length - a.at.length)[0];
}

/** Opens the place of a mount in a volume, and makes it where it is missing. */
async function openPlace(root: string, path: string, isFile: boolean): Promise<FileHandle> {
  if (!isFile) return await openBelow(root, path, true);
  const parent = await openBelow(root, dirname(path), true);
  try {
    const flags = constants.O_RDONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    return await open(join(descriptorPath(parent), basename(path)), flags);
  } finally {
    await parent.close();
  }
}
