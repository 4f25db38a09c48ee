/** TLS at the listeners of a Gateway, and to the backends of its Routes. */
import { once } from 'node:events';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { createServer as createTlsHttpServer } from 'node:https';
import {
  connect as connectTls,
  type ConnectionOptions,
  createServer as createTlsServer,
  TLSSocket,
} from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../src/tls/certificates.ts';
import type { ListenerTls, PlannedListener, StreamRule } from '../../src/network/gateway/plan.ts';
import { compileRules } from '../../src/network/gateway/http-rules.ts';
import type { BackendTls } from '../../src/network/http/rules.ts';
import { RunningGateway } from '../support/router/gateway.ts';
import { issueCertificate } from '../support/certificates.ts';
import { ask } from '../support/router/requests.ts';
import { portOf } from '../support/router/router.ts';
import { httpRoute, listener, serviceRule } from '../unit/network/gateway/routes.ts';

const now = { now: new Date() };
const authority = createCertificateAuthority('test', now);
const stranger = createCertificateAuthority('stranger', now);
const ca = authority.certificate;
const pairFor = (...hosts: string[]) => issueServerCertificate(authority, hosts[0] ?? '', hosts, now);
const alice = issueClientCertificate(authority, 'alice', [], now);
const mallory = issueClientCertificate(stranger, 'mallory', [], now);
/** Of another authority with the name of ours. */
const eve = issueCertificate({ subject: 'eve', signer: issueCertificate({ subject: 'test', isCA: true }) });

let gateway: RunningGateway;
const closing: (() => void)[] = [];

/** Starts a server of this machine that ends with the tests. */
async function started(server: ReturnType<typeof createTcpServer>): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return portOf(server);
}

beforeAll(async () => {
  gateway = new RunningGateway();
  const secure = createTlsHttpServer(
    { ...toOptions(pairFor('backend.test', 'other.test')), ca, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const { socket } = request;
      if (!(socket instanceof TLSSocket)) throw new Error('the backend is asked without TLS');
      const { CN: client = '' } = socket.getPeerX509Certificate()?.toLegacyObject().subject ?? {};
      const servername: unknown = Reflect.get(socket, 'servername');
      response.end(JSON.stringify({ servername, client }));
    },
  );
  gateway.serve('secure', { ports: [await started(secure)] });
  const plain = createTcpServer((socket) => socket.on('error', () => undefined).pipe(socket));
  gateway.serve('echo', { ports: [await started(plain)] });
  const hidden = createTlsServer(toOptions(pairFor('hidden.test')), (socket) => {
    socket.on('error', () => undefined).end('hidden');
  });
  gateway.serve('hidden', { ports: [await started(hidden)] });
  const web = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'));
  });
  gateway.serve('web', { ports: [await started(web)] });
});
afterAll(async () => {
  for (const close of closing) close();
  await gateway.stop();
});

function toOptions({ certificate, key }: { certificate: string; key: string }): {
  cert: string;
  key: string;
} {
  return { cert: certificate, key };
}

const toWeb = httpRoute([{ backendRefs: [{ name: 'web', port: 80 }] }]);

function https(hostname: string, tls: Partial<ListenerTls> = {}): PlannedListener {
  const certificates = [pairFor(hostname === '' ? 'any.test' : hostname)];
  return listener(hostname, [toWeb], {
    protocol: 'HTTPS',
    tls: { mode: 'Terminate', certificates, clients: undefined, ...tls },
  });
}

function stream(hostname: string, service: string): StreamRule {
  const rule = service === 'bad' ? undefined : serviceRule(service, 'TLSRoute');
  return {
    source: serviceRule('', 'TLSRoute').source,
    hostname,
    backends: [{ weight: 1, rule, requestHeaders: undefined }],
  };
}

/** Connects by TLS; resolves with all that comes until the end, or rejects. */
async function talk(
  port: number,
  options: ConnectionOptions,
  text = '',
): Promise<{ peer: string; text: string }> {
  const socket = connectTls({ port, host: '127.0.0.1', ca, ...options });
  closing.push(() => socket.destroy());
  let got = '';
  socket.setEncoding('utf8').on('data', (piece: string) => (got += piece));
  await once(socket, 'secureConnect');
  const names = socket.getPeerCertificate().subjectaltname ?? '';
  // Servers of HTTPS take the end of a client for the end of its connection.
  if (text.startsWith('GET')) socket.write(text);
  else socket.end(text);
  await once(socket, 'close');
  return { peer: names.replaceAll('DNS:', ''), text: got };
}

const request = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

test('each listener has its certificates, chosen by server name; the first is for the rest', async () => {
  const certificates = [pairFor('first.test'), pairFor('*.b.test'), pairFor('c.b.test')];
  const port = await gateway.listen(443, 'TLS', [
    https('a.test'),
    https('*.b.test', { certificates }),
    https(''),
  ]);
  const peerOf = async (servername: string): Promise<string> => {
    const options = { servername, checkServerIdentity: () => undefined };
    return (await talk(port, options, request(servername))).peer;
  };
  expect(await peerOf('a.test')).toBe('a.test');
  expect(await peerOf('c.b.test')).toBe('c.b.test');
  expect(await peerOf('d.b.test')).toBe('*.b.test');
  expect(await peerOf('x.d.b.test')).toBe('first.test');
  expect(await peerOf('else.test')).toBe('any.test');
  // Without a server name.
  expect(await peerOf('')).toBe('any.test');
  expect((await ask(port, 'a.test', { ca })).status).toBe(200);
  // A new certificate counts for the next handshake.
  await gateway.listen(443, 'TLS', [https('a.test', { certificates: [pairFor('new.test')] })]);
  expect(await peerOf('a.test')).toBe('new.test');
  await expect(peerOf('else.test')).rejects.toThrow();
  await expect(peerOf('')).rejects.toThrow();
});

test('what is no TLS, and what is no HTTP, ends', async () => {
  const port = await gateway.listen(443, 'TLS', [https('')]);
  for (const text of ['GET / HTTP/1.1\r\n\r\n', '\u0016\u0003\u0001', '']) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.end(text);
    await once(socket.resume(), 'close');
  }
  expect((await ask(port, 'any.test', { ca })).status).toBe(200);
});

/** One request of an own connection by HTTP/2. */
async function askHttp2(port: number, servername: string, authority: string): Promise<IncomingHttpHeaders> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, {
    ca,
    servername,
    checkServerIdentity: () => undefined,
  });
  session.on('error', () => undefined);
  closing.push(() => session.destroy());
  const stream = session.request({ ':path': '/', ':authority': authority });
  const [headers] = (await once(stream.resume(), 'response')) as [IncomingHttpHeaders];
  session.close();
  return headers;
}

test('requests for another listener than the one of the connection are misdirected', async () => {
  const port = await gateway.listen(443, 'TLS', [https('a.test'), https('b.test'), https('*.c.test')]);
  const cases = [
    ['a.test', 'a.test', 200],
    ['a.test', 'b.test', 421],
    ['a.test', 'x.c.test', 421],
    ['x.c.test', 'y.c.test', 200],
    ['a.test', 'unknown.test', 404],
  ] as const;
  for (const [servername, host, status] of cases) {
    expect([servername, host, (await askHttp2(port, servername, host))[':status']]).toEqual([
      servername,
      host,
      status,
    ]);
  }
  const answer = await ask(port, 'b.test', { ca, servername: 'a.test' });
  expect(answer.status).toBe(421);
});

describe('client certificates', () => {
  const listenWith = async (mode: 'AllowValidOnly' | 'AllowInsecureFallback'): Promise<number> =>
    await gateway.listen(443, 'TLS', [
      https('a.test', { clients: { ca, mode } }),
      https('b.test', { clients: { ca, mode } }),
    ]);
  const asked = async (port: number, pair?: { certificate: string; key: string }): Promise<string> => {
    const own = pair === undefined ? {} : toOptions(pair);
    return (await talk(port, { servername: 'a.test', ...own }, request('a.test'))).text.slice(0, 12);
  };
  test('valid ones only', async () => {
    const port = await listenWith('AllowValidOnly');
    expect(await asked(port, alice)).toBe('HTTP/1.1 200');
    for (const pair of [undefined, mallory, eve]) {
      const text = await asked(port, pair).catch(() => '');
      expect(text).toBe('');
    }
  });
  test('a session without a certificate is not resumed where one is needed', async () => {
    const open = await gateway.listen(443, 'TLS', [https('a.test')]);
    let session: Buffer | undefined;
    const first = connectTls({ port: open, host: '127.0.0.1', ca, servername: 'a.test' });
    closing.push(() => first.destroy());
    first.on('session', (ticket: Buffer) => (session = ticket));
    first.write(request('a.test'));
    await once(first.resume(), 'close');
    expect(session).toBeDefined();
    const port = await listenWith('AllowValidOnly');
    expect(port).toBe(open);
    const resumed = { servername: 'a.test', ...(session === undefined ? {} : { session }) };
    expect(
      await talk(port, resumed, request('a.test')).then(
        ({ text }) => text,
        () => '',
      ),
    ).toBe('');
  });
  test('none and bad ones, too, where that is asked for', async () => {
    const port = await listenWith('AllowInsecureFallback');
    for (const pair of [alice, undefined, mallory, eve]) {
      // With our authority it would be sent behind the certificate.
      const own = { ...(pair === undefined ? {} : toOptions(pair)), ca: [], rejectUnauthorized: false };
      const { text } = await talk(port, { servername: 'a.test', ...own }, request('a.test'));
      expect(text.slice(0, 12)).toBe('HTTP/1.1 200');
    }
  });
});

test('passthrough and terminated TLS beside HTTPS on one port, by server name', async () => {
  const tls = (hostname: string, mode: ListenerTls['mode'], streams: StreamRule[]): PlannedListener =>
    listener(hostname, [], {
      ...{ protocol: 'TLS', streams },
      tls: { mode, certificates: mode === 'Terminate' ? [pairFor('ended.test')] : [], clients: undefined },
    });
  const port = await gateway.listen(443, 'TLS', [
    tls('hidden.test', 'Passthrough', [stream('hidden.test', 'hidden')]),
    tls('ended.test', 'Terminate', [stream('ended.test', 'echo')]),
    tls('bad.test', 'Passthrough', [stream('bad.test', 'bad')]),
    tls('*.more.test', 'Passthrough', [stream('a.more.test', 'hidden')]),
    https('a.test'),
  ]);
  expect(await talk(port, { servername: 'hidden.test' })).toEqual({ peer: 'hidden.test', text: 'hidden' });
  expect(await talk(port, { servername: 'ended.test' }, 'as it is')).toEqual({
    peer: 'ended.test',
    text: 'as it is',
  });
  expect((await talk(port, { servername: 'a.test' }, request('a.test'))).text).toContain('200 OK');
  const loose = { checkServerIdentity: () => undefined };
  expect((await talk(port, { servername: 'a.more.test', ...loose })).text).toBe('hidden');
  for (const servername of ['bad.test', 'b.more.test', 'unknown.test', '']) {
    await expect(talk(port, { servername, ...loose })).rejects.toThrow();
  }
});

describe('TLS to backends', () => {
  const askBackend = async (backendTls: BackendTls): Promise<{ status: number; body: string }> => {
    const matches = compileRules(
      { kind: 'HTTPRoute', object: httpRoute([{ backendRefs: [{ name: 'secure' }] }]) },
      () => ({
        ...serviceRule('secure'),
        backendTls,
      }),
    );
    const port = await gateway.listen(80, 'HTTP', [listener('', [], { matches })]);
    return await ask(port, 'a.test');
  };
  const base: BackendTls = { serverName: 'backend.test', ca, names: [], client: undefined };
  test('the name is sent and checked', async () => {
    const { status, body } = await askBackend(base);
    expect([status, JSON.parse(body)]).toEqual([200, { servername: 'backend.test', client: '' }]);
  });
  test('the client shows its certificate', async () => {
    expect(JSON.parse((await askBackend({ ...base, client: alice })).body)).toMatchObject({
      client: 'alice',
    });
  });
  test('names in the place of that name: any of them', async () => {
    const names = [
      { type: 'URI', value: 'spiffe://other' },
      { type: 'Hostname', value: 'other.test' },
    ] as const;
    expect(JSON.parse((await askBackend({ ...base, serverName: 'sni.test', names })).body)).toMatchObject({
      servername: 'sni.test',
    });
    expect((await askBackend({ ...base, names: names.slice(0, 1) })).status).toBe(502);
  });
  test.each<[string, BackendTls]>([
    ['another name', { ...base, serverName: 'wrong.test' }],
    ['another authority', { ...base, ca: stranger.certificate }],
    ['the authorities of the system', { ...base, ca: undefined }],
    ['no authority at all', { ...base, ca: 'none' }],
  ])('with %s: 502, and nothing is sent', async (_, tls) => {
    expect((await askBackend(tls)).status).toBe(502);
  });
});
