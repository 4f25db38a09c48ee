import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { listAt, textAt } from '../../../src/objects/read.ts';
import { startApiServer } from '../../../src/testing/index.ts';
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

it.skipIf(missing !== '')(
  `200 Pods with processes leave nothing behind${missing === '' ? '' : ` (missing: ${missing})`}`,
  { timeout: 300_000 },
  async () => {
    const server = await startApiServer({ network: true, nodes: 3, containers: 'processes' });
    try {
      const word = String(1_000_000 + process.pid);
      const container = { name: 'main', image: 'busybox', command: ['sleep', word] };
      for (let i = 0; i < count; i++) {
        const body = {
          metadata: { name: `p-${i}` },
          spec: { terminationGracePeriodSeconds: 0, containers: [container] },
        };
        expect((await call(server.client, 'POST', `${core}/pods`, { body })).status).toBe(201);
      }
      const pods = async (phase: string): Promise<number> => {
        const { body } = await call(server.client, 'GET', `${core}/pods`);
        return listAt(body, 'items').filter((pod) => phase === '' || textAt(pod, 'status', 'phase') === phase)
          .length;
      };
      await expect.poll(() => pods('Running'), { timeout: 120_000, interval: 500 }).toBe(count);
      expect(sleepers(word)).toBeGreaterThanOrEqual(count);
      await call(server.client, 'DELETE', `${core}/pods`);
      await expect.poll(() => pods(''), { timeout: 120_000, interval: 500 }).toBe(0);
      await expect.poll(() => sleepers(word), { timeout: 10_000 }).toBe(0);
      const left = 'ls /run/pods; ls /run/netns | grep -c ^pod-; grep -c /run/pods/ /proc/self/mounts';
      const found = async (): Promise<string> =>
        (await server.run(['sh', '-c', left], { node: 'node-1' })).stdout.trim();
      await expect.poll(found, { timeout: 60_000, interval: 500 }).toBe('0\n0');
    } finally {
      await server.stop();
    }
  },
);
