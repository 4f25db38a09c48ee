/** What of the machine a hostPath volume may show to containers. */
import { realpath, stat } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { ContainerError } from '../../controllers/kubelet/container-runtime.ts';

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

/**
 * The folder or file of a hostPath volume: `path` below `root`. It is to be opened from there: containers may exchange what
 * is on the way.
 *
 * @throws {ContainerError} for what no container may have.
 */
export async function sharedPath(
  path: string,
  { isWritable, roots }: HostPathRules,
): Promise<{ readonly root: string; readonly path: string }> {
  const real = await realpath(path).catch(() => resolve(path));
  const isIn = (folder: string): boolean =>
    folder === '/' || real === folder || real.startsWith(`${folder}/`);
  const refused = [...ownFolders, ...(isWritable ? kernelFolders : [])];
  if (refused.some(isIn)) {
    const why = `hostPath ${path}: ${refused.join(', ')} are not shared with containers`;
    throw new ContainerError('CreateContainerConfigError', why);
  }
  const root = roots === undefined ? real : roots.find(isIn);
  if (root !== undefined) return { root, path: relative(root, real) };
  const why = `hostPath ${path}: containers see no folder of this machine that --host-path-root does not name`;
  throw new ContainerError('CreateContainerConfigError', why);
}

/** @throws {ContainerError} for a socket, a pipe or a device: a view that is read-only does not keep them from harm. */
export async function checkHostFile(path: string, isWritable: boolean): Promise<void> {
  const found = await stat(path);
  if (found.isFile() || (isWritable && found.isSocket())) return;
  const why = `hostPath ${path} is no file and no folder: programs of the machine and devices are not shared with containers`;
  throw new ContainerError('CreateContainerConfigError', why);
}
