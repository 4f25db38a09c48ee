import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { listenPrivately } from '../../../src/host/sockets.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'servicenet-private-'));
  vi.stubEnv('TMPDIR', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

test.runIf(process.platform === 'linux')(
  'leads all threads of this process to a server, has no name, and ends with it',
  async () => {
    const server = createServer((socket) => socket.end('here'));
    const way = await listenPrivately(server);
    const path = way?.path ?? '';
    expect(readdirSync(folder)).toEqual([]);
    expect(await text(connect(path))).toBe('here');
    const thread = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads');
       require('node:net').connect(workerData).once('data', (data) => parentPort.postMessage(String(data)));`,
      { eval: true, workerData: path },
    );
    expect(await once(thread, 'message')).toEqual(['here']);
    await thread.terminate();
    way?.close();
    // Gets the number that is free now.
    const other = openSync(folder, 'r');
    way?.close();
    closeSync(other);
    server.close();
    await once(server, 'close');
    const after = connect(path);
    await expect(once(after, 'connect')).rejects.toThrow();
  },
);

test('is none where there is no folder for temporary files', async () => {
  vi.stubEnv('TMPDIR', join(folder, 'missing'));
  const server = createServer();
  expect(await listenPrivately(server)).toBeUndefined();
  expect(server.listening).toBe(false);
});

test('is none where the path of a socket is too long, and leaves no folder', async () => {
  const long = mkdtempSync(join(folder, 'x'.repeat(120)));
  vi.stubEnv('TMPDIR', long);
  const server = createServer();
  expect(await listenPrivately(server)).toBeUndefined();
  expect(readdirSync(long)).toEqual([]);
  expect(server.listening).toBe(false);
});
