import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import { attachmentsController } from '../../src/platforms/cni/controller.ts';
import { networkStatusAnnotation } from '../../src/network/attachments/network-status.ts';
import { networksAnnotation } from '../../src/network/attachments/attachments.ts';
import { recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { itemsOf } from '../support/with-controllers.ts';

const pods = '/api/v1/namespaces/default/pods';
const pools = '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools';
const reservations =
  '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/overlappingrangeipreservations';
const whereabouts = 'whereabouts.cni.cncf.io/v1alpha1';
const patience = { timeout: 60_000 };

let server: TestServer;
let running: RunningControllers;

const create = async (path: string, body: object): Promise<void> => {
  expect((await call(server.client, 'POST', path, { body })).status).toBe(201);
};

/** A Pod of a node that nothing simulates; with addresses, it has been attached. */
async function createPod(name: string, phase: string, ips?: readonly string[]): Promise<void> {
  const own = { name: 'servicenet', interface: 'eth0', ips: ['10.244.0.9'], default: true, dns: {} };
  const status = JSON.stringify([own, { name: 'default/lan', interface: 'net1', ips, dns: {} }]);
  const annotations = {
    [networksAnnotation]: 'lan',
    ...(ips === undefined ? {} : { [networkStatusAnnotation]: status }),
  };
  const spec = { nodeName: 'node', containers: [{ name: 'main', image: 'nginx' }] };
  await create(pods, { metadata: { name, annotations }, spec });
  // A Pod that is pending has no address yet.
  const podIPs = ips === undefined ? {} : { podIP: '10.244.0.9', podIPs: [{ ip: '10.244.0.9' }] };
  await call(server.client, 'PATCH', `${pods}/${name}/status`, {
    ...{ body: { status: { phase, ...podIPs } }, contentType: 'application/merge-patch+json' },
  });
}

async function allocations(): Promise<readonly string[]> {
  const { body } = await call(server.client, 'GET', `${pools}/10.80.0.0-24`);
  return Object.entries(recordAt(body, 'spec', 'allocations')).map(
    ([key, entry]) => `${key} ${textAt(entry, 'podref')}`,
  );
}

async function reserved(): Promise<readonly string[]> {
  return itemsOf((await call(server.client, 'GET', reservations)).body).map((each) =>
    textAt(each, 'metadata', 'name'),
  );
}

const entry = (podref: string, id = 'old'): object => ({ id, podref, ifname: 'net1' });

beforeAll(async () => {
  server = await startApiServer({ platform: 'openshift', controllers: [] });
  const config = JSON.stringify({ type: 'macvlan', ipam: { type: 'whereabouts', range: '10.80.0.0/24' } });
  await create('/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions', {
    ...{ apiVersion: 'k8s.cni.cncf.io/v1', kind: 'NetworkAttachmentDefinition' },
    ...{ metadata: { name: 'lan' }, spec: { config } },
  });
  await createPod('runs', 'Running', ['10.80.0.1']);
  await createPod('pending', 'Pending');
  await createPod('other', 'Running', ['10.80.0.9']);
  await create(pools, {
    ...{ apiVersion: whereabouts, kind: 'IPPool', metadata: { name: '10.80.0.0-24' } },
    spec: {
      range: '10.80.0.0/24',
      allocations: {
        1: entry('default/runs'),
        2: entry('default/pending'),
        3: entry('default/gone'),
        // Of a Pod that has another one.
        4: entry('default/other'),
        5: entry(''),
        9: entry('default/other'),
        // No offset, so no address.
        x: entry('default/gone'),
      },
    },
  });
  for (const [name, podref] of [
    ['10.80.0.1', 'default/runs'],
    ['10.80.0.2', 'default/pending'],
    ['10.80.0.3', 'default/gone'],
    // Half of an allocation, whose other half is not there.
    ['10.80.0.7', 'default/gone'],
    // Of a network with a name.
    ['storage-10.80.0.9', 'default/other'],
  ]) {
    await create(reservations, {
      apiVersion: whereabouts,
      ...{ kind: 'OverlappingRangeIPReservation', metadata: { name }, spec: { podref } },
    });
  }
  running = runControllers({
    transport: server.client,
    controllers: [attachmentsController()],
    log: pino({ enabled: false }),
  });
});
afterAll(async () => {
  await running.stop();
  await server.stop();
});

describe('at its start the controller', () => {
  test('frees what no Pod has, and nothing of Pods that are pending or that it cannot know', async () => {
    const kept = ['1 default/runs', '2 default/pending', '5 ', '9 default/other', 'x default/gone'];
    await expect.poll(allocations, patience).toEqual(kept);
    await expect.poll(reserved, patience).toEqual(['10.80.0.1', '10.80.0.2', 'storage-10.80.0.9']);
  });
});

describe('when a Pod is deleted', () => {
  const events = async (name: string): Promise<readonly string[]> =>
    itemsOf((await call(server.client, 'GET', '/api/v1/namespaces/default/events')).body)
      .filter((event) => textAt(event, 'involvedObject', 'name') === name)
      .map((event) => `${textAt(event, 'reason')}: ${textAt(event, 'message')}`);

  test('its addresses are free, and an Event names those that another sandbox has left', async () => {
    await call(server.client, 'DELETE', `${pods}/runs?gracePeriodSeconds=0`);
    await expect.poll(allocations, patience).not.toContain('1 default/runs');
    await expect.poll(reserved, patience).not.toContain('10.80.0.1');
    await expect
      .poll(() => events('runs'), patience)
      .toEqual([
        'IPAddressGarbageCollected: successful cleanup of IP address [10.80.0.1] from network 10.80.0.0-24',
      ]);
  });

  test('a Pod that has taken its place keeps them, as those of StatefulSets do', async () => {
    await running.stop();
    await call(server.client, 'DELETE', `${pods}/other?gracePeriodSeconds=0`);
    await createPod('other', 'Running', ['10.80.0.9']);
    running = runControllers({
      transport: server.client,
      controllers: [attachmentsController()],
      log: pino({ enabled: false }),
    });
    // Another one goes meanwhile: when its address is free, the controller has looked.
    await call(server.client, 'DELETE', `${pods}/pending?gracePeriodSeconds=0`);
    await expect.poll(allocations, patience).toEqual(['5 ', '9 default/other', 'x default/gone']);
    expect(await reserved()).toContain('storage-10.80.0.9');
  });
});
