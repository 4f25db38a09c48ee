/** Clients that are slow on purpose. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask } from '../support/router/requests.ts';
import {
  Objects,
  type RunningRouter,
  startBackend,
  startPlainBackend,
  startRouter,
} from '../support/router/router.ts';

let api: TestServer;
let router: RunningRouter;
const closing: (() => Promise<void>)[] = [];
beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  const objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  const web = await startBackend((_request, response) => response.end('web'));
  closing.push(() => web.close());
  await objects.service('web', [web.port]);
  await objects.ingress('web', 'web.test', 'web');
  const endless = await startPlainBackend((socket) => {
    socket.on('close', () => (isCut = true));
    socket.once('data', () => writeForEver(socket));
  });
  closing.push(() => endless.close());
  await objects.service('endless', [endless.port]);
  await objects.ingress('endless', 'endless.test', 'endless');
  router = await startRouter(api.client, { backendTimeoutMs: 1500 });
});
/** Bytes that the endless backend could write, and whether its connection ended. */
let sent = 0;
let isCut = false;
function writeForEver(socket: Socket): void {
  const chunk = Buffer.alloc(64 * 1024);
  socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n');
  const write = (): void => {
    if (socket.destroyed) return;
    sent += chunk.length;
    if (socket.write(chunk)) setImmediate(write);
    else socket.once('drain', write);
  };
  write();
}

afterAll(async () => {
  await router.stop();
  for (const close of closing) await close();
  await api.stop();
});

test('500 clients that send a head byte by byte are cut, and keep no other from its answer', async () => {
  const slow = new Set<Socket>();
  let answers = '';
  for (let i = 0; i < 500; i++) {
    const socket = connect(router.ports.http, '127.0.0.1');
    socket.setEncoding('latin1').on('data', (text: string) => (answers += text));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => slow.delete(socket));
    await once(socket, 'connect');
    socket.write('GET / HTTP/1.1\r\nHost: web.test\r\nX-A: ');
    slow.add(socket);
  }
  const heap = process.memoryUsage().heapUsed;
  const deadline = Date.now() + 60_000;
  while (slow.size > 0 && Date.now() < deadline) {
    for (const socket of slow) if (socket.writable) socket.write('a');
    expect((await ask(router.ports.http, 'web.test')).body).toBe('web');
    await delay(500);
  }
  expect(slow.size).toBe(0);
  expect(answers.includes('200 OK')).toBe(false);
  expect(answers.includes('408 Request Timeout')).toBe(true);
  await vi.waitFor(() => expect(process.memoryUsage().heapUsed - heap).toBeLessThan(100 * 1024 * 1024));
}, 120_000);

test('what a client does not read is not taken from the backend, and such a client is cut', async () => {
  const socket = connect(router.ports.http, '127.0.0.1');
  await once(socket, 'connect');
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nHost: endless.test\r\n\r\n');
  await expect.poll(() => sent, { timeout: 60_000 }).toBeGreaterThan(0);
  // Idle for longer than a backend may be.
  await expect.poll(() => isCut, { timeout: 60_000 }).toBe(true);
  // Buffers of sockets, in the kernel's and the router's.
  expect(sent).toBeLessThan(50 * 1024 * 1024);
  socket.destroy();
}, 150_000);
