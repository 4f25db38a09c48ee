import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { egressFirewallsController } from '../../src/platforms/openshift/egress-rules.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import { type JsonRecord, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';
import { itemsOf, untilObject } from '../support/with-controllers.ts';
import { platformControllers } from '../support/all-controllers.ts';

const diagnostics = 'openshift-network-diagnostics';
const checks = `/apis/controlplane.operator.openshift.io/v1alpha1/namespaces/${diagnostics}/podnetworkconnectivitychecks`;

let server: TestServer;
let running: RunningControllers;
const lines: unknown[] = [];
const log = pino({ level: 'error' }, { write: (line: string) => lines.push(JSON.parse(line)) });
const post = async (path: string, body: JsonRecord) => call(server.client, 'POST', path, { body });

beforeAll(async () => {
  server = await startApiServer({ platform: 'openshift' });
  const transport = server.client;
  const connectivityChecker = { periodMs: 100, timeoutMs: 2000 };
  running = runControllers({
    transport,
    controllers: platformControllers({ transport, connectivityChecker }),
    log,
  });
  await post('/api/v1/namespaces', { metadata: { name: diagnostics } });
});
afterAll(async () => {
  await running.stop();
  await server.stop();
});

describe('EgressFirewalls', () => {
  test('say whether their rules are in force, a zone and all of them', async () => {
    const namespace = await makeNamespace(server, 'firewall');
    const path = `/apis/k8s.ovn.org/v1/namespaces/${namespace}/egressfirewalls`;
    const spec = (cidrSelector: string) => ({ egress: [{ type: 'Deny', to: { cidrSelector } }] });
    const kind = { apiVersion: 'k8s.ovn.org/v1', kind: 'EgressFirewall', metadata: { name: 'default' } };
    await post(path, { ...kind, spec: spec('1.1.1.1') });
    const statusWith = async (status: string) =>
      recordAt(
        await untilObject(
          server.client,
          `${path}/default`,
          (body) => textAt(body, 'status', 'status') === status,
        ),
        'status',
      );
    expect(await statusWith('EgressFirewall Rules not correctly applied')).toEqual({
      status: 'EgressFirewall Rules not correctly applied',
      messages: [
        `global: EgressFirewall Rules not correctly applied: cannot create EgressFirewall Rule to destination 1.1.1.1 for namespace ${namespace}: invalid CIDR address: 1.1.1.1`,
      ],
    });
    await call(server.client, 'PATCH', `${path}/default`, {
      ...{ body: { spec: spec('1.1.1.0/24') }, contentType: 'application/merge-patch+json' },
    });
    expect(await statusWith('EgressFirewall Rules applied')).toEqual({
      status: 'EgressFirewall Rules applied',
      messages: ['global: EgressFirewall Rules applied'],
    });
    // Without /status, a PUT takes the status away: it comes again.
    const { body } = await call(server.client, 'GET', `${path}/default`);
    const { status: _status, ...rest } = body;
    await call(server.client, 'PUT', `${path}/default`, { body: rest });
    await statusWith('EgressFirewall Rules applied');
    const managers = listAt(
      (await call(server.client, 'GET', `${path}/default`)).body,
      'metadata',
      'managedFields',
    );
    expect(managers.map((manager) => textAt(manager, 'manager'))).toContain('global');
  });
});

describe('EgressQoSes', () => {
  test('say in a condition of the one zone whether their rules are in force', async () => {
    const path = '/apis/k8s.ovn.org/v1/namespaces/qos/egressqoses';
    await post('/api/v1/namespaces', { metadata: { name: 'qos' } });
    const made = await post(path, {
      ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressQoS', metadata: { name: 'default' } },
      spec: { egress: [{ dscp: 46, dstCIDR: '10.0.0.0/8' }] },
    });
    expect(made.status).toBe(201);
    const said = async (message: string): Promise<void> => {
      await untilObject(
        server.client,
        `${path}/default`,
        (body) => textAt(listAt(body, 'status', 'conditions')[0], 'message') === message,
      );
    };
    await said('EgressQoS Rules applied');
    const matchExpressions = [{ key: 'app', operator: 'Near' }];
    await call(server.client, 'PATCH', `${path}/default`, {
      body: { spec: { egress: [{ dscp: 46, podSelector: { matchExpressions } }] } },
      contentType: 'application/merge-patch+json',
    });
    await said(
      'EgressQoS Rules not correctly applied: spec.egress[0].podSelector: "Near" is not a valid label selector operator; no rule is in force',
    );
    const { body } = await call(server.client, 'GET', `${path}/default`);
    expect(textAt(body, 'status', 'status')).toBe('EgressQoS Rules not correctly applied');
    expect(listAt(body, 'status', 'conditions')).toMatchObject([
      { type: 'Ready-In-Zone-global', status: 'False', reason: 'SetupFailed' },
    ]);
  });
});

describe('EgressIPs', () => {
  test('are assigned to labelled nodes, move when one goes, and say what cannot be', async () => {
    const label = { 'k8s.ovn.org/egress-assignable': '' };
    const makeNode = async (name: string, address: string): Promise<void> => {
      const annotations = { 'k8s.ovn.org/node-primary-ifaddr': JSON.stringify({ ipv4: `${address}/24` }) };
      await post('/api/v1/nodes', { metadata: { name, labels: label, annotations } });
      await call(server.client, 'PATCH', `/api/v1/nodes/${name}/status`, {
        ...{ body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
        contentType: 'application/merge-patch+json',
      });
    };
    await makeNode('egress-1', '10.0.0.1');
    await makeNode('egress-2', '10.0.0.2');
    const path = '/apis/k8s.ovn.org/v1/egressips';
    const make = async (name: string, ...addresses: string[]) =>
      post(path, {
        ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressIP', metadata: { name } },
        spec: { egressIPs: addresses, namespaceSelector: {} },
      });
    const itemsAre = async (name: string, ...wanted: string[]) =>
      untilObject(
        server.client,
        `${path}/${name}`,
        (body) =>
          listAt(body, 'status', 'items')
            .map((each) => `${textAt(each, 'egressIP')} ${textAt(each, 'node')}`)
            .join() === wanted.join(),
      );
    await make('web', '10.0.0.10', '10.0.0.11');
    await itemsAre('web', '10.0.0.10 egress-1', '10.0.0.11 egress-2');
    await make('bad', '10.0.0.12/32');
    const events = async (): Promise<readonly string[]> =>
      listAt((await call(server.client, 'GET', '/api/v1/namespaces/default/events')).body, 'items').map(
        (event) => textAt(event, 'reason'),
      );
    await expect.poll(events).toContain('InvalidEgressIP');
    await call(server.client, 'DELETE', '/api/v1/nodes/egress-1');
    await itemsAre('web', '10.0.0.11 egress-2');
    await expect.poll(events).toContain('UnassignedRequest');
    await makeNode('egress-3', '10.0.0.3');
    await itemsAre('web', '10.0.0.11 egress-2', '10.0.0.10 egress-3');
    // The status is an ordinary field: who takes it away gets it again.
    const { body } = await call(server.client, 'GET', `${path}/web`);
    const { status: _status, ...rest } = body;
    await call(server.client, 'PUT', `${path}/web`, { body: rest });
    await itemsAre('web', '10.0.0.10 egress-2', '10.0.0.11 egress-3');
  });
});

async function makePod(name: string, labels: JsonRecord, phase: string): Promise<void> {
  const pods = `/api/v1/namespaces/${diagnostics}/pods`;
  const spec = { nodeName: 'node-1', containers: [{ name: 'c', image: 'i' }] };
  expect((await post(pods, { metadata: { name, labels }, spec })).status).toBe(201);
  await call(server.client, 'PATCH', `${pods}/${name}/status`, {
    ...{ body: { status: { phase } }, contentType: 'application/merge-patch+json' },
  });
}

function listening(port: number): Promise<Server> {
  const tcp = createServer((socket) => socket.on('error', () => undefined).destroy());
  tcp.listen(port, '127.0.0.1');
  return once(tcp, 'listening').then(() => tcp);
}

describe('PodNetworkConnectivityChecks', () => {
  test('connect, see an outage and its end, and say that they are made from the process', async () => {
    const tcp = await listening(0);
    const address = tcp.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await makePod('web', {}, 'Pending');
    const name = 'web-to-local';
    const body = {
      ...{ apiVersion: 'controlplane.operator.openshift.io/v1alpha1', kind: 'PodNetworkConnectivityCheck' },
      ...{ metadata: { name }, spec: { sourcePod: 'web', targetEndpoint: `127.0.0.1:${port}` } },
    };
    expect((await post(checks, body)).status).toBe(201);
    // Its source Pod does not run yet.
    await call(server.client, 'PATCH', `/api/v1/namespaces/${diagnostics}/pods/web/status`, {
      ...{ body: { status: { phase: 'Running' } }, contentType: 'application/merge-patch+json' },
    });
    const conditions = async (status: string) => {
      const object = await untilObject(server.client, `${checks}/${name}`, (found) =>
        listAt(found, 'status', 'conditions').some(
          (each) => textAt(each, 'type') === 'Reachable' && textAt(each, 'status') === status,
        ),
      );
      return object;
    };
    const reached = await conditions('True');
    expect(listAt(reached, 'status', 'successes')[0]).toMatchObject({
      ...{
        success: true,
        reason: 'TCPConnect',
        message: `local: tcp connection to 127.0.0.1:${port} succeeded`,
      },
    });
    expect(textAt(listAt(reached, 'status', 'successes')[0], 'time')).toMatch(/T\d\d:\d\d:\d\dZ$/);
    expect(listAt(reached, 'status', 'conditions')).toMatchObject([
      { type: 'Reachable', reason: 'TCPConnectSuccess' },
      { type: 'FromSourcePod', status: 'False', reason: 'Process' },
    ]);
    tcp.close();
    const refused = `dial tcp 127.0.0.1:${port}: connect: connection refused`;
    const lost = await conditions('False');
    expect(listAt(lost, 'status', 'outages')).toHaveLength(1);
    expect(listAt(lost, 'status', 'failures')[0]).toMatchObject({
      reason: 'TCPConnectError',
      message: `local: failed to establish a TCP connection to 127.0.0.1:${port}: ${refused}`,
    });
    const again = await listening(port);
    const restored = await conditions('True');
    const [outage] = listAt(restored, 'status', 'outages');
    expect(textAt(outage, 'message')).toMatch(/^Connectivity restored after /);
    expect(textAt(outage, 'end')).not.toBe('');
    again.close();
    const events = await untilObject(server.client, `/api/v1/namespaces/${diagnostics}/events`, (list) =>
      itemsOf(list).some((event) => textAt(event, 'reason') === 'ConnectivityRestored'),
    );
    expect(itemsOf(events).map((event) => [textAt(event, 'type'), textAt(event, 'reason')])).toEqual(
      expect.arrayContaining([
        ['Warning', 'ConnectivityOutageDetected'],
        ['Normal', 'ConnectivityRestored'],
      ]),
    );
  });

  test('of sources and targets are made, and deleted with their source', async () => {
    await post('/api/v1/nodes', { metadata: { name: 'node-1' } });
    await makePod('source', { app: 'network-check-source' }, 'Running');
    const name = 'network-check-source-node-1-to-kubernetes-default-service-cluster-0';
    const made = await untilObject(server.client, `${checks}/${name}`, (_body, status) => status === 200);
    expect(made).toMatchObject({
      metadata: { ownerReferences: [{ kind: 'Node', name: 'node-1' }] },
      spec: { sourcePod: 'source', targetEndpoint: '10.96.0.1:443' },
    });
    await call(server.client, 'DELETE', `/api/v1/namespaces/${diagnostics}/pods/source`, {
      query: { gracePeriodSeconds: 0 },
    });
    await untilObject(server.client, `${checks}/${name}`, (_body, status) => status === 404);
    expect((await call(server.client, 'GET', `${checks}/web-to-local`)).status).toBe(200);
  });
});

test('no simulated address is dialed on the network of this machine', async () => {
  const own = await startApiServer({
    ...{ platform: 'openshift', nodes: 1, controllers: ['*'], serviceClusterIpRange: '10.96.0.0/16' },
  });
  try {
    const namespace = await makeNamespace(own, 'checks');
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const containers = [{ name: 'c', image: 'i' }];
    await call(own.client, 'POST', pods, { body: { metadata: { name: 'web' }, spec: { containers } } });
    const path = `/apis/controlplane.operator.openshift.io/v1alpha1/namespaces/${namespace}/podnetworkconnectivitychecks`;
    const node = await untilObject(
      own.client,
      '/api/v1/nodes/node-1',
      (body) => listAt(body, 'status', 'addresses').length > 0,
    );
    const [nodeAddress] = listAt(node, 'status', 'addresses');
    const targets = ['10.96.0.1', '10.244.0.9', textAt(nodeAddress, 'address')];
    for (const [index, target] of targets.entries()) {
      const body = {
        ...{ apiVersion: 'controlplane.operator.openshift.io/v1alpha1', kind: 'PodNetworkConnectivityCheck' },
        ...{ metadata: { name: `c${index}` }, spec: { sourcePod: 'web', targetEndpoint: `${target}:443` } },
      };
      expect((await call(own.client, 'POST', path, { body })).status).toBe(201);
      await untilObject(own.client, `${path}/c${index}`, (check) =>
        JSON.stringify(check).includes(`dial tcp ${target}:443: the address is simulated`),
      );
    }
  } finally {
    await own.stop();
  }
}, 60_000);

test('controllers do not start beside a project that does their work, and name it', async () => {
  const containers = [{ name: 'c', image: 'i' }];
  const labels = { app: 'ovn' };
  await post(`/apis/apps/v1/namespaces/${diagnostics}/daemonsets`, {
    metadata: { name: 'ovnkube-node' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  });
  const beside: unknown[] = [];
  const second = runControllers({
    transport: server.client,
    controllers: [egressFirewallsController],
    log: pino({ level: 'error' }, { write: (line: string) => beside.push(JSON.parse(line)) }),
  });
  try {
    await expect
      .poll(() => beside)
      .toMatchObject([
        {
          ...{
            reason: 'OtherImplementation',
            resource: 'egressfirewalls.k8s.ovn.org',
            by: ['OVN-Kubernetes'],
          },
          msg: 'OVN-Kubernetes does this work in the cluster (egress firewalls): not started; leave it to that, or remove it first',
        },
      ]);
  } finally {
    await second.stop();
  }
});

test('nothing went wrong meanwhile', () => {
  expect(lines).toEqual([]);
});
