import { accessSync, constants, realpathSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join, relative } from 'node:path';
import { packageFolder } from '../paths.ts';

/** How a process was started. */
export interface ProcessStart {
  /** The file of the program, as it was named: perhaps by a link. */
  readonly script: string;
  readonly execPath: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder of our package.json. */
  readonly packageFolder: string;
}

/**
 * The words by which a shell finds this program again, in the folder in which it was started: `servicenet` where it is in
 * PATH, else by npm or npx where these have started it or have it there, else its file.
 */
export function ownCommand(start: ProcessStart = thisProcess()): string {
  const { script, execPath, environment } = start;
  const hasNpm = environment['npm_command'] !== undefined;
  const folder = environment['INIT_CWD'] ?? start.folder;
  // The folders that npm adds are not in the PATH of the user's shell.
  const isOfNpm = (entry: string): boolean => hasNpm && /node_modules\/\.bin$|\/node-gyp-bin$/.test(entry);
  const path = (environment['PATH'] ?? '').split(delimiter).filter((entry) => !isOfNpm(entry));
  const isFound = (name: string, file: string): boolean => {
    const first = path.map((entry) => join(entry, name)).find(isExecutable);
    return first !== undefined && isSame(first, file);
  };
  if (isFound('servicenet', script)) return 'servicenet';
  // Our scripts run in the clone; npm finds it from the folders below.
  const isOwnScript = hasNpm && environment['npm_package_json'] === join(start.packageFolder, 'package.json');
  if (isOwnScript && isWithin(folder, start.packageFolder)) return 'npm run -s servicenet --';
  for (let at = folder; ; at = dirname(at)) {
    if (isSame(join(at, 'node_modules', '.bin', 'servicenet'), script)) return 'npx servicenet';
    if (at === dirname(at)) break;
  }
  return `${isFound('node', execPath) ? 'node' : quoted(execPath)} ${quoted(script)}`;
}

/** A word as shells read it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

function thisProcess(): ProcessStart {
  const [execPath = '', script = ''] = process.argv;
  return { script, execPath, folder: process.cwd(), environment: process.env, packageFolder };
}

function isWithin(folder: string, outer: string): boolean {
  const way = relative(outer, folder);
  return !way.startsWith('..') && !isAbsolute(way);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether two paths lead to the same file. */
function isSame(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false;
  }
}
