/** `--workers`: several processes at the same ports, seen from outside. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encode } from 'dns-packet';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Clients } from '../../src/client/resource-client.ts';
import { gatewayClasses, gateways, leases, services } from '../../src/client/resources.ts';
import { gatewayController } from '../../src/network/gateway/plan.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Child } from '../e2e/child.ts';
import { dig } from '../support/dns/dig.ts';
import { freePort } from '../support/free-port.ts';

const main = new URL('../../src/main.js', import.meta.url).pathname;
/** So many senders that one of two processes gets all of them once in 2^63 runs. */
const senders = 64;
let api: TestServer;
let clients: Clients;
let folder = '';
const running: Child[] = [];
const stopped: number[] = [];

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0, gatewayApi: 'standard' });
  clients = new Clients(api.client);
  folder = await mkdtemp(join(tmpdir(), 'servicenet-workers-'));
  writeFileSync(join(folder, 'kubeconfig'), api.kubeconfig, { mode: 0o600 });
});
afterEach(async () => {
  // One that is stopped would not see the end of the first.
  for (const pid of stopped.splice(0)) if (!isGone(pid)) process.kill(pid, 'SIGCONT');
  for (const child of running.splice(0)) await child.end('SIGKILL');
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

/** A command with two workers, once both serve. */
async function start(command: 'dns' | 'router', ...flags: readonly string[]): Promise<Child> {
  const common = ['--kubeconfig', join(folder, 'kubeconfig'), '--metrics-bind-address', '127.0.0.1:0'];
  const child = new Child(process.execPath, [main, command, ...common, '--workers', '2', ...flags]);
  running.push(child);
  await child.until(async () => child.output.includes('serving health') && (await isReady(child)));
  return child;
}

async function telemetry(child: Child, path: string): Promise<Response> {
  const [, port = ''] = /"port":(\d+),"msg":"serving health/.exec(child.output) ?? [];
  return await fetch(`http://127.0.0.1:${port}${path}`);
}

async function isReady(child: Child): Promise<boolean> {
  return (await telemetry(child, '/readyz')).ok;
}

/** The sum of the samples of a metric. */
async function sumOf(child: Child, metric: string): Promise<number> {
  const text = await (await telemetry(child, '/metrics')).text();
  const samples = [...text.matchAll(new RegExp(`^${metric}(?:\\{.*\\})? (\\S+)$`, 'gm'))];
  return samples.reduce((sum, [, value]) => sum + Number(value), 0);
}

/** The process of the second worker. */
function secondOf(child: Child): number {
  const [pid = 0] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
    .split(' ')
    .map(Number);
  return pid;
}

const isGone = (pid: number): boolean => !existsSync(`/proc/${pid}`);

/** One that asks a DNS server of this machine from a port of its own. */
class Asker {
  answers = 0;
  readonly #port: number;
  readonly #socket: Socket = createSocket('udp4');

  constructor(port: number) {
    this.#port = port;
    this.#socket.on('message', () => this.answers++);
  }

  ask(): void {
    const questions = [{ name: 'kubernetes.default.svc.cluster.local', type: 'A' as const }];
    const query = encode({ type: 'query', id: 1, flags: 0x0100, questions });
    this.#socket.send(query, this.#port, '127.0.0.1');
  }

  close(): void {
    this.#socket.close();
  }
}

/** Each asks once. @returns those that have an answer once `enough` says so. */
async function askAll(port: number, enough: (answered: number) => boolean): Promise<readonly Asker[]> {
  const askers = Array.from({ length: senders }, () => new Asker(port));
  const answered = (): number => askers.filter(({ answers }) => answers > 0).length;
  for (const one of askers) one.ask();
  await expect.poll(() => enough(answered())).toBe(true);
  return askers;
}

const close = (askers: readonly Asker[]): void => askers.forEach((one) => one.close());

test('both workers of dns answer, all is counted, one that is killed comes back, and all end together', async () => {
  const port = await freePort();
  const dns = await start('dns', '--port', String(port), '--upstream', '');
  const second = secondOf(dns);

  stopped.push(second);
  process.kill(second, 'SIGSTOP');
  const askers = await askAll(port, (answered) => answered > 0);
  // Datagrams of one sender come to one socket in their order: behind this answer the first worker has read them all.
  const early = askers.filter(({ answers }) => answers > 0);
  for (const one of early) one.ask();
  await expect.poll(() => early.every(({ answers }) => answers > 1)).toBe(true);
  expect(askers.filter(({ answers }) => answers > 0).length).toBeLessThan(senders);
  expect((await telemetry(dns, '/readyz')).status).toBe(500);
  expect(await (await telemetry(dns, '/livez')).text()).toContain('[-]worker-2 failed: it does not answer');
  process.kill(second, 'SIGCONT');
  await expect.poll(() => askers.every(({ answers }) => answers > 0)).toBe(true);
  close(askers);
  const asked = senders + early.length;
  await expect.poll(() => sumOf(dns, 'coredns_dns_requests_total')).toBe(asked);
  await expect.poll(() => sumOf(dns, 'coredns_dns_request_duration_seconds_count')).toBe(asked);
  await expect.poll(() => sumOf(dns, 'servicenet_build_info')).toBe(1);

  process.kill(second, 'SIGKILL');
  await expect.poll(() => isGone(second)).toBe(true);
  close(await askAll(port, (answered) => answered === senders));
  await dns.until(async () => !isGone(secondOf(dns)) && (await isReady(dns)));
  expect(secondOf(dns)).not.toBe(second);
  expect(dns.output.match(/"reason":"WorkerEnded","worker":2,.*"signal":"SIGKILL"/g)).toHaveLength(1);
  close(await askAll(port, (answered) => answered === senders));
  expect((await dig(port, '+tcp', 'kubernetes.default.svc.cluster.local')).status).toBe('NOERROR');
  await expect.poll(() => sumOf(dns, 'coredns_dns_requests_total')).toBe(asked + 2 * senders + 1);

  const third = secondOf(dns);
  await dns.end();
  expect([dns.code, isGone(third)]).toEqual([0, true]);
  expect(dns.output.match(/WorkerEnded/g)).toHaveLength(1);
});

test('where the first process is killed, the others end', async () => {
  const dns = await start('dns', '--port', String(await freePort()), '--upstream', '');
  const second = secondOf(dns);
  await dns.end('SIGKILL');
  await expect.poll(() => isGone(second)).toBe(true);
});

test('a port that another program has is refused as with one process, also where that one would share it', async () => {
  const port = await freePort();
  const taken = createServer().listen({ port, host: '127.0.0.1', reusePort: true });
  await once(taken, 'listening');
  const flags = ['--kubeconfig', join(folder, 'kubeconfig'), '--metrics-bind-address', '0', '--upstream', ''];
  const dns = new Child(process.execPath, [main, 'dns', ...flags, '--port', String(port), '--workers', '2']);
  running.push(dns);
  await dns.closed;
  taken.close();
  expect([dns.code, dns.output]).toEqual([1, expect.stringContaining('is in use')]);
});

/** Asks on a connection of its own. @returns the header that says whether the connection goes on. */
async function get(port: number): Promise<string | undefined> {
  const asked = request({
    port,
    host: '127.0.0.1',
    agent: false,
    headers: { host: 'no.test', connection: 'keep-alive' },
  });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  asked.destroy();
  return response.headers.connection;
}

/** Asks until each worker has logged a request to a path of a port. */
async function untilBothAnswer(router: Child, port: number): Promise<void> {
  const before = router.output.length;
  await router.until(async () => {
    await get(port);
    const said = router.output.slice(before);
    return [1, 2].every((worker) => new RegExp(`"worker":${worker},.*"msg":"request"`).test(said));
  });
}

test('both workers of the router answer at its ports and those of Gateways, one leads, and both drain', async () => {
  const [httpPort, httpsPort] = [await freePort(), await freePort()];
  const ports = ['--http-port', String(httpPort), '--https-port', String(httpsPort)];
  const router = await start(
    'router',
    ...ports,
    '--lease-namespace',
    'default',
    '--access-log',
    '--lameduck',
    '10m',
  );
  const second = secondOf(router);
  await untilBothAnswer(router, httpPort);
  await router.until(async () => (await sumOf(router, 'leader_election_master_status')) === 1);
  const held = await clients.for(leases).list({ namespace: 'default' });
  expect(held.items).toHaveLength(1);

  const group = 'gateway.networking.k8s.io/v1';
  await clients.for(gatewayClasses).create({
    ...{ apiVersion: group, kind: 'GatewayClass', metadata: { name: 'ours' } },
    spec: { controllerName: gatewayController },
  });
  await clients.for(gateways).create({
    ...{ apiVersion: group, kind: 'Gateway', metadata: { name: 'web', namespace: 'default' } },
    spec: { gatewayClassName: 'ours', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  });
  const bound = async (): Promise<number> => {
    const { items } = await clients.for(services).list({ namespace: 'default' });
    const ofGateway = items.find(({ metadata }) => metadata.name === 'web-ours');
    return Number(ofGateway?.spec.ports?.[0]?.targetPort ?? 0);
  };
  await expect.poll(bound).toBeGreaterThan(0);
  const gatewayPort = await bound();
  await router.until(async () => (await get(gatewayPort).catch(() => 'refused')) !== 'refused');
  await untilBothAnswer(router, gatewayPort);

  const ended = router.end();
  await router.until(async () => !(await isReady(router)));
  await router.until(async () =>
    (await (await telemetry(router, '/readyz')).text()).includes('worker-2 failed: router: ending'),
  );
  const answers = await Promise.all(Array.from({ length: senders }, () => get(httpPort)));
  expect(new Set(answers)).toEqual(new Set(['close']));
  // A second signal ends all at once.
  await Promise.all([ended, router.end()]);
  await expect.poll(() => isGone(second)).toBe(true);
  expect(router.code).toBe(143);
});
