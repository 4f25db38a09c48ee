import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { isRecord, recordAt, textAt } from '../../src/objects/json.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call, revisionOf } from '../support/test-server.ts';

/** Watches over WebSocket, as browsers have them (apiserver `pkg/endpoints/handlers/watch.go`, HandleWebSocket). */
let server: TestServer;
let path: string;
const open: WebSocket[] = [];
beforeAll(async () => {
  server = await startApiServer();
  path = `/api/v1/namespaces/${await makeNamespace(server, 'sockets')}/configmaps`;
});
afterAll(async () => server.stop());
afterEach(() => {
  for (const socket of open.splice(0)) socket.terminate();
});

interface Heard {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

const headers = (): Record<string, string> => ({ authorization: `Bearer ${server.token}` });

function start(
  target: string,
  protocols: string[] = [],
  sent: Record<string, string> = headers(),
): WebSocket {
  const socket = new WebSocket(server.url.replace('https', 'wss') + target, protocols, {
    ca: server.ca,
    headers: sent,
  });
  open.push(socket);
  socket.on('error', () => undefined);
  return socket;
}

/** The first messages of a connection; fewer where it ends before. */
async function messages(socket: WebSocket, count: number): Promise<Heard[]> {
  const heard: Heard[] = [];
  await new Promise<void>((resolve) => {
    socket.on('close', () => resolve());
    socket.on('message', (data, isBinary) => {
      if (Buffer.isBuffer(data)) heard.push({ data, isBinary });
      if (heard.length >= count) resolve();
    });
  });
  return heard;
}

async function refusal(socket: WebSocket): Promise<{ status: number | undefined; body: unknown }> {
  const answer = await new Promise<IncomingMessage>((resolve) =>
    socket.on('unexpected-response', (_request, response) => resolve(response)),
  );
  let text = '';
  for await (const chunk of answer) text += String(chunk);
  return { status: answer.statusCode, body: JSON.parse(text) };
}

const write = async (name: string, data: Record<string, string> = {}): Promise<void> => {
  expect((await call(server.client, 'POST', path, { body: { metadata: { name }, data } })).status).toBe(201);
};

describe('a watch over WebSocket', () => {
  const bearer = (): string =>
    `base64url.bearer.authorization.k8s.io.${Buffer.from(server.token).toString('base64url')}`;

  test.each([[[]], [['binary.k8s.io']], [['base64.binary.k8s.io']], [['any.thing']]])(
    'has an event in each message, with subprotocols %j',
    async (protocols) => {
      const name = `named-${protocols.length}-${(protocols[0] ?? 'none').replaceAll('.', '-')}`;
      const resourceVersion = await revisionOf(server.client, path);
      const socket = start(`${path}?watch=true&resourceVersion=${resourceVersion}`, protocols);
      const heard = messages(socket, 2);
      await once(socket, 'open');
      expect(socket.protocol).toBe(protocols[0] ?? '');
      await write(name, { text: 'ünï' });
      await call(server.client, 'DELETE', `${path}/${name}`);
      const events = (await heard).map(({ data, isBinary }) => {
        expect(isBinary).toBe(false);
        expect(String(data).endsWith('}\n')).toBe(true);
        const event: unknown = JSON.parse(String(data));
        return [textAt(event, 'type'), textAt(event, 'object', 'metadata', 'name')];
      });
      expect(events).toEqual([
        ['ADDED', name],
        ['DELETED', name],
      ]);
    },
  );

  test('takes the token from a subprotocol', async () => {
    const socket = start(`${path}?watch=1`, [bearer(), 'base64.binary.k8s.io'], {});
    await once(socket, 'open');
    expect(socket.protocol).toBe('base64.binary.k8s.io');
    const wrong = start(
      `${path}?watch=1`,
      ['base64url.bearer.authorization.k8s.io.eHg', 'binary.k8s.io'],
      {},
    );
    expect((await refusal(wrong)).status).toBe(401);
  });

  test('has events of protobuf in binary messages, and large ones whole', async () => {
    const text = '"'.repeat(1_000_000);
    const accept = 'application/vnd.kubernetes.protobuf;stream=watch';
    const resourceVersion = await revisionOf(server.client, path);
    const target = `${path}?watch=true&resourceVersion=${resourceVersion}`;
    const binary = messages(start(target, [], { ...headers(), accept }), 1);
    const plain = messages(start(target), 1);
    await write('large', { text });
    const [proto] = await binary;
    expect(proto?.isBinary).toBe(true);
    expect(proto?.data.subarray(0, 7).toString('latin1')).toBe('\n\u0005ADDED');
    expect(proto?.data.includes(text)).toBe(true);
    const [json] = await plain;
    const event: unknown = JSON.parse(String(json?.data));
    expect(textAt(event, 'object', 'data', 'text')).toBe(text);
  });

  test('ends with its time, and with a close frame', async () => {
    const socket = start(`${path}?watch=true&timeoutSeconds=1`);
    const closed: unknown[] = await once(socket, 'close');
    expect(closed[0]).toBe(1000);
  });

  test('is over for the server when the client closes it', async () => {
    const resourceVersion = await revisionOf(server.client, path);
    const socket = start(`${path}?watch=true&resourceVersion=${resourceVersion}`);
    await once(socket, 'open');
    socket.send('nobody reads this');
    socket.close(1000);
    const closed: unknown[] = await once(socket, 'close');
    expect(closed[0]).toBe(1000);
  });

  test('is refused by a Status before it begins', async () => {
    const unknown = start(path.replace('/configmaps', '/nothings?watch=true'));
    expect((await refusal(unknown)).status).toBe(404);
    const bad = start(`${path}?watch=true&labelSelector=${encodeURIComponent('a=(')}`);
    expect(await refusal(bad)).toMatchObject({ status: 400, body: { kind: 'Status', code: 400 } });
    const several = start(`${path}?watch=true`, ['binary.k8s.io', 'base64.binary.k8s.io']);
    expect((await refusal(several)).status).toBe(400);
  });
});

test('a log over WebSocket is refused where there is no container, and for other subprotocols', async () => {
  const pods = path.replace('configmaps', 'pods');
  const body = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  await call(server.client, 'POST', pods, { body });
  expect((await refusal(start(`${pods}/p/log`))).status).toBe(501);
  expect((await refusal(start(`${pods}/none/log`, ['binary.k8s.io']))).status).toBe(404);
  expect((await refusal(start(`${pods}/p/log`, ['v4.channel.k8s.io']))).status).toBe(403);
});

test('other requests that ask for an upgrade are answered as without it', async () => {
  const { hostname, port } = new URL(server.url);
  const ask = async (method: string, target: string): Promise<[string, unknown]> => {
    const socket = connect({ host: hostname, port: Number(port), ca: server.ca });
    const lines = [
      `${method} ${target} HTTP/1.1`,
      `Host: ${hostname}`,
      `Authorization: Bearer ${server.token}`,
    ];
    socket.write([...lines, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', '', ''].join('\r\n'));
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    const [head = '', body = ''] = text.split('\r\n\r\n');
    return [head.split('\r\n')[0] ?? '', JSON.parse(body)];
  };
  const [line, list] = await ask('GET', path);
  expect(line).toBe('HTTP/1.1 200 OK');
  expect(textAt(list, 'kind')).toBe('ConfigMapList');
  const [missing, status] = await ask('GET', `${path}/none`);
  expect(missing).toBe('HTTP/1.1 404 Not Found');
  expect(isRecord(status) && recordAt(status['details'])['name']).toBe('none');
});
