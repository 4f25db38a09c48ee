import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import type { GatewayBackend, PlannedListener, StreamRule } from '../../src/network/gateway/plan.ts';
import type { RuleSource } from '../../src/network/http/rules.ts';
import { numberAt } from '../../src/objects/json.ts';
import { drawsOf, hostileBytes } from '../support/fuzz/hostile-bytes.ts';
import { echo, echoOverUdp } from '../support/hostile/echo.ts';
import { RunningGateway } from '../support/router/gateway.ts';
import { ask } from '../support/router/requests.ts';
import { portOf } from '../support/router/router.ts';
import { grpcRoute, httpRoute, listener, serviceRule } from '../unit/network/gateway/routes.ts';

/**
 * Listeners of a Gateway between hostile clients and hostile backends. An error that nobody hears fails the test.
 * `SERVICENET_FUZZ_SECONDS=1800 SERVICENET_FUZZ_SEED=7` looks further.
 */

const seconds = Number(process.env['SERVICENET_FUZZ_SECONDS'] ?? 10);
const seed = process.env['SERVICENET_FUZZ_SEED'] ?? '1';
const draw = drawsOf(Number(seed));
const sender = fileURLToPath(new URL('../support/fuzz/hostile-sender.ts', import.meta.url));
const address = '127.0.0.1';
const authority = createCertificateAuthority('test', { now: new Date() });
const ca = authority.certificate;
const pairFor = (host: string) => issueServerCertificate(authority, host, [host], { now: new Date() });

let gateway: RunningGateway;
let isHostile = false;
const ports = { http: 0, tls: 0, tcp: 0, udp: 0 };
const closers: (() => void)[] = [];

/** Answers every request and echoes all else, until it is hostile. */
function serve(socket: Socket): void {
  socket.on('error', () => socket.destroy());
  if (isHostile) {
    socket.resume().write(hostileBytes(draw));
    if (draw(2) === 0) socket.resetAndDestroy();
    else socket.end();
    return;
  }
  socket.on('data', (piece: Buffer) => {
    if (piece.toString('latin1').startsWith('GET'))
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    else socket.write(piece);
  });
  socket.on('end', () => socket.end());
}

function streamRule(kind: RuleSource['kind'], hostname: string, service: string): StreamRule {
  const backends: GatewayBackend[] = [
    { weight: 1, rule: serviceRule(service, kind), requestHeaders: undefined },
  ];
  return { source: serviceRule('', kind).source, hostname, backends };
}

beforeAll(async () => {
  gateway = new RunningGateway(2000);
  const tcp = createServer({ allowHalfOpen: true }, serve).listen(0, address);
  await once(tcp, 'listening');
  const udp = createSocket('udp4');
  udp.on('error', () => undefined);
  udp.on('message', (message, from) => {
    const answer = isHostile ? hostileBytes(draw).subarray(0, 1400) : message;
    if (from.port !== 0) udp.send(answer, from.port, from.address);
  });
  udp.bind(0, address);
  await once(udp, 'listening');
  closers.push(
    () => tcp.close(),
    () => udp.close(),
  );
  gateway.serve('web', { ports: [portOf(tcp)] });
  gateway.serve('h2c', { ports: [portOf(tcp)], appProtocol: 'kubernetes.io/h2c' });
  gateway.serve('dns', { ports: [udp.address().port], protocol: 'UDP' });
  const backendRefs = [{ name: 'web', port: 80 }];
  const mirror = { type: 'RequestMirror', requestMirror: { backendRef: { name: 'h2c', port: 80 } } };
  const cors = { type: 'CORS', cors: { allowOrigins: ['https://*.test'] } };
  const expression = { type: 'RegularExpression', value: '/(?:[a-z]+/)*[0-9]{1,9}' };
  const http = httpRoute([
    { matches: [{ path: expression }], backendRefs: [{ name: 'h2c', port: 80 }] },
    { matches: [{ method: 'POST' }], filters: [mirror], backendRefs, timeouts: { request: '1s' } },
    { filters: [cors], backendRefs },
  ]);
  const listeners = [listener('', [http, grpcRoute([{ backendRefs: [{ name: 'h2c' }] }])])];
  const of = (hostname: string, more: Partial<PlannedListener>): PlannedListener =>
    listener(hostname, [http], more);
  const tls = { mode: 'Terminate', certificates: [pairFor('edge.test')], clients: undefined } as const;
  ports.http = await gateway.listen(80, 'HTTP', listeners);
  ports.tls = await gateway.listen(443, 'TLS', [
    of('edge.test', { protocol: 'HTTPS', tls: { ...tls, clients: { ca, mode: 'AllowInsecureFallback' } } }),
    of('pass.test', {
      ...{ protocol: 'TLS', matches: [], streams: [streamRule('TLSRoute', 'pass.test', 'web')] },
      tls: { ...tls, mode: 'Passthrough', certificates: [] },
    }),
    of('', { protocol: 'TLS', tls, matches: [], streams: [streamRule('TLSRoute', 'none.test', 'web')] }),
  ]);
  ports.tcp = await gateway.listen(9000, 'TCP', [
    of('', { protocol: 'TCP', matches: [], streams: [streamRule('TCPRoute', '', 'web')] }),
  ]);
  ports.udp = await gateway.listen(5300, 'UDP', [
    of('', { protocol: 'UDP', matches: [], streams: [streamRule('UDPRoute', '', 'dns')] }),
  ]);
});
afterAll(async () => {
  await gateway.stop();
  for (const close of closers) close();
});

async function answer(): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(await ask(ports.http, 'a.test')).toMatchObject({ status: 200, body: 'ok' });
      expect(await ask(ports.tls, 'edge.test', { ca })).toMatchObject({ status: 200, body: 'ok' });
      expect(await echo(connect(ports.tcp, address))).toBe('echo');
      const options = { ca, servername: 'none.test', checkServerIdentity: () => undefined };
      expect(await echo(connectTls({ port: ports.tls, host: address, ...options }))).toBe('echo');
      expect(await echoOverUdp(ports.udp, address)).toBe('echo');
    },
    { timeout: 30_000, interval: 100 },
  );
}

test(
  'listeners of a Gateway answer honest clients behind hostile clients and backends',
  { timeout: (seconds + 120) * 1000 },
  async () => {
    await answer();
    isHostile = true;
    const listeners = [
      ...[ports.http, ports.tls, ports.tcp].map((port) => ({ protocol: 'tcp', address, port, alpn: '' })),
      ...['', 'h2', 'http/1.1'].map((alpn) => ({ protocol: 'tls', address, port: ports.tls, alpn })),
      { protocol: 'udp', address, port: ports.udp },
    ];
    const attack = spawn(process.execPath, [sender, String(seconds), seed, JSON.stringify(listeners)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(attack, 'exit');
    const sent: unknown = JSON.parse(await text(attack.stdout));
    await ended;
    expect(numberAt(sent, 'connections')).toBeGreaterThan(0);
    expect(numberAt(sent, 'datagrams')).toBeGreaterThan(0);
    isHostile = false;
    await answer();
  },
);
