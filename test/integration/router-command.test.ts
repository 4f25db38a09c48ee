import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startApiServer } from '../../src/testing/index.ts';
import { Child } from '../e2e/child.ts';
import { freePort } from '../support/free-port.ts';

const main = new URL('../../src/main.js', import.meta.url).pathname;

test('the command says that Pods of this API server are simulated, and ends by a signal', async () => {
  const api = await startApiServer();
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-router-'));
  writeFileSync(join(folder, 'kubeconfig'), api.kubeconfig, { mode: 0o600 });
  const router = new Child(process.execPath, [
    ...[main, 'router', '--kubeconfig', join(folder, 'kubeconfig')],
    ...['--http-port', String(await freePort()), '--https-port', String(await freePort())],
    ...['--lease-namespace', 'default', '--metrics-bind-address', '127.0.0.1:0'],
  ]);
  try {
    await router.until(() => router.output.includes('"reason":"SimulatedPods"'));
    await router.end();
    expect(router.code).toBe(0);
  } finally {
    await router.end();
    await api.stop();
    await rm(folder, { recursive: true });
  }
});
