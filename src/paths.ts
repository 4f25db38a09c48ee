/**
 * Files that are found beside the code: the one place that knows that they are TypeScript in the source tree, and
 * JavaScript in the package, where all others may be in any file of `dist` (hack/bundle.ts).
 */
import { getCompileCacheDir } from 'node:module';
import { dirname, extname, join } from 'node:path';

/** The folder of package.json. */
export const packageFolder = dirname(import.meta.dirname);

/** Entries that are started by their file: of a thread, of a process. */
export const entries = {
  controllersThread: entry('commands/local-cluster/worker'),
  networkProcess: entry('commands/local-cluster/network-process'),
  builtInPrograms: entry('commands/local-cluster/built-in-programs'),
  pageProcess: entry('page/process'),
  workerProcess: entry('commands/workers/process'),
};

/** The files of the page for browsers; undefined in the source tree, where they are built for the first viewer. */
export const pageFolder =
  extname(import.meta.filename) === '.ts' ? undefined : join(import.meta.dirname, 'page', 'static');

/** The environment in which an entry shares what was compiled: no thread or process inherits a cache that a call turned on. */
export function compileCache(): { NODE_COMPILE_CACHE?: string } {
  const folder = getCompileCacheDir();
  // Node adds a folder for its version to the one that it gets.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}

function entry(path: string): string {
  return join(import.meta.dirname, `${path}${extname(import.meta.filename)}`);
}
