import { spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { localHost, portSharingHost } from '../../../src/host/local-host.ts';
import { freePort } from '../../support/free-port.ts';
import { portOf } from '../../support/router/router.ts';

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

test('a port is shared by those who ask for it, and by nobody else', async () => {
  const made = (): Server => {
    const server = createServer();
    onTestFinished(() => void server.close());
    return server;
  };
  const port = await freePort();
  for (const server of [made(), made()]) await portSharingHost.listen(server, '127.0.0.1', port);
  for (let n = 0; n < 2; n++) {
    const socket = await portSharingHost.datagram('127.0.0.1', port);
    onTestFinished(() => void socket.close());
  }
  await expect(localHost.listen(made(), '127.0.0.1', port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  await expect(localHost.datagram('127.0.0.1', port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  const any = made();
  await portSharingHost.listen(any, '127.0.0.1', 0);
  const listening = portSharingHost.listen(made(), '127.0.0.1', portOf(any));
  await expect(listening).rejects.toMatchObject({ code: 'EADDRINUSE' });
});
