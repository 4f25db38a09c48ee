import { MessageChannel } from 'node:worker_threads';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createAuthenticator, staticTokens } from '../../src/apiserver/authentication/authenticator.ts';
import type { Handler } from '../../src/apiserver/http/exchange.ts';
import { createHttpServer, type HttpServer } from '../../src/apiserver/http/server.ts';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { notFound } from '../../src/objects/status.ts';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';

const now = new Date();
const ca = createCertificateAuthority('ca', { now });
const serverPair = issueServerCertificate(ca, 'server', ['127.0.0.1'], { now });
const admin = { name: 'admin', uid: '', groups: ['system:masters'], extra: {} };

let server: HttpServer;
let handle: Handler;
let ends: (() => unknown)[];
beforeEach(() => {
  ends = [];
  server = createHttpServer({
    tls: { ...serverPair, clientCa: ca.certificate },
    authenticator: createAuthenticator({
      tokens: [staticTokens([{ token: 'secret', user: admin }])],
      now: Date.now,
      anonymousPaths: [],
    }),
    handler: (request, reply) => handle(request, reply),
    log: pino({ level: 'silent' }),
    limits: { requestTimeoutMs: 60_000 },
  });
  ends.push(() => server.close(0));
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
});

async function connect(
  options: { token?: string; connections?: number; url?: string } = {},
): Promise<{ client: Transport; hangUp: () => void }> {
  const { token = 'secret', connections = 4, url = 'https://127.0.0.1:1' } = options;
  const { port1, port2 } = new MessageChannel();
  server.acceptThread(port1);
  const client = await createTransport({ kind: 'endpoint', url, token, thread: port2, connections });
  ends.push(
    () => port1.close(),
    () => client.close(),
  );
  return { client, hangUp: () => port1.close() };
}

/** A handler that waits for the test. */
function gate() {
  const arrived: string[] = [];
  const aborted: string[] = [];
  const waiting = new Map<string, () => void>();
  const handler: Handler = async ({ info: { path }, signal }, reply) => {
    arrived.push(path);
    signal.addEventListener('abort', () => aborted.push(path));
    await new Promise<void>((resolve) => waiting.set(path, resolve));
    reply.send(200, 'application/json', '{}');
  };
  return { arrived, aborted, handler, open: (path: string) => waiting.get(path)?.() };
}

describe('requests that another thread sends as messages', () => {
  test('carry method, path, query, headers and body, and bring whole answers', async () => {
    handle = async (request, reply) => {
      reply.warn('first “warning”');
      reply.warn('second');
      const { method, url, headers, user } = request;
      const body = (await request.body()).toString();
      const { host, accept } = headers;
      const seen = { method, url, host, accept, type: headers['content-type'], user: user.name, body };
      reply.send(201, 'application/json', JSON.stringify(seen));
    };
    const { client } = await connect();
    const answer = await client.request('PATCH', '/api/v1/nodes/zwölf', {
      query: { fieldManager: 'a b' },
      body: { spec: 'fünf €' },
      contentType: 'application/merge-patch+json',
    });
    expect(answer.status).toBe(201);
    expect(answer.json()).toEqual({
      method: 'PATCH',
      url: '/api/v1/nodes/zwölf?fieldManager=a+b',
      host: '127.0.0.1:1',
      accept: 'application/json',
      type: 'application/merge-patch+json',
      user: 'admin',
      body: '{"spec":"fünf €"}',
    });
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.headers['warning']).toHaveLength(2);
  });

  test('bring long answers, and bytes that are no text', async () => {
    const items = Array.from({ length: 40 }, (_, i) => `${'ä'.repeat(4000 + i)}\n`);
    const bytes = Buffer.from([0, 255, 254, 128, 10]);
    handle = ({ info }, reply) => {
      const isText = info.path === '/text';
      reply.send(200, isText ? 'text/plain' : 'application/octet-stream', isText ? items : bytes);
      return Promise.resolve();
    };
    const { client } = await connect();
    const [text, raw] = await Promise.all([client.request('GET', '/text'), client.request('GET', '/bytes')]);
    expect(text.bytes.toString()).toBe(items.join(''));
    expect(raw.bytes).toEqual(bytes);
  });

  test('need a credential and a name of the server, as all others do', async () => {
    handle = ({ user }, reply) => {
      reply.send(200, 'application/json', JSON.stringify(user.name));
      return Promise.resolve();
    };
    const { client } = await connect({ token: 'secreT' });
    await expect(client.request('GET', '/x')).rejects.toMatchObject({ code: 401 });
    const { client: stranger } = await connect({ url: 'https://evil.test' });
    await expect(stranger.request('GET', '/x')).rejects.toMatchObject({ code: 421 });
    const { client: one } = await connect();
    expect((await one.request('GET', '/x')).json()).toBe('admin');
  });

  test('are refused with the Status of the error', async () => {
    handle = () => Promise.reject(notFound({ group: '', resource: 'nodes' }, 'one'));
    const { client } = await connect();
    await expect(client.request('GET', '/api/v1/nodes/one')).rejects.toMatchObject({
      code: 404,
      reason: 'NotFound',
    });
  });

  test('wait for their turn, in the order in which they were sent', async () => {
    const { arrived, handler, open } = gate();
    handle = handler;
    const { client } = await connect({ connections: 2 });
    const answers = ['/a', '/b', '/c', '/d'].map((path) => client.request('GET', path));
    await expect.poll(() => arrived).toEqual(['/a', '/b']);
    open('/b');
    await answers[1];
    await expect.poll(() => arrived).toEqual(['/a', '/b', '/c']);
    open('/a');
    await expect.poll(() => arrived).toEqual(['/a', '/b', '/c', '/d']);
    open('/c');
    open('/d');
    await Promise.all(answers);
  });

  test('end when their client gives up, sent or waiting, and make room for others', async () => {
    const { arrived, aborted, handler, open } = gate();
    handle = handler;
    const { client } = await connect({ connections: 1 });
    const [first, second] = [new AbortController(), new AbortController()];
    const sent = client.request('GET', '/sent', { signal: first.signal });
    const queued = client.request('GET', '/queued', { signal: second.signal });
    const last = client.request('GET', '/last');
    await expect.poll(() => arrived).toEqual(['/sent']);
    second.abort();
    await expect(queued).rejects.toMatchObject({ code: 'ABORTED' });
    first.abort();
    await expect(sent).rejects.toMatchObject({ code: 'ABORTED' });
    await expect.poll(() => arrived).toEqual(['/sent', '/last']);
    expect(aborted).toEqual(['/sent']);
    open('/last');
    await last;
    await expect(client.request('GET', '/never', { timeoutMs: 20 })).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
    await expect(client.request('GET', '/x', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'ABORTED',
    });
  });

  test('end with an error when an answer is cut off, and when either side closes the port', async () => {
    const { arrived, aborted, handler } = gate();
    handle = async (request, reply) => {
      if (request.info.path !== '/cut') return handler(request, reply);
      reply.stream(200, {}).destroy();
      return Promise.resolve();
    };
    const { client } = await connect();
    await expect(client.request('GET', '/cut')).rejects.toMatchObject({ code: 'RESET' });
    const running = client.request('GET', '/running');
    await expect.poll(() => arrived).toEqual(['/running']);
    await Promise.all([expect(running).rejects.toMatchObject({ code: 'CLOSED' }), client.close()]);
    await expect.poll(() => aborted).toEqual(['/running']);
    await expect(client.request('GET', '/x')).rejects.toMatchObject({ code: 'CLOSED' });

    const { client: other, hangUp } = await connect();
    const left = other.request('GET', '/left');
    await expect.poll(() => arrived).toEqual(['/running', '/left']);
    hangUp();
    await expect(left).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(other.request('GET', '/x')).rejects.toMatchObject({ code: 'CLOSED' });
  });
});
