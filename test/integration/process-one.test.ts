import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';

/** In a user namespace, where the machine allows it to who is not root. */
const asProcessOne = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child'];
const possible = spawnSync('unshare', [...asProcessOne, 'true']).status === 0;

// Linux alone has such namespaces, and hardened machines refuse them.
it.runIf(possible).each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)(
  'as process 1 of a container, a command that waits for no %s ends by it',
  async (signal, code) => {
    // It accepts, and never answers.
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const asked = once(server, 'connection');
    const command = ['src/main.js', 'audit', '--server', `http://127.0.0.1:${port}`];
    const outer = spawn('unshare', [...asProcessOne, process.execPath, ...command], { stdio: 'inherit' });
    const ended = once(outer, 'close');
    try {
      await Promise.race([asked, ended]);
      process.kill(childOf(outer.pid ?? 0), signal);
      expect(await ended).toEqual([code, null]);
    } finally {
      outer.kill('SIGKILL');
      server.close();
    }
  },
);

/** Its only child. @throws when it has none: a signal to 0 would reach the tests. */
function childOf(pid: number): number {
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
  if (child === 0) throw new Error(`process ${pid} has no child`);
  return child;
}
