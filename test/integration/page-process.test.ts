import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { getPriority, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { parseRecord, textAt } from '../../src/objects/json.ts';
import { newCredentials, PageListener } from '../../src/page/listener.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { commandLine } from '../support/command-line.ts';
import { familyOf } from '../network/support/up-process.ts';
import { ask, TestTab } from '../support/page.ts';

/** The process of the page, and the commands that lead to it. */

const main = new URL('../../src/main.js', import.meta.url).pathname;
const patience = { timeout: 60_000, interval: 50 };
let folder = '';
const running: ChildProcess[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servicenet-page-'));
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
});
afterAll(async () => rm(folder, { recursive: true, force: true }));

interface Said {
  readonly child: ChildProcess;
  readonly output: () => string;
}

function servicenet(...args: readonly string[]): Said {
  const env = { ...process.env, HOME: folder, KUBECONFIG: '' };
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env });
  running.push(child);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return { child, output: () => text };
}

const small = ['--nodes', '0', '--controllers', '', '--network', 'off', '--default-pool', ''];

async function up(
  name: string,
  ...flags: readonly string[]
): Promise<Said & { readonly kubeconfig: string }> {
  const kubeconfig = join(folder, name);
  const started = servicenet('up', '--port', '0', '--write-kubeconfig', kubeconfig, ...small, ...flags);
  await vi.waitFor(() => expect(started.output()).toContain('Stop it with Ctrl-C'), patience);
  return { ...started, kubeconfig };
}

/** A link as a browser opens it: the session, and what is seen with it. */
async function open(link: string): Promise<string> {
  const { port, hash, origin } = new URL(link);
  const headers = { host: `127.0.0.1:${port}`, origin, 'content-type': 'application/json' };
  const key = hash.replace('#k=', '');
  const answer = await ask(Number(port), 'POST', '/data/session', headers, JSON.stringify({ key }));
  const session = textAt(parseRecord(answer.text), 'session');
  const state = await ask(Number(port), 'GET', '/data/state?view=map', {
    ...headers,
    authorization: `Bearer ${session}`,
  });
  return state.text;
}

describe('servicenet up', () => {
  test(
    'has a page; servicenet page prints the link, which a log does not have',
    { timeout: 180_000 },
    async () => {
      const first = await up('first', '--page', '0');
      expect(first.output()).toMatch(
        /^page: http:\/\/127\.0\.0\.1:\d+\/ \(servicenet page prints the link\)$/m,
      );
      expect(first.output()).not.toContain('#k=');
      const link = (await commandLine('page', '--kubeconfig', first.kubeconfig)).output.trim();
      expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#k=[\w-]{22}$/);
      expect(link.length).toBeLessThan(74);
      const { pid = 0 } = first.child;
      setPriority(pid, 10);
      expect(await open(link)).toContain('"default/kubernetes"');
      // The process of the page gives way as well: an ordinary user may not take less for it.
      expect(familyOf(first.child).map((each) => getPriority(Number(each)))).toEqual([10]);
      // Another has a page and a key of its own, at the next free port of the usual ones.
      const taken = createServer().listen(6480, '127.0.0.1');
      // Whoever has it.
      taken.on('error', () => undefined);
      const second = await up('second');
      taken.close();
      expect(second.output()).toMatch(
        /^page: http:\/\/127\.0\.0\.1:\d+\/ \(servicenet page prints the link\) \(6480 is in use\)$/m,
      );
      const other = (await commandLine('page', '--kubeconfig', second.kubeconfig)).output.trim();
      expect(new URL(other).port).not.toBe(new URL(link).port);
      const wrong = link.replace(/#.*/, new URL(other).hash);
      expect(await open(wrong)).toContain('SessionUnknown');
      expect(await open(other)).toContain('"default/kubernetes"');
    },
  );

  test('has none with --page=off, or says that a port is in use', { timeout: 180_000 }, async () => {
    const off = await up('off', '--page', 'off');
    expect(off.output()).not.toContain('page:');
    const page = servicenet('page', '--kubeconfig', off.kubeconfig);
    await vi.waitFor(() => expect(page.output()).toContain('which it only reads; Ctrl-C ends it'), patience);
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    const port = String(typeof address === 'object' ? address?.port : '');
    const own = ['--port', '0', '--write-kubeconfig', join(folder, 'busy'), ...small];
    const { errors } = await commandLine('up', ...own, '--page', port);
    expect(errors).toMatch(new RegExp(`--page.*${port}|${port}.*--page`));
    taken.close();
  });
});

test('servicenet page serves another cluster until it is stopped', { timeout: 180_000 }, async () => {
  const server = await startApiServer({ controllers: [], nodes: 0 });
  const kubeconfig = join(folder, 'other');
  await writeFile(kubeconfig, server.kubeconfig);
  const { child, output } = servicenet('page', '--kubeconfig', kubeconfig, '--port', '0');
  await vi.waitFor(() => expect(output()).toContain('Ctrl-C ends it'), patience);
  const [link = ''] = /http:\S+#k=\S+/.exec(output()) ?? [];
  const state = await open(link);
  expect(state).toContain('"default/kubernetes"');
  expect(state).toContain('packets are sent in the cluster network of servicenet up alone');
  child.kill('SIGTERM');
  await once(child, 'exit');
  expect(child.exitCode).toBe(0);
  await server.stop();
});

describe('the process', () => {
  let server: TestServer;
  const lines: string[] = [];
  const log = pino(
    { level: 'warn' },
    new Writable({
      write: (chunk, _encoding, done) => {
        lines.push(String(chunk));
        done();
      },
    }),
  );
  beforeAll(async () => {
    server = await startApiServer({ controllers: [], nodes: 0 });
  });
  afterAll(async () => server.stop());

  test(
    'begins with the first connection, and again after it was killed: the session goes on',
    { timeout: 180_000 },
    async () => {
      const credentials = newCredentials();
      const { url, ca, token } = server;
      const { listener, port } = await PageListener.open(
        {
          ...{ source: { kind: 'endpoint', url, ca, token }, enter: undefined, log },
          settings: {
            credentials,
            cluster: { server: url, kind: 'up', version: '0', clusterFlags: [], whyNoCheck: 'none' },
            proxy: { clusterCidrs: undefined, masqueradeAll: undefined, nodePortAddresses: undefined },
            controlSocket: undefined,
            loadBalancer: {
              loadBalancerClass: 'servicenet.dev/load-balancer',
              isDefaultClass: true,
              compat: true,
            },
          },
        },
        [0],
      );
      const children = async (): Promise<readonly string[]> =>
        (await readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8'))
          .split(' ')
          .filter((each) => each !== '');
      const before = new Set(await children());
      const own = async (): Promise<readonly string[]> =>
        (await children()).filter((each) => !before.has(each));
      expect(await own()).toEqual([]);
      const headers = { host: `127.0.0.1:${port}`, authorization: `Bearer ${credentials.session}` };
      const look = async (): Promise<number> =>
        (await ask(port, 'GET', '/data/state?view=map', headers)).status;
      expect(await look()).toBe(200);
      const [first = ''] = await own();
      const commandLine = await readFile(`/proc/${first}/cmdline`, 'utf8');
      const environment = await readFile(`/proc/${first}/environ`, 'utf8');
      for (const secret of [credentials.key, credentials.session, token]) {
        expect(commandLine).not.toContain(secret);
        expect(environment).not.toContain(secret);
      }
      const tab = new TestTab(port);
      await once(tab.socket, 'open');
      process.kill(Number(first), 'SIGKILL');
      await tab.closed;
      await vi.waitFor(() => expect(lines.join()).toContain('"reason":"PageEnded"'), patience);
      expect(await look()).toBe(200);
      const [second = ''] = await own();
      expect(second).not.toBe(first);
      await listener.close();
      expect(await own()).toEqual([]);
    },
  );
});
