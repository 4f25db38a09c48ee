import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const module = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

/** Takes all descriptors, then starts programs. */
const script = `
import { openSync } from 'node:fs';
import { run } from ${module('../../../src/host/local-host.ts')};
try { for (;;) openSync('/dev/null'); } catch {}
const failure = await run('true', []).catch((error) => error);
process._rawDebug(failure.code);
setTimeout(() => process._rawDebug('lives'), 50);
`;

test('a program that cannot start, since no descriptor is left, fails and ends nothing else', () => {
  const words = [process.execPath, '--input-type=module', '--eval', script];
  const { status, stderr } = spawnSync('sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', ...words], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('EMFILE\nlives\n');
  expect(status).toBe(0);
});
