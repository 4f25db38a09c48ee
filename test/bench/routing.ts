import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Transport } from '../../src/client/transport.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { freePort } from '../support/free-port.ts';
import { Objects } from '../support/router/router.ts';
import { load, type Load, median, residentMiB } from './http-load.ts';
import { cpuSecondsOf, MeasuredProcess } from './measured-process.ts';
import { type OwnProcess, startOwn, untilReady } from './own-commands.ts';
import { podAddress } from './own-network.ts';
import { until } from './until.ts';

/** The host of the Ingress. */
export const host = 'web.test';

/** What a router and a DNS server are measured with. */
export interface Routing {
  readonly folder: string;
  readonly kubeconfig: string;
  /** Of Services in the namespace `shop`. */
  readonly names: readonly string[];
  /** Of the backend, at {@link podAddress}. */
  readonly backendPort: number;
  close(): Promise<void>;
}

/** A program that is asked for the page of the backend. */
interface Server {
  readonly port: number;
  readonly pid: number;
  stop(): unknown;
}

/** The backend, at {@link podAddress}. */
export function startBackend(): Promise<{ child: ChildProcess; port: number }> {
  return forkPart('backend');
}

/** An Ingress of {@link host} to the backend, in the namespace `shop`. */
export async function createRoute(client: Transport, port: number): Promise<void> {
  const objects = new Objects(client);
  await objects.service('web', [port]);
  await objects.ingress('web', host, 'web');
}

/** Starts an API server in this process, with Services and the Ingress. */
export async function openRouting(services: number): Promise<Routing> {
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-routing-'));
  const api = await startApiServer({ controllers: [], nodes: 0 });
  const backend = await startBackend();
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, api.kubeconfig, { mode: 0o600 });
  const objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  const names = Array.from({ length: services }, (_, i) => `web-${i}`);
  for (const name of names) {
    const spec = { ports: [{ name: 'http', port: 80 }] };
    await objects.create('/api/v1/namespaces/shop/services', { metadata: { name }, spec });
  }
  await createRoute(api.client, backend.port);
  const close = async (): Promise<void> => {
    backend.child.kill();
    await api.stop();
    await rm(folder, { recursive: true });
  };
  return { folder, kubeconfig, names, backendPort: backend.port, close };
}

/** Starts `servicenet router`, without the limit for a client. */
export async function startMeasuredRouter(
  port: number,
  kubeconfig: string,
  more: readonly string[] = [],
): Promise<OwnProcess> {
  const router = await startOwn('router', [
    ...['--http-port', String(port), '--https-port', String(await freePort())],
    ...['--watch-ingress-without-class', '--max-client-requests', '0', '--lease-namespace', 'default'],
    ...['--kubeconfig', kubeconfig, ...more],
  ]);
  await untilReady(router);
  return router;
}

async function startHaproxy({ folder, backendPort }: Routing): Promise<Server> {
  const port = await freePort();
  const file = join(folder, 'haproxy.cfg');
  await writeFile(
    file,
    `global
  nbthread 1
defaults
  mode http
  option http-keep-alive
  http-reuse always
  timeout client 60s
  timeout server 60s
  timeout connect 5s
frontend in
  bind 127.0.0.1:${port}
  default_backend out
backend out
  server one ${podAddress}:${backendPort}
`,
  );
  const haproxy = new MeasuredProcess('haproxy', ['-f', file, '-db']);
  await until('haproxy', async () => {
    await haproxy.cpuSeconds(); // throws where it has ended
    return (await fetch(`http://127.0.0.1:${port}`).catch(() => undefined))?.ok === true;
  });
  return { port, pid: haproxy.pid, stop: () => haproxy.stop() };
}

async function startRouter({ kubeconfig }: Routing): Promise<Server> {
  const port = await freePort();
  const { process: router } = await startMeasuredRouter(port, kubeconfig);
  return { port, pid: router.pid, stop: () => router.stop() };
}

async function startPipe({ backendPort }: Routing): Promise<Server> {
  const { child, port } = await forkPart('pipe', String(backendPort));
  return { port, pid: child.pid ?? 0, stop: () => child.kill() };
}

const servers = { haproxy: startHaproxy, pipe: startPipe, router: startRouter };
export type ServerName = keyof typeof servers;

async function forkPart(...words: readonly string[]): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(new URL('router-parts.ts', import.meta.url).pathname, [...words]);
  const [port] = (await once(child, 'message')) as [number];
  return { child, port };
}

/** A load, and what the server took for it. */
export interface RouterLoad extends Load {
  readonly perCpuSecond: number;
  readonly residentMiB: number;
}

/** Medians of rounds in which each server has its turn. */
export async function compareRouters<Name extends ServerName>(
  names: readonly Name[],
  rounds: number,
  seconds: number,
): Promise<ReadonlyMap<Name, RouterLoad>> {
  const routing = await openRouting(1);
  const running: { readonly name: Name; readonly server: Server; readonly loads: RouterLoad[] }[] = [];
  try {
    for (const name of names) running.push({ name, server: await servers[name](routing), loads: [] });
    for (let round = 0; round <= rounds; round++) {
      for (const { server, loads } of running) {
        const before = await cpuSecondsOf([server.pid]);
        const one = await load(server.port, host, seconds);
        const perCpuSecond = (one.perSecond * seconds) / ((await cpuSecondsOf([server.pid])) - before);
        // The first round is for the compilers.
        if (round > 0) loads.push({ ...one, perCpuSecond, residentMiB: residentMiB(server.pid) });
      }
    }
    return new Map(running.map(({ name, loads }) => [name, medians(loads)]));
  } finally {
    for (const { server } of running) await server.stop();
    await routing.close();
  }
}

function medians(loads: readonly RouterLoad[]): RouterLoad {
  const of = (member: keyof RouterLoad): number => median(loads.map((one) => one[member]));
  return {
    ...{ perSecond: of('perSecond'), p50: of('p50'), p99: of('p99') },
    ...{ perCpuSecond: of('perCpuSecond'), residentMiB: of('residentMiB') },
  };
}
