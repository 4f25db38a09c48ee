import { readFileSync } from 'node:fs';
import { isRecord } from '../objects/json.ts';

let known: string | undefined;

/** The version in package.json, two folders above this file in the source tree and in the built package. */
export function version(): string {
  known ??= readVersion();
  return known;
}

function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const manifest: unknown = JSON.parse(text);
  return isRecord(manifest) && typeof manifest['version'] === 'string' ? manifest['version'] : 'unknown';
}
