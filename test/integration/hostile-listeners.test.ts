import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { encode } from 'dns-packet';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startEmbedded } from '../../src/apiserver/embedded.ts';
import { systemClock } from '../../src/client/clock.ts';
import { serveControl } from '../../src/emulation/control-socket.ts';
import { localHost } from '../../src/host/local-host.ts';
import { TcpListener, UdpListener } from '../../src/node/userspace-proxy.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { HealthServer } from '../../src/telemetry/health.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { listenPrivately } from '../../src/host/sockets.ts';
import { drawsOf, hostileBytes } from '../support/fuzz/hostile-bytes.ts';
import { echo, echoOverUdp } from '../support/hostile/echo.ts';
import { dig } from '../support/dns/dig.ts';
import { startDns } from '../support/dns/dns-server.ts';
import { freePort } from '../support/free-port.ts';
import { readServiceCidrs } from '../../src/flags/shared.ts';
import { numberAt } from '../../src/objects/json.ts';
import { askAsPage, startPage } from '../support/page.ts';
import { type RunningFlowServer, startFlowServer } from '../support/flow-server.ts';
import { portOf } from '../support/router/router.ts';

/**
 * Listeners that the cluster of test/network/emulation/hostile-clients.test.ts has not: those of servicenet's own
 * commands, and forwarding without nft. What they connect to is hostile, too. An error that nobody hears fails the test.
 */

const seconds = Number(process.env['SERVICENET_FUZZ_SECONDS'] ?? 10);
const seed = process.env['SERVICENET_FUZZ_SEED'] ?? '1';
const draw = drawsOf(Number(seed));
const sender = fileURLToPath(new URL('../support/fuzz/hostile-sender.ts', import.meta.url));
const address = '127.0.0.1';
const log = pino({ enabled: false });
const closers: (() => unknown)[] = [];

const ports = { flows: 0, page: 0, metrics: 0, tcp: 0, udp: 0, dns: 0, backend: 0, upstream: 0 };
let isHostile = false;
let flows: RunningFlowServer;
/** Of an API server, without TLS. */
let privateSocket = '';
const folder = mkdtempSync(join(tmpdir(), 'servicenet-hostile-'));
const controlSocket = join(folder, 'control.sock');

/** Echoes, until it is hostile. */
function serve(socket: Socket): void {
  socket.on('error', () => socket.destroy());
  if (!isHostile) {
    socket.pipe(socket);
    return;
  }
  socket.resume().write(hostileBytes(draw));
  if (draw(2) === 0) socket.resetAndDestroy();
  else socket.end();
}

async function backend(): Promise<number> {
  const tcp = createServer({ allowHalfOpen: true }, serve).listen(0, address);
  await once(tcp, 'listening');
  const port = portOf(tcp);
  const udp = createSocket('udp4');
  udp.on('error', () => undefined);
  udp.on('message', (message, from) => {
    // The id of a query makes an answer of it.
    const answer = isHostile ? Buffer.concat([message.subarray(0, draw(13)), hostileBytes(draw)]) : message;
    if (from.port !== 0) udp.send(answer.subarray(0, 1400), from.port, from.address);
  });
  await new Promise<void>((resolve) => udp.bind(port, address, resolve));
  closers.push(
    () => tcp.close(),
    () => udp.close(),
  );
  return port;
}

beforeAll(async () => {
  const health = new HealthServer({
    ...{ host: address, port: 0, metrics: new Metrics(), live: [], ready: [] },
    texts: { '/configz': '{}' },
  });
  ports.metrics = (await health.listen()).port;
  ports.backend = await backend();
  ports.upstream = await backend();
  ports.tcp = await freePort();
  ports.udp = await freePort();
  const endpoint = { address, port: ports.backend, isLocal: true };
  const tcp = await TcpListener.open(localHost, address, ports.tcp, () => endpoint, log);
  const udp = await UdpListener.open(localHost, address, ports.udp, () => endpoint, systemClock, log);
  const api = await startApiServer({ controllers: [], nodes: 0 });
  flows = await startFlowServer(api.client);
  ports.flows = flows.port;
  const page = await startPage(api.client);
  ports.page = page.port;
  const embedded = await startEmbedded({
    ...{ bindAddress: address, port: 0, log, authorizationMode: 'RBAC' },
    serviceCidrs: readServiceCidrs('10.96.0.0/16'),
    nodePorts: { first: 30_000, last: 30_100 },
  });
  const plain = createServer((socket) => embedded.acceptPlain(socket));
  const way = await listenPrivately(plain);
  privateSocket = way?.path ?? '';
  const control = await serveControl(
    controlSocket,
    { network: undefined, pageLink: 'http://127.0.0.1/' },
    log,
  );
  const dns = await startDns(api.client, { upstreams: [{ address, port: ports.upstream }] });
  ports.dns = dns.port;
  closers.push(
    () => health.close(),
    () => tcp.close(),
    () => udp.close(),
    () => dns.stop(),
    () => control?.close(),
    () => plain.close(),
    () => way?.close(),
    () => embedded.close(),
    () => rmSync(folder, { recursive: true }),
    () => page.close(),
    () => flows.close(),
    () => api.stop(),
  );
});
afterAll(async () => {
  for (const close of closers) await close();
});

async function answer(): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(await (await fetch(`http://${address}:${ports.metrics}/healthz`)).text()).toBe('ok');
      expect(await (await fetch(`http://${address}:${ports.metrics}/metrics`)).text()).toContain('# HELP');
      expect((await askAsPage(ports.page, 'GET', '/data/state?view=map')).status).toBe(200);
      expect(JSON.parse(await askedForLink())).toEqual({ link: 'http://127.0.0.1/' });
      expect(await askedPlainly('/healthz')).toMatch(/^HTTP\/1.1 200 [^]*ok$/);
      expect(await askedPlainly('/api/v1/secrets')).toMatch(/^HTTP\/1.1 403 /);
      expect((await flows.ask('wrong')).statusCode).toBe(401);
      expect(await echo(connect(ports.tcp, address))).toBe('echo');
      expect(await echoOverUdp(ports.udp, address)).toBe('echo');
      for (const flag of ['+tcp', '+notcp']) {
        const { status } = await dig(ports.dns, flag, 'kubernetes.default.svc.cluster.local');
        expect(status).toBe('NOERROR');
      }
    },
    { timeout: 30_000, interval: 100 },
  );
}

/** What asks an `up` for the link to its page. */
async function askedForLink(): Promise<string> {
  const socket = connect(controlSocket);
  socket.on('error', () => undefined);
  socket.write('{"page":{}}\n');
  return await text(socket);
}

/** What the API server says to who has no token. */
async function askedPlainly(path: string): Promise<string> {
  const socket = connect(privateSocket);
  socket.on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  return await text(socket);
}

test(
  'listeners of commands, and what forwards without nft, answer honest clients behind hostile ones',
  { timeout: (seconds + 120) * 1000 },
  async () => {
    await answer();
    isHostile = true;
    const listeners = [
      ...[ports.page, ports.metrics, ports.tcp, ports.dns, ports.flows].map((port) => ({
        protocol: 'tcp',
        address,
        port,
      })),
      ...[ports.udp, ports.dns].map((port) => ({ protocol: 'udp', address, port })),
      { protocol: 'tls', address, port: ports.flows },
      { protocol: 'unix', address: controlSocket },
      // Another process of this user gets there by the number of this one.
      { protocol: 'unix', address: privateSocket.replace('self', String(process.pid)) },
    ];
    const attack = spawn(process.execPath, [sender, String(seconds), seed, JSON.stringify(listeners)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(attack, 'exit');
    const sent = text(attack.stdout);
    // Questions that go to the hostile upstream.
    const asking = createSocket('udp4');
    asking.on('error', () => undefined);
    let id = 0;
    const questions = setInterval(() => {
      const name = `x${++id}.example.org`;
      asking.send(
        encode({ type: 'query', id: id % 65_536, flags: 0x100, questions: [{ type: 'A', name }] }),
        ports.dns,
        address,
      );
    }, 5);
    await ended;
    clearInterval(questions);
    asking.close();
    expect(numberAt(JSON.parse(await sent), 'connections')).toBeGreaterThan(0);
    isHostile = false;
    await answer();
  },
);
