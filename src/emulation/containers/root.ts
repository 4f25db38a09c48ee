/** The file system of a container: this machine's, which stays as it is, with the container's own files in it. */
import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** A step in making a root, in order. */
export type MountStep =
  | { readonly kind: 'symlink'; readonly to: string; readonly at: string }
  | { readonly kind: 'bind'; readonly from: string; readonly at: string; readonly isReadOnly: boolean }
  | { readonly kind: 'tmpfs' | 'dev' | 'proc'; readonly at: string };

/** A file or a folder that appears at a path. */
export interface Mount {
  readonly from: string;
  readonly at: string;
  readonly isReadOnly: boolean;
  readonly isFile: boolean;
}

/**
 * A folder of the machine as a container sees it: with the names of `layer`, which are added to it. Where there is `work`,
 * the container may change all, and its changes are in `layer`.
 */
export interface Overlay {
  readonly layer: string;
  /** An empty folder for the kernel, in the file system of `layer`. */
  readonly work: string | undefined;
  readonly of: string;
  readonly at: string;
}

export interface Root {
  readonly overlays: readonly Overlay[];
  readonly steps: readonly MountStep[];
  readonly isWritable: boolean;
}

/** Folders that each container has of its own. */
const ownFolders: ReadonlySet<string> = new Set(['proc', 'dev', 'run', 'tmp', 'sys']);
/** Empty at first, and in memory. */
export const scratchFolders: readonly string[] = ['/tmp', '/run', '/dev/shm'];
/** Folders of the machine with a layer for each container, which may write to it. */
const layeredFolders: ReadonlySet<string> = new Set(['etc', 'home', 'opt', 'root', 'srv', 'usr', 'var']);

/** The folder of the files that a container has written to folders of the machine. @param folder of the container. */
export function writtenIn(folder: string): string {
  return join(folder, 'layer');
}

/**
 * Plans a root, and makes the names that are mounted over and that this machine does not have.
 *
 * @param folder of the container, empty.
 * @param isWritable what the container writes is its own, and is lost with it.
 * @throws the system's error.
 */
export async function makeRoot(folder: string, mounts: readonly Mount[], isWritable: boolean): Promise<Root> {
  const resolved = mounts.map((mount) => ({ ...mount, at: resolveOnMachine(mount.at) }));
  const overlays = new Map<string, Overlay>();
  const overlayOf = async (top: string): Promise<void> => {
    if (overlays.has(top)) return;
    const isLayered = isWritable && layeredFolders.has(top);
    const overlay: Overlay = {
      layer: join(writtenIn(folder), top),
      work: isLayered ? join(folder, 'work', top) : undefined,
      of: `/${top}`,
      at: join(folder, 'root', top),
    };
    overlays.set(top, overlay);
    for (const path of [overlay.layer, overlay.work, overlay.at]) {
      if (path !== undefined) await mkdir(path, { recursive: true });
    }
  };
  if (isWritable) {
    const folders = readdirSync('/', { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const { name } of folders) if (layeredFolders.has(name)) await overlayOf(name);
  }
  for (const { at, isFile } of resolved) {
    const [top = ''] = at.slice(1).split('/');
    const isOwn = ownFolders.has(top) || at === `/${top}` || !existsSync(`/${top}`);
    if (isOwn || (existsSync(at) && !lstatSync(at).isSymbolicLink())) continue;
    await overlayOf(top);
    const place = join(writtenIn(folder), at);
    await mkdir(isFile ? dirname(place) : place, { recursive: true });
    if (isFile) await writeFile(place, '');
  }
  const tops = readdirSync('/').filter((name) => !ownFolders.has(name));
  const steps = tops.flatMap((name): MountStep[] => {
    const at = `/${name}`;
    const overlay = overlays.get(name);
    if (overlay !== undefined) {
      return [{ kind: 'bind', from: overlay.at, at, isReadOnly: overlay.work === undefined }];
    }
    const stat = lstatSync(at);
    if (stat.isSymbolicLink()) return [{ kind: 'symlink', to: readlinkSync(at), at }];
    return stat.isDirectory() ? [{ kind: 'bind', from: at, at, isReadOnly: true }] : [];
  });
  return {
    isWritable,
    overlays: [...overlays.values()],
    steps: [
      ...steps,
      { kind: 'dev', at: '/dev' },
      { kind: 'proc', at: '/proc' },
      ...scratchFolders.map((at): MountStep => ({ kind: 'tmpfs', at })),
      // A mount inside of another comes after it.
      ...resolved
        .toSorted((a, b) => a.at.length - b.at.length)
        .map(({ from, at, isReadOnly }): MountStep => ({ kind: 'bind', from, at, isReadOnly })),
    ],
  };
}

/** Follows the links that this machine has on the way: `/var/run` may be `/run`. */
function resolveOnMachine(path: string): string {
  const clean = join('/', path);
  let known = dirname(clean);
  while (known !== '/' && !existsSync(known)) known = dirname(known);
  return join(realpathSync(known), clean.slice(known.length));
}
