import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { ContainerError } from '../../controllers/kubelet/container-runtime.ts';
import { errorMessage } from '../../objects/status.ts';
import type { Mount } from './container-root.ts';
import { descriptorPath, openBelow } from './subpath.ts';

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
