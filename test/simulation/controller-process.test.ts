import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { leases } from '../../src/client/resources.ts';
import { isRecord } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';

const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));
/** Who stops gives the lease back at once. Who is stopped by a busy machine for a few seconds must not lose it. */
const leaseFlags = ['--leader-elect-lease-duration', '15s', '--leader-elect-renew-deadline', '10s'];

/** `servicenet …` as a process of its own, with its log. */
class Process {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown[]>;
  log = '';

  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.log += text));
    this.ended = once(this.child, 'close');
  }

  /** Where it serves health and metrics, once it does. */
  async address(): Promise<string> {
    for (;;) {
      for (const line of this.log.split('\n')) {
        const said: unknown = line.includes('serving health') ? JSON.parse(line) : undefined;
        if (isRecord(said)) return `http://127.0.0.1:${String(said['port'])}`;
      }
      if (this.child.exitCode !== null) throw new Error(`ended with ${this.child.exitCode}: ${this.log}`);
      await sleep(20);
    }
  }

  /** Asks until the answer has the words. The test's timeout bounds it. */
  async says(url: string, words: string): Promise<void> {
    const address = await this.address();
    for (;;) {
      const answer = await request(address + url);
      if ((await answer.body.text()).includes(words)) return;
      await sleep(20);
    }
  }
}

let server: TestServer;
let folder: string;
let kubeconfig: string;
const processes: Process[] = [];

beforeEach(async () => {
  server = await startApiServer();
  folder = await mkdtemp(path.join(tmpdir(), 'servicenet-'));
  kubeconfig = path.join(folder, 'kubeconfig');
  await writeFile(kubeconfig, server.kubeconfig);
});

afterEach(async () => {
  for (const each of processes.splice(0)) {
    each.child.kill('SIGKILL');
    await each.ended;
  }
  await server.stop();
  await rm(folder, { recursive: true });
});

function start(...args: readonly string[]): Process {
  const started = new Process(args);
  processes.push(started);
  return started;
}

const controller = (): Process =>
  start(
    ...['controller', '--kubeconfig', kubeconfig, '--controllers', 'service-allocation'],
    ...['--metrics-bind-address', '127.0.0.1:0', '--leader-elect-retry-period', '500ms', ...leaseFlags],
  );

describe('servicenet controller', () => {
  it('leads alone, hands over when it is stopped, and ends when the lease is lost', async () => {
    const first = controller();
    await first.says('/readyz?verbose', 'leader-election (leading)');
    await first.says('/readyz', 'ok');
    await first.says('/metrics', 'leader_election_master_status{name="servicenet-controller"} 1');
    const second = controller();
    await second.says('/readyz?verbose', 'standby for');
    await second.says('/readyz', 'ok');

    first.child.kill('SIGTERM');
    expect(await first.ended).toEqual([0, null]);
    await second.says('/readyz?verbose', 'leader-election (leading)');

    const client = new ResourceClient(server.client, leases);
    const lease = await client.get('kube-system', 'servicenet-controller');
    const renewTime = '2026-01-01T00:00:00.000000Z';
    await client.mergePatch('kube-system', 'servicenet-controller', {
      spec: {
        holderIdentity: 'a thief',
        renewTime,
        leaseTransitions: (lease.spec.leaseTransitions ?? 0) + 1,
      },
    });
    expect(await second.ended).toEqual([1, null]);
    expect(second.log).toContain('lost the lease');
  });
});
