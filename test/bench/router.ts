/**
 * The router against haproxy and against a bare pipe (node:http in, undici out), in one run: 1 KB
 * answers over kept connections, each server a process of its own. `node test/bench/router.ts`; haproxy has to be in PATH.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { startApiServer } from '../../src/testing/index.ts';
import { Objects, portOf, startRouter } from '../support/router/router.ts';
import { load, type Load, median, residentMiB } from './http-load.ts';

const seconds = Number(process.env['SECONDS_EACH'] ?? 4);
const rounds = 3;
const haproxyPort = 28_080;

async function listen(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send?.(portOf(server));
}

/** The parts that run in processes of their own; each sends its port. */
const parts: Readonly<Record<string, (backend: number) => Promise<void>>> = {
  async backend() {
    const body = Buffer.alloc(1024, 'a');
    await listen(createServer((_, response) => response.end(body)));
  },
  async pipe(backend) {
    const pool = new Pool(`http://127.0.0.1:${backend}`, { connections: null, pipelining: 1 });
    const server = createServer((request, response) => {
      const { method = 'GET', url: path = '/' } = request;
      pool.dispatch(
        { method, path, headers: request.rawHeaders },
        {
          onRequestStart: () => undefined,
          onResponseStart: (_, status, headers) => {
            response.writeHead(status, { ...headers, connection: [] });
          },
          onResponseData: (_, chunk) => {
            response.write(chunk);
          },
          onResponseEnd: () => {
            response.end();
          },
          onResponseError: () => {
            response.destroy();
          },
        },
      );
    });
    await listen(server);
  },
  async router(backend) {
    const api = await startApiServer({ controllers: [], nodes: 0 });
    const objects = new Objects(api.client);
    await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
    await objects.service('web', [backend]);
    await objects.ingress('web', 'web.test', 'web');
    const router = await startRouter(api.client, { accessLog: false });
    process.send?.(router.ports.http);
  },
};

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'servicenet-bench-'));
  const children: ChildProcess[] = [];
  const begin = async (part: string, backend = 0): Promise<{ port: number; pid: number | undefined }> => {
    const child = fork(import.meta.filename, [part, String(backend)]);
    children.push(child);
    const [port] = (await once(child, 'message')) as [number];
    return { port, pid: child.pid };
  };
  try {
    const backend = await begin('backend');
    const pipe = await begin('pipe', backend.port);
    const router = await begin('router', backend.port);
    const config = join(folder, 'haproxy.cfg');
    writeFileSync(
      config,
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
  bind 127.0.0.1:${haproxyPort}
  default_backend out
backend out
  server one 127.0.0.1:${backend.port}
`,
    );
    const haproxy = spawn('haproxy', ['-f', config, '-db'], { stdio: 'inherit' });
    children.push(haproxy);
    for (let isUp = false; !isUp;) {
      await delay(20);
      const socket = connect(haproxyPort, '127.0.0.1');
      isUp = await once(socket, 'connect').then(
        () => true,
        () => false,
      );
      socket.destroy();
    }
    const servers = {
      haproxy: { port: haproxyPort, pid: haproxy.pid },
      pipe,
      router,
    };
    const results = new Map<string, Load[]>();
    for (let round = 0; round <= rounds; round++) {
      for (const [name, { port }] of Object.entries(servers)) {
        const measured = await load(port, 'web.test', seconds);
        // The first round is for the compilers.
        if (round > 0) results.set(name, [...(results.get(name) ?? []), measured]);
      }
    }
    for (const [name, { pid }] of Object.entries(servers)) {
      const of = (member: keyof Load): number => median((results.get(name) ?? []).map((one) => one[member]));
      console.log(
        `${name.padEnd(8)} ${of('perSecond').toFixed(0).padStart(7)} requests/s  p50 ${of('p50').toFixed(2)} ms  p99 ${of('p99').toFixed(2)} ms  ${residentMiB(pid).toFixed(0)} MiB`,
      );
    }
  } finally {
    for (const child of children) child.kill();
    rmSync(folder, { recursive: true });
  }
}

const [part = '', backend = '0'] = process.argv.slice(2);
await (parts[part] ?? main)(Number(backend));
