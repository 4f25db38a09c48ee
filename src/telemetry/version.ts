import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from '../paths.ts';
import { isRecord } from '../objects/json.ts';

let known: string | undefined;

/** The version in package.json. */
export function version(): string {
  known ??= readVersion();
  return known;
}

function readVersion(): string {
  const text = readFileSync(join(packageFolder, 'package.json'), 'utf8');
  const manifest: unknown = JSON.parse(text);
  return isRecord(manifest) && typeof manifest['version'] === 'string' ? manifest['version'] : 'unknown';
}
