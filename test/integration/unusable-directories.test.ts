import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const main = new URL('../../src/main.js', import.meta.url).pathname;
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'servicenet-unusable-'));
  writeFileSync(join(folder, 'file'), '');
  symlinkSync('circle', join(folder, 'circle'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

interface Ended {
  readonly code: number | null;
  readonly errors: string;
}

/** Runs `up` with nothing to do. One that spins is killed, since it would never hear a signal. */
async function up(...flags: string[]): Promise<Ended> {
  const args = [main, 'up', '--port', '0', '--nodes', '0', ...flags, '--', 'true'];
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      args,
      { timeout: 60_000, killSignal: 'SIGKILL' },
      (_error, _output, errors) => {
        resolve({ code: child.exitCode, errors });
      },
    );
  });
}

const nowhere: readonly (readonly [where: string, why: string])[] = [
  ['file', 'it is a file, or below one'],
  ['file/below', 'it is a file, or below one'],
  ['circle/below', 'symbolic links lead in a circle'],
  ['x'.repeat(300), 'the name is too long'],
];
/** For all users, root too. */
const refused = process.platform === 'linux' ? [['/proc/x', 'no directory can be made there'] as const] : [];

describe('a start with a place that cannot be written', () => {
  test.each([...nowhere, ...refused])('for the store, %s, fails in one line', async (where, why) => {
    const place = where.startsWith('/') ? where : join(folder, where);
    const { code, errors } = await up('--data-dir', place, '--write-kubeconfig', join(folder, 'kubeconfig'));
    expect(errors).toBe(`servicenet: cannot keep the store in ${place}: ${why}\n`);
    expect(code).toBe(1);
  });

  test.each([...nowhere, ...refused])('for the kubeconfig, %s, fails in one line', async (where, why) => {
    const place = where.startsWith('/') ? where : join(folder, where);
    const { code, errors } = await up('--write-kubeconfig', join(place, 'kubeconfig'));
    expect(errors).toMatch(/^servicenet: cannot write the kubeconfig .*\n$/);
    expect(errors).toContain(`kubeconfig: ${why}`);
    expect(errors).toContain('; --write-kubeconfig names another file\n');
    expect(code).toBe(1);
  });

  test('for the kubeconfig, a directory, fails in one line', async () => {
    const place = join(folder, 'directory');
    mkdirSync(place);
    expect(await up('--write-kubeconfig', place)).toEqual({
      code: 1,
      errors: `servicenet: cannot write the kubeconfig ${place}: it is a directory; --write-kubeconfig names another file\n`,
    });
  });
});
