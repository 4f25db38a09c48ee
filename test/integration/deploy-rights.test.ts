import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cleanupFinalizer } from '../../src/controllers/load-balancer/plan.ts';
import { at, listAt } from '../../src/objects/read.ts';
import { argumentsOf, DeployedControllers, type Provocation } from '../support/deployed-controllers.ts';
import { applyStrictly, kustomize } from '../support/manifests.ts';
import { grantsOf } from '../support/role-rules.ts';
import { call } from '../support/test-server.ts';

const services = '/api/v1/namespaces/default/services';
const names = ['web', 'left'];

/** A Service that is a load balancer and is none, in turn. */
const provocation: Provocation = {
  async begin(client) {
    const make = (name: string, type: string, finalizers: readonly string[]): Promise<unknown> =>
      call(client, 'POST', services, {
        body: {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name, finalizers },
          spec: { type, ports: [{ port: 80 }] },
        },
      });
    await make('web', 'LoadBalancer', []);
    // What a process leaves behind that ends after it wrote a finalizer.
    await make('left', 'ClusterIP', [cleanupFinalizer]);
  },
  async step(client, round) {
    await call(client, 'PATCH', `${services}/web`, {
      contentType: 'application/merge-patch+json',
      body: { spec: { type: round % 2 === 0 ? 'LoadBalancer' : 'ClusterIP' } },
    });
  },
  async end(client) {
    for (const name of names) {
      await call(client, 'DELETE', `${services}/${name}`);
      await call(client, 'PATCH', `${services}/${name}`, {
        contentType: 'application/merge-patch+json',
        body: { metadata: { finalizers: null } },
      });
    }
  },
};

describe('the rights of the base', () => {
  const objects = kustomize('deploy/base');
  const grants = grantsOf(objects);
  let deployed: DeployedControllers;

  beforeAll(async () => {
    deployed = await DeployedControllers.start(objects);
  });

  afterAll(async () => {
    await deployed.stop();
  });

  test('are those that the controllers use, no more and no less', async () => {
    const granted = grants.map(({ name }) => name).sort();
    const asked = new Set<string>();
    // Whether a server streams its lists or not: old ones do not.
    for (const watchList of [true, false]) {
      const wanted = granted.filter((phrase) => !watchList || !phrase.startsWith('list '));
      await deployed.exercise(watchList, provocation, (transport, refused) => {
        expect(refused).toEqual([]);
        for (const phrase of transport.phrases()) asked.add(phrase);
        return wanted.every((phrase) => asked.has(phrase));
      });
    }
    expect([...asked].sort()).toEqual(granted);
  });

  test.each(grants)('without "$name" something is refused', async ({ verb, role, without, name }) => {
    await applyStrictly(deployed.server.client, [without]);
    try {
      await deployed.exercise(verb !== 'list', provocation, (_, refused) => refused.includes(name));
    } finally {
      await applyStrictly(deployed.server.client, [role]);
    }
  });

  test('suffice for the process that the Deployment starts, by its own arguments', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'servicenet-deploy-'));
    writeFileSync(join(directory, 'token'), deployed.token);
    writeFileSync(join(directory, 'ca.crt'), deployed.server.ca);
    const args = argumentsOf(objects).map((arg) =>
      arg.replace(/^--metrics-bind-address=.*/, '--metrics-bind-address=127.0.0.1:0'),
    );
    const cluster = ['--server', deployed.server.url, '--token-file', join(directory, 'token')];
    const authority = ['--certificate-authority', join(directory, 'ca.crt')];
    const child = spawn(process.execPath, ['src/main.ts', ...args, ...cluster, ...authority], {
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
    } finally {
      await ended(child);
      rmSync(directory, { recursive: true });
    }
    expect(child.exitCode, output).toBe(0);
  });
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
