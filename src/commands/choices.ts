import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { localControllers, remoteControllers } from '../platforms/catalog.ts';
import { type KnownController, selectControllers, UnknownControllerError } from '../controllers/selection.ts';
import { WrongValue } from '../flags/readers.ts';
import type { LocalChoices } from '../flags/up.ts';

/** What the flags of `up`, and the options of `servicenet/testing`, choose from. */
export const localChoices: LocalChoices = {
  selectControllers: (choice, cluster) => select(choice, localControllers(cluster)),
  isExecutable: (path) => {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  },
  isFolder: (path) => {
    try {
      return statSync(path).isDirectory();
    } catch {
      return false;
    }
  },
  realPath: (path) => (existsSync(path) ? realpathSync(path) : path),
  absolutePath: (path) => resolve(path),
};

/** `--controllers` of `servicenet controller`. */
export function selectRemote(choice: readonly string[]): readonly string[] {
  return select(choice, remoteControllers());
}

/** @throws {WrongValue} for a name that is not known. */
function select(choice: readonly string[], known: readonly KnownController[]): readonly string[] {
  try {
    return selectControllers(choice, known);
  } catch (error) {
    throw error instanceof UnknownControllerError ? new WrongValue(error.message) : error;
  }
}

/** Where `up` writes its kubeconfig unless a flag names another file, and other commands look for it. */
export function kubeconfigOfUp(): string {
  return join(homedir(), '.servicenet', 'kubeconfig');
}
