import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { entries } from '../../src/paths.ts';

/** Entries of a built program that are not there, and files of it that its modules import and that are not there. */
export function missingModules(dist: string): readonly string[] {
  const started = Object.values(entries).map((file) => file.replace(/^.*\/src\//, '').replace(/ts$/, 'js'));
  const imported = globSync('**/*.js', { cwd: dist }).flatMap((file) =>
    [...readFileSync(join(dist, file), 'utf8').matchAll(/(?:\bfrom |\bimport[ (])["'](\.[^"']+)["']/g)].map(
      ([, path = '']) => join(dirname(file), path),
    ),
  );
  return [...new Set(['main.js', 'testing/index.js', ...started, ...imported])].filter(
    (file) => !existsSync(join(dist, file)),
  );
}
