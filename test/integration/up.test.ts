import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord } from '../../src/objects/json.ts';

const main = new URL('../../src/main.ts', import.meta.url).pathname;
const start = new URL('../../src/start.js', import.meta.url).pathname;
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
  await rm(folder, { recursive: true, force: true });
});

/** Waits for another process: looks again every 20 ms; the test's timeout bounds it. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(20);
}

interface Up {
  readonly child: ChildProcess;
  readonly kubeconfig: string;
  readonly output: () => string;
  /** Resolves when it has ended and all its output is there. */
  readonly closed: Promise<void>;
}

async function up(...flags: string[]): Promise<Up> {
  return upBy(main, ...flags);
}

async function upBy(file: string, ...flags: string[]): Promise<Up> {
  return upUntil('Stop it with Ctrl-C', file, ...flags);
}

/** Starts it, and waits until it says so or has ended. */
async function upUntil(said: string, file: string, ...flags: string[]): Promise<Up> {
  const kubeconfig = join(folder, 'kubeconfig');
  const child = spawn(
    process.execPath,
    [file, 'up', '--port', '0', '--write-kubeconfig', kubeconfig, ...flags],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  running = child;
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  let ended = false;
  const closed = once(child, 'close').then(() => {
    ended = true;
  });
  await until(() => text.includes(said) || ended);
  return { child, kubeconfig, output: () => text, closed };
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
  // With many nodes the controllers have a thread of their own.
  it.each([0, 16])('applies files, prints the Services and ends cleanly, with %d nodes', async (nodes) => {
    const quickstart = new URL('../../deploy/examples/quickstart.yaml', import.meta.url).pathname;
    const { child, kubeconfig, output, closed } = await up('--nodes', String(nodes), '--apply', quickstart);
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
    'is by its name the same process with the flags of V8 that keep it small',
    async () => {
      const { child, closed } = await upBy(start, '--nodes', '0');
      const words = (await readFile(`/proc/${child.pid ?? 0}/cmdline`, 'utf8')).split('\0');
      expect(words).toContain('--max-semi-space-size=8');
      const environment = (await readFile(`/proc/${child.pid ?? 0}/environ`, 'utf8')).split('\0');
      expect(environment).toContain('MALLOC_ARENA_MAX=1');
      expect(words.slice(words.indexOf(start), -1)).toEqual(child.spawnargs.slice(1));
      child.kill('SIGTERM');
      await closed;
      expect(child.exitCode).toBe(0);
    },
  );

  // The server answers by then, its clients are only just being loaded.
  it.each([
    ['SIGTERM', 0],
    ['SIGINT', 16],
  ] as const)('ends cleanly when %s comes while it starts, with %d nodes', async (signal, nodes) => {
    const flags = ['--data-dir', join(folder, 'data'), '--nodes', String(nodes)];
    const first = await upUntil('servicenet is ready', main, ...flags);
    first.child.kill(signal);
    await first.closed;
    expect(first.child.exitCode).toBe(0);
    await expect(stat(first.kubeconfig)).rejects.toThrow('ENOENT');
    expect(first.output()).not.toMatch(/"level":"(warn|error|fatal)"|unhandled/i);
    const second = await up(...flags);
    expect(second.output()).toContain('Stop it with Ctrl-C');
    second.child.kill('SIGTERM');
    await second.closed;
    expect(second.child.exitCode).toBe(0);
  });

  it('says in one line which flag is wrong', async () => {
    const { child, output, closed } = await up('--service-cluster-ip-range', '10.0.0.0/30');
    await closed;
    expect(child.exitCode).toBe(2);
    expect(output().trim()).toBe(
      'servicenet: --service-cluster-ip-range: 10.0.0.0/30 is too small: at least 8 addresses are needed',
    );
  });

  it.each([0, 16])(
    'says which object is refused, and leaves no kubeconfig behind, with %d nodes',
    async (nodes) => {
      const bad = join(folder, 'bad.yaml');
      await writeFile(
        bad,
        'apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: [{ port: 99999 }] }\n',
      );
      const { child, kubeconfig, output, closed } = await up('--nodes', String(nodes), '--apply', bad);
      await closed;
      expect(child.exitCode).toBe(1);
      expect(output()).toContain(`${bad}: Service a: Service "a" is invalid: `);
      await expect(stat(kubeconfig)).rejects.toThrow('ENOENT');
    },
  );
});
