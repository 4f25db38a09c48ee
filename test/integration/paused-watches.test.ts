import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordAt, textAt } from '../../src/objects/read.ts';
import { Connection } from '../bench/connection.ts';
import { serverAlone } from '../bench/requests.ts';
import { ServerProcess } from '../bench/server-process.ts';

/** Watchers that stop to read, and then go: `PAUSED_WATCHES=3000` tries more of them. */
const watches = Number(process.env['PAUSED_WATCHES'] ?? 1000);
const updates = 400;
const updateBytes = 50_000;
const path = '/api/v1/namespaces/default/configmaps';

let server: ServerProcess;
let writer: Connection;
beforeAll(async () => {
  server = await ServerProcess.start(serverAlone, []);
  writer = await Connection.open(server.target);
});
afterAll(async () => {
  writer.close();
  await server.stop();
});

/** A watch whose client reads the head of the answer and nothing more. */
async function pausedWatch(resourceVersion: string): Promise<TLSSocket> {
  const { url, ca, token } = server.target;
  const { hostname, port, host } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  socket.write(
    `GET ${path}?watch=true&resourceVersion=${resourceVersion} HTTP/1.1\r\nHost: ${host}\r\n` +
      `Authorization: Bearer ${token}\r\n\r\n`,
  );
  await once(socket, 'data');
  return socket.pause();
}

/** Seconds of CPU time of the server from now on, and how many MiB it needed at most so far. */
async function measure(work: () => Promise<void>): Promise<{ seconds: number; highest: number }> {
  const before = await server.cpu();
  await work();
  return { seconds: ((await server.cpu()) - before) / 1e6, highest: await server.highestMiB() };
}

test('watchers that do not read, and then go, take neither memory nor the time of others', async () => {
  const body = (n: number): string =>
    JSON.stringify({ metadata: { name: 'a' }, data: { text: String(n).padEnd(updateBytes, 'x') } });
  await writer.request({ method: 'POST', path, body: body(0) });
  const list: unknown = JSON.parse(String(await writer.request({ method: 'GET', path })));
  const resourceVersion = textAt(recordAt(list)['metadata'], 'resourceVersion');
  const sockets: TLSSocket[] = [];
  while (sockets.length < watches) {
    sockets.push(
      ...(await Promise.all(Array.from({ length: 50 }, async () => pausedWatch(resourceVersion)))),
    );
  }
  const open = await server.residentMiB();

  const written = await measure(async () => {
    for (let n = 1; n <= updates; n++)
      await writer.request({ method: 'PUT', path: `${path}/a`, body: body(n) });
  });
  // 64 MiB that are not read, as much again until those that are over it are ended, the history, and V8's slack.
  expect(written.highest - open).toBeLessThan(300);

  const closed = await measure(async () => {
    for (const socket of sockets) socket.destroy();
    // Another client is served while they go, and what they leave behind is done with.
    for (let n = 0; n < 5; n++) {
      await writer.request({ method: 'GET', path: `${path}/a` });
      await sleep(200);
    }
  });
  expect(closed.seconds).toBeLessThan(watches / 400);
  expect(closed.highest - open).toBeLessThan(300);
}, 300_000);
