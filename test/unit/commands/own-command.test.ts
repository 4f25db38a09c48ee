import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownCommand, type ProcessStart, quoted } from '../../../src/commands/own-command.ts';

/** A clone, a project that has the package, and a folder of the user's programs. */
let home = '';
const inHome = (path: string): string => join(home, path);

beforeAll(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'servicenet-own-command-')));
  for (const file of ['clone/src/main.js', 'project/node_modules/servicenet/dist/main.js', 'a b/main.js']) {
    mkdirSync(dirname(inHome(file)), { recursive: true });
    writeFileSync(inHome(file), '#!/bin/sh\n');
    chmodSync(inHome(file), 0o755);
  }
  for (const folder of ['bin', 'project/node_modules/.bin', 'project/test', 'clone/docs', 'elsewhere']) {
    mkdirSync(inHome(folder));
  }
  symlinkSync('../servicenet/dist/main.js', inHome('project/node_modules/.bin/servicenet'));
  symlinkSync(inHome('clone/src/main.js'), inHome('bin/servicenet'));
  symlinkSync(process.execPath, inHome('bin/node'));
});
afterAll(() => rmSync(home, { recursive: true }));

/** Folders of a PATH, below the home; `bin` has our program, `node` alone is nowhere. */
function start(given: {
  readonly script: string;
  readonly folder: string;
  readonly path?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}): ProcessStart {
  const { script, folder, path = [], environment = {} } = given;
  return {
    script: inHome(script),
    execPath: process.execPath,
    folder: inHome(folder),
    environment: { PATH: path.map(inHome).join(':'), ...environment },
    packageFolder: inHome('clone'),
  };
}

const byNpm = (folder: string) => ({
  npm_command: 'start',
  npm_package_json: inHome('clone/package.json'),
  INIT_CWD: inHome(folder),
});

test('in PATH, by its name', () => {
  expect(ownCommand(start({ script: 'bin/servicenet', folder: 'elsewhere', path: ['bin'] }))).toBe(
    'servicenet',
  );
});

test('another program of the name is not taken for it', () => {
  const own = start({ script: 'a b/main.js', folder: 'elsewhere', path: ['bin'] });
  expect(ownCommand(own)).toBe(`node '${inHome('a b/main.js')}'`);
});

test.each(['clone', 'clone/docs'])('by a script of npm in the clone, in its folder %s', (folder) => {
  const own = start({ script: 'clone/src/main.js', folder: 'clone', environment: byNpm(folder) });
  expect(ownCommand(own)).toBe('npm run -s servicenet --');
});

test('by a script of npm from a folder in which npm does not find it: by its file', () => {
  const own = start({ script: 'clone/src/main.js', folder: 'clone', environment: byNpm('elsewhere') });
  expect(ownCommand(own)).toBe(`${quoted(process.execPath)} ${inHome('clone/src/main.js')}`);
});

test.each(['project', 'project/test'])('in a project that has the package, in its folder %s', (folder) => {
  const script = 'project/node_modules/.bin/servicenet';
  // npx and scripts of npm have the folder of the link in their PATH; the user's shell has not.
  const environment = { npm_command: 'exec', INIT_CWD: inHome(folder) };
  const own = start({ script, folder: 'project', path: ['project/node_modules/.bin'], environment });
  expect(ownCommand(own)).toBe('npx servicenet');
  expect(ownCommand(start({ script, folder: 'elsewhere' }))).toContain(script);
});

test.each(['plain/path', 'a b', "it's", '$HOME', '~', '*', ''])('a shell reads %j as it was', (word) => {
  const read = execFileSync('sh', ['-c', `printf %s ${quoted(word)}`]).toString();
  expect(read).toBe(word);
});
