/** Calls of gRPC, TCP and UDP at the listeners of a Gateway. */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect, createServer } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { GatewayBackend, PlannedListener } from '../../src/network/gateway/plan.ts';
import { compileRules } from '../../src/network/gateway/http-rules.ts';
import { RunningGateway } from '../support/router/gateway.ts';
import { portOf } from '../support/router/router.ts';
import { grpcRoute, listener, serviceRule } from '../unit/network/gateway/routes.ts';

let gateway: RunningGateway;
const closing: (() => void)[] = [];
/** What the backend of gRPC does with a call. */
let answerCall = (stream: ServerHttp2Stream, _headers: IncomingHttpHeaders): void => {
  stream.end();
};

beforeAll(async () => {
  gateway = new RunningGateway();
  const calls = createHttp2Server();
  calls.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    answerCall(stream, headers);
  });
  calls.listen(0, '127.0.0.1');
  await once(calls, 'listening');
  closing.push(() => calls.close());
  // GRPCRoutes speak HTTP/2 to every backend.
  gateway.serve('calls', { ports: [portOf(calls)] });
});
afterAll(async () => {
  for (const close of closing) close();
  await gateway.stop();
});

interface Answer {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders | undefined;
  readonly body: string;
  /** Whether the head was the end. */
  readonly isWhole: boolean;
}

async function call(port: number, path: string, send = ['hello']): Promise<Answer> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  closing.push(() => session.destroy());
  const stream = session.request({
    ...{ ':method': 'POST', ':path': path, ':authority': 'calls.test', te: 'trailers' },
    'content-type': 'application/grpc+proto',
  });
  let trailers: IncomingHttpHeaders | undefined;
  stream.on('trailers', (found: IncomingHttpHeaders) => (trailers = found));
  let body = '';
  stream.setEncoding('utf8').on('data', (piece: string) => (body += piece));
  for (const piece of send) stream.write(piece);
  stream.end();
  const [headers, flags] = (await once(stream, 'response')) as [IncomingHttpHeaders, number];
  if (!stream.closed) await once(stream, 'close');
  session.close();
  return { headers, trailers, body, isWhole: (flags & 1) === 1 };
}

async function listenForCalls(): Promise<number> {
  const object = grpcRoute([
    { matches: [{ method: { service: 'test.Echo' } }], backendRefs: [{ name: 'calls' }] },
    { matches: [{ method: { service: 'test.Empty' } }], backendRefs: [{ name: 'empty' }] },
    { matches: [{ method: { service: 'test.Bad' } }], backendRefs: [{ name: 'bad' }] },
    { matches: [{ method: { service: 'test.None' } }] },
  ]);
  const matches = compileRules({ kind: 'GRPCRoute', object }, ({ name }) =>
    name === 'bad' ? undefined : serviceRule(name, 'GRPCRoute'),
  );
  return await gateway.listen(80, 'HTTP', [listener('', [], { matches })]);
}

test('calls of gRPC go by HTTP/2 both ways, with their trailers', async () => {
  const port = await listenForCalls();
  let seen: IncomingHttpHeaders = {};
  answerCall = (stream, headers) => {
    seen = headers;
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'x-more': 'yes' }));
    // One message back for each, as they come.
    stream.on('data', (piece: Buffer) => stream.write(`<${piece.toString()}>`));
    stream.on('end', () => stream.end());
  };
  const answer = await call(port, '/test.Echo/Say');
  expect(answer.body).toBe('<hello>');
  expect(answer.trailers).toMatchObject({ 'grpc-status': '0', 'x-more': 'yes' });
  expect(seen).toMatchObject({ ':path': '/test.Echo/Say', ':authority': 'calls.test', te: 'trailers' });
});

test('an answer of gRPC that is a head alone stays one', async () => {
  const port = await listenForCalls();
  answerCall = (stream) => {
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '5' },
      { endStream: true },
    );
  };
  const answer = await call(port, '/test.Echo/Say');
  expect([answer.headers['grpc-status'], answer.isWhole, answer.trailers]).toEqual(['5', true, undefined]);
});

test('what no rule takes is Unimplemented, what no backend answers is Unavailable', async () => {
  const port = await listenForCalls();
  const statuses = {
    '/test.Other/Say': '12',
    '/test.Empty/Say': '14',
    '/test.Bad/Say': '14',
    '/test.None/Say': '14',
  };
  for (const [path, status] of Object.entries(statuses)) {
    const { headers, isWhole } = await call(port, path);
    expect([path, headers[':status'], headers['content-type'], headers['grpc-status'], isWhole]).toEqual([
      ...[path, 200, 'application/grpc', status, true],
    ]);
  }
  // The backend cuts the stream.
  answerCall = (stream) => stream.close(2);
  expect((await call(port, '/test.Echo/Say')).headers['grpc-status']).toBe('14');
});

function streamListener(protocol: 'TCP' | 'UDP', shares: Readonly<Record<string, number>>): PlannedListener {
  const kind = protocol === 'TCP' ? 'TCPRoute' : 'UDPRoute';
  const backends: GatewayBackend[] = Object.entries(shares).map(([name, weight]) => ({
    ...{ weight, requestHeaders: undefined },
    rule: name === 'bad' ? undefined : serviceRule(name, kind),
  }));
  const { source } = serviceRule('', kind);
  return listener('', [], { protocol, streams: [{ source, hostname: '', backends }] });
}

async function tcpPod(name: string, isEcho: boolean): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    closing.push(() => socket.destroy());
    socket.on('error', () => undefined);
    if (!isEcho) {
      socket.end(name);
      return;
    }
    // All of it at once, after the client's end.
    let text = '';
    socket.on('data', (piece: Buffer) => (text += piece.toString()));
    socket.on('end', () => socket.end(text));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  gateway.serve(name, { ports: [portOf(server)] });
}

/** What comes until the end; "reset" where that is one. */
async function talk(port: number, text = ''): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let got = '';
  socket.setEncoding('latin1').on('data', (piece: string) => (got += piece));
  socket.on('error', () => (got = 'reset'));
  socket.end(text);
  await new Promise((resolve) => socket.on('close', resolve));
  return got;
}

test('TCP: by weight, one side may end before the other; an invalid share is reset', async () => {
  await tcpPod('tcp-a', false);
  await tcpPod('tcp-b', false);
  await tcpPod('tcp-echo', true);
  const both = await gateway.listen(9000, 'TCP', [
    streamListener('TCP', { 'tcp-a': 7, 'tcp-b': 3, 'tcp-echo': 0 }),
  ]);
  const answers = await Promise.all(Array.from({ length: 100 }, () => talk(both)));
  expect(new Set(answers)).toEqual(new Set(['tcp-a', 'tcp-b']));
  expect(answers.filter((name) => name === 'tcp-a').length).toBeGreaterThan(45);
  await gateway.listen(9000, 'TCP', [streamListener('TCP', { 'tcp-echo': 1 })]);
  const text = 'x'.repeat(1_000_000);
  expect(await talk(both, text)).toBe(text);
  for (const shares of [{ bad: 1 }, {}, { 'tcp-none': 1 }, { 'tcp-a': 0 }]) {
    await gateway.listen(9000, 'TCP', [streamListener('TCP', shares)]);
    expect([shares, await talk(both)]).toEqual([shares, 'reset']);
  }
  await gateway.listen(9000, 'TCP', []);
  expect(await talk(both)).toBe('reset');
});

async function udpPod(name: string): Promise<void> {
  const socket = createSocket('udp4');
  socket.on('message', (message, { port, address }) =>
    socket.send(`${name} ${message.toString()}`, port, address),
  );
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  closing.push(() => socket.close());
  gateway.serve(name, { ports: [socket.address().port], protocol: 'UDP' });
}

/** How many connections and flows an invalid backend had so far. */
async function invalidShares(): Promise<number> {
  const text = await gateway.metrics.registry.metrics();
  return Number(/problems_total\{reason="InvalidBackend"\} (\d+)/.exec(text)?.[1] ?? 0);
}

/** A client of UDP, with what it has got. */
async function udpClient(
  port: number,
): Promise<{ send: (text: string) => void; got: string[]; socket: DatagramSocket }> {
  const socket = createSocket('udp4');
  const got: string[] = [];
  socket.on('message', (message) => got.push(message.toString()));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  closing.push(() => socket.close());
  return { got, socket, send: (text) => socket.send(text, port, '127.0.0.1') };
}

test('UDP: a flow stays with its backend, others go by weight, an invalid share gets nothing', async () => {
  await udpPod('udp-a');
  await udpPod('udp-b');
  const port = await gateway.listen(5300, 'UDP', [streamListener('UDP', { 'udp-a': 1, 'udp-b': 1 })]);
  const clients = await Promise.all(Array.from({ length: 20 }, () => udpClient(port)));
  for (let n = 0; n < 3; n++) {
    for (const { send } of clients) send(String(n));
    await vi.waitUntil(() => clients.every(({ got }) => got.length === n + 1), 20_000);
  }
  const backends = clients.map(({ got }) => new Set(got.map((text) => text.split(' ')[0])));
  expect(backends.every((names) => names.size === 1)).toBe(true);
  expect(new Set(backends.flatMap((names) => [...names]))).toEqual(new Set(['udp-a', 'udp-b']));
  expect(clients[0]?.got.map((text) => text.split(' ')[1])).toEqual(['0', '1', '2']);
  // New flows follow a new plan.
  await gateway.listen(5300, 'UDP', [streamListener('UDP', { bad: 1 })]);
  const dropped = await udpClient(port);
  const before = await invalidShares();
  dropped.send('x');
  await vi.waitUntil(async () => (await invalidShares()) > before, 20_000);
  await gateway.listen(5300, 'UDP', [streamListener('UDP', { 'udp-a': 1 })]);
  const served = await udpClient(port);
  served.send('y');
  await vi.waitUntil(() => served.got.length === 1, 20_000);
  expect([served.got, dropped.got]).toEqual([['udp-a y'], []]);
});
