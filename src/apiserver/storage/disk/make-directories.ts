import fs from 'node:fs';
import path from 'node:path';

/**
 * Makes a directory and those above it that are missing, for their owner alone. Not with Node's `recursive`: it loops
 * for ever where the system reports ENOENT for an existing directory (in /proc).
 *
 * @param directory absolute.
 * @returns the topmost that was made; undefined when all were there.
 * @throws {Error} the system's.
 */
export function makeDirectories(directory: string): string | undefined {
  const missing: string[] = [];
  for (let at = directory; !isThere(at); at = path.dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      fs.mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      // Another process may have created it just now.
      if (codeOf(error) !== 'EEXIST' || !isThere(each)) throw error;
    }
  }
  if (!fs.statSync(directory).isDirectory()) {
    throw Object.assign(new Error(`${directory} is not a directory`), { code: 'ENOTDIR', path: directory });
  }
  return missing[0];
}

function isThere(file: string): boolean {
  try {
    fs.statSync(file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT' && file !== path.dirname(file)) return false;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? Reflect.get(error, 'code') : undefined;
}
