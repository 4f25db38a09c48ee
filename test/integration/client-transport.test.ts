import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import { afterEach, describe, expect, it } from 'vitest';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../src/tls/certificates.ts';
import { createTransport } from '../../src/client/connect.ts';
import type { Clock } from '../../src/client/clock.ts';
import { retryAfterOf } from '../../src/client/errors.ts';
import { dispatchers } from '../../src/client/dispatchers.ts';
import { HttpTransport } from '../../src/client/http-transport.ts';
import { endpointIdentity } from '../../src/client/credentials/identity.ts';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { services } from '../../src/client/resources.ts';
import { type ClusterSource, ConnectionError, type Transport } from '../../src/client/transport.ts';
import { StatusError } from '../../src/objects/status.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { issueCertificate } from '../support/certificates.ts';
import { ScriptedServer } from '../support/scripted-server.ts';

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function plainServer(): Promise<ScriptedServer> {
  const server = await ScriptedServer.start();
  cleanups.push(() => server.close());
  return server;
}

async function connect(source: ClusterSource, clock?: Clock): Promise<Transport> {
  const transport = await createTransport(source, undefined, clock);
  cleanups.push(() => transport.close());
  return transport;
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'servicenet-'));
  cleanups.push(() => rm(path, { recursive: true }));
  return path;
}

/** What a promise rejects with. */
async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
}

const validity = { now: new Date() };
const service = {
  metadata: { name: 'a', namespace: 'default' },
  spec: { ports: [{ port: 80 }] },
  status: { loadBalancer: {} },
};

describe('requests', () => {
  it('sends JSON and reads JSON', async () => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: `${server.url}/`, token: 'secret' });
    const answer = transport.request('POST', '/api/v1/x', {
      query: { a: 1, b: undefined, c: 'ä&b' },
      body: { x: 1 },
    });
    const request = await server.next();
    expect(request).toMatchObject({ method: 'POST', path: '/api/v1/x', body: '{"x":1}' });
    expect([...request.query]).toEqual([
      ['a', '1'],
      ['c', 'ä&b'],
    ]);
    expect(request.headers).toMatchObject({
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: 'Bearer secret',
    });
    expect(request.headers['user-agent']).toMatch(/^servicenet\/\d+\.\d+/);
    request.json(201, { y: 2 });
    const { status, json } = await answer.then((response) => ({
      status: response.status,
      json: response.json(),
    }));
    expect({ status, json }).toEqual({ status: 201, json: { y: 2 } });
  });

  it.each(['/k8s/clusters/c1', '//k8s/clusters//c1/'])('keeps a path below the server: %s', async (path) => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: `${server.url}${path}` });
    const answer = transport.request('GET', '/version');
    const request = await server.next();
    expect(request.path).toBe('/k8s/clusters/c1/version');
    request.json(200, {});
    await answer;
  });

  it.each([
    ['its own certificate', 'root', 'own'],
    ['its authority, which has the same name', '', 'authority'],
  ] as const)('trusts a server by %s', async (_what, subject, which) => {
    const authority = issueCertificate({ subject, isCA: true });
    const own = issueCertificate({ subject: '', signer: authority, names: ['127.0.0.1'] });
    const server = createServer({ key: own.key, cert: own.certificate }, (_, response) => response.end('{}'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(async () => new Promise((resolve) => server.close(() => resolve())));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const ca = { own, authority }[which].certificate;
    const transport = await connect({ kind: 'endpoint', url: `https://127.0.0.1:${port}`, ca });
    expect((await transport.request('GET', '/version')).status).toBe(200);
  });

  it('says that a bundle has no certificate', async () => {
    const transport = await connect({ kind: 'endpoint', url: 'https://127.0.0.1:1', ca: 'none' });
    const error = await failureOf(transport.request('GET', '/version'));
    expect(error).toMatchObject({
      code: 'CREDENTIALS',
      message: expect.stringContaining('PEM block') as string,
    });
  });

  it('shares at most 32 connections, and gives watches their own', async () => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url });
    const answers = Array.from({ length: 100 }, () => transport.request('GET', '/x'));
    for (let i = 0; i < 100; i++) {
      const request = await server.next();
      expect(server.connections).toBeLessThanOrEqual(32);
      request.json(200, {});
    }
    await Promise.all(answers);
    const used = server.connections;
    const stream = transport.stream('/y');
    (await server.next()).watch();
    await stream;
    expect(server.connections).toBe(used + 1);
  });

  it('reaches a server at a Unix socket without TLS, whatever its URL says', async () => {
    const path = join(await folder(), 's');
    const server = await ScriptedServer.startAt(path);
    cleanups.push(() => server.close());
    const source = {
      kind: 'endpoint',
      url: 'https://192.0.2.1:6443',
      socketPath: path,
      token: 'secret',
    } as const;
    const transport = await connect(source);
    const answer = transport.request('GET', '/x');
    const request = await server.next();
    expect(request.headers).toMatchObject({ host: '192.0.2.1:6443', authorization: 'Bearer secret' });
    request.json(200, {});
    await answer;
    const stream = transport.stream('/y');
    (await server.next()).watch();
    await stream;
    expect(server.connections).toBe(2);
  });

  it.each([
    [
      'a Status',
      {
        status: 409,
        body: '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"Conflict","details":{"name":"a","kind":"services"},"code":409}',
      },
      { code: 409, reason: 'Conflict', message: 'no', details: { name: 'a', kind: 'services' } },
    ],
    [
      'a Status of wrong types',
      {
        status: 422,
        body: '{"kind":"Status","apiVersion":"v1","message":7,"reason":{},"details":[],"code":"x"}',
      },
      { code: 422, reason: 'Invalid', message: 'the server answered 422', details: undefined },
    ],
    [
      'text of a proxy',
      { status: 503, body: 'no healthy upstream' },
      {
        code: 503,
        reason: 'ServiceUnavailable',
        message: 'GET /x: the server answered 503: no healthy upstream',
      },
    ],
    ['nothing', { status: 404, body: '' }, { code: 404, reason: 'NotFound' }],
    ['a 401 that stays', { status: 401, body: '' }, { code: 401, reason: 'Unauthorized' }],
  ])('throws a StatusError made of %s', async (_, answer, expected) => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url });
    const failed = failureOf(transport.request('GET', '/x'));
    (await server.next()).text(answer.status, answer.body);
    if (answer.status === 401) (await server.next()).text(answer.status, answer.body);
    const error = await failed;
    expect(error).toBeInstanceOf(StatusError);
    expect(error).toMatchObject(expected);
  });

  it.each([
    ['5', 5000],
    ['100000', 300_000],
    ['Fri, 31 Dec 1999 23:59:59 GMT', undefined],
  ])('reads Retry-After: %s', async (header, milliseconds) => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url });
    const failed = failureOf(transport.request('GET', '/x', { maxRetries: 0 }));
    (await server.next()).text(429, '', { 'retry-after': header });
    expect(retryAfterOf(await failed)).toBe(milliseconds);
  });

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    'sends %s again after the seconds of Retry-After, with 429 and 503, eleven times at most',
    async (method) => {
      const server = await plainServer();
      const clock = new FakeClock();
      const transport = await connect({ kind: 'endpoint', url: server.url }, clock);
      const body = method === 'GET' ? {} : { body: { a: 1 } };
      const wait = async (code: number, text: string): Promise<void> => {
        (await server.next()).text(code, '', { 'retry-after': text });
        await clock.timerWithin(Number(text) * 1000, Number(text) * 1000);
        await clock.advance(Number(text) * 1000);
      };
      const answered = transport.request(method, '/x', body);
      await wait(429, '1');
      await wait(503, '30');
      await wait(429, '0');
      (await server.next()).json(200, { done: true });
      expect((await answered).json()).toEqual({ done: true });

      const failed = failureOf(transport.request(method, '/y', body));
      for (let retry = 0; retry < 10; retry++) await wait(429, '1');
      (await server.next()).text(429, '', { 'retry-after': '1' });
      expect(await failed).toMatchObject({ code: 429, details: { retryAfterSeconds: 1 } });
    },
  );

  it('opens a watch again when the server puts it off', async () => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url });
    const opened = transport.stream('/watch');
    (await server.next()).text(503, 'later', { 'retry-after': '0' });
    (await server.next()).json(200, { type: 'BOOKMARK' });
    let seen = '';
    for await (const chunk of (await opened).chunks) seen += chunk.toString();
    expect(seen).toContain('BOOKMARK');
  });

  it.each([
    [429, {}],
    [503, { 'retry-after': 'soon' }],
    [500, { 'retry-after': '0' }],
    [409, { 'retry-after': '0' }],
    // Later than the deadline.
    [429, { 'retry-after': '61' }],
  ])('does not send again what is answered %d with %o', async (code, headers) => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url });
    const failed = failureOf(transport.request('POST', '/x', { body: {} }));
    (await server.next()).text(code, '', headers);
    expect(await failed).toMatchObject({ code });
  });

  it('stops waiting when its caller does', async () => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url });
    const stop = new AbortController();
    const failed = failureOf(transport.request('GET', '/x', { signal: stop.signal }));
    (await server.next()).text(429, '', { 'retry-after': '30' });
    setTimeout(() => stop.abort(), 50);
    expect(await failed).toMatchObject({ name: 'ConnectionError', code: 'ABORTED' });
  });

  it('reads watches of any length', async () => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url });
    const opening = transport.stream('/y');
    const watch = (await server.next()).watch();
    const { chunks } = await opening;
    const chunk = Buffer.alloc(8 * 2 ** 20, '\n');
    const wanted = 72 * chunk.length; // more than any answer may have
    watch.rawBytes(chunk);
    let sent = chunk.length;
    let read = 0;
    for await (const part of chunks) {
      read += part.length;
      if (read < sent) continue;
      if (read === wanted) break;
      watch.rawBytes(chunk);
      sent += chunk.length;
    }
    expect(read).toBe(wanted);
  });

  it('closes at once, also what an earlier certificate still carries', async () => {
    const server = await plainServer();
    const authority = createCertificateAuthority('test', validity);
    const certificates = ['a', 'b'].map((name) => issueClientCertificate(authority, name, [], validity));
    let present = 0;
    const transport = new HttpTransport(
      {
        server: server.url,
        credentials: () => {
          const pair = certificates[present];
          return Promise.resolve({ headers: {}, tls: { cert: pair?.certificate, key: pair?.key } });
        },
        refused: () => undefined,
      },
      dispatchers(undefined),
    );
    const opening = transport.stream('/y');
    const watch = (await server.next()).watch();
    await opening;
    present = 1;
    const answer = transport.request('GET', '/x');
    (await server.next()).json(200, {});
    await answer;
    await transport.close();
    await watch.closed();
  });

  it('sends no more requests at once than it has connections, watches aside', async () => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url, connections: 2 });
    const answers = ['/1', '/2', '/3'].map((path) => transport.request('GET', path));
    const watching = transport.stream('/watch');
    const first = [await server.next(), await server.next(), await server.next()];
    expect(first.map(({ path }) => path).sort()).toEqual(['/1', '/2', '/watch']);
    for (const request of first) {
      if (request.path === '/watch') request.watch();
      else request.json(200, {});
    }
    const third = await server.next();
    expect(third.path).toBe('/3');
    third.json(200, {});
    await Promise.all([watching, ...answers]);
  });

  it('names what went wrong without an answer', async () => {
    const server = await plainServer();
    const transport = await connect({ kind: 'endpoint', url: server.url });
    const reset = failureOf(transport.request('GET', '/x'));
    (await server.next()).reset();
    expect(await reset).toBeInstanceOf(ConnectionError);

    // Its time may be over before it is sent: then the next one may be sent.
    do {
      const late = failureOf(transport.request('GET', '/late', { timeoutMs: 50 }));
      expect(await late).toMatchObject({ name: 'ConnectionError', code: 'TIMEOUT' });
    } while (server.waiting === 0);
    await (await server.next()).closed();

    const stop = new AbortController();
    const stopped = failureOf(transport.request('GET', '/x', { signal: stop.signal }));
    let request = await server.next();
    while (request.path === '/late') request = await server.next();
    stop.abort();
    expect(await stopped).toMatchObject({ code: 'ABORTED' });
    await request.closed();
    expect(await failureOf(transport.request('GET', '/x', { signal: stop.signal }))).toMatchObject({
      code: 'ABORTED',
    });

    await server.close();
    expect(await failureOf(transport.request('GET', '/x'))).toMatchObject({ code: 'ECONNREFUSED' });
    cleanups.splice(0, 1);
  });

  it('counts requests by method and code', async () => {
    const server = await plainServer();
    const metrics = new Metrics();
    const transport = await createTransport({ kind: 'endpoint', url: server.url }, metrics);
    cleanups.push(() => transport.close());
    const answer = transport.request('GET', '/x');
    (await server.next()).json(200, {});
    await answer;
    const failed = failureOf(transport.request('PUT', '/x'));
    (await server.next()).status(409, 'Conflict');
    await failed;
    const text = await metrics.scrape();
    const host = new URL(server.url).host;
    expect(text).toContain(`rest_client_requests_total{code="200",method="GET",host="${host}"} 1`);
    expect(text).toContain(`rest_client_requests_total{code="409",method="PUT",host="${host}"} 1`);
  });
});

describe('identity', () => {
  it('reads a token file again after a minute, and at once after a 401', async () => {
    const server = await plainServer();
    const path = join(await folder(), 'token');
    await writeFile(path, 'one\n');
    const clock = new FakeClock();
    const transport = new HttpTransport(
      endpointIdentity({ kind: 'endpoint', url: server.url, tokenFile: path }, clock),
      dispatchers(undefined),
    );
    cleanups.push(() => transport.close());
    const bearer = async (): Promise<string | undefined> => {
      const answer = transport.request('GET', '/x');
      const request = await server.next();
      request.json(200, {});
      await answer;
      return request.headers.authorization;
    };
    expect(await bearer()).toBe('Bearer one');
    await writeFile(path, 'two\n');
    expect(await bearer()).toBe('Bearer one');
    await clock.advance(60_000);
    expect(await bearer()).toBe('Bearer two');

    await writeFile(path, 'three\n');
    const answer = transport.request('POST', '/x', { body: { a: 1 } });
    (await server.next()).status(401, 'Unauthorized');
    const again = await server.next();
    expect(again.headers.authorization).toBe('Bearer three');
    expect(again.body).toBe('{"a":1}');
    again.json(200, {});
    expect((await answer).status).toBe(200);

    await rm(path);
    await clock.advance(60_000);
    expect(await bearer()).toBe('Bearer three');
  });

  it('trusts only its authority and shows its certificate', async () => {
    const authority = createCertificateAuthority('test', validity);
    const served = issueServerCertificate(authority, 'server', ['127.0.0.1'], validity);
    const user = issueClientCertificate(authority, 'user', ['group'], validity);
    const server = await ScriptedServer.start({
      cert: served.certificate,
      key: served.key,
      ca: authority.certificate,
    });
    cleanups.push(() => server.close());
    const known = await connect({
      kind: 'endpoint',
      url: server.url,
      ca: authority.certificate,
      cert: user.certificate,
      key: user.key,
    });
    const answer = known.request('GET', '/x');
    const request = await server.next();
    expect(request.clientName).toBe('user');
    request.json(200, {});
    await answer;

    const stranger = await connect({ kind: 'endpoint', url: server.url });
    expect(await failureOf(stranger.request('GET', '/x'))).toBeInstanceOf(ConnectionError);
  });

  it('follows a kubeconfig: authority, token file beside it, context', async () => {
    const authority = createCertificateAuthority('test', validity);
    const served = issueServerCertificate(authority, 'server', ['127.0.0.1'], validity);
    const server = await ScriptedServer.start({ cert: served.certificate, key: served.key });
    cleanups.push(() => server.close());
    const home = await folder();
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'c',
          cluster: {
            server: server.url,
            'certificate-authority-data': Buffer.from(authority.certificate).toString('base64'),
          },
        },
      ],
      users: [
        { name: 'u', user: { tokenFile: 'token' } },
        { name: 'v', user: { token: 'other' } },
      ],
      contexts: [
        { name: 'first', context: { cluster: 'c', user: 'v' } },
        { name: 'second', context: { cluster: 'c', user: 'u' } },
      ],
      'current-context': 'first',
    };
    await writeFile(join(home, 'config'), JSON.stringify(config));
    await writeFile(join(home, 'token'), 'from-file\n');
    for (const [context, token] of [
      ['first', 'other'],
      ['second', 'from-file'],
    ] as const) {
      const transport = await connect({ kind: 'kubeconfig', path: join(home, 'config'), context });
      const answer = transport.request('GET', '/x');
      const request = await server.next();
      expect(request.headers.authorization).toBe(`Bearer ${token}`);
      request.json(200, {});
      await answer;
    }
    await expect(
      createTransport({ kind: 'kubeconfig', path: join(home, 'config'), context: 'gone' }),
    ).rejects.toThrow('the kubeconfig has no context "gone"');
  });
});

describe('verbs', () => {
  it.each([
    ['get', 'GET', '/api/v1/namespaces/default/services/a', undefined],
    ['create', 'POST', '/api/v1/namespaces/default/services', 'application/json'],
    ['replace', 'PUT', '/api/v1/namespaces/default/services/a', 'application/json'],
    ['replaceStatus', 'PUT', '/api/v1/namespaces/default/services/a/status', 'application/json'],
    ['jsonPatch', 'PATCH', '/api/v1/namespaces/default/services/a', 'application/json-patch+json'],
    ['mergePatch', 'PATCH', '/api/v1/namespaces/default/services/a/status', 'application/merge-patch+json'],
    ['applyPatch', 'PATCH', '/api/v1/namespaces/default/services/a', 'application/apply-patch+yaml'],
  ])('%s', async (verb, method, path, contentType) => {
    const server = await plainServer();
    const client = new ResourceClient(await connect({ kind: 'endpoint', url: server.url }), services);
    const calls: Record<string, () => Promise<unknown>> = {
      get: () => client.get('default', 'a'),
      create: () => client.create(service, { fieldManager: 'm' }),
      replace: () => client.replace(service, { dryRun: true }),
      replaceStatus: () => client.replaceStatus(service),
      jsonPatch: () => client.jsonPatch('default', 'a', [{ op: 'remove', path: '/x' }]),
      mergePatch: () => client.mergePatch('default', 'a', { status: {} }, { subresource: 'status' }),
      applyPatch: () => client.applyPatch(service, { fieldManager: 'm', force: true }),
    };
    const answer = calls[verb]?.();
    const request = await server.next();
    expect(request).toMatchObject({ method, path });
    expect(request.headers['content-type']).toBe(contentType);
    if (verb === 'replace') expect(request.query.get('dryRun')).toBe('All');
    if (verb === 'applyPatch') expect(request.query.get('force')).toBe('true');
    if (verb === 'create')
      expect(JSON.parse(request.body)).toMatchObject({ kind: 'Service', apiVersion: 'v1' });
    request.json(200, { ...service, unknown: { kept: true } });
    expect(await answer).toMatchObject({ kind: 'Service', unknown: { kept: true } });
  });

  it('deletes with preconditions', async () => {
    const server = await plainServer();
    const client = new ResourceClient(await connect({ kind: 'endpoint', url: server.url }), services);
    const answer = client.delete('default', 'a', {
      preconditions: { uid: 'u' },
      propagationPolicy: 'Background',
    });
    const request = await server.next();
    expect(request).toMatchObject({ method: 'DELETE', path: '/api/v1/namespaces/default/services/a' });
    expect(JSON.parse(request.body)).toEqual({
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: { uid: 'u' },
      propagationPolicy: 'Background',
    });
    request.json(200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
    await answer;
  });

  it('refuses an answer of another kind', async () => {
    const server = await plainServer();
    const client = new ResourceClient(await connect({ kind: 'endpoint', url: server.url }), services);
    const failed = failureOf(client.get('default', 'a'));
    (await server.next()).json(200, { metadata: { name: 'a' } });
    expect(await failed).toMatchObject({ name: 'UnexpectedAnswer' });
  });
});

it('keeps to HTTP/1.1 with a server that offers HTTP/2: each watch has a connection of its own', async () => {
  const ca = createCertificateAuthority('ca', validity);
  const { certificate, key } = issueServerCertificate(ca, 'server', ['127.0.0.1'], validity);
  const versions: string[] = [];
  const server = createSecureServer({ key, cert: certificate, allowHTTP1: true }, (request, response) => {
    versions.push(request.httpVersion);
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => server.close(() => resolve())));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const url = `https://127.0.0.1:${port}`;
  const client = await connect({ kind: 'endpoint', url, token: 'token', ca: ca.certificate });
  await client.request('GET', '/api');
  expect(versions).toEqual(['1.1']);
});
