import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { at, listAt } from '../../src/objects/json.ts';
import { argumentsOf, DeployedControllers } from '../support/deployed-controllers.ts';
import { kustomize } from '../support/manifests.ts';

test('the process that the Deployment of the base starts gets ready, with roles for the controllers that it runs', async () => {
  const objects = kustomize('deploy/base');
  const { server, token } = await DeployedControllers.start(objects);
  const directory = mkdtempSync(join(tmpdir(), 'servicenet-deploy-'));
  writeFileSync(join(directory, 'token'), token);
  writeFileSync(join(directory, 'ca.crt'), server.ca);
  const args = argumentsOf(objects).map((arg) =>
    arg.replace(/^--metrics-bind-address=.*/, '--metrics-bind-address=127.0.0.1:0'),
  );
  const cluster = ['--server', server.url, '--token-file', join(directory, 'token')];
  const authority = ['--certificate-authority', join(directory, 'ca.crt')];
  const child = spawn(process.execPath, ['src/main.js', ...args, ...cluster, ...authority], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  try {
    const deployment = objects.find(({ kind }) => kind === 'Deployment');
    const [container] = listAt(deployment, 'spec', 'template', 'spec', 'containers');
    const probe = at(container, 'readinessProbe', 'httpGet', 'path');
    await untilReady(() => /"port":(\d+)[^\n]*serving health/.exec(output)?.[1], String(probe));
    expect(output).not.toContain('not allowed');
    const [, names = ''] = /"controllers":(\[[^\]]*\])/.exec(output) ?? [];
    const running: unknown = JSON.parse(names);
    const roles = objects.filter(({ kind }) => kind === 'ClusterRole').map(({ metadata }) => metadata.name);
    expect(roles.map((name) => name?.replace(/^servicenet-(.*)$/, '$1-controller')).sort()).toEqual(
      Array.isArray(running) ? running.sort() : running,
    );
  } finally {
    await ended(child);
    rmSync(directory, { recursive: true });
    await server.stop();
  }
  expect(child.exitCode, output).toBe(0);
});

/** Asks for the path until it answers 200. */
async function untilReady(port: () => string | undefined, path: string): Promise<void> {
  const deadline = Date.now() + 90_000;
  for (;;) {
    const found = port();
    const response = found === undefined ? undefined : await fetch(`http://127.0.0.1:${found}${path}`);
    const text = await response?.text();
    if (response?.status === 200) return;
    if (Date.now() > deadline) throw new Error(`never ready: ${String(text)}`);
    await sleep(100);
  }
}

async function ended(child: ChildProcess): Promise<void> {
  const closed = new Promise((resolve) => child.once('close', resolve));
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await closed;
}
