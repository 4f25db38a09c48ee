import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandLine } from '../support/command-line.ts';

/** The scripts of `servicenet completion` in the shells themselves. */
const main = new URL('../../src/main.js', import.meta.url).pathname;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servicenet-completion-'));
  await mkdir(join(folder, 'bin'));
  const script = `#!/bin/sh\nexec ${process.execPath} ${main} "$@"\n`;
  await writeFile(join(folder, 'bin', 'servicenet'), script, { mode: 0o755 });
  await writeFile(join(folder, 'manifest.yaml'), '');
  for (const shell of ['bash', 'fish', 'zsh']) {
    const { code, output } = await commandLine('completion', shell);
    expect(code).toBe(0);
    await writeFile(join(folder, `completion.${shell}`), output);
  }
});
afterAll(async () => rm(folder, { recursive: true, force: true }));

/** What a script prints. */
function printed(shell: string, script: string): readonly string[] {
  const env = { ...process.env, HOME: folder, PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` };
  const { stdout, stderr } = spawnSync(shell, ['-c', script], { encoding: 'utf8', env, cwd: folder });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

describe('bash', () => {
  const complete = (...words: readonly string[]): readonly string[] =>
    printed(
      'bash',
      `source completion.bash
COMP_WORDS=(servicenet ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}
_servicenet 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`,
    );

  test('completes commands, flags and their values', () => {
    expect(complete('po')).toEqual(['pools']);
    expect(complete('up', '--netw')).toEqual(['--network']);
    expect(complete('up', '--network', '=')).toEqual(['auto', 'on', 'off']);
    expect(complete('up', '--network', '=', 'o')).toEqual(['on', 'off']);
    // Files are those of bash itself.
    expect(complete('up', '--apply', 'man')).toEqual([]);
  });
});

describe.skipIf(!existsSync('/usr/bin/fish'))('fish', () => {
  const complete = (line: string): readonly string[] =>
    printed('fish', `source completion.fish; complete -C '${line}'`).map((each) => each.split('\t')[0] ?? '');

  test('completes commands, flags, their values and files', () => {
    expect(complete('servicenet po')).toEqual(['pools']);
    expect(complete('servicenet up --netw')).toEqual(['--network']);
    expect(complete('servicenet up --network o')).toEqual(['off', 'on']);
    expect(complete('servicenet up --network=o')).toEqual(['--network=off', '--network=on']);
    expect(complete('servicenet up --apply man')).toEqual(['manifest.yaml']);
  });
});

describe.skipIf(!existsSync('/usr/bin/zsh'))('zsh', () => {
  /** The functions of its completion system are there only while it completes: they are replaced. */
  const complete = (...words: readonly string[]): readonly string[] =>
    printed(
      'zsh',
      `compdef() { }; compadd() { print -l -- "\${(@P)2}" }; _files() { print files }
source ./completion.zsh
words=(servicenet ${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length + 1}
_servicenet`,
    );

  test('completes commands, flags, their values and files', () => {
    expect(complete('po')).toContain('pools');
    expect(complete('up', '--netw')).toContain('--network');
    expect(complete('up', '--network', '')).toEqual(['auto', 'on', 'off']);
    expect(complete('up', '--apply', '')).toEqual(['files']);
  });
});
