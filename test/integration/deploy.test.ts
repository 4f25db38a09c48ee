import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Logger, pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import {
  controllersBesideACluster,
  runControllers,
  type RunningControllers,
} from '../../src/controllers/index.ts';
import { cleanupFinalizer } from '../../src/controllers/load-balancer/plan.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { isRecord } from '../../src/objects/json.ts';
import { at, listAt, textAt } from '../../src/objects/read.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { applyStrictly, kustomize, nameOf, parseManifests } from '../support/manifests.ts';
import { PermissionRecorder, type Permission, phraseOf } from '../support/permission-recorder.ts';
import { call } from '../support/test-server.ts';

const namespace = 'servicenet-system';
const overlays = ['deploy/overlays/kind', 'deploy/overlays/homelab'];
const components = ['monitoring', 'endpoints'];
const serviceMonitors = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: servicemonitors.monitoring.coreos.com }
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: { kind: ServiceMonitor, plural: servicemonitors }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: { type: object, properties: { spec: { type: object, x-kubernetes-preserve-unknown-fields: true } } }
`;

/** The base with a component, as a user's kustomization would have it. */
function withComponent(component: string): KubeObject[] {
  const directory = mkdtempSync(join(process.cwd(), 'deploy', '.test-'));
  try {
    const text = `resources: [../base]\ncomponents: [../components/${component}]\n`;
    writeFileSync(join(directory, 'kustomization.yaml'), text);
    return kustomize(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

describe('manifests', () => {
  test.each(['deploy/base', ...overlays])('%s is accepted, to the letter', async (directory) => {
    const server = await startApiServer();
    try {
      await applyStrictly(server.client, kustomize(directory));
    } finally {
      await server.stop();
    }
  });

  test.each(components)('the base with the component %s is accepted, to the letter', async (component) => {
    const server = await startApiServer();
    try {
      await applyStrictly(server.client, parseManifests(serviceMonitors));
      await applyStrictly(server.client, withComponent(component));
    } finally {
      await server.stop();
    }
  });

  test('the pool of the homelab is accepted once its kind is served', async () => {
    const server = await startApiServer();
    try {
      await applyStrictly(server.client, kustomize('deploy/crds'));
      await applyStrictly(
        server.client,
        parseManifests(readFileSync('deploy/overlays/homelab/pool.yaml', 'utf8')),
      );
    } finally {
      await server.stop();
    }
  });

  // https://kubernetes.io/docs/concepts/security/pod-security-standards/ (restricted)
  test.each(['deploy/base', ...overlays])('the Pods of %s meet the restricted standard', (directory) => {
    const objects = kustomize(directory);
    const deployment = objects.find((object) => object.kind === 'Deployment');
    const pod = at(deployment, 'spec', 'template', 'spec');
    expect(pod).toMatchObject({
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(pod).not.toHaveProperty('hostNetwork');
    expect(pod).not.toHaveProperty('volumes');
    for (const container of listAt(pod, 'containers')) {
      expect(container).toMatchObject({
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
      });
    }
  });
});

interface Rules {
  readonly role: KubeObject;
  readonly rules: readonly unknown[];
}

/** Every verb on every resource that a role grants. */
function grantsOf({ rules }: Rules): Permission[] {
  return rules.flatMap((rule) =>
    texts(rule, 'apiGroups').flatMap((group) =>
      texts(rule, 'resources').flatMap((resource) =>
        texts(rule, 'verbs').map((verb) => ({ group, resource, verb })),
      ),
    ),
  );
}

/** The role without one verb on one resource. */
function without({ role, rules }: Rules, lost: Permission): KubeObject {
  const kept = rules.flatMap((rule) =>
    texts(rule, 'resources').map((resource) => ({
      ...(isRecord(rule) ? rule : {}),
      resources: [resource],
      verbs: texts(rule, 'verbs').filter(
        (verb) =>
          !(
            verb === lost.verb &&
            resource === lost.resource &&
            texts(rule, 'apiGroups').includes(lost.group)
          ),
      ),
    })),
  );
  return Object.assign({ ...role }, { rules: kept.filter(({ verbs }) => verbs.length > 0) });
}

function texts(value: unknown, member: string): string[] {
  return listAt(value, member).filter((text) => typeof text === 'string');
}

describe('the rights of the base', () => {
  const objects = kustomize('deploy/base');
  const rolesIn = (kind: string): Rules => {
    const role = objects.find((object) => object.kind === kind);
    if (role === undefined) throw new Error(`the base has no ${kind}`);
    return { role, rules: listAt(role, 'rules') };
  };
  const clusterRole = rolesIn('ClusterRole');
  const leaderRole = rolesIn('Role');
  let server: TestServer;
  let token: string;

  beforeAll(async () => {
    server = await startApiServer({ authorizationMode: 'RBAC' });
    await applyStrictly(server.client, objects);
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/servicenet/token`;
    const answer = await call(server.client, 'POST', account, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    });
    token = textAt(answer.body, 'status', 'token');
    await call(server.client, 'POST', '/apis/servicenet.dev/v1alpha1/addresspools', {
      body: {
        apiVersion: 'servicenet.dev/v1alpha1',
        kind: 'AddressPool',
        metadata: { name: 'pool' },
        spec: { addresses: ['192.0.2.0/24'] },
      },
    });
  });

  afterAll(async () => {
    await server.stop();
  });

  const start = (transport: Transport, log: Logger): RunningControllers =>
    runControllers({
      transport,
      catalog: controllersBesideACluster(
        { transport, allocation: 'server', nodePorts: { first: 30000, last: 32767 } },
        { transport },
      ),
      log,
      leaderElection: { namespace, name: 'servicenet-controller', identity: 'test', retryPeriod: 200 },
    });

  /** Runs the controllers as the service account, and changes a Service until the condition holds. */
  const exercise = async (
    watchList: boolean,
    done: (transport: PermissionRecorder, refused: string[]) => boolean,
  ): Promise<void> => {
    const refused: string[] = [];
    const log = pino(
      { level: 'error' },
      {
        write: (line: string) => refused.push(/not allowed to (\S+ [^: ]+)/.exec(line)?.[1] ?? line),
      },
    );
    const inner = await createTransport({ kind: 'endpoint', url: server.url, ca: server.ca, token });
    const transport = new PermissionRecorder(inner, { watchList });
    const running = start(transport, log);
    const service = '/api/v1/namespaces/default/services';
    const make = (name: string, type: string, finalizers: readonly string[]): Promise<unknown> =>
      call(server.client, 'POST', service, {
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
    try {
      const deadline = Date.now() + 15_000;
      for (let i = 0; !done(transport, refused); i++) {
        if (Date.now() > deadline) {
          throw new Error(`refused: ${refused.join(', ')}; asked: ${transport.phrases().join(', ')}`);
        }
        await call(server.client, 'PATCH', `${service}/web`, {
          contentType: 'application/merge-patch+json',
          body: { spec: { type: i % 2 === 0 ? 'LoadBalancer' : 'ClusterIP' } },
        });
        await sleep(100);
      }
    } finally {
      await running.stop();
      await transport.close();
      for (const name of ['web', 'left']) {
        await call(server.client, 'DELETE', `${service}/${name}`);
        await call(server.client, 'PATCH', `${service}/${name}`, {
          contentType: 'application/merge-patch+json',
          body: { metadata: { finalizers: null } },
        });
      }
      await call(
        server.client,
        'DELETE',
        `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/servicenet-controller`,
      );
    }
  };

  test('are those that the controllers use, no more and no less', async () => {
    const granted = [...grantsOf(clusterRole), ...grantsOf(leaderRole)].map(phraseOf).sort();
    const asked = new Set<string>();
    // Whether a server streams its lists or not: old ones do not.
    for (const watchList of [true, false]) {
      const wanted = granted.filter((phrase) => !watchList || !phrase.startsWith('list '));
      await exercise(watchList, (transport, refused) => {
        expect(refused).toEqual([]);
        for (const phrase of transport.phrases()) asked.add(phrase);
        return wanted.every((phrase) => asked.has(phrase));
      });
    }
    expect([...asked].sort()).toEqual(granted);
  });

  const each = [clusterRole, leaderRole].flatMap((rules) =>
    grantsOf(rules).map((lost) => ({ rules, lost, name: phraseOf(lost) })),
  );
  test.each(each)('without "$name" something is refused', async ({ rules, lost, name }) => {
    await applyStrictly(server.client, [without(rules, lost)]);
    try {
      await exercise(lost.verb !== 'list', (_, refused) => refused.includes(name));
    } finally {
      await applyStrictly(server.client, [rules.role]);
    }
  });

  test('suffice for the process that the Deployment starts, by its own arguments', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'servicenet-deploy-'));
    writeFileSync(join(directory, 'token'), token);
    writeFileSync(join(directory, 'ca.crt'), server.ca);
    const deployment = objects.find((object) => object.kind === 'Deployment');
    const [container] = listAt(deployment, 'spec', 'template', 'spec', 'containers');
    const args = texts(container, 'args').map((arg) =>
      arg
        .replace('$(POD_NAMESPACE)', namespace)
        .replace(/^--metrics-bind-address=.*/, '--metrics-bind-address=127.0.0.1:0'),
    );
    const cluster = ['--server', server.url, '--token-file', join(directory, 'token')];
    const authority = ['--certificate-authority', join(directory, 'ca.crt')];
    const child = spawn(process.execPath, ['src/main.ts', ...args, ...cluster, ...authority], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
    try {
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
  const deadline = Date.now() + 20_000;
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

test('every object of the base says what it belongs to', () => {
  const unlabelled = kustomize('deploy/base').filter(
    ({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] !== 'servicenet',
  );
  expect(unlabelled.map(nameOf)).toEqual([]);
});
