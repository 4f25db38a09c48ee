import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/client/clock.ts';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { ipAddresses, serviceCIDRs, services } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { nodePortRange } from '../../src/flags/shared.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import { auditCluster } from '../../src/controllers/service-allocation/cluster-audit.ts';
import { serviceAllocationController } from '../../src/controllers/service-allocation/controller.ts';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import type { Service, ServiceSpec } from '../../src/objects/types/core.generated.ts';
import { startApiServer, type TestServer, type TestServerOptions } from '../../src/testing/index.ts';
import { fastClock } from '../support/fast-clock.ts';
import { UnreliableTransport } from '../support/unreliable-transport.ts';
import { nextSecond } from '../support/next-second.ts';

const silent = pino({ enabled: false });
const ports = '30000-30039';

let server: TestServer;
let client: ResourceClient<Service>;
const running: RunningControllers[] = [];

async function start(options: TestServerOptions): Promise<void> {
  server = await startApiServer({ serviceNodePortRange: ports, ...options });
  client = new ResourceClient(server.client, services);
}

function run(
  allocation: 'server' | 'controller',
  transport: Transport = server.client,
  clock?: Clock,
): RunningControllers {
  const nodePorts = nodePortRange(ports);
  const controllers = runControllers({
    transport,
    controllers: [serviceAllocationController({ transport, allocation, nodePorts })],
    log: silent,
    ...(clock === undefined ? {} : { clock }),
  });
  running.push(controllers);
  return controllers;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((controllers) => controllers.stop()));
  await server.stop();
});

async function create(name: string, spec: Partial<ServiceSpec>): Promise<void> {
  await client.create({
    metadata: { name, namespace: 'default' },
    spec: { ports: [{ port: 80 }], ...spec },
  });
}

/** Waits until all Services match, or the test times out. */
async function eventually(condition: (all: Map<string, Service>) => boolean): Promise<Map<string, Service>> {
  for (;;) {
    const { items } = await client.list();
    const all = new Map(items.map((item) => [item.metadata.name ?? '', item]));
    if (condition(all)) return all;
    await sleep(10);
  }
}

const hasAddress = (service: Service | undefined): boolean => (service?.spec.clusterIPs?.length ?? 0) > 0;
const reasonOf = (service: Service | undefined): string =>
  textAt(
    listAt(service?.status, 'conditions').find((item) => textAt(item, 'type') === 'servicenet.dev/Allocated'),
    'reason',
  );

/** The Events of Services, in order of time. */
async function reportedReasons(): Promise<string[]> {
  const events = (await server.client.request('GET', '/api/v1/namespaces/default/events')).json();
  return listAt(events, 'items')
    .toSorted(
      (a, b) =>
        Number(textAt(a, 'metadata', 'resourceVersion')) - Number(textAt(b, 'metadata', 'resourceVersion')),
    )
    .map(
      (item) => `${textAt(item, 'type')} ${textAt(item, 'reason')} ${textAt(item, 'involvedObject', 'name')}`,
    );
}

describe('service-allocation on a server that does not allocate', () => {
  beforeEach(() => start({ allocation: 'controller' }));

  it('allocates addresses and ports, keeps IPAddresses, honours requests, and releases all', async () => {
    run('controller');
    await create('plain', {});
    await create('wish', {
      type: 'NodePort',
      clusterIP: '10.96.0.77',
      ports: [{ port: 80, nodePort: 30_005 }],
    });
    await create('local', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
    const all = await eventually((now) => {
      return (
        hasAddress(now.get('plain')) &&
        now.get('local')?.spec.healthCheckNodePort !== undefined &&
        now.get('wish')?.spec.ipFamilies !== undefined
      );
    });
    const wish = all.get('wish');
    expect(wish?.spec).toMatchObject({
      clusterIPs: ['10.96.0.77'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    });
    expect(wish?.spec.ports?.[0]?.nodePort).toBe(30_005);
    expect(
      new Set([
        30_005,
        all.get('local')?.spec.healthCheckNodePort,
        all.get('local')?.spec.ports?.[0]?.nodePort,
      ]).size,
    ).toBe(3);

    const addresses = new ResourceClient(server.client, ipAddresses);
    const holders = async (): Promise<string[]> =>
      (await addresses.list()).items.map(
        (item) => `${item.metadata.name ?? ''} ${textAt(item.spec, 'parentRef', 'name')}`,
      );
    await eventually(() => true);
    while ((await holders()).length < 4) await sleep(10);
    expect(await holders()).toContain('10.96.0.77 wish');

    await client.mergePatch('default', 'wish', {
      spec: {
        type: 'ExternalName',
        externalName: 'x.example',
        clusterIP: null,
        clusterIPs: null,
        ports: [{ port: 80, nodePort: null }],
      },
    });
    await client.delete('default', 'plain');
    await client.delete('default', 'local');
    while ((await holders()).length > 1) await sleep(10);
    expect(await holders()).toEqual(['10.96.0.1 kubernetes']);
  });

  it('keeps a value of two Services with the older one, and reports the problem and its end at the younger', async () => {
    run('controller');
    await create('older', { clusterIP: '10.96.0.88' });
    await nextSecond();
    await create('younger', { clusterIP: '10.96.0.88' });
    const all = await eventually((now) => reasonOf(now.get('younger')) !== '');
    expect(reasonOf(all.get('younger'))).toBe('ClusterIPAlreadyAllocated');
    expect(reasonOf(all.get('older'))).toBe('');
    await client.delete('default', 'older');
    await eventually((now) => reasonOf(now.get('younger')) === 'Allocated');
    let reasons: string[] = [];
    while (reasons.length < 2) reasons = await reportedReasons();
    expect(reasons).toEqual(['Warning ClusterIPAlreadyAllocated younger', 'Normal Allocated younger']);
  });

  it('reports a full range, and serves the waiting Service when a value becomes free', async () => {
    run('controller');
    const many = (count: number): ServiceSpec['ports'] =>
      Array.from({ length: count }, (_, i) => ({ name: `p${i}`, port: 80 + i }));
    await create('big', { type: 'NodePort', ports: many(38) ?? [] });
    await eventually((now) => hasAddress(now.get('big')));
    await create('more', { type: 'NodePort', ports: many(3) ?? [] });
    await create('fits', { type: 'NodePort', ports: many(2) ?? [] });
    const full = await eventually((now) => reasonOf(now.get('more')) !== '' && hasAddress(now.get('fits')));
    expect(reasonOf(full.get('more'))).toBe('PortRangeFull');
    expect(hasAddress(full.get('more'))).toBe(false);
    await client.mergePatch('default', 'big', {
      spec: { type: 'ClusterIP', ports: (many(1) ?? []).map((port) => ({ ...port })) },
    });
    const after = await eventually(
      (now) => hasAddress(now.get('more')) && reasonOf(now.get('more')) === 'Allocated',
    );
    expect(after.get('more')?.spec.ports?.every(({ nodePort = 0 }) => nodePort > 0)).toBe(true);
  });

  it('never allocates a value twice, with two instances, lost writes, lost responses, late writes and restarts', async () => {
    let state = 7;
    const random = (): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return state / 2 ** 32;
    };
    const faults = { dropped: 0.1, unanswered: 0.1, late: 0.1 };
    const unreliable = [0, 1].map(() => new UnreliableTransport(server.client, faults, random));
    const instances = unreliable.map((transport) => run('controller', transport));
    const count = 36;
    const kinds: Partial<ServiceSpec>[] = [
      {},
      { type: 'NodePort' },
      { clusterIP: 'None', selector: { a: 'b' } },
    ];
    for (let i = 0; i < count; i++) {
      await create(`s${i}`, kinds[i % 3] ?? {});
      if (i % 12 !== 5) continue;
      const index = i % 2;
      await instances[index]?.stop();
      const transport = unreliable[index];
      if (transport !== undefined) instances[index] = run('controller', transport);
    }
    const all = await eventually((now) =>
      [...now.values()].every(
        (service) =>
          hasAddress(service) &&
          (service.spec.type !== 'NodePort' || (service.spec.ports?.[0]?.nodePort ?? 0) > 0) &&
          at(service.metadata, 'annotations', 'servicenet.dev/allocation-claim') === undefined,
      ),
    );
    await Promise.all(unreliable.map((transport) => transport.calm()));
    const given = [...all.values()].flatMap(({ spec }) => [
      ...(spec.clusterIPs ?? []),
      ...(spec.ports ?? []).flatMap(({ nodePort }) => (nodePort === undefined ? [] : [String(nodePort)])),
    ]);
    const values = given.filter((value) => value !== 'None');
    expect(new Set(values).size).toBe(values.length);
    expect(values).toHaveLength(1 + 12 + 2 * 12);
  });

  it('writes nothing after a restart into a settled cluster', async () => {
    const first = run('controller');
    for (let i = 0; i < 10; i++) await create(`s${i}`, { type: i % 2 === 0 ? 'ClusterIP' : 'NodePort' });
    await eventually((now) => [...now.values()].every(hasAddress));
    const addresses = new ResourceClient(server.client, ipAddresses);
    while ((await addresses.list()).items.length < 11) await sleep(10);
    await first.stop();
    const counting = new UnreliableTransport(
      server.client,
      { dropped: 0, unanswered: 0, late: 0 },
      () => 0.5,
    );
    const second = run('controller', counting);
    while (second.healthChecks().some((check) => check.check() !== undefined)) await sleep(10);
    await create('last', {});
    await eventually((now) => hasAddress(now.get('last')));
    // Claim, IPAddress and spec of the new Service, after all others were reconciled.
    expect(counting.writes).toBe(3);
  });
});

describe('service-allocation and its ranges', () => {
  it('serves waiting Services when a range is added, in both families', async () => {
    await start({ allocation: 'controller', serviceClusterIpRange: '10.96.0.0/28,fd00::/124' });
    run('controller');
    for (let i = 0; i < 20; i++) await create(`s${i}`, { ipFamilyPolicy: 'RequireDualStack' });
    // Fourteen addresses; default/kubernetes has one of them.
    const full = await eventually(
      (now) =>
        [...now.values()].filter((service) => hasAddress(service) || reasonOf(service) !== '').length === 21,
    );
    const waiting = [...full.values()].filter((service) => !hasAddress(service));
    expect(waiting.map(reasonOf)).toEqual(Array.from({ length: 7 }, () => 'ClusterIPRangeFull'));
    await new ResourceClient(server.client, serviceCIDRs).create({
      metadata: { name: 'more' },
      spec: { cidrs: ['10.97.0.0/28', 'fd01::/124'] },
    });
    const after = await eventually((now) => [...now.values()].every(hasAddress));
    const given = [...after.values()].flatMap(({ spec }) => spec.clusterIPs ?? []);
    expect(new Set(given).size).toBe(41);
  });
});

describe('service-allocation on a server that allocates', () => {
  beforeEach(() => start({}));

  it('has no findings on the embedded API server', async () => {
    await create('a', { type: 'NodePort' });
    await create('b', { ipFamilyPolicy: 'PreferDualStack' });
    await expect(auditCluster(server.client, nodePortRange(ports))).resolves.toEqual({
      services: 3,
      addresses: 3,
      findings: [],
    });
  });

  it('reports a lasting finding once', async () => {
    await create('a', {});
    const addresses = new ResourceClient(server.client, ipAddresses);
    await addresses.create({
      metadata: {
        name: '10.96.0.200',
        labels: { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' },
      },
      spec: { parentRef: { resource: 'services', namespace: 'default', name: 'gone' } },
    });
    const { findings } = await auditCluster(server.client, nodePortRange('31000-31001'));
    expect(findings.map(({ key, reason }) => `${key} ${reason}`)).toEqual([
      '10.96.0.200 IPAddressNotAllocated',
    ]);
    const controllers = run('server', server.client, fastClock(40));
    let reasons: string[] = [];
    while (reasons.length === 0) {
      reasons = await reportedReasons();
      await sleep(10);
    }
    expect(reasons).toEqual(['Warning IPAddressNotAllocated 10.96.0.200']);
    await controllers.stop();
  });
});
