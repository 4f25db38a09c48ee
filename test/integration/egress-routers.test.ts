import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { garbageCollectorController } from '../../src/controllers/garbage-collection/controller.ts';
import { egressRouterController } from '../../src/platforms/openshift/egress-router/controller.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';
import { untilObject } from '../support/with-controllers.ts';

let server: TestServer;
let running: RunningControllers;

/** Runs the controller; each run knows nothing of the one before. */
function run(resync?: number): RunningControllers {
  const transport = server.client;
  const controllers = [egressRouterController(resync), garbageCollectorController({ transport })];
  return runControllers({ transport, controllers, log: pino({ enabled: false }) });
}

beforeAll(async () => {
  server = await startApiServer({ platform: 'openshift', controllers: [] });
  running = run();
});
afterAll(async () => {
  await running.stop();
  await server.stop();
});

const mergePatch = { contentType: 'application/merge-patch+json' } as const;

function pathsIn(namespace: string) {
  return {
    routers: `/apis/network.operator.openshift.io/v1/namespaces/${namespace}/egressrouters`,
    attachment: `/apis/k8s.cni.cncf.io/v1/namespaces/${namespace}/network-attachment-definitions/egress-router-cni-nad`,
    deployment: `/apis/apps/v1/namespaces/${namespace}/deployments/egress-router-cni-deployment`,
  };
}

async function make(namespace: string, name: string, ip: string): Promise<void> {
  const { routers } = pathsIn(namespace);
  const made = await call(server.client, 'POST', routers, {
    body: {
      apiVersion: 'network.operator.openshift.io/v1',
      ...{ kind: 'EgressRouter', metadata: { name } },
      spec: { addresses: [{ ip, gateway: '192.0.2.1' }], redirect: { fallbackIP: '203.0.113.1' } },
    },
  });
  expect(made.status).toBe(201);
}

/** `Available Degraded`, each with its reason. */
function conditionsOf(body: JsonRecord): string {
  return listAt(body, 'status', 'conditions')
    .map((each) => `${textAt(each, 'type')}=${textAt(each, 'status')} ${textAt(each, 'reason')}`)
    .join(', ');
}

async function says(namespace: string, name: string, conditions: string): Promise<void> {
  const path = `${pathsIn(namespace).routers}/${name}`;
  await untilObject(server.client, path, (body) => conditionsOf(body) === conditions);
}

/** Waits until both objects have this one owner. */
async function belongTo(namespace: string, name: string): Promise<void> {
  const { attachment, deployment } = pathsIn(namespace);
  for (const path of [attachment, deployment]) {
    await untilObject(
      server.client,
      path,
      (body) =>
        listAt(body, 'metadata', 'ownerReferences')
          .map((each) => textAt(each, 'name'))
          .join() === name,
    );
  }
}

test('an EgressRouter gets its objects, says when their Pod runs, and takes them with it', async () => {
  const namespace = await makeNamespace(server, 'router');
  const { routers, attachment, deployment } = pathsIn(namespace);
  await make(namespace, 'a', '192.0.2.10/24');
  await belongTo(namespace, 'a');
  await says(namespace, 'a', 'Available=False MinimumReplicasUnavailable, Degraded=False AsExpected');
  const conditions = [{ type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message: '' }];
  await call(server.client, 'PATCH', `${deployment}/status`, {
    body: { status: { conditions } },
    ...mergePatch,
  });
  await says(namespace, 'a', 'Available=True AsExpected, Degraded=False AsExpected');

  await call(server.client, 'PATCH', `${routers}/a`, {
    ...{ body: { spec: { addresses: [{ ip: '192.0.2.11' }] } }, ...mergePatch },
  });
  await says(namespace, 'a', 'Available=True AsExpected, Degraded=True InvalidAddress');
  const { body } = await call(server.client, 'GET', attachment);
  expect(JSON.parse(textAt(body, 'spec', 'config'))).toMatchObject({
    ip: { addresses: [''], gateway: '', fallbackIP: '203.0.113.1' },
  });

  await call(server.client, 'PATCH', `${routers}/a`, { body: { spec: { addresses: [] } }, ...mergePatch });
  await says(namespace, 'a', 'Available=False NoAddresses, Degraded=True NoAddresses');
  // What was made before stays.
  await belongTo(namespace, 'a');

  await call(server.client, 'DELETE', `${routers}/a`);
  for (const path of [attachment, deployment]) {
    await untilObject(server.client, path, (_, status) => status === 404);
  }
});

test('of two in one namespace, the last one applied has the objects, and both say so', async () => {
  const namespace = await makeNamespace(server, 'collision');
  const { routers, attachment } = pathsIn(namespace);
  await make(namespace, 'a', '192.0.2.10/24');
  await belongTo(namespace, 'a');
  await make(namespace, 'b', '192.0.2.20/24');
  await belongTo(namespace, 'b');
  await says(namespace, 'a', 'Available=False RouterNameCollision, Degraded=True RouterNameCollision');
  await says(namespace, 'b', 'Available=False MinimumReplicasUnavailable, Degraded=True RouterNameCollision');
  // A change of its spec takes them back.
  await call(server.client, 'PATCH', `${routers}/a`, {
    ...{ body: { spec: { redirect: { fallbackIP: '203.0.113.2' } } }, ...mergePatch },
  });
  await belongTo(namespace, 'a');
  const { body } = await call(server.client, 'GET', attachment);
  expect(at(body, 'spec', 'config')).toContain('203.0.113.2');
  await says(namespace, 'b', 'Available=False RouterNameCollision, Degraded=True RouterNameCollision');
  // With it go the objects; the other one's are applied again later.
  await call(server.client, 'DELETE', `${routers}/a`);
  await says(namespace, 'b', 'Available=False ObjectsMissing, Degraded=False AsExpected');
});

test('what was deleted or changed by others is applied again, periodically', async () => {
  const namespace = await makeNamespace(server, 'resync');
  const { attachment, deployment } = pathsIn(namespace);
  await make(namespace, 'a', '192.0.2.10/24');
  await belongTo(namespace, 'a');
  await running.stop();
  await call(server.client, 'DELETE', deployment);
  await call(server.client, 'PATCH', attachment, { body: { spec: { config: '{}' } }, ...mergePatch });
  running = run(200);
  await belongTo(namespace, 'a');
  const changed = async (): Promise<string> => {
    const body = await untilObject(
      server.client,
      attachment,
      (object) => textAt(object, 'spec', 'config') !== '{}',
    );
    return textAt(body, 'metadata', 'uid');
  };
  const first = await changed();
  await call(server.client, 'DELETE', attachment);
  await untilObject(
    server.client,
    attachment,
    (object, status) => status === 200 && textAt(object, 'metadata', 'uid') !== first,
  );
});

test('what the server refuses is said', async () => {
  const namespace = await makeNamespace(server, 'refused');
  const { deployment } = pathsIn(namespace);
  // The selector of a Deployment never changes.
  const labels = { app: 'other' };
  await call(server.client, 'POST', deployment.slice(0, deployment.lastIndexOf('/')), {
    body: {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'egress-router-cni-deployment' } },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    },
  });
  await make(namespace, 'a', '192.0.2.10/24');
  await says(namespace, 'a', 'Available=False EgressRouterError, Degraded=True EgressRouterError');
});
