import fs from 'node:fs';
import path from 'node:path';

/**
 * Creates a directory and missing ones above it, for their owner only. Node's `recursive` loops forever where the system
 * reports ENOENT for an existing directory (in /proc).
 *
 * @param directory absolute.
 * @returns the topmost one that was created; undefined for none.
 * @throws {Error} of the system.
 */
export function makeDirectories(directory: string): string | undefined {
  const missing: string[] = [];
  for (let at = directory; !exists(at); at = path.dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      fs.mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      // Another process may have created it just now.
      if (codeOf(error) !== 'EEXIST' || !exists(each)) throw error;
    }
  }
  if (!fs.statSync(directory).isDirectory()) {
    throw Object.assign(new Error(`${directory} is not a directory`), { code: 'ENOTDIR', path: directory });
  }
  return missing[0];
}

function exists(file: string): boolean {
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
