import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord } from '../../src/objects/json.ts';
import { commandLine } from '../support/command-line.ts';

const main = new URL('../../src/main.js', import.meta.url).pathname;
let folder = '';
let running: ChildProcess | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servicenet-up-'));
});

afterEach(async () => {
  if (running?.exitCode === null && running.signalCode === null) {
    running.kill('SIGKILL');
    await once(running, 'exit');
  }
  running = undefined;
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

/** Waits for another process: looks again every 20 ms; the test's timeout bounds it. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('the server has no TCP address');
  return address.port;
}

/** Whether something listens on a port. */
async function listens(port: number): Promise<boolean> {
  const socket = createConnection(port, '127.0.0.1');
  const connected = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return connected;
}

interface Up {
  readonly child: ChildProcess;
  readonly kubeconfig: string;
  readonly output: () => string;
  readonly ended: () => boolean;
  /** Resolves when it has ended and all its output is there. */
  readonly closed: Promise<void>;
}

/** Starts it, and waits until it has introduced itself or has ended. */
async function up(...flags: string[]): Promise<Up> {
  return upWith([], ...flags);
}

/** As `up`, by a program that is to run what stands behind it. */
async function upWith(wrapper: readonly string[], ...flags: string[]): Promise<Up> {
  const started = begin(wrapper, ...flags);
  await until(() => started.output().includes('Stop it with Ctrl-C') || started.ended());
  return started;
}

function begin(wrapper: readonly string[], ...flags: string[]): Up {
  const kubeconfig = join(folder, 'kubeconfig');
  const command = [...wrapper, process.execPath, main, 'up', '--port', '0', '--write-kubeconfig', kubeconfig];
  const [file = '', ...args] = [...command, ...flags];
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  running = child;
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  let ended = false;
  const closed = once(child, 'close').then(() => {
    ended = true;
  });
  return { child, kubeconfig, output: () => text, ended: () => ended, closed };
}

function member(config: unknown, list: string, name: string): Record<string, unknown> {
  const items: unknown = isRecord(config) ? config[list] : undefined;
  const item: unknown = Array.isArray(items) ? items[0] : undefined;
  const value = isRecord(item) ? item[name] : undefined;
  return isRecord(value) ? value : {};
}

async function connect(kubeconfig: string): Promise<Transport> {
  const config: unknown = parse(await readFile(kubeconfig, 'utf8'));
  const cluster = member(config, 'clusters', 'cluster');
  return createTransport({
    kind: 'endpoint',
    url: String(cluster['server']),
    ca: Buffer.from(String(cluster['certificate-authority-data']), 'base64'),
    token: String(member(config, 'users', 'user')['token']),
  });
}

describe('servicenet up', () => {
  it('applies files, prints the Services and ends cleanly', async () => {
    const quickstart = new URL('../../deploy/examples/quickstart.yaml', import.meta.url).pathname;
    const { child, kubeconfig, output, closed } = await up('--apply', quickstart);
    expect(output()).toMatch(/^servicenet is ready: https:\/\/127\.0\.0\.1:\d+/m);
    expect(output()).toMatch(/^shop +storefront +LoadBalancer +10\.96\./m);
    expect(output()).toContain(`export KUBECONFIG=${kubeconfig}`);
    expect((await stat(kubeconfig)).mode & 0o777).toBe(0o600);
    const client = await connect(kubeconfig);
    const watch = await client.stream('/api/v1/services', { query: { watch: 'true' } });
    const ended = (async () => {
      for await (const chunk of watch.chunks) expect(chunk.length).toBeGreaterThan(0);
    })();
    child.kill('SIGTERM');
    await closed;
    expect(child.exitCode).toBe(0);
    await ended;
    await client.close();
    await expect(stat(kubeconfig)).rejects.toThrow('ENOENT');
    expect(output()).not.toMatch(/"level":"error"|unhandled/i);
  });

  it.runIf(process.platform === 'linux')(
    'takes no connection of its port for its own controllers',
    async () => {
      const { child, output } = await up('--network=off');
      const port = Number(/is ready: https:\/\/127\.0\.0\.1:(\d+)/.exec(output())?.[1]);
      const hex = port.toString(16).toUpperCase().padStart(4, '0');
      // Of proc_net_tcp(5): local address and port, remote ones, state 01 for an open connection.
      const tcp = await readFile(`/proc/${child.pid ?? 0}/net/tcp`, 'utf8');
      expect(tcp).toContain(`:${hex} 00000000:0000 0A`);
      expect(tcp).not.toMatch(new RegExp(`:${hex} [0-9A-F]{8}:[0-9A-F]{4} 01`));
    },
  );

  it('is the cluster of commands that report, unless another is named', async () => {
    const path = join(folder, '.servicenet', 'kubeconfig');
    const { child, closed } = await up(
      '--network=off',
      '--nodes=0',
      '--page=off',
      '--write-kubeconfig',
      path,
    );
    vi.stubEnv('HOME', folder);
    vi.stubEnv('KUBECONFIG', '');
    expect((await commandLine('pools')).output).toMatch(/^default +IPv4/m);
    expect((await commandLine('audit')).output).toContain('no findings');
    expect((await commandLine('trace', '--matrix')).output).toContain('There are no Pods');
    await mkdir(join(folder, '.kube'));
    await writeFile(join(folder, '.kube', 'config'), '');
    const beside = await commandLine('pools');
    expect(beside.output).toMatch(/^default +IPv4/m);
    expect(beside.errors).toBe(`servicenet: the cluster is that of servicenet up (--kubeconfig ${path})\n`);
    expect((await commandLine('pools', '--kubeconfig', join(folder, '.kube', 'config'))).errors).toMatch(
      /kubeconfig/,
    );
    // What an up leaves that was killed is no cluster.
    child.kill('SIGKILL');
    await closed;
    expect((await stat(path)).isFile()).toBe(true);
    expect(await commandLine('pools')).toMatchObject({ code: 1, output: '' });
  });

  it('is not begun beside one that has its kubeconfig', async () => {
    const flags = ['--nodes', '1'];
    const first = await up(...flags);
    const before = readdirSync(folder);
    const { code, output, errors } = await commandLine(
      ...['up', '--port', '0', '--write-kubeconfig', first.kubeconfig, ...flags],
    );
    expect(errors).toMatch(
      /^servicenet: another servicenet up runs and has the kubeconfig \S+, which leads to https:\S+: .*--write-kubeconfig/m,
    );
    expect([code, output]).toEqual([1, '']);
    expect(readdirSync(folder)).toEqual(before);
    const client = await connect(first.kubeconfig);
    expect((await client.request('GET', '/api/v1/namespaces/default')).status).toBe(200);
    await client.close();
    first.child.kill('SIGTERM');
    await first.closed;
    expect(readdirSync(folder)).toEqual([]);
  });

  it('ends cleanly when a signal comes while it starts, and starts again', async () => {
    const flags = ['--port', String(await freePort()), '--data-dir', join(folder, 'data')];
    const bare = ['--nodes=0', '--network=off', '--page=off'];
    for (const [signal, own] of [['SIGTERM', []] as const, ['SIGINT', bare] as const]) {
      const interrupted = begin([], ...flags, ...own);
      // The server listens by then; its clients are only just being started.
      await until(() => listens(Number(flags[1])));
      interrupted.child.kill(signal);
      await interrupted.closed;
      expect(interrupted.child.exitCode).toBe(0);
      await expect(stat(interrupted.kubeconfig)).rejects.toThrow('ENOENT');
      expect(interrupted.output()).not.toMatch(/"level":"(warn|error|fatal)"|unhandled/i);
    }
    const last = await up(...flags, ...bare);
    expect(last.output()).toContain('Stop it with Ctrl-C');
    last.child.kill('SIGTERM');
    await last.closed;
    expect(last.child.exitCode).toBe(0);
  });

  it('serves the connections that are open while a flood of others uses up its files', async () => {
    // The watches of its own controllers take about 150.
    const { child, kubeconfig } = await upWith(
      ['sh', '-c', 'ulimit -n 256; exec "$0" "$@"'],
      ...['--nodes', '1', '--network', 'off'],
    );
    const client = await connect(kubeconfig);
    await client.request('GET', '/api/v1/namespaces/default');
    const { port } = new URL(client.server);
    const flood = Array.from({ length: 300 }, () => createConnection(Number(port), '127.0.0.1'));
    for (const socket of flood) socket.on('error', () => undefined);
    // The server has no file left for one: it hangs up.
    await Promise.race(flood.map(async (socket) => once(socket, 'close')));
    const { status } = await client.request('GET', '/api/v1/namespaces/default');
    expect(status).toBe(200);
    for (const socket of flood) socket.destroy();
    await client.close();
    child.kill('SIGTERM');
    await once(child, 'close');
    expect(child.exitCode).toBe(0);
  });

  it.each([
    [
      'a range of Services',
      ['--service-cluster-ip-range', '10.0.0.0/30'],
      2,
      /^servicenet: --service-cluster-ip-range: 10.0.0.0\/30 is too small: at least 8 addresses are needed\n$/,
    ],
    [
      'an unknown controller',
      ['--controllers', '*,foo'],
      2,
      /^servicenet: --controllers: "foo" is not in the list of known controllers: node-lifecycle-controller, /,
    ],
    [
      'a host that is none',
      ['--extra-hosts', 'cluster.example.com,a b'],
      2,
      /^servicenet: --extra-hosts: "a b" is neither an IP address nor a DNS name\n$/,
    ],
    [
      'a file that is not there',
      ['--apply', '/no/file.yaml'],
      1,
      /^servicenet: cannot read \/no\/file.yaml: ENOENT/,
    ],
    [
      'an address for metrics that the machine does not have',
      ['--metrics-bind-address', '192.0.2.1:1', '--nodes=0', '--controllers='],
      1,
      /^servicenet: 192.0.2.1 is not an address of this machine\n$/,
    ],
  ])('says only what is wrong with %s', async (_, flags, code, message) => {
    const kubeconfig = join(folder, 'kubeconfig');
    const own = ['--port=0', '--network=off', '--page=off', '--write-kubeconfig', kubeconfig];
    const run = await commandLine('up', ...own, ...flags);
    expect(run.code).toBe(code);
    expect(run.errors).toMatch(message);
    expect(run.output).toBe('');
    await expect(stat(kubeconfig)).rejects.toThrow('ENOENT');
  });

  it('says which object is refused, is not ready, and leaves no kubeconfig behind', async () => {
    const bad = join(folder, 'bad.yaml');
    await writeFile(
      bad,
      'apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: [{ port: 99999 }] }\n',
    );
    const kubeconfig = join(folder, 'kubeconfig');
    const bare = ['--nodes=0', '--controllers=', '--network=off', '--page=off'];
    const own = ['--port=0', ...bare, '--write-kubeconfig', kubeconfig];
    const { code, output, errors } = await commandLine('up', ...own, '--apply', bad);
    expect(code).toBe(1);
    expect(errors).toContain(`servicenet: ${bad}: Service a: Service "a" is invalid: `);
    expect(output).not.toContain('is ready');
    await expect(stat(kubeconfig)).rejects.toThrow('ENOENT');
  });
});
