import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileProblem } from '../../apiserver/storage/disk/file-problem.ts';
import { makeDirectories } from '../../apiserver/storage/disk/make-directories.ts';

/**
 * Writes a kubeconfig. Only its owner may read it: it holds the administrator's token.
 *
 * @throws {Error} when it cannot be written, with a message for the user.
 */
export async function writeKubeconfig(path: string, text: string): Promise<void> {
  try {
    makeDirectories(resolve(dirname(path)));
    await rm(path, { force: true });
    await writeFile(path, text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const problem = fileProblem(error, path);
    if (problem === undefined) throw error;
    const advice = '--write-kubeconfig names another file';
    throw new Error(`cannot write the kubeconfig ${path}: ${problem}; ${advice}`, { cause: error });
  }
}

/** Removes a kubeconfig that was written, unless another server has replaced it. */
export async function removeKubeconfig(path: string, text: string): Promise<void> {
  const present = await readFile(path, 'utf8').catch(() => undefined);
  if (present === text) await rm(path, { force: true });
}
