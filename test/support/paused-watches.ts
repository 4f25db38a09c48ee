import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { expect } from 'vitest';
import { recordAt, textAt } from '../../src/objects/json.ts';
import { Connection } from '../bench/connection.ts';
import { serverAlone } from '../bench/requests.ts';
import { ServerProcess } from '../bench/server-process.ts';
import { slowness } from './reference-time.ts';

const updates = 400;
const updateBytes = 50_000;
const path = '/api/v1/namespaces/default/configmaps';

/** A watch whose client reads the head of the answer and nothing more. */
async function pausedWatch({ target }: ServerProcess, resourceVersion: string): Promise<TLSSocket> {
  const { url, ca, token } = target;
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

/** Seconds of CPU that the work costs the server on the reference machine, and how many MiB it needed at most so far. */
async function measure(
  server: ServerProcess,
  work: () => Promise<void>,
): Promise<{ seconds: number; highest: number }> {
  const before = await server.cpu();
  await work();
  return { seconds: ((await server.cpu()) - before) / 1e6 / slowness(), highest: await server.highestMiB() };
}

/** So many watches whose clients stop to read while an object changes, and then go: neither memory nor time is lost. */
export async function leavePausedWatches(watches: number): Promise<void> {
  const server = await ServerProcess.start(serverAlone, []);
  try {
    const writer = await Connection.open(server.target);
    await tryPausedWatches(server, writer, watches);
    writer.close();
  } finally {
    await server.stop();
  }
}

async function tryPausedWatches(server: ServerProcess, writer: Connection, watches: number): Promise<void> {
  const body = (n: number): string =>
    JSON.stringify({ metadata: { name: 'a' }, data: { text: String(n).padEnd(updateBytes, 'x') } });
  await writer.request({ method: 'POST', path, body: body(0) });
  const list: unknown = JSON.parse(String(await writer.request({ method: 'GET', path })));
  const resourceVersion = textAt(recordAt(list)['metadata'], 'resourceVersion');
  const sockets: TLSSocket[] = [];
  while (sockets.length < watches) {
    sockets.push(
      ...(await Promise.all(Array.from({ length: 50 }, async () => pausedWatch(server, resourceVersion)))),
    );
  }
  const open = await server.residentMiB();

  const written = await measure(server, async () => {
    for (let n = 1; n <= updates; n++)
      await writer.request({ method: 'PUT', path: `${path}/a`, body: body(n) });
  });
  // 64 MiB that are not read and the history of 32 MiB, encrypted copies, V8's slack, and a piece for each watch.
  const most = 200 + watches / 10;
  expect(written.highest - open).toBeLessThan(most);

  const closed = await measure(server, async () => {
    for (const socket of sockets) socket.destroy();
    // Another client is served while they go, and what they leave behind is done with.
    for (let n = 0; n < 5; n++) {
      await writer.request({ method: 'GET', path: `${path}/a` });
      await sleep(200);
    }
  });
  expect(closed.seconds).toBeLessThan(0.25 + watches / 400);
  expect(closed.highest - open).toBeLessThan(most);
}
