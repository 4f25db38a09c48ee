import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { gunzipSync } from 'node:zlib';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { createAuthenticator, staticTokens } from '../../src/apiserver/authentication/authenticator.ts';
import type { Handler } from '../../src/apiserver/http/exchange.ts';
import { createHttpServer, type HttpLimits, type HttpServer } from '../../src/apiserver/http/server.ts';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../src/tls/certificates.ts';
import { textAt } from '../../src/objects/json.ts';
import { notFound } from '../../src/objects/status.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { http2 as hostile } from '../support/hostile/clients.ts';
import { call, revisionOf } from '../support/test-server.ts';

/** HTTP/2 on the port of the API server: what holds for HTTP/1.1 holds for each of its streams. */

const now = new Date();
const ca = createCertificateAuthority('ca', { now });
const serverPair = issueServerCertificate(ca, 'server', ['127.0.0.1', 'localhost'], { now });

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Running {
  readonly server: HttpServer;
  readonly port: number;
  readonly logged: string[];
}

async function start(handler: Handler, limits: Partial<HttpLimits> = {}): Promise<Running> {
  const logged: string[] = [];
  const user = { name: 'admin', uid: 'u1', groups: ['g'], extra: {} };
  const server = createHttpServer({
    tls: { ...serverPair, clientCa: ca.certificate },
    authenticator: createAuthenticator({
      tokens: [staticTokens([{ token: 'secret', user }])],
      anonymousPaths: ['/healthz'],
      now: Date.now,
    }),
    handler,
    log: pino({ level: 'info' }, { write: (line: string) => void logged.push(line) }),
    limits,
  });
  const { port } = await server.listen(0, '127.0.0.1');
  closers.push(async () => server.close(0));
  return { server, port, logged };
}

function session(port: number, more: { cert?: string; key?: string } = {}): ClientHttp2Session {
  const client = connectHttp2(`https://127.0.0.1:${port}`, { ca: ca.certificate, ...more });
  client.on('error', () => undefined);
  closers.unshift(() => {
    client.destroy();
  });
  return client;
}

const credential = { authorization: 'Bearer secret' };

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly body: Buffer;
}

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  const headers = await new Promise<IncomingHttpHeaders & IncomingHttpStatusHeader>((resolve, reject) => {
    stream.once('response', resolve).once('error', reject);
    stream.once('close', () => reject(new Error(`closed with ${stream.rstCode}`)));
  });
  const chunks: Buffer[] = [];
  for await (const chunk of stream) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  return { status: headers[':status'] ?? 0, headers, body: Buffer.concat(chunks) };
}

async function send(
  client: ClientHttp2Session,
  path: string,
  {
    method = 'GET',
    body,
    headers = credential,
  }: { method?: string; body?: Buffer | string; headers?: object } = {},
): Promise<Answer> {
  const stream = client.request(
    { ':path': path, ':method': method, ...headers },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  return answerOf(stream);
}

/** The code with which a stream is closed. */
async function resetOf(stream: ClientHttp2Stream): Promise<number> {
  await new Promise((resolve) =>
    stream
      .on('error', () => undefined)
      .once('close', resolve)
      .resume(),
  );
  return stream.rstCode;
}

const echo: Handler = async (request, reply) => {
  const body = request.method === 'GET' ? '' : (await request.body()).toString();
  const { info, user, headers } = request;
  const { host } = headers;
  reply.send(200, 'application/json', JSON.stringify({ verb: info.verb, path: info.path, user, body, host }));
};

describe('a request by HTTP/2', () => {
  test('is authenticated, understood and answered; many share a connection', async () => {
    const { port } = await start(echo);
    const client = session(port);
    const answers = await Promise.all(
      Array.from({ length: 100 }, async (_, i) =>
        send(client, `/api/v1/services?x=${i}`, { method: 'POST', body: `hello ${i}` }),
      ),
    );
    for (const [i, { status, headers, body }] of answers.entries()) {
      expect([status, headers['content-type'], headers['cache-control']]).toEqual([
        200,
        'application/json',
        'no-cache, private',
      ]);
      expect(JSON.parse(String(body))).toEqual({
        verb: 'create',
        path: '/api/v1/services',
        user: { name: 'admin', uid: 'u1', groups: ['g', 'system:authenticated'], extra: {} },
        body: `hello ${i}`,
        host: `127.0.0.1:${port}`,
      });
    }
    const { body, headers } = await send(client, '/x', { method: 'HEAD' });
    expect([body.length, Number(headers['content-length']) > 0]).toEqual([0, true]);
  });

  test('is refused as by HTTP/1.1, with a Status', async () => {
    const { port, logged } = await start(async (request) => {
      await Promise.resolve();
      if (request.info.path === '/broken') throw new Error('cannot do that');
      throw notFound({ group: '', resource: 'services' }, 'web');
    });
    const client = session(port);
    const refusals: [string, object, number][] = [
      ['/x', {}, 401],
      ['/x', { authorization: 'Bearer wrong' }, 401],
      ['/x', { authorization: 'Bearer  secret' }, 401],
      ['/x', credential, 404],
      ['/broken', credential, 500],
      ['/%zz', credential, 400],
      ['/x', { ...credential, ':authority': 'rebound.example.com' }, 421],
    ];
    for (const [path, headers, code] of refusals) {
      const { status, body } = await send(client, path, { headers });
      expect([path, status]).toEqual([path, code]);
      expect(JSON.parse(String(body))).toMatchObject({ kind: 'Status', status: 'Failure', code });
    }
    expect(logged.filter((line) => line.includes('cannot do that'))).toHaveLength(1);
  });

  test('has the user of its client certificate', async () => {
    const { port } = await start(echo);
    const { certificate, key } = issueClientCertificate(ca, 'jane', ['dev'], { now });
    const { body } = await send(session(port, { cert: certificate, key }), '/x', { headers: {} });
    expect(textAt(JSON.parse(String(body)), 'user', 'name')).toBe('jane');
  });

  test('is one of HTTP/1.1 where the client does not ask for more, on the same port', async () => {
    const { port } = await start(echo);
    const protocols: (string | false | null)[] = [];
    for (const ALPNProtocols of [undefined, ['http/1.1'], ['h2', 'http/1.1']]) {
      const options = ALPNProtocols === undefined ? {} : { ALPNProtocols };
      const socket = connectTls({ host: '127.0.0.1', port, ca: ca.certificate, ...options });
      await once(socket, 'secureConnect');
      protocols.push(socket.alpnProtocol);
      socket.destroy();
    }
    expect(protocols).toEqual([false, 'http/1.1', 'h2']);
  });
});

describe('bodies by HTTP/2', () => {
  test('over 3 MiB are refused, announced or not, and the connection goes on', async () => {
    const { port } = await start(echo);
    const client = session(port);
    for (const headers of [credential, { ...credential, 'content-length': String(4 << 20) }]) {
      const stream = client.request({ ':path': '/x', ':method': 'POST', ...headers });
      stream.on('error', () => undefined);
      stream.write(Buffer.alloc(4 << 20));
      const { status, body } = await answerOf(stream);
      expect([status, textAt(JSON.parse(String(body)), 'reason')]).toEqual([413, 'RequestEntityTooLarge']);
    }
    expect((await send(client, '/y', { method: 'POST', body: 'still' })).status).toBe(200);
  });

  test('that do not come end the request, not the connection', async () => {
    const { port } = await start(echo, { requestTimeoutMs: 200, headersTimeoutMs: 200 });
    const client = session(port);
    const stream = client.request({ ':path': '/x', ':method': 'POST', ...credential });
    stream.write('some');
    expect((await answerOf(stream)).status).toBe(504);
    expect((await send(client, '/y')).status).toBe(200);
  });

  test('that are answered before they are read leave their place to others, small ones and large', async () => {
    const { port } = await start(async () => {
      await Promise.resolve();
      throw notFound({ group: '', resource: 'services' }, 'web');
    });
    const client = session(port);
    // More than a connection has at a time.
    for (const size of [100, 60_000]) {
      for (let n = 0; n < 300; n++) {
        const answer = await send(client, '/x', { method: 'POST', body: Buffer.alloc(size) });
        expect([n, answer.status]).toEqual([n, 404]);
      }
    }
  });

  test('whose client goes away end the wait', async () => {
    const failed = Promise.withResolvers<unknown>();
    const { port } = await start(async (request) => {
      await request.body().catch(failed.resolve);
    });
    const stream = session(port).request({ ':path': '/x', ':method': 'POST', ...credential });
    stream.on('error', () => undefined);
    stream.write('some');
    await delay(50);
    stream.destroy(new Error('gone'));
    expect(String(await failed.promise)).toContain('unexpected EOF');
  });
});

describe('answers by HTTP/2', () => {
  const long = Array.from({ length: 2000 }, (_, i) => `${i} ${'x'.repeat(1000)}\n`);

  test('arrive whole, in one part and in many, compressed and not', async () => {
    const { port } = await start(async (request, reply) => {
      await Promise.resolve();
      reply.send(200, 'text/plain', request.info.path === '/parts' ? long : long.join(''));
    });
    const client = session(port);
    for (const path of ['/parts', '/one']) {
      const plain = await send(client, path);
      expect(String(plain.body)).toBe(long.join(''));
      expect(plain.headers['content-length']).toBe(String(plain.body.length));
      const zipped = await send(client, path, { headers: { ...credential, 'accept-encoding': 'gzip' } });
      expect(String(gunzipSync(zipped.body))).toBe(long.join(''));
    }
  });

  test('wait for a slow client, and no other request waits for it', async () => {
    let written = 0;
    const total = 64 << 20;
    const { port } = await start(async (request, reply) => {
      if (request.info.path !== '/watch') {
        await echo(request, reply);
        return;
      }
      const stream = reply.stream(200, {});
      const chunk = Buffer.alloc(1 << 20);
      while (written < total) {
        written += chunk.length;
        if (!stream.write(chunk)) await stream.drained();
      }
      stream.end();
    });
    const client = session(port);
    const slow = client.request({ ':path': '/watch', ...credential });
    await once(slow, 'response');
    slow.pause();
    for (let before = -1; before !== written;) {
      before = written;
      expect((await send(client, '/y')).status).toBe(200);
      await delay(100);
    }
    expect(written).toBeLessThan(8 << 20);
    let read = 0;
    for await (const chunk of slow) read += Buffer.isBuffer(chunk) ? chunk.length : 0;
    expect(read).toBe(total);
  });

  test('that nobody reads end in time, and give their place back', async () => {
    const { port } = await start(
      async (_request, reply) => {
        await Promise.resolve();
        reply.send(200, 'text/plain', long);
      },
      { requestTimeoutMs: 3000, maxReadOnlyInFlight: 1 },
    );
    const client = session(port);
    const stalled = client.request({ ':path': '/x', ...credential });
    const closed = new Promise((resolve) => stalled.on('error', () => undefined).once('close', resolve));
    await once(stalled, 'response');
    expect((await send(client, '/y')).status).toBe(429);
    await expect.poll(async () => (await send(client, '/y')).status, { timeout: 20_000 }).toBe(200);
    await closed;
    expect(stalled.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
  });

  test('tell the handler when the client is gone, and are cut where it fails', async () => {
    const gone = Promise.withResolvers<undefined>();
    const { port } = await start(async (request, reply) => {
      const stream = reply.stream(200, {});
      stream.write('a');
      if (request.info.path === '/fails') throw new Error('in the middle');
      await once(request.signal, 'abort');
      gone.resolve(undefined);
    });
    const client = session(port);
    const watch = client.request({ ':path': '/watch', ...credential });
    await once(watch, 'data');
    watch.close();
    await gone.promise;
    const failing = client.request({ ':path': '/fails', ...credential });
    expect(await resetOf(failing)).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    expect(client.destroyed).toBe(false);
  });
});

describe('limits of HTTP/2', () => {
  test('a connection has 250 requests at a time', async () => {
    const { port } = await start(async (_request, reply) => {
      reply.stream(200, {});
      await Promise.resolve();
    });
    const client = session(port);
    await once(client, 'remoteSettings');
    expect(client.remoteSettings).toMatchObject({ maxConcurrentStreams: 250, maxHeaderListSize: 1 << 20 });
  });

  test('heads are limited as by HTTP/1.1', async () => {
    const { port } = await start(echo);
    const many = Object.fromEntries(Array.from({ length: 1900 }, (_, i) => [`x-${i}`, 'y']));
    expect((await send(session(port), '/x', { headers: { ...credential, ...many } })).status).toBe(200);
    const more = Object.fromEntries(Array.from({ length: 2200 }, (_, i) => [`x-${i}`, 'y']));
    for (const headers of [
      more,
      Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`x-${i}`, 'y'.repeat(30_000)])),
    ]) {
      const refused = send(session(port), '/x', { headers: { ...credential, ...headers } }).then(
        ({ status }) => status,
        () => 'reset',
      );
      expect(['reset', 431]).toContain(await refused);
    }
    expect((await send(session(port), '/x')).status).toBe(200);
  });

  test('a connection without requests is closed, and one that says nothing', async () => {
    const { port } = await start(echo, { keepAliveTimeoutMs: 300, headersTimeoutMs: 300 });
    const client = session(port);
    expect((await send(client, '/x')).status).toBe(200);
    await once(client, 'close');
    const silent = await tls(port);
    await once(silent.resume(), 'close');
  });

  test.each<[string, (socket: TLSSocket) => Promise<void>]>([
    ['at once', async () => Promise.resolve()],
    [
      'on a connection that had a request',
      async (socket) => {
        socket.write(hostile.frame(1, 5, 1, hostile.head));
        await happens(socket, 'data');
      },
    ],
  ])('a head that does not end is cut as by HTTP/1.1: %s', async (_, before) => {
    const { port } = await start(echo, { keepAliveTimeoutMs: 60_000, headersTimeoutMs: 300 });
    const socket = await tls(port);
    socket.resume();
    socket.write(hostile.preface);
    await before(socket);
    socket.write(hostile.frame(1, 1, 3, hostile.head));
    await happens(socket, 'close');
  });

  test('a watch lasts longer than a connection may be idle', async () => {
    const ended = Promise.withResolvers<undefined>();
    const { port } = await start(
      async (_request, reply) => {
        const stream = reply.stream(200, {});
        await delay(1000);
        stream.write('late');
        stream.end();
        ended.resolve(undefined);
      },
      { keepAliveTimeoutMs: 200 },
    );
    const watch = session(port).request({ ':path': '/api/v1/pods?watch=1', ...credential });
    const { body } = await answerOf(watch);
    expect(String(body)).toBe('late');
  });

  async function tls(port: number): Promise<TLSSocket> {
    const socket = connectTls({ host: '127.0.0.1', port, ca: ca.certificate, ALPNProtocols: ['h2'] });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    return socket;
  }

  /** Other than `once` of node:events, which rejects when an error comes first. */
  const happens = async (socket: TLSSocket, event: string): Promise<unknown> =>
    new Promise((resolve) => socket.once(event, resolve));

  test.each<[string, (n: number) => Buffer]>([
    ['resets', hostile.floods[0]],
    ['pings', hostile.floods[1]],
    ['settings', () => hostile.settings],
    ['CONTINUATION', hostile.floods[2]],
    ['long CONTINUATION', hostile.floods[3]],
  ])('a flood of %s ends its connection, and no other', async (_what, next) => {
    const { port } = await start(echo);
    const honest = session(port);
    expect((await send(honest, '/x')).status).toBe(200);
    const socket = await tls(port);
    // Answers are not read.
    socket.write(hostile.preface);
    for (let n = 0; n < 200_000 && !socket.destroyed; n += 100) {
      const frames = Buffer.concat(Array.from({ length: 100 }, (_, i) => next(n + i)));
      if (!socket.write(frames))
        await Promise.race([happens(socket, 'drain'), happens(socket, 'close'), delay(1000)]);
      if (n % 10_000 === 0) expect((await send(honest, '/x')).status).toBe(200);
    }
    socket.resume();
    if (!socket.closed) await happens(socket, 'close');
    expect((await send(honest, '/x')).status).toBe(200);
  });
});

test('closing ends watches by HTTP/2, lets requests finish, and accepts no more', async () => {
  const go = Promise.withResolvers<undefined>();
  const { server, port } = await start(async (request, reply) => {
    if (request.info.path === '/watch') {
      const stream = reply.stream(200, {});
      await once(request.signal, 'abort');
      stream.end();
      return;
    }
    await go.promise;
    reply.send(200, 'text/plain', 'done');
  });
  const client = session(port);
  const watch = answerOf(client.request({ ':path': '/watch', ...credential }));
  const slow = send(client, '/slow');
  const other = session(port);
  await once(other, 'remoteSettings');
  await delay(50);
  const closed = server.close(20_000);
  expect((await watch).status).toBe(200);
  go.resolve(undefined);
  expect(String((await slow).body)).toBe('done');
  await closed;
  const late = connectTls({ host: '127.0.0.1', port, ca: ca.certificate });
  const failed: unknown[] = await once(late, 'error');
  expect(failed[0]).toMatchObject({ code: 'ECONNREFUSED' });
});

test('watches of an API server share one connection', async () => {
  const server = await startApiServer();
  closers.push(async () => server.stop());
  const client = connectHttp2(server.url, { ca: server.ca });
  closers.unshift(() => {
    client.destroy();
  });
  const path = '/api/v1/namespaces/default/configmaps';
  const resourceVersion = await revisionOf(server.client, path);
  const headers = { authorization: `Bearer ${server.token}` };
  const watches = Array.from({ length: 100 }, () =>
    client.request({ ':path': `${path}?watch=true&resourceVersion=${resourceVersion}`, ...headers }),
  );
  await Promise.all(watches.map(async (watch) => once(watch, 'response')));
  const events = watches.map(async (watch) => String((await once(watch, 'data'))[0]));
  await call(server.client, 'POST', path, { body: { metadata: { name: 'seen' } } });
  for (const event of await Promise.all(events)) {
    expect(textAt(JSON.parse(event), 'object', 'metadata', 'name')).toBe('seen');
  }
});
