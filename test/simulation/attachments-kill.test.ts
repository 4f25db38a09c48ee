import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { createPod, defineNetworks, findingsOf, follow, Ledger, pods, pools } from './attachments/ledger.ts';

/** How often a controller is killed. */
const kills = Number(process.env['SERVICENET_ATTACHMENT_KILLS'] ?? 2);
const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));

test(
  `two controllers at once, killed ${kills} times, give no address twice and leak none`,
  { timeout: 120_000 + kills * 60_000 },
  async () => {
    const server = await startApiServer({ platform: 'openshift', controllers: [] });
    const folder = await mkdtemp(path.join(tmpdir(), 'servicenet-attachments-'));
    const kubeconfig = path.join(folder, 'kubeconfig');
    await writeFile(kubeconfig, server.kubeconfig);
    await defineNetworks(server);
    const ledger = new Ledger();
    let writes = 0;
    const stop = new AbortController();
    const following = Promise.all([
      follow(server, pods, stop.signal, (type, pod) => ledger.see(type, pod)),
      follow(server, pools, stop.signal, () => {
        writes++;
      }),
    ]);
    // Without a lease: nothing but the guards of their writes is between them.
    const start = (): { child: ChildProcess; ended: Promise<unknown> } => {
      const flags = ['--kubeconfig', kubeconfig, '--controllers', 'network-attachment-controller'];
      const rest = ['--no-leader-elect', '--metrics-bind-address', '0', '--log-level', 'fatal'];
      const child = spawn(process.execPath, [main, 'controller', ...flags, ...rest], { stdio: 'inherit' });
      return { child, ended: once(child, 'close') };
    };
    const running = [start(), start()];
    const alive: string[] = [];
    let made = 0;
    const make = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const name = `pod-${made}`;
        alive.push(name);
        await createPod(server, name, made++);
      }
    };
    try {
      await make(12);
      const allAttached = (): Promise<void> =>
        expect.poll(() => ledger.attached, { timeout: 60_000 }).toBe(alive.length);
      for (let kill = 0; kill < kills; kill++) {
        await allAttached();
        // In the middle of what the change of Pods has begun: after 1, 4, 7 … writes.
        const until = writes + 1 + ((kill * 3) % 10);
        const gone = alive.splice(0, 6);
        await Promise.all(
          gone.map((name) => call(server.client, 'DELETE', `${pods}/${name}?gracePeriodSeconds=0`)),
        );
        // One takes the place of a Pod of its name, as in a StatefulSet.
        const [again = ''] = gone;
        alive.push(again);
        await createPod(server, again, made++);
        await make(5);
        await expect.poll(() => writes, { timeout: 60_000, interval: 1 }).toBeGreaterThanOrEqual(until);
        const killed = running.shift();
        killed?.child.kill('SIGKILL');
        await killed?.ended;
        running.push(start());
      }
      await allAttached();
      // Each instance looks for what is left when it starts.
      running.push(start());
      await expect.poll(() => findingsOf(server), { timeout: 60_000 }).toBe('');
      expect(ledger.problems.join('\n')).toBe('');
      // Else the test has not tested what it says.
      expect(ledger.given).toBeGreaterThan(12 + kills * 5);
      console.log(`${kills} kills: ${ledger.given} addresses given, none twice, none leaked`);
    } finally {
      for (const { child, ended } of running) {
        child.kill('SIGKILL');
        await ended;
      }
      stop.abort();
      await following;
      await server.stop();
      await rm(folder, { recursive: true });
    }
  },
);
