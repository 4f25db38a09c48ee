/** What of the machine a hostPath volume may show to containers. */
import { constants, type Stats } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { ContainerError } from '../../controllers/kubelet/container-runtime.ts';
import { codeOf, descriptorPath, openBelow } from './subpath.ts';

/** Folders of this process's own namespaces, which have nothing of the machine: processes, credentials, volumes. */
const ownFolders = ['/proc', '/run'];
/** Folders of the kernel: what is written there has effects beyond any namespace. */
const kernelFolders = ['/sys', '/dev'];

/** What hostPath volumes may show. */
export interface HostPathRules {
  /** `--writable-host-paths`: what containers write there is written to the machine. */
  readonly isWritable: boolean;
  /** `--host-path-root`: only what is in these folders; undefined: all of the machine. */
  readonly roots: readonly string[] | undefined;
}

/** What is shown: `path` below `root`, which is trusted. */
interface SharedPlace {
  readonly root: string;
  readonly path: string;
}

/** Why one is not made. */
export const notMade = 'is not there: up makes it with --writable-host-paths alone';

/**
 * The folder or file of a hostPath volume: `path` below `root`. It is to be opened from there: containers may exchange what
 * is on the way.
 *
 * @throws {ContainerError} for what no container may have.
 */
export async function sharedPath(path: string, { isWritable, roots }: HostPathRules): Promise<SharedPlace> {
  const { there, missing } = await realPlace(resolve(path));
  const real = join(there, missing);
  const isIn = (folder: string): boolean =>
    folder === '/' || real === folder || real.startsWith(`${folder}/`);
  const refused = [...ownFolders, ...(isWritable ? kernelFolders : [])];
  if (refused.some(isIn)) {
    const why = `hostPath ${path}: ${refused.join(', ')} are not shared with containers`;
    throw new ContainerError('CreateContainerConfigError', why);
  }
  // What is made is made below what is there.
  const root = roots === undefined ? there : roots.find(isIn);
  if (root !== undefined) return { root, path: relative(root, real) };
  const why = `hostPath ${path}: containers see no folder of this machine that --host-path-root does not name`;
  throw new ContainerError('CreateContainerConfigError', why);
}

/** The real path of the last folder on a way that is there, and the names behind it. */
async function realPlace(path: string): Promise<{ readonly there: string; readonly missing: string }> {
  try {
    return { there: await realpath(path), missing: '' };
  } catch (error) {
    const parent = dirname(path);
    if (parent === path) throw error;
    const above = await realPlace(parent);
    return { there: above.there, missing: join(above.missing, basename(path)) };
  }
}

/** What a hostPath must be by its type, in the kubelet's words. */
const kinds: Readonly<Record<string, readonly [words: string, is: (found: Stats) => boolean]>> = {
  Directory: ['directory', (found) => found.isDirectory()],
  File: ['file', (found) => found.isFile()],
  Socket: ['socket file', (found) => found.isSocket()],
  CharDevice: ['character device', (found) => found.isCharacterDevice()],
  BlockDevice: ['block device', (found) => found.isBlockDevice()],
};

/**
 * Checks that a hostPath is what its type says, and makes the folder or file that is wanted and is not there
 * (pkg/volume/hostpath `checkType`). What no container may have is not looked at: the container says so.
 *
 * @param type `DirectoryOrCreate`, `File` …; none: anything.
 * @throws {Error} of what it is not.
 */
export async function checkHostPathType(path: string, type: string, rules: HostPathRules): Promise<void> {
  if (type === '') return;
  const place = await sharedPath(path, rules).catch((error: unknown) => {
    if (error instanceof ContainerError) return undefined;
    throw error;
  });
  if (place === undefined) return;
  const from = join(place.root, place.path);
  const found = await stat(from).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  const makes = type.endsWith('OrCreate');
  if (found === undefined && makes) {
    if (!rules.isWritable) {
      throw new Error(`hostPath ${path} ${notMade}`);
    }
    await (type === 'FileOrCreate' ? makeFile(place) : makeFolder(place));
    return;
  }
  const [words, is] = kinds[makes ? type.slice(0, -'OrCreate'.length) : type] ?? [];
  if (words === undefined || is === undefined) throw new Error(`${type} is an invalid volume type`);
  if (found === undefined || !is(found)) {
    throw new Error(`hostPath type check failed: ${path} is not a ${words}`);
  }
}

async function makeFolder({ root, path }: SharedPlace): Promise<void> {
  await (await openBelow(root, path, true)).close();
}

/** An empty file in a folder that is there. @throws the system's error. */
async function makeFile({ root, path }: SharedPlace): Promise<void> {
  const folder = await openBelow(root, dirname(path), false);
  try {
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
    await (await open(join(descriptorPath(folder), basename(path)), flags, 0o644)).close();
  } finally {
    await folder.close();
  }
}

/** @throws {ContainerError} for a socket, a pipe or a device: a view that is read-only does not keep them from harm. */
export async function checkHostFile(path: string, isWritable: boolean): Promise<void> {
  const found = await stat(path);
  if (found.isFile() || (isWritable && found.isSocket())) return;
  const why = `hostPath ${path} is no file and no folder: programs of the machine and devices are not shared with containers`;
  throw new ContainerError('CreateContainerConfigError', why);
}
