import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { listAt, numberAt, textAt } from '../../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../../src/testing/index.ts';
import { call } from '../../support/test-server.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');
const count = 200;
const core = '/api/v1/namespaces/default';

/** Processes of this machine that run the command of the Pods. */
function sleepers(seconds: string): number {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(seconds);
    } catch {
      // It has ended meanwhile.
      return false;
    }
  }).length;
}

/** What Pods have left behind: folders, network namespaces and mounts. */
async function leftBy(server: TestServer): Promise<string> {
  const left = 'ls /run/pods; ls /run/netns | grep -c ^pod-; grep -c /run/pods/ /proc/self/mounts';
  return (await server.run(['sh', '-c', left], { node: 'node-1' })).stdout.trim();
}

const createPod = async (server: TestServer, name: string, word: string): Promise<void> => {
  const container = { name: 'main', image: 'busybox', command: ['sleep', word] };
  const volumes = [{ name: 'v', emptyDir: {} }];
  const spec = { terminationGracePeriodSeconds: 0, volumes, containers: [container] };
  const { status } = await call(server.client, 'POST', `${core}/pods`, {
    body: { metadata: { name }, spec },
  });
  expect(status).toBe(201);
};
const podsIn = async (server: TestServer, phase: string): Promise<number> => {
  const { body } = await call(server.client, 'GET', `${core}/pods`);
  return listAt(body, 'items').filter((pod) => phase === '' || textAt(pod, 'status', 'phase') === phase)
    .length;
};

it.skipIf(missing !== '')(
  `200 Pods with processes leave nothing behind${missing === '' ? '' : ` (missing: ${missing})`}`,
  { timeout: 300_000 },
  async () => {
    const server = await startApiServer({ network: true, nodes: 3, containers: 'processes' });
    try {
      const word = String(1_000_000 + process.pid);
      for (let i = 0; i < count; i++) await createPod(server, `p-${i}`, word);
      await expect.poll(() => podsIn(server, 'Running'), { timeout: 120_000, interval: 500 }).toBe(count);
      expect(sleepers(word)).toBeGreaterThanOrEqual(count);
      await call(server.client, 'DELETE', `${core}/pods`);
      await expect.poll(() => podsIn(server, ''), { timeout: 120_000, interval: 500 }).toBe(0);
      await expect.poll(() => sleepers(word)).toBe(0);
      await expect.poll(() => leftBy(server), { timeout: 60_000, interval: 500 }).toBe('0\n0');
    } finally {
      await server.stop();
    }
  },
);

it.skipIf(missing !== '')(
  `300 Pods that are deleted while they start leave nothing behind${missing === '' ? '' : ` (missing: ${missing})`}`,
  { timeout: 300_000 },
  async () => {
    const server = await startApiServer({ network: true, nodes: 3, containers: 'processes' });
    try {
      const word = String(2_000_000 + process.pid);
      const live = async (i: number): Promise<void> => {
        await createPod(server, `p-${i}`, word);
        // From before there is anything of it until after it runs.
        await delay((i * 37) % 3000);
        await call(server.client, 'DELETE', `${core}/pods/p-${i}`, { body: { gracePeriodSeconds: 0 } });
      };
      for (let i = 0; i < 300; i += 30) await Promise.all(Array.from({ length: 30 }, (_, n) => live(i + n)));
      await expect.poll(() => podsIn(server, ''), { timeout: 120_000, interval: 500 }).toBe(0);
      await expect.poll(() => sleepers(word), { timeout: 60_000, interval: 500 }).toBe(0);
      await expect.poll(() => leftBy(server), { timeout: 60_000, interval: 500 }).toBe('0\n0');
    } finally {
      await server.stop();
    }
  },
);

/** A folder with links to all programs of the PATH but one; where containers see it, which have a `/tmp` of their own. */
function programsBut(name: string): string {
  const folder = mkdtempSync('/var/tmp/servicenet-programs-');
  for (const from of (process.env['PATH'] ?? '').split(':').filter(existsSync)) {
    for (const program of readdirSync(from)) {
      const link = join(folder, program);
      if (program !== name && !existsSync(link)) symlinkSync(join(from, program), link);
    }
  }
  return folder;
}

it.skipIf(missing !== '')(
  `containers run and end where there is no bubblewrap${missing === '' ? '' : ` (missing: ${missing})`}`,
  { timeout: 120_000 },
  async () => {
    const path = process.env['PATH'];
    const programs = programsBut('bwrap');
    process.env['PATH'] = programs;
    const server = await startApiServer({ network: true, nodes: 1, containers: 'processes' });
    try {
      const run = async (name: string, script: string): Promise<void> => {
        const container = { name: 'main', image: 'busybox', command: ['sh', '-c', script] };
        const body = { metadata: { name }, spec: { restartPolicy: 'Never', containers: [container] } };
        expect((await call(server.client, 'POST', `${core}/pods`, { body })).status).toBe(201);
      };
      const state = async (name: string): Promise<unknown> => {
        const { body } = await call(server.client, 'GET', `${core}/pods/${name}`);
        const [status] = listAt(body, 'status', 'containerStatuses');
        return [textAt(body, 'status', 'phase'), numberAt(status, 'state', 'terminated', 'exitCode')];
      };
      await run('stays', 'exec sleep 1000');
      await run('ends', 'exit 7');
      await expect.poll(() => state('stays'), { timeout: 60_000 }).toEqual(['Running', 0]);
      await expect.poll(() => state('ends'), { timeout: 60_000 }).toEqual(['Failed', 7]);
    } finally {
      await server.stop();
      process.env['PATH'] = path;
      rmSync(programs, { recursive: true, force: true });
    }
  },
);
