import { X509Certificate } from 'node:crypto';
import { request as httpsRequest, Agent } from 'node:https';
import type { IncomingHttpHeaders } from 'node:http';
import { connect, type TLSSocket } from 'node:tls';
import { connect as connectTcp, createServer as createTcpServer } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import { gunzipSync } from 'node:zlib';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { isRecord } from '../../src/objects/json.ts';
import { notFound, resourceVersionTooLarge } from '../../src/objects/status.ts';
import { createAuthenticator } from '../../src/apiserver/authentication/authenticator.ts';
import { staticTokens } from '../../src/apiserver/authentication/authenticator.ts';
import type { Handler, UpgradeHandler } from '../../src/apiserver/http/exchange.ts';
import { createRouter } from '../../src/apiserver/http/exchange.ts';
import {
  createHttpServer,
  type HttpLimits,
  type HttpServer,
  type RequestObserver,
} from '../../src/apiserver/http/server.ts';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../src/tls/certificates.ts';
import * as der from '../../src/tls/der.ts';
import { Stopwatch } from '../support/reference-time.ts';
import { portOf } from '../support/router/router.ts';

const now = new Date();
const ca = createCertificateAuthority('ca', { now });
const serverPair = issueServerCertificate(ca, 'server', ['127.0.0.1', 'localhost'], { now });
const stranger = createCertificateAuthority('stranger', { now });

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer | Readable;
  agent?: Agent;
  cert?: string;
  key?: string;
}

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Running {
  server: HttpServer;
  port: number;
  logged: string[];
  send: (path: string, sent?: Sent) => Promise<Answer>;
  rawSocket: () => Promise<TLSSocket>;
}

async function start(
  handler: Handler,
  options: {
    limits?: Partial<HttpLimits>;
    anonymous?: boolean;
    upgrade?: UpgradeHandler;
    observe?: RequestObserver;
    now?: () => number;
  } = {},
): Promise<Running> {
  const logged: string[] = [];
  const server = createHttpServer({
    tls: { ...serverPair, clientCa: ca.certificate },
    authenticator: createAuthenticator({
      tokens: [
        staticTokens([{ token: 'secret', user: { name: 'admin', uid: 'u1', groups: ['g'], extra: {} } }]),
      ],
      anonymousPaths: options.anonymous === true ? 'all' : ['/healthz'],
      now: options.now ?? Date.now,
    }),
    handler,
    log: pino({ level: 'info' }, { write: (line: string) => void logged.push(line) }),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    ...(options.upgrade === undefined ? {} : { upgrade: options.upgrade }),
    ...(options.observe === undefined ? {} : { observe: options.observe }),
  });
  const { port } = await server.listen(0, '127.0.0.1');
  closers.push(async () => server.close(0));
  const send = async (path: string, sent: Sent = {}): Promise<Answer> => {
    const { headers = { authorization: 'Bearer secret' }, method = 'GET', body } = sent;
    const outgoing = httpsRequest({
      host: '127.0.0.1',
      port,
      path,
      method,
      headers,
      ca: ca.certificate,
      ...(sent.agent === undefined ? {} : { agent: sent.agent }),
      ...(sent.cert === undefined ? {} : { cert: sent.cert, key: sent.key }),
    });
    const answered = Promise.withResolvers<Answer>();
    outgoing.on('error', answered.reject);
    outgoing.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('error', answered.reject);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        answered.resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        }),
      );
    });
    if (body instanceof Readable) body.pipe(outgoing);
    else outgoing.end(body);
    return answered.promise;
  };
  const rawSocket = async (): Promise<TLSSocket> => {
    const socket = connect({ host: '127.0.0.1', port, ca: ca.certificate });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    return socket;
  };
  return { server, port, logged, send, rawSocket };
}

const echo: Handler = async (request, reply) => {
  const body = request.method === 'GET' ? '' : (await request.body()).toString();
  const { info, user } = request;
  reply.send(200, 'application/json', JSON.stringify({ verb: info.verb, path: info.path, user, body }));
};

function status(answer: Answer): Record<string, unknown> {
  const parsed: unknown = JSON.parse(answer.body.toString());
  if (!isRecord(parsed)) throw new Error('the answer is not an object');
  return parsed;
}

describe('a request', () => {
  test('is authenticated, understood and answered', async () => {
    const { send } = await start(echo);
    const answer = await send('/api/v1/services', {
      method: 'POST',
      body: 'hello',
      headers: {
        authorization: 'Bearer secret',
        'audit-id': 'my-id',
      },
    });
    expect(answer.status).toBe(200);
    expect(status(answer)).toEqual({
      verb: 'create',
      path: '/api/v1/services',
      user: { name: 'admin', uid: 'u1', groups: ['g', 'system:authenticated'], extra: {} },
      body: 'hello',
    });
    expect(answer.headers['cache-control']).toBe('no-cache, private');
    expect(answer.headers['audit-id']).toBe('my-id');
    expect(answer.headers['content-type']).toBe('application/json');
  });

  test('has warnings in UTF-8, whatever its body is', async () => {
    const bodies = ['{}', Buffer.from('{}'), ['{', '}'], ['x'.repeat(100_000), 'y'.repeat(100_000)]];
    for (const body of bodies) {
      const { send } = await start(async (_request, reply) => {
        await Promise.resolve();
        reply.warn('grüße, 世界');
        reply.send(200, 'application/json', body);
      });
      const { headers } = await send('/x');
      const warning = Buffer.from(String(headers['warning']), 'latin1').toString('utf8');
      expect(warning).toBe('299 - "grüße, 世界"');
    }
  });

  test('ends in a Status when the handler throws one, with the warnings given before', async () => {
    const { send } = await start((_request, reply) => {
      reply.warn('a "quoted" one');
      reply.warn('two');
      return Promise.reject(notFound({ group: '', resource: 'services' }, 'x'));
    });
    const answer = await send('/api/v1/namespaces/a/services/x');
    expect(answer.status).toBe(404);
    expect(answer.headers['warning']).toBe('299 - "a \\"quoted\\" one", 299 - "two"');
    expect(status(answer)).toMatchObject({ kind: 'Status', code: 404, reason: 'NotFound' });
    const yaml = await send('/x', {
      headers: { authorization: 'Bearer secret', accept: 'application/yaml' },
    });
    expect(yaml.headers['content-type']).toBe('application/yaml');
    expect(yaml.body.toString()).toContain('reason: NotFound');
  });

  test('ends in indented JSON for a client that accepts no form of an error, with the time to come again', async () => {
    const { send } = await start(() => Promise.reject(resourceVersionTooLarge(9, 5)));
    const answer = await send('/api', { headers: { authorization: 'Bearer secret', accept: 'text/html' } });
    expect(answer).toMatchObject({ status: 504, headers: { 'retry-after': '1' } });
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.body.toString()).toMatch(/^\{\n {2}"kind": "Status",\n.*\n\}$/s);
  });

  test('that meets a full disk is answered so, and logged once a minute', async () => {
    const full = Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    const { send, logged } = await start(() => Promise.reject(full));
    for (let i = 0; i < 5; i++) {
      const { message } = status(await send('/x'));
      expect(message).toBe('Internal error occurred: the disk is full, nothing was stored');
    }
    const times = logged.map((line) => {
      const entry: unknown = JSON.parse(line);
      return isRecord(entry) ? Number(entry['time']) : Number.NaN;
    });
    expect(logged[0]).toContain('make room');
    for (const [i, time] of times.entries()) {
      if (i > 0) expect(time - (times[i - 1] ?? 0)).toBeGreaterThan(59_000);
    }
  });

  test('that fails unexpectedly gets no stack trace, and one log line', async () => {
    const { send, logged } = await start(() => Promise.reject(new Error('a secret detail')));
    const answer = await send('/x');
    expect(answer.status).toBe(500);
    expect(status(answer)).toMatchObject({ reason: 'InternalError', code: 500 });
    expect(answer.body.toString()).not.toContain('secret');
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain('a secret detail');
  });

  test('with broken percent encoding is refused', async () => {
    const { send } = await start(echo);
    expect((await send('/api/%zz')).status).toBe(400);
    expect(status(await send('/a%2Fb%20c'))['path']).toBe('/a/b c');
  });

  test('is indented JSON when a browser reads it', async () => {
    const { send } = await start(echo);
    expect((await send('/x?pretty=1')).body.toString()).toMatch(/^\{\n {2}"verb": "get",\n/);
  });

  test('HEAD gets no body', async () => {
    const { send } = await start(echo);
    const answer = await send('/x', { method: 'HEAD' });
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
  });
});

describe('credentials', () => {
  test('none, a wrong token and an unknown scheme are 401', async () => {
    const { send } = await start(echo);
    for (const authorization of ['Bearer wrong', 'Bearer ', 'Bearer  secret', 'Basic c2VjcmV0', 'secret']) {
      const answer = await send('/version', { headers: { authorization } });
      expect([authorization, answer.status, status(answer)['reason']]).toEqual([
        authorization,
        401,
        'Unauthorized',
      ]);
    }
    expect((await send('/version', { headers: {} })).status).toBe(401);
  });

  test('none is system:anonymous where that is allowed, a wrong one is still 401', async () => {
    const { send } = await start(echo, { anonymous: true });
    expect(status(await send('/x', { headers: {} }))['user']).toMatchObject({
      name: 'system:anonymous',
      groups: ['system:unauthenticated'],
    });
    expect((await send('/x', { headers: { authorization: 'Bearer wrong' } })).status).toBe(401);
  });

  test('a client certificate names the user and its groups, on a resumed session too', async () => {
    const { send } = await start(echo);
    const jane = issueClientCertificate(ca, 'jane', ['dev', 'ops'], { now });
    const agent = new Agent({ keepAlive: false, maxCachedSessions: 10 });
    for (let i = 0; i < 3; i++) {
      const answer = await send('/x', { headers: {}, agent, cert: jane.certificate, key: jane.key });
      expect(status(answer)['user']).toMatchObject({
        name: 'jane',
        groups: ['dev', 'ops', 'system:authenticated'],
      });
    }
  });

  test('a certificate carries the uid of its user, and only that of its own prefix', async () => {
    const { send } = await start(echo);
    const uid = der.setOfOne(der.sequence(der.oid('1.3.6.1.4.1.57683.2'), der.utf8String('u-1')));
    const jane = issueClientCertificate(ca, 'jane', [], { now }, [uid]);
    const answer = await send('/x', {
      headers: {},
      agent: new Agent(),
      cert: jane.certificate,
      key: jane.key,
    });
    const fingerprint = new X509Certificate(jane.certificate).fingerprint256
      .replaceAll(':', '')
      .toLowerCase();
    expect(status(answer)['user']).toEqual({
      name: 'jane',
      uid: 'u-1',
      groups: ['system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
    });
  });

  const lastYear = new Date(now.getTime() - 400 * 86_400_000);
  test.each([
    ['of another authority', issueClientCertificate(stranger, 'admin', ['system:masters'], { now })],
    ['for servers', issueServerCertificate(ca, 'admin', ['127.0.0.1'], { now })],
    ['of last year', issueClientCertificate(ca, 'admin', ['system:masters'], { now: lastYear })],
    ['of next year', issueClientCertificate(ca, 'admin', [], { now: new Date(now.getTime() + 86_400_000) })],
  ])(
    'a certificate %s is refused, but not a right token beside it',
    async (_, { certificate: cert, key }) => {
      const { send } = await start(echo, { anonymous: true });
      expect((await send('/x', { headers: {}, cert, key, agent: new Agent() })).status).toBe(401);
      const wrong = { authorization: 'Bearer wrong' };
      expect((await send('/x', { headers: wrong, cert, key, agent: new Agent() })).status).toBe(401);
      const answer = await send('/x', { cert, key, agent: new Agent() });
      expect(status(answer)['user']).toMatchObject({ name: 'admin', uid: 'u1' });
    },
  );

  test('a certificate without a name is none', async () => {
    const { send } = await start(echo, { anonymous: true });
    const { certificate: cert, key } = issueClientCertificate(ca, '', ['system:masters'], { now });
    const answer = await send('/x', { headers: {}, cert, key, agent: new Agent() });
    expect(status(answer)['user']).toMatchObject({ name: 'system:anonymous' });
  });

  test('a certificate ends with its time, on connections that are open too', async () => {
    let day = 0;
    const { send } = await start(echo, { now: () => now.getTime() + day * 86_400_000 });
    const { certificate: cert, key } = issueClientCertificate(ca, 'jane', [], { now, days: 30 });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = async (): Promise<number> => (await send('/x', { headers: {}, cert, key, agent })).status;
    expect(await ask()).toBe(200);
    day = 29;
    expect(await ask()).toBe(200);
    day = 31;
    expect(await ask()).toBe(401);
    agent.destroy();
  });

  test('none is left out among many headers', async () => {
    const { send } = await start(async ({ incoming }, reply) => {
      await Promise.resolve();
      reply.send(200, 'text/plain', String(incoming.headers['impersonate-user']));
    });
    const many = (count: number): Record<string, string> => {
      const headers: Record<string, string> = { Authorization: 'Bearer secret' };
      for (let n = 0; n < count; n++) headers[`x-${n}`] = 'y';
      return { ...headers, Connection: 'close', 'Impersonate-User': 'jane' };
    };
    // Host comes from the client.
    expect((await send('/x', { headers: many(1996) })).body.toString()).toBe('jane');
    expect((await send('/x', { headers: many(1997) })).status).toBe(431);
  });

  test('a query has at most 10,000 parameters', async () => {
    const { send } = await start(echo);
    expect((await send(`/x?${'a&'.repeat(9_999)}`)).status).toBe(200);
    expect((await send(`/x?${'a&'.repeat(10_000)}pretty=1`)).status).toBe(400);
  });
});

describe('bodies', () => {
  test('over 3 MiB are refused before they are read', async () => {
    const { send } = await start(echo);
    const answer = await send('/x', { method: 'POST', body: Buffer.alloc(3 * 1024 * 1024 + 1) });
    expect(answer.status).toBe(413);
    expect(status(answer)).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'Request entity too large: limit is 3145728',
      reason: 'RequestEntityTooLarge',
      code: 413,
    });
    const largest = await send('/x', { method: 'POST', body: Buffer.alloc(3 * 1024 * 1024, 'a') });
    expect(largest.status).toBe(200);
  });

  test('of 100 MB in pieces are refused and never held in memory', async () => {
    const { send } = await start(echo);
    const piece = Buffer.alloc(1024 * 1024);
    const before = process.memoryUsage().rss;
    const body = Readable.from(
      (function* pieces() {
        for (let i = 0; i < 100; i++) yield piece;
      })(),
    );
    const answer = await send('/x', { method: 'PUT', body });
    expect(answer.status).toBe(413);
    expect(process.memoryUsage().rss - before).toBeLessThan(60 * 1024 * 1024);
  });

  test('that stop in the middle end the wait', async () => {
    const arrived = Promise.withResolvers<undefined>();
    const failed = Promise.withResolvers<unknown>();
    const { rawSocket, send, logged } = await start(async (request, reply) => {
      arrived.resolve(undefined);
      if (request.method === 'POST') await request.body().catch((error: unknown) => failed.resolve(error));
      reply.send(200, 'text/plain', 'ok');
    });
    const socket = await rawSocket();
    socket.write(
      'POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\nContent-Length: 10\r\n\r\nabc',
    );
    await arrived.promise;
    socket.destroy();
    expect(await failed.promise).toMatchObject({ code: 400, message: 'unexpected EOF' });
    expect((await send('/x')).status).toBe(200);
    expect(logged).toEqual([]);
  });

  test('that come too slowly time out', async () => {
    const { rawSocket } = await start(echo, { limits: { headersTimeoutMs: 1000, requestTimeoutMs: 1000 } });
    const slowHeaders = await rawSocket();
    slowHeaders.write('GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n');
    const refused = readAll(slowHeaders);
    const slowBody = await rawSocket();
    slowBody.write(
      'POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\nContent-Length: 10\r\n\r\nabc',
    );
    const texts = await Promise.all([refused, readAll(slowBody)]);
    expect(texts[0]).toContain('HTTP/1.1 408');
    expect(texts[1]).toContain('HTTP/1.1 504');
  });

  test('that trickle are closed when their time is over, and not a time later', async () => {
    const { rawSocket } = await start(echo, { limits: { headersTimeoutMs: 1000, requestTimeoutMs: 1000 } });
    const closedAfter = async (socket: TLSSocket, drop: string): Promise<number> => {
      const stopwatch = new Stopwatch();
      const trickle = setInterval(() => socket.writable && socket.write(drop), 50);
      await readAll(socket).finally(() => clearInterval(trickle));
      return stopwatch.elapsedMs();
    };
    const headers = await rawSocket();
    headers.write('GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ');
    const body = await rawSocket();
    body.write(
      'POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\nContent-Length: 1000\r\n\r\n',
    );
    const both = await Promise.all([closedAfter(headers, 'x'), closedAfter(body, 'x')]);
    for (const after of both) expect(after).toBeLessThan(1700);
  });
});

async function readAll(socket: TLSSocket): Promise<string> {
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => (text += chunk));
  // A reset is an end, too.
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

describe('bad input', () => {
  test.each([
    ['not HTTP', 'hello\r\n\r\n', /^HTTP\/1\.1 400 Bad Request/],
    [
      'both lengths',
      'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      /^HTTP\/1\.1 400/,
    ],
    [
      'too many headers',
      `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nA: ${'a'.repeat(1024 * 1024 + 10)}\r\n\r\n`,
      /^HTTP\/1\.1 431/,
    ],
  ])('%s is refused, and the server lives on', async (_name, bytes, answer) => {
    const { rawSocket, send } = await start(echo);
    const socket = await rawSocket();
    const text = readAll(socket);
    socket.write(bytes);
    expect(await text).toMatch(answer);
    expect((await send('/x')).status).toBe(200);
  });

  test('a half-closed connection does not hurt', async () => {
    const { rawSocket, send } = await start(echo);
    const socket = await rawSocket();
    socket.resume();
    socket.end('GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\n\r\n');
    await once(socket, 'close');
    expect((await send('/x')).status).toBe(200);
  });
});

describe('large answers', () => {
  const large = JSON.stringify('x'.repeat(200_000));
  const handler: Handler = (request, reply) => {
    reply.send(200, 'application/json', request.info.path === '/large' ? large : '"small"');
    return Promise.resolve();
  };

  test('are compressed for those who accept it', async () => {
    const { send } = await start(handler);
    const headers = { authorization: 'Bearer secret', 'accept-encoding': 'gzip, deflate' };
    const answer = await send('/large', { headers });
    expect(answer.headers['content-encoding']).toBe('gzip');
    expect(answer.headers['vary']).toBe('Accept-Encoding');
    expect(gunzipSync(answer.body).toString()).toBe(large);
    expect((await send('/small', { headers })).headers['content-encoding']).toBeUndefined();
    expect((await send('/large')).headers['content-encoding']).toBeUndefined();
  });
});

describe('answers in parts', () => {
  const word = 'ä€😀 and plain text '.repeat(40);
  const bodies = new Map<string, readonly string[]>([
    ['/empty', []],
    ['/short', ['{"items":[', '', ']}']],
    ['/many', Array.from({ length: 2_000 }, (_, i) => `${i}:${word}`)],
    ['/one-huge', ['[', word.repeat(2_000), ',', word, ']']],
    ['/exact', ['x'.repeat(256 * 1024), 'y'.repeat(256 * 1024)]],
  ]);
  const handler: Handler = (request, reply) => {
    const parts = bodies.get(request.info.path) ?? [];
    reply.send(200, 'text/plain', parts);
    return Promise.resolve();
  };

  test('arrive whole, with their length, many at a time', async () => {
    const { send } = await start(handler);
    const paths = [...bodies.keys(), ...bodies.keys(), ...bodies.keys()];
    const answers = await Promise.all(paths.map(async (path) => send(path)));
    for (const [i, { body, headers }] of answers.entries()) {
      const expected = Buffer.from((bodies.get(paths[i] ?? '') ?? []).join(''));
      expect(headers['content-length']).toBe(String(expected.length));
      expect(body.equals(expected)).toBe(true);
    }
  });

  test('are compressed piece by piece, also where they are no strings', async () => {
    const expected = (bodies.get('/many') ?? []).join('');
    const parts = (bodies.get('/many') ?? []).map((text, i) =>
      i % 2 === 0
        ? text
        : {
            byteLength: Buffer.byteLength(text),
            writeTo: (target: Buffer, at: number) => at + target.write(text, at),
            toString: () => text,
          },
    );
    const { send } = await start((_request, reply) => {
      reply.send(200, 'text/plain', parts);
      return Promise.resolve();
    });
    const headers = { authorization: 'Bearer secret', 'accept-encoding': 'gzip' };
    const zipped = await Promise.all(Array.from({ length: 3 }, async () => send('/', { headers })));
    for (const answer of zipped) {
      expect(answer.headers['content-encoding']).toBe('gzip');
      expect(gunzipSync(answer.body).toString()).toBe(expected);
    }
    expect((await send('/')).body.toString()).toBe(expected);
  });

  test('are compressed and indented as others are', async () => {
    const { send } = await start((_request, reply) => {
      reply.send(200, 'application/json', ['{"items":[', `"${word.repeat(300)}"`, ']}']);
      return Promise.resolve();
    });
    const { headers, body } = await send('/?pretty=1', {
      headers: { authorization: 'Bearer secret', 'accept-encoding': 'gzip' },
    });
    expect(headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(body).toString()).toBe(`{\n  "items": [\n    "${word.repeat(300)}"\n  ]\n}`);
  });

  test('that are compressed cause no warning of Node', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    const { send } = await start((request, reply) => {
      expect(request.signal.aborted).toBe(false);
      reply.send(200, 'text/plain', bodies.get('/many') ?? []);
      return Promise.resolve();
    });
    const headers = { authorization: 'Bearer secret', 'accept-encoding': 'gzip' };
    expect((await send('/', { headers })).status).toBe(200);
    // Warnings come in the next turn.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });

  test('are indented however long they are, in one part or in many', async () => {
    const items = Array.from({ length: 3_000 }, (_, i) => ({ word, i, deep: { none: [] } }));
    const text = JSON.stringify({ items });
    const { send } = await start((request, reply) => {
      reply.send(200, 'application/json', request.info.path === '/parts' ? text.split(/(?=,)/) : text);
      return Promise.resolve();
    });
    const expected = JSON.stringify({ items }, null, 2);
    for (const path of ['/whole?pretty=1', '/parts?pretty=1'])
      expect((await send(path)).body.toString() === expected).toBe(true);
  });

  test('of clients that read nothing or leave do not disturb those of others', async () => {
    const { send, rawSocket, logged } = await start(handler);
    const idle = await Promise.all(Array.from({ length: 12 }, rawSocket));
    for (const [i, socket] of idle.entries()) {
      const encoding = i % 2 === 0 ? '' : 'Accept-Encoding: gzip\r\n';
      socket.pause();
      socket.write(
        `GET /many HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\n${encoding}\r\n`,
      );
    }
    const expected = Buffer.from((bodies.get('/many') ?? []).join(''));
    expect((await send('/many')).body.equals(expected)).toBe(true);
    for (const socket of idle) socket.destroy();
    const answers = await Promise.all(Array.from({ length: 12 }, async () => send('/many')));
    for (const { body } of answers) expect(body.equals(expected)).toBe(true);
    expect(logged).toEqual([]);
  });
});

describe('requests at the same time', () => {
  test('are bounded, reads and writes apart, watches and proxies not at all', async () => {
    const gate = Promise.withResolvers<undefined>();
    let waiting = 0;
    const { send } = await start(
      async (_request, reply) => {
        waiting++;
        await gate.promise;
        reply.send(200, 'text/plain', 'ok');
      },
      { limits: { maxReadOnlyInFlight: 2, maxMutatingInFlight: 1 } },
    );
    const agent = new Agent({ keepAlive: true });
    const open = [
      send('/api/v1/services', { agent }),
      send('/api/v1/services', { agent }),
      send('/api/v1/namespaces/a/services', { method: 'POST', agent }),
      send('/api/v1/services?watch=1', { agent }),
      send('/api/v1/services?watch=1', { agent }),
      send('/api/v1/namespaces/a/services/x/proxy/', { agent }),
    ];
    await expect.poll(() => waiting).toBe(6);
    const refused = await send('/api/v1/services', { agent });
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
    expect(status(refused)).toMatchObject({ reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } });
    expect((await send('/api/v1/namespaces/a/services', { method: 'POST', agent })).status).toBe(429);
    gate.resolve(undefined);
    for (const answer of await Promise.all(open)) expect(answer.status).toBe(200);
    // all places were given back
    for (let i = 0; i < 5; i++) expect((await send('/api/v1/services', { agent })).status).toBe(200);
    agent.destroy();
  });
});

describe('requests that take too long', () => {
  const get = (path: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\n\r\n`;
  /** More than the buffers of a socket hold. */
  const large = Buffer.alloc(32 * 1024 * 1024);

  test('are answered with 504', async () => {
    const { send } = await start(() => new Promise(() => undefined), { limits: { requestTimeoutMs: 50 } });
    const answer = await send('/x');
    expect(answer.status).toBe(504);
    expect(status(answer)).toMatchObject({
      reason: 'Timeout',
      message: 'Timeout: request did not complete within the allotted timeout',
    });
  });

  test('since their client does not read give their place back', async () => {
    const asked = Promise.withResolvers<undefined>();
    const { rawSocket, send } = await start(
      ({ info }, reply) => {
        reply.send(200, 'text/plain', info.path === '/large' ? large : 'small');
        asked.resolve(undefined);
        return Promise.resolve();
      },
      { limits: { maxReadOnlyInFlight: 1, requestTimeoutMs: 500 } },
    );
    const socket = await rawSocket();
    socket.pause();
    socket.write(get('/large'));
    await asked.promise;
    await expect.poll(async () => (await send('/small')).status, { timeout: 60_000 }).toBe(200);
    socket.destroy();
  });

  test('are not watches, unless the end of one is not read', async () => {
    const gate = Promise.withResolvers<undefined>();
    const ended = Promise.withResolvers<undefined>();
    const { rawSocket, send } = await start(
      async ({ info }, reply) => {
        if (info.verb === 'list') return new Promise<never>(() => undefined);
        const stream = reply.stream(200, {});
        if (info.name === 'patient') await gate.promise;
        stream.write(info.name === 'unread' ? large : 'x');
        stream.end();
        if (info.name === 'unread') ended.resolve(undefined);
      },
      { limits: { requestTimeoutMs: 200 } },
    );
    const patient = send('/api/v1/watch/services/patient');
    const socket = await rawSocket();
    socket.pause();
    socket.write(get('/api/v1/watch/services/unread'));
    await ended.promise;
    // A request that came later has run out of time.
    expect((await send('/api/v1/services')).status).toBe(504);
    socket.resume();
    await once(socket, 'close');
    expect(socket.bytesRead).toBeLessThan(large.length);
    gate.resolve(undefined);
    expect((await patient).body.toString()).toBe('x');
  });
});

/** Writes one line, then waits for the end. */
const watching: Handler = async (request, reply) => {
  const stream = reply.stream(200, { 'Content-Type': 'application/json' });
  stream.write('{"type":"ADDED"}\n');
  if (!request.signal.aborted) {
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve, { once: true }));
  }
  stream.end();
};

describe('streams', () => {
  test('tell the handler when the client is gone', async () => {
    let ended = 0;
    const { rawSocket } = await start(async (request, reply) => {
      await watching(request, reply);
      ended++;
    });
    const socket = await rawSocket();
    socket.write(
      'GET /api/v1/services?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\n\r\n',
    );
    await once(socket, 'data');
    socket.destroy();
    await expect.poll(() => ended).toBe(1);
  });

  test('that fail in the middle are cut, not ended', async () => {
    const { send, logged } = await start((_request, reply) => {
      reply.stream(200, {}).write('half');
      return Promise.reject(new Error('later'));
    });
    await expect(send('/x')).rejects.toThrow();
    expect(logged).toHaveLength(1);
  });

  test('wait for a slow client', async () => {
    const chunk = Buffer.alloc(64 * 1024);
    let writes = 0;
    const done = Promise.withResolvers<undefined>();
    const { send } = await start(async (_request, reply) => {
      const stream = reply.stream(200, {});
      for (; writes < 200; writes++) if (!stream.write(chunk)) await stream.drained();
      stream.end();
      done.resolve(undefined);
    });
    const answer = await send('/x');
    await done.promise;
    expect(answer.body.length).toBe(200 * chunk.length);
  });
});

/** Sends raw text, and reads until the answers end in `end`. */
async function exchange(socket: TLSSocket, text: string, end: string): Promise<string> {
  let received = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
  socket.write(text);
  await expect.poll(() => received.endsWith(end)).toBe(true);
  return received;
}

test('every request of a connection is authenticated', async () => {
  const { send } = await start(echo);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const codes: number[] = [];
  for (const token of ['secret', 'secret', 'secreT', '', 'secret']) {
    codes.push((await send('/x', { agent, headers: { authorization: `Bearer ${token}` } })).status);
  }
  codes.push((await send('/x', { agent, headers: {} })).status);
  expect(codes).toEqual([200, 200, 401, 401, 200, 401]);
  agent.destroy();
});

describe('a connection without TLS that the process itself hands over', () => {
  /** A server, and the way to it of a connection that another one accepts. */
  async function plainly(handler: Handler) {
    const { server } = await start(handler);
    const plain = createTcpServer((socket) => server.acceptPlain(socket)).listen(0, '127.0.0.1');
    await once(plain, 'listening');
    closers.push(() => Promise.resolve(void plain.close()));
    const ask = (...headers: string[]): Promise<string> => {
      const socket = connectTcp(portOf(plain), '127.0.0.1');
      socket.write(['GET /x HTTP/1.1', 'Connection: close', ...headers].join('\r\n') + '\r\n\r\n');
      return text(socket);
    };
    return { server, ask };
  }

  test('needs a credential and a name of the server, as all others do', async () => {
    const { ask } = await plainly(echo);
    expect(await ask('Host: 127.0.0.1')).toMatch(/^HTTP\/1.1 401 /);
    expect(await ask('Host: 127.0.0.1', 'Authorization: Bearer secreT')).toMatch(/^HTTP\/1.1 401 /);
    expect(await ask('Host: evil.test', 'Authorization: Bearer secret')).toMatch(/^HTTP\/1.1 421 /);
    const answer = await ask('Host: 127.0.0.1', 'Authorization: Bearer secret');
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(answer).toContain('"name":"admin"');
  });

  test('is closed with the server, which waits for its request', async () => {
    const gate = Promise.withResolvers<undefined>();
    let arrived = 0;
    const { server, ask } = await plainly(async (_, reply) => {
      arrived++;
      await gate.promise;
      reply.send(200, 'text/plain', 'done');
    });
    const answer = ask('Host: 127.0.0.1', 'Authorization: Bearer secret');
    await expect.poll(() => arrived).toBe(1);
    const closed = server.close(60_000);
    gate.resolve(undefined);
    expect(await answer).toContain('done');
    await closed;
  });
});

describe('framing of streams', () => {
  const get = (path: string, version = '1.1') =>
    `GET ${path} HTTP/${version}\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\n\r\n`;
  const lines: Handler = (_request, reply) => {
    const stream = reply.stream(200, { 'Content-Type': 'text/plain' });
    for (const line of ['one\n', 'one\n', '', Buffer.from('zwölf\n'), 'x'.repeat(300)]) stream.write(line);
    stream.end();
    return Promise.resolve();
  };
  const chunked =
    `4\r\none\n\r\n4\r\none\n\r\n7\r\nzwölf\n\r\n12c\r\n${'x'.repeat(300)}\r\n0\r\n\r\n` as const;

  test('is chunked, and plain for HTTP/1.0', async () => {
    const { rawSocket } = await start(lines);
    const answer = await exchange(await rawSocket(), get('/x'), '0\r\n\r\n');
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toBe(chunked);
    const old = await exchange(await rawSocket(), get('/x', '1.0'), 'xxx');
    expect(old.slice(old.indexOf('\r\n\r\n') + 4)).toBe(`one\none\nzwölf\n${'x'.repeat(300)}`);
  });

  test('holds when an earlier answer on the connection is still under way', async () => {
    const gate = Promise.withResolvers<undefined>();
    const streamed = Promise.withResolvers<undefined>();
    const { rawSocket } = await start(async (request, reply) => {
      if (request.info.path === '/slow') {
        await gate.promise;
        reply.send(200, 'text/plain', 'slow');
        return;
      }
      const stream = reply.stream(200, {});
      stream.write('early\n');
      streamed.resolve(undefined);
      await gate.promise;
      stream.write('late\n');
      stream.end();
    });
    const socket = await rawSocket();
    const answers = exchange(socket, get('/slow') + get('/stream'), '0\r\n\r\n');
    await streamed.promise;
    gate.resolve(undefined);
    expect(await answers).toMatch(
      /\r\n\r\nslowHTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n6\r\nearly\n\r\n5\r\nlate\n\r\n0\r\n\r\n$/,
    );
  });
});

describe('closing', () => {
  test('ends open watches cleanly, lets requests finish and accepts no more', async () => {
    const gate = Promise.withResolvers<undefined>();
    let arrived = 0;
    const { server, send, rawSocket, port } = await start(async (request, reply) => {
      arrived++;
      if (request.info.verb === 'watch') return watching(request, reply);
      await gate.promise;
      reply.send(200, 'text/plain', 'done');
    });
    const agent = new Agent({ keepAlive: true });
    await rawSocket(); // idle: no request was ever sent on it
    connectTcp(port, '127.0.0.1').on('error', () => undefined);
    const watch = send('/api/v1/services?watch=1', { agent });
    const slow = send('/api/v1/services', { agent });
    await expect.poll(() => arrived).toBe(2);
    const closed = server.close(60_000);
    expect((await watch).body.toString()).toBe('{"type":"ADDED"}\n');
    await expect(send('/x', { agent: new Agent() })).rejects.toThrow();
    gate.resolve(undefined);
    expect((await slow).body.toString()).toBe('done');
    await closed;
  });

  test('waits for every request of a connection', async () => {
    const [first, second] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    let arrived = 0;
    const { server, rawSocket } = await start(
      async ({ info }, reply) => {
        arrived++;
        await (info.path === '/1' ? first : second).promise;
        reply.send(200, 'text/plain', `answer ${info.path}`);
      },
      { observe: () => second.resolve(undefined) },
    );
    const get = (path: string): string =>
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\n\r\n`;
    const answers = exchange(await rawSocket(), get('/1') + get('/2'), 'answer /2');
    await expect.poll(() => arrived).toBe(2);
    const closed = server.close(60_000);
    first.resolve(undefined);
    expect(await answers).toMatch(/answer \/1HTTP[^]*answer \/2$/);
    await closed;
  });

  test('a second call does not wait', async () => {
    let arrived = 0;
    const { server, send } = await start(async () => {
      arrived++;
      await new Promise(() => undefined);
    });
    const stuck = send('/x').catch((error: unknown) => error);
    await expect.poll(() => arrived).toBe(1);
    const closed = server.close(60_000);
    await server.close();
    await closed;
    expect(await stuck).toBeInstanceOf(Error);
  });
});

describe('upgrades', () => {
  const head = 'Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  const upgrade: UpgradeHandler = async (request, socket) => {
    if (request.info.subresource !== 'proxy') throw notFound({ group: '', resource: 'pods' }, 'x');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.on('data', (chunk: Buffer) => socket.write(chunk));
    await Promise.resolve();
  };

  test('reach their handler when the credential is right', async () => {
    const { rawSocket } = await start(echo, { upgrade });
    const socket = await rawSocket();
    socket.write(
      `GET /api/v1/namespaces/a/services/x/proxy/ HTTP/1.1\r\n${head}Authorization: Bearer secret\r\n\r\n`,
    );
    expect(String((await once(socket, 'data'))[0])).toContain('101');
    socket.write('ping');
    expect(String((await once(socket, 'data'))[0])).toBe('ping');
    socket.destroy();
  });

  test.each([
    ['/api/v1/namespaces/a/services/x/proxy/', '', 401],
    ['/api/v1/namespaces/a/pods/x', 'Authorization: Bearer secret\r\n', 404],
  ])('%s with "%s" are refused with a Status', async (path, credential, code) => {
    const { rawSocket } = await start(echo, { upgrade });
    const socket = await rawSocket();
    const text = readAll(socket);
    socket.write(`GET ${path} HTTP/1.1\r\n${head}${credential}\r\n`);
    expect(await text).toMatch(new RegExp(`^HTTP/1.1 ${code} .*"code":${code}`, 's'));
  });

  test('behind a request whose answer is on its way end the connection, and write nothing into that answer', async () => {
    const { rawSocket } = await start(
      async (_request, reply) => {
        reply.stream(200, {}).write('first');
        await new Promise(() => undefined);
      },
      { upgrade },
    );
    const socket = await rawSocket();
    const text = readAll(socket);
    const asked = 'Host: 127.0.0.1\r\nAuthorization: Bearer secret\r\n\r\n';
    socket.write(`GET /x HTTP/1.1\r\n${asked}`);
    await once(socket, 'data');
    socket.write(`GET /y HTTP/1.1\r\n${head}\r\n`);
    expect((await text).match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test('that fail behind their answer end the connection, and write no second one', async () => {
    const { rawSocket } = await start(echo, {
      upgrade: async (request, socket, early) => {
        await upgrade(request, socket, early);
        throw notFound({ group: '', resource: 'pods' }, 'x');
      },
    });
    const socket = await rawSocket();
    const text = readAll(socket);
    socket.write(
      `GET /api/v1/namespaces/a/services/x/proxy/ HTTP/1.1\r\n${head}Authorization: Bearer secret\r\n\r\n`,
    );
    expect((await text).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 101']);
  });

  test('that come to no stream are bounded in number and time, as other requests are', async () => {
    const { rawSocket, send } = await start(echo, {
      upgrade: async () => Promise.resolve(),
      limits: { maxReadOnlyInFlight: 1, requestTimeoutMs: 3000 },
    });
    const socket = await rawSocket();
    const closed = once(socket.resume(), 'close');
    socket.write(`GET /api/v1/pods HTTP/1.1\r\n${head}Authorization: Bearer secret\r\n\r\n`);
    await expect.poll(async () => (await send('/x')).status).toBe(429);
    const watch = await rawSocket();
    watch.write(`GET /api/v1/pods?watch=1 HTTP/1.1\r\n${head}Authorization: Bearer secret\r\n\r\n`);
    await closed;
    expect((await send('/x')).status).toBe(200);
    expect(watch.destroyed).toBe(false);
  });

  test('are closed with the server', async () => {
    const { rawSocket, server } = await start(echo, { upgrade });
    const socket = await rawSocket();
    socket.write(
      `GET /api/v1/namespaces/a/services/x/proxy/ HTTP/1.1\r\n${head}Authorization: Bearer secret\r\n\r\n`,
    );
    await once(socket, 'data');
    const gone = once(socket, 'close');
    await server.close(60_000);
    await gone;
  });
});

test('a router knows the first segment only, and no empty one', async () => {
  const { send } = await start(
    createRouter(
      new Map([
        ['api', echo],
        ['', echo],
      ]),
    ),
  );
  expect((await send('/api')).status).toBe(200);
  expect((await send('/api/v1/x')).status).toBe(200);
  expect((await send('/')).status).toBe(200);
  for (const path of ['/nope', '//api/v1/x', '/constructor', '/apis']) {
    const answer = await send(path);
    expect([path, answer.status, answer.body.toString()]).toEqual([path, 404, '404 page not found\n']);
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
  }
});
