import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addressPools, leases, nodes, services } from '../../src/client/resources.ts';
import { announcedConditionOf } from '../../src/controllers/announcement-status/plan.ts';
import type { RunningControllers } from '../../src/controllers/run.ts';
import { type AgentReport, encodeReport } from '../../src/network/announcing/agent-report.ts';
import {
  announcerLabel,
  announcerLeaseName,
  reportAnnotation,
} from '../../src/network/announcing/agent-report.ts';
import { parseCidr } from '../../src/objects/address.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import type { AddressPool } from '../../src/objects/types/servicenet.ts';
import { formatMicroTime } from '../../src/objects/formats/time.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { BalancedServer, startLoadBalancer } from '../support/balanced-server.ts';
import { PermissionRecorder } from '../support/permission-recorder.ts';

const leaseNamespace = 'kube-node-lease';
const condition = 'servicenet.dev/Announced';
const address = '192.0.2.1';

let cluster: BalancedServer;
let recorder: PermissionRecorder;
let metrics: Metrics;
let running: RunningControllers;
let renewals: NodeJS.Timeout | undefined;
/** Agents that renew their Leases. */
const living = new Set<string>();
/** Renewals that have been written. */
let renewed = 0;

beforeEach(async () => {
  cluster = await BalancedServer.start({ nodes: 0 });
  metrics = new Metrics();
  recorder = new PermissionRecorder(cluster.server.client, { watchList: true, lagging: undefined });
  running = startLoadBalancer(recorder, { metrics });
  await cluster.pool('lan', { addresses: [address] });
});

afterEach(async () => {
  clearInterval(renewals);
  living.clear();
  await running.stop();
  await cluster.server.stop();
});

/** Writes what the agent of a node reports, and keeps its Lease renewed, as agents do. */
async function agent(node: string, report: Partial<AgentReport>): Promise<void> {
  const subnet = parseCidr('192.0.2.0/24');
  const mac = '02:00:00:00:00:01';
  const interfaces = [{ name: 'eth0', subnets: subnet === undefined ? [] : [subnet], mac, ownMac: mac }];
  const metadata = {
    labels: { [announcerLabel]: 'true' },
    annotations: {
      [reportAnnotation]: encodeReport({
        ...{ interfaces, sessions: [], refused: [], announced: [], voters: new Map() },
        ...report,
      }),
    },
  };
  const client = cluster.clients.for(leases);
  const name = announcerLeaseName(node);
  if (living.has(node)) await client.mergePatch(leaseNamespace, name, { metadata });
  else {
    await cluster.clients.for(nodes).create({ metadata: { name: node } });
    const spec = { holderIdentity: node, renewTime: formatMicroTime(Date.now()) };
    await client.create({ metadata: { ...metadata, namespace: leaseNamespace, name }, spec });
    living.add(node);
  }
  renewals ??= setInterval(() => {
    for (const one of living) {
      const spec = { renewTime: formatMicroTime(Date.now()) };
      const name = announcerLeaseName(one);
      // One that fails is renewed by the next.
      void client.mergePatch(leaseNamespace, name, { spec }).then(
        () => renewed++,
        () => undefined,
      );
    }
  }, 300);
}

/** Waits for the reason, or for a part of the message, and returns the message. */
async function untilSaid(text: string): Promise<string> {
  const service = await cluster.until('web', (one) => {
    const { reason = '', message = '' } = announcedConditionOf(one) ?? {};
    return reason === text || message.includes(text);
  });
  return announcedConditionOf(service)?.message ?? '';
}

async function untilPool(wanted: (pool: AddressPool) => boolean): Promise<AddressPool> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const pool = await cluster.clients.for(addressPools).get('', 'lan');
    if (wanted(pool)) return pool;
    if (Date.now() > deadline) throw new Error(`the pool never came: ${JSON.stringify(pool.status)}`);
    await sleep(50);
  }
}

/** How often all Services were looked at, or one was written. */
async function planRuns(): Promise<number> {
  const line = /^servicenet_reconcile_total\{[^}]*controller="announced"[^}]*result="success"[^}]*\} (\d+)/m;
  return Number(line.exec(await metrics.scrape())?.[1] ?? 0);
}

/** What was written for the condition. */
function writes(): number {
  return recorder.bodies().filter((body) => body.includes(condition)).length;
}

test('a Service says who announces it through a crash and a conflict, and is not written while Leases are renewed', async () => {
  await agent('a', { announced: [address] });
  await cluster.service('web');
  expect(await untilSaid('Announced')).toMatch(/^192\.0\.2\.1 by a on eth0 since 2/);

  // More than a Lease lasts.
  const [before, until] = [writes(), renewed + 12];
  const { metadata } = await cluster.read('web');
  await expect.poll(() => renewed).toBeGreaterThan(until);
  expect(writes()).toBe(before);
  expect((await cluster.read('web')).metadata.resourceVersion).toBe(metadata.resourceVersion);

  // The agent is killed, and another one has taken over.
  living.delete('a');
  await agent('b', { announced: [address] });
  expect(await untilSaid('by b on eth0')).not.toContain('by a');

  const holder = '02:00:00:00:00:09';
  await agent('b', { refused: [{ address, reason: 'AddressConflict', holder }] });
  expect(await untilSaid('AddressConflict')).toContain(holder);
  const pool = await untilPool(({ status }) => status?.refused !== undefined);
  expect(pool.status?.refused).toMatchObject([
    { address, node: 'b', reason: 'AddressConflict', message: `held by ${holder}` },
  ]);
  expect(pool.status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'Announced', status: 'False', reason: 'AddressConflict' }),
  );

  await agent('b', { announced: [address] });
  await untilSaid('Announced');
  await untilPool(({ status }) => status?.refused === undefined);
  await expect
    .poll(async () => {
      const path = '/api/v1/namespaces/default/events';
      const list = (await cluster.server.client.request('GET', path)).json();
      return [...new Set(listAt(list, 'items').map((event) => textAt(event, 'reason')))].toSorted();
    })
    .toEqual(['AddressConflict', 'Announced', 'Assigned']);
});

test('a pool says which of its addresses a node or its router has before a Service gets one, and gives none of them', async () => {
  await cluster.clients
    .for(addressPools)
    .mergePatch('', 'lan', { spec: { addresses: ['192.0.2.1-192.0.2.3'] } });
  await agent('a', {
    refused: [
      { address: '192.0.2.1', reason: 'GatewayAddress', holder: '' },
      { address: '192.0.2.2', reason: 'NodeAddress', holder: 'eth1' },
    ],
  });
  const pool = await untilPool(
    ({ status }) => status?.conditions?.some(({ reason }) => reason === 'Overlap') === true,
  );
  expect(pool.status?.refused).toMatchObject([
    { address: '192.0.2.1', node: 'a', reason: 'GatewayAddress' },
    { address: '192.0.2.2', node: 'a', reason: 'NodeAddress', message: 'held by eth1' },
  ]);
  expect(pool.status?.conditions).toContainEqual(
    expect.objectContaining({
      type: 'Conflict',
      message:
        '192.0.2.1 belongs to the router of node a; 192.0.2.2 belongs to node a: these addresses are not given',
    }),
  );
  await cluster.service('web');
  await cluster.until('web', ({ status }) => status.loadBalancer?.ingress?.[0]?.ip === '192.0.2.3');
  // Without them again.
  await agent('a', {});
  await untilPool(
    ({ status }) =>
      status?.refused === undefined &&
      status?.conditions?.some(({ reason }) => reason === 'NoOverlap') === true,
  );
});

test('where no agent has ever run, neither Services nor pools speak of announcing', async () => {
  await cluster.service('web');
  await cluster.untilReason('web', 'Assigned');
  await untilPool(({ status }) => status?.ipv4?.used === 1);
  // The Service is planned a second after its address has come.
  const planned = await planRuns();
  await expect.poll(planRuns).toBeGreaterThan(planned);
  expect(writes()).toBe(0);
  expect((await untilPool(() => true)).status?.conditions?.map(({ type }) => type)).toEqual([
    'Ready',
    'Conflict',
  ]);
  await agent('a', {});
  await untilSaid('Pending');
});

test('a Service that is no load balancer any more loses the condition with its addresses', async () => {
  await agent('a', { announced: [address] });
  await cluster.service('web');
  await untilSaid('Announced');
  await cluster.clients.for(services).mergePatch('default', 'web', { spec: { type: 'ClusterIP' } });
  const { status } = await cluster.until(
    'web',
    (one) => one.spec.type === 'ClusterIP' && (one.status.conditions ?? []).length === 0,
  );
  expect(status.loadBalancer).toEqual({});
});
