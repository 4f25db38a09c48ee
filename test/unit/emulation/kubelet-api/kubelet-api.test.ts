import { once } from 'node:events';
import type { Server } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../../../src/tls/certificates.ts';
import { type LogLine, noRuntime } from '../../../../src/controllers/kubelet/container-runtime.ts';
import { KubeletApi } from '../../../../src/emulation/kubelet-api/kubelet-api.ts';
import { localHost } from '../../../../src/host/local-host.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import { portOf } from '../../../support/router/router.ts';

const now = { now: new Date() };
const authority = createCertificateAuthority('test', now);
const client = issueClientCertificate(authority, 'api', [], now);
const pod: Pod = {
  metadata: { name: 'web', namespace: 'shop', uid: 'u1' },
  spec: { containers: [{ name: 'main', image: 'web' }] },
  status: {
    containerStatuses: [
      {
        ...{ name: 'main', image: 'web', imageID: '', ready: true, restartCount: 0 },
        state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
      },
    ],
  },
};

/** A log that is followed for ever. */
async function* logs(): AsyncGenerator<readonly LogLine[]> {
  yield [{ time: '2026-01-01T00:00:00Z', stream: 'stdout', isWhole: true, text: Buffer.from('first') }];
  await new Promise(() => undefined);
}

let server: Server;
let close: () => void;
beforeAll(async () => {
  const api = new KubeletApi({
    ...{ runtime: { ...noRuntime, isReal: true, logs }, pod: () => pod, node: () => undefined },
    tls: {
      ...issueServerCertificate(authority, 'node', ['127.0.0.1'], now),
      clientCa: authority.certificate,
    },
    ...{ client: 'api', now: Date.now, log: pino({ enabled: false }) },
  });
  const host = {
    ...localHost,
    listen: async (one: Server, address: string) => {
      server = one;
      await localHost.listen(one, address, 0);
    },
  };
  close = await api.listen(host, ['127.0.0.1'], 'node-1');
});
afterAll(() => close());

async function open(): Promise<TLSSocket> {
  const socket = connect({
    ...{ port: portOf(server), host: '127.0.0.1', ca: authority.certificate },
    ...{ cert: client.certificate, key: client.key },
  });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

const request = (path: string, ...headers: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: node', ...headers, '', ''].join('\r\n');
const follow = request('/containerLogs/shop/web/main?follow=true');
const spdy = ['Connection: Upgrade', 'Upgrade: SPDY/3.1'];
const webSocket = [
  ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
];

/** What comes until the server closes. */
async function restOf(socket: TLSSocket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  await once(socket, 'close');
  return text;
}

describe('nothing is written into an answer that runs', () => {
  test.each([
    ['a refused upgrade', request('/exec/shop/web/main', ...spdy)],
    ['an upgrade to nothing', request('/nope', ...spdy)],
    [
      'an upgrade to SPDY',
      request('/portForward/shop/web', ...spdy, 'X-Stream-Protocol-Version: portforward.k8s.io'),
    ],
    ['an upgrade to WebSocket', request('/exec/shop/web/main?command=x', ...webSocket)],
    ['what is no request', '\u0000\u0001\r\n\r\n'],
  ])('%s behind a log that is followed ends the connection', async (_, next) => {
    const socket = await open();
    socket.write(follow);
    let first = '';
    while (!first.includes('first')) first += String((await once(socket, 'data'))[0]);
    expect(first).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    socket.write(next);
    expect(await restOf(socket)).toBe('');
  });

  test.each([
    ['SPDY', request('/portForward/shop/web', ...spdy, 'X-Stream-Protocol-Version: portforward.k8s.io')],
    [
      'SPDY, a command',
      request('/exec/shop/web/main?command=x', ...spdy, 'X-Stream-Protocol-Version: v4.channel.k8s.io'),
    ],
    ['WebSocket', request('/exec/shop/web/main?command=x', ...webSocket)],
  ])('%s that begins with garbage is answered once', async (_, upgrade) => {
    const socket = await open();
    socket.write(upgrade + '\u0000'.repeat(100) + '\u00ff'.repeat(10_000));
    const text = await restOf(socket);
    expect(text).toMatch(/^HTTP\/1\.1 101 /);
    expect(text.split('HTTP/1.1')).toHaveLength(2);
  });

  test('a refusal of an upgrade is an answer of its own', async () => {
    const socket = await open();
    socket.write(request('/nope', ...spdy));
    expect(await restOf(socket)).toMatch(/^HTTP\/1\.1 404 Not Found\r\n[^]*\r\n\r\n404 page not found$/);
  });
});
