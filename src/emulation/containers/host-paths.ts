/** What of the machine a hostPath volume may show to containers. */
import { realpath, stat } from 'node:fs/promises';
import { ContainerError } from '../../controllers/kubelet/container-runtime.ts';

/** Folders of this process's own namespaces, which have nothing of the machine: processes, credentials, volumes. */
const ownFolders = ['/proc', '/run'];
/** Folders of the kernel: what is written there has effects beyond any namespace. */
const kernelFolders = ['/sys', '/dev'];

/** The path of a hostPath volume without links. @throws {ContainerError} for a folder that no container may have. */
export async function sharedPath(path: string, isWritable: boolean): Promise<string> {
  const real = await realpath(path).catch(() => path);
  const refused = [...ownFolders, ...(isWritable ? kernelFolders : [])];
  if (!refused.some((folder) => real === folder || real.startsWith(`${folder}/`))) return real;
  const why = `hostPath ${path}: ${refused.join(', ')} are not shared with containers`;
  throw new ContainerError('CreateContainerConfigError', why);
}

/** @throws {ContainerError} for a socket, a pipe or a device: a view that is read-only does not keep them from harm. */
export async function checkHostFile(path: string, isWritable: boolean): Promise<void> {
  const found = await stat(path);
  if (found.isFile() || (isWritable && found.isSocket())) return;
  const why = `hostPath ${path} is no file and no folder: programs of the machine and devices are not shared with containers`;
  throw new ContainerError('CreateContainerConfigError', why);
}
