import { isKubeObject } from '../../src/objects/meta.ts';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { networkStatusOf } from '../../src/network/attachments/network-status.ts';
import { runCommandLine } from '../../src/commands/program.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { AwaitedNetworks } from '../../src/controllers/kubelet/pod-preparation.ts';
import { attachmentsController } from '../../src/platforms/cni/controller.ts';
import type { Pod } from '../../src/objects/types/core.generated.ts';
import { controllerContext } from '../support/controller-context.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { recordAt, textAt, listAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';
import { itemsOf, untilObject } from '../support/with-controllers.ts';

const pools = '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools';
const reservations =
  '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/overlappingrangeipreservations';
const networks = 'k8s.v1.cni.cncf.io/networks';

let server: TestServer;

beforeAll(async () => {
  server = await startApiServer({ platform: 'openshift', nodes: 2 });
});
afterAll(() => server.stop());

const post = async (path: string, body: JsonRecord): Promise<void> => {
  expect((await call(server.client, 'POST', path, { body })).status).toBe(201);
};

async function define(namespace: string, name: string, config: unknown): Promise<void> {
  await post(`/apis/k8s.cni.cncf.io/v1/namespaces/${namespace}/network-attachment-definitions`, {
    ...{ apiVersion: 'k8s.cni.cncf.io/v1', kind: 'NetworkAttachmentDefinition', metadata: { name } },
    spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
  });
}

const whereabouts = (range: string, more: object = {}): object => ({
  ...{ cniVersion: '0.3.1', type: 'macvlan', master: 'eth0', mode: 'bridge' },
  ipam: { type: 'whereabouts', range, ...more },
});

async function createPod(namespace: string, name: string, annotation: string): Promise<void> {
  await post(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name, annotations: { [networks]: annotation } },
    spec: { containers: [{ name: 'main', image: 'nginx' }] },
  });
}

/** Waits until the Pod runs. @returns its interfaces: `name=network ip ip`. */
async function attached(namespace: string, name: string): Promise<readonly string[]> {
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  const pod = await untilObject(server.client, path, (body) => textAt(body, 'status', 'phase') === 'Running');
  if (!isKubeObject(pod)) throw new Error(path);
  return (networkStatusOf(pod) ?? []).map((each) =>
    [`${each.interface ?? ''}=${each.name}`, ...(each.ips ?? [])].join(' '),
  );
}

async function allocations(pool: string): Promise<JsonRecord> {
  const { body } = await call(server.client, 'GET', `${pools}/${pool}`);
  return recordAt(body, 'spec', 'allocations');
}

async function eventsOf(namespace: string, name: string, reason: string): Promise<readonly string[]> {
  const { body } = await call(server.client, 'GET', `/api/v1/namespaces/${namespace}/events`);
  return itemsOf(body)
    .filter((event) => textAt(event, 'reason') === reason)
    .filter((event) => textAt(event, 'involvedObject', 'name') === name)
    .map((event) => textAt(event, 'message'));
}

const patience = { timeout: 60_000 };

describe('a Pod with further networks', () => {
  test('gets addresses of its networks, the same ones as long as it lives, and gives them back', async () => {
    const namespace = await makeNamespace(server, 'attached');
    await define(namespace, 'lan', whereabouts('10.50.0.0/24', { ipRanges: [{ range: 'fd50::/64' }] }));
    await define(namespace, 'fixed', {
      type: 'bridge',
      ipam: {
        ...{ type: 'static', addresses: [{ address: '10.51.0.7/24' }] },
        routes: [{ dst: '0.0.0.0/0', gw: '10.51.0.1' }],
      },
    });
    await define(namespace, 'local', {
      type: 'macvlan',
      ipam: { type: 'host-local', subnet: '10.52.0.0/24' },
    });
    await createPod(namespace, 'web', 'lan,lan@second,fixed,local');
    const [own, ...others] = await attached(namespace, 'web');
    expect(own).toMatch(/^eth0=servicenet 10\.244\./);
    expect(others).toEqual([
      `net1=${namespace}/lan 10.50.0.1 fd50::1`,
      `second=${namespace}/lan 10.50.0.2 fd50::2`,
      `net3=${namespace}/fixed 10.51.0.7`,
      `net4=${namespace}/local 10.52.0.2`,
    ]);
    expect(await allocations('10.50.0.0-24')).toMatchObject({
      1: { podref: `${namespace}/web`, ifname: 'net1' },
      2: { podref: `${namespace}/web`, ifname: 'second' },
    });
    expect(textAt(await allocations('10.50.0.0-24'), '1', 'id')).toMatch(/^[0-9a-f]{64}$/);
    expect(Object.keys(await allocations('fd50---64'))).toEqual(['1', '2']);
    const { body } = await call(server.client, 'GET', `${reservations}/fd50--2`);
    expect(recordAt(body, 'spec')).toEqual({ podref: `${namespace}/web`, ifname: 'second' });
    await call(server.client, 'DELETE', `/api/v1/namespaces/${namespace}/pods/web?gracePeriodSeconds=0`);
    await expect.poll(() => allocations('10.50.0.0-24'), patience).toEqual({});
    await expect.poll(() => allocations('fd50---64'), patience).toEqual({});
    const left = async (): Promise<number> =>
      itemsOf((await call(server.client, 'GET', reservations)).body).filter((each) =>
        textAt(each, 'spec', 'podref').startsWith(`${namespace}/`),
      ).length;
    await expect.poll(left, patience).toBe(0);
  });

  test('waits for a network that is missing, says so, and is attached when it comes', async () => {
    const namespace = await makeNamespace(server, 'missing');
    await createPod(namespace, 'web', 'late');
    const path = `/api/v1/namespaces/${namespace}/pods/web`;
    const said = 'cannot find a network-attachment-definition (late)';
    await expect
      .poll(async () => (await eventsOf(namespace, 'web', 'NoNetworkFound')).join(), patience)
      .toContain(said);
    const failureOf = async (): Promise<string> =>
      (await eventsOf(namespace, 'web', 'FailedCreatePodSandBox')).at(0) ?? '';
    await expect
      .poll(failureOf, patience)
      .toMatch(/^Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network/);
    const failure = await failureOf();
    expect(failure).toContain(said);
    const { body } = await call(server.client, 'GET', path);
    expect(textAt(body, 'status', 'phase')).toBe('Pending');
    const [container] = listAt(body, 'status', 'containerStatuses');
    expect(textAt(container, 'state', 'waiting', 'reason')).toBe('ContainerCreating');
    await define(namespace, 'late', whereabouts('10.53.0.0/24'));
    expect((await attached(namespace, 'web'))[1]).toBe(`net1=${namespace}/late 10.53.0.1`);
  });

  test('waits for an address where all are taken, and gets the first that is given back', async () => {
    const namespace = await makeNamespace(server, 'full');
    await define(namespace, 'small', whereabouts('10.54.0.0/30'));
    for (const name of ['a', 'b']) {
      await createPod(namespace, name, 'small');
      await attached(namespace, name);
    }
    await createPod(namespace, 'c', 'small');
    await expect
      .poll(async () => (await eventsOf(namespace, 'c', 'FailedCreatePodSandBox')).join(), patience)
      .toContain(
        'error at storage engine: Could not allocate IP in range: ip: 10.54.0.1 / - 10.54.0.2 / range: 10.54.0.0/30 / excludeRanges: []',
      );
    await call(server.client, 'DELETE', `/api/v1/namespaces/${namespace}/pods/a?gracePeriodSeconds=0`);
    expect((await attached(namespace, 'c'))[1]).toBe(`net1=${namespace}/small 10.54.0.1`);
  });

  test.each([
    ['no usable address', whereabouts('10.55.0.0/31'), 'net', 'has no usable IP addresses, it is too small'],
    [
      'an exclude of everything',
      whereabouts('10.55.0.0/24', { exclude: ['0.0.0.0/0'] }),
      'net',
      'Could not allocate',
    ],
    [
      'an exclude that is none',
      whereabouts('10.55.0.0/24', { exclude: ['x'] }),
      'net',
      'could not parse exclude range',
    ],
    ['no JSON', '{"type":', 'net', 'failed to unmarshal Spec.Config'],
    ['no configuration', '', 'net', 'No networks found in /etc/cni/multus/net.d'],
    [
      'a name of 16 characters',
      whereabouts('10.55.0.0/24'),
      'net@abcdefghijklmnop',
      "interface name 'abcdefghijklmnop'",
    ],
    ['two interfaces of one name', whereabouts('10.55.0.0/24'), 'net@lan,net@lan', 'file exists'],
    ['an annotation that is none', whereabouts('10.55.0.0/24'), '[{"name"', 'JSON format'],
  ])('%s: its sandbox fails, and says why', async (what, config, annotation, message) => {
    const namespace = await makeNamespace(server, what.toLowerCase().replaceAll(' ', '-'));
    await define(namespace, 'net', config);
    await createPod(namespace, 'web', annotation);
    await expect
      .poll(async () => (await eventsOf(namespace, 'web', 'FailedCreatePodSandBox')).join(), patience)
      .toContain(message);
    const { body } = await call(server.client, 'GET', `/api/v1/namespaces/${namespace}/pods/web`);
    expect(textAt(body, 'status', 'phase')).toBe('Pending');
    expect(JSON.stringify((await call(server.client, 'GET', pools)).body)).not.toContain(`${namespace}/`);
  });

  test('gets unsorted and huge excludes of IPv6 passed over', async () => {
    const namespace = await makeNamespace(server, 'excludes');
    const exclude = ['2001:db9::/32', '2001:dba::1', '2001:db8::/32', '2001:dba::/128'];
    await define(namespace, 'net', whereabouts('2001:db8::/30', { exclude }));
    await createPod(namespace, 'web', 'net');
    expect((await attached(namespace, 'web'))[1]).toBe(`net1=${namespace}/net 2001:dba::2`);
    const [key = ''] = Object.keys(await allocations('2001-db8---30'));
    expect(BigInt(key)).toBe(2n * 2n ** 96n + 2n);
  });

  test('has an interface without addresses where their plugin is not known, and an Event', async () => {
    const namespace = await makeNamespace(server, 'dhcp');
    await define(namespace, 'net', { type: 'macvlan', ipam: { type: 'dhcp' } });
    await createPod(namespace, 'web', 'net');
    expect((await attached(namespace, 'web'))[1]).toBe(`net1=${namespace}/net`);
    await expect
      .poll(async () => (await eventsOf(namespace, 'web', 'AttachmentIncomplete')).join(), patience)
      .toContain('the IPAM plugin "dhcp"');
  });

  test('is attached anew where its annotation is a copy of another Pod', async () => {
    const namespace = await makeNamespace(server, 'copied');
    await define(namespace, 'net', whereabouts('10.56.0.0/24'));
    const copied = [{ name: 'servicenet', interface: 'eth0', ips: ['10.244.99.99'], default: true, dns: {} }];
    await post(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: {
        name: 'web',
        annotations: { [networks]: 'net', 'k8s.v1.cni.cncf.io/network-status': JSON.stringify(copied) },
      },
      spec: { containers: [{ name: 'main', image: 'nginx' }] },
    });
    expect((await attached(namespace, 'web'))[1]).toBe(`net1=${namespace}/net 10.56.0.1`);
  });
});

describe('a configuration that is no JSON', () => {
  test('is stored with a warning, and never refused', async () => {
    const namespace = await makeNamespace(server, 'warned');
    const path = `/apis/k8s.cni.cncf.io/v1/namespaces/${namespace}/network-attachment-definitions`;
    const kind = { apiVersion: 'k8s.cni.cncf.io/v1', kind: 'NetworkAttachmentDefinition' };
    const body = { ...kind, metadata: { name: 'net' }, spec: { config: '{"type":' } };
    const warnings = ['spec.config: is no JSON object: Pods that name this network will not start'];
    expect(await call(server.client, 'POST', path, { body })).toMatchObject({ status: 201, warnings });
    const patched = async (config: string): Promise<unknown> => {
      const patch = { body: { spec: { config } }, contentType: 'application/merge-patch+json' };
      const answer = await call(server.client, 'PATCH', `${path}/net`, patch);
      return [answer.status, ...answer.warnings];
    };
    expect(await patched('{"type":"macvlan"}')).toEqual([200]);
    expect(await patched('[]')).toEqual([200, ...warnings]);
    expect(await patched('')).toEqual([200]);
  });
});

describe('beside multus', () => {
  test('nothing is attached, one line says why, and no containers wait', async () => {
    const other = await startApiServer({
      ...{ platform: 'openshift', nodes: 1, controllers: ['*', '-network-attachment-controller'] },
    });
    const lines: string[] = [];
    try {
      const context = controllerContext(new FakeClock(Date.now()), other.client);
      const pod: Pod = {
        metadata: { name: 'web', namespace: 'default', annotations: { [networks]: 'net' } },
        ...{ spec: {}, status: {} },
      };
      const { signal } = new AbortController();
      expect(await new AwaitedNetworks(context).areAwaited(pod, signal)).toBe(true);
      const labels = { app: 'multus' };
      const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'multus' }] } };
      await call(other.client, 'POST', '/apis/apps/v1/namespaces/kube-system/daemonsets', {
        body: { metadata: { name: 'kube-multus-ds' }, spec: { selector: { matchLabels: labels }, template } },
      });
      expect(await new AwaitedNetworks(context).areAwaited(pod, signal)).toBe(false);
      const beside = runControllers({
        transport: other.client,
        controllers: [attachmentsController()],
        log: pino({ level: 'error' }, { write: (line: string) => void lines.push(line) }),
      });
      try {
        await expect.poll(() => lines.join(), patience).toContain('"by":["multus"]');
        expect(lines.join()).toContain('OtherImplementation');
      } finally {
        await beside.stop();
      }
    } finally {
      await other.stop();
    }
  });
});

describe('overlapping ranges', () => {
  test('give no address twice', async () => {
    const namespace = await makeNamespace(server, 'overlap');
    await define(namespace, 'wide', whereabouts('10.57.0.0/16'));
    await define(namespace, 'narrow', whereabouts('10.57.0.0/24'));
    await define(
      namespace,
      'apart',
      whereabouts('10.57.0.0/24', { enable_overlapping_ranges: false, network_name: 'x' }),
    );
    const found: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      await createPod(namespace, name, 'wide,narrow,apart');
      const [, wide = '', narrow = '', apart = ''] = await attached(namespace, name);
      for (const text of [wide, narrow]) found.push(text.split(' ')[1] ?? '');
      // Its ranges overlap with none.
      expect(apart).toMatch(/ 10\.57\.0\.[123]$/);
    }
    expect(new Set(found).size).toBe(6);
    expect(Object.keys(await allocations('x-10.57.0.0-24'))).toHaveLength(3);
  });
});

describe('20 Pods at once on one pool', () => {
  test('have 20 addresses, and no write is lost', async () => {
    const namespace = await makeNamespace(server, 'burst');
    await define(namespace, 'net', whereabouts('10.58.0.0/27', { exclude: ['10.58.0.4/30'] }));
    const names = Array.from({ length: 20 }, (_, index) => `pod-${index}`);
    await Promise.all(names.map((name) => createPod(namespace, name, 'net')));
    const addresses = await Promise.all(
      names.map(async (name) => (await attached(namespace, name))[1]?.split(' ')[1] ?? ''),
    );
    expect(new Set(addresses).size).toBe(20);
    const entries = Object.entries(await allocations('10.58.0.0-27'));
    const written = entries.map(([key, entry]) => `${textAt(entry, 'podref')} 10.58.0.${key}`);
    expect(written.sort()).toEqual(
      names.map((name, index) => `${namespace}/${name} ${addresses[index] ?? ''}`).sort(),
    );
    expect(addresses.filter((address) => /\.[4567]$/.test(address) && address.length === 9)).toEqual([]);
  });
});

describe('servicenet pools and audit', () => {
  test('show who has which address, and find what has leaked', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-attachments-'));
    const kubeconfig = join(folder, 'kubeconfig');
    await writeFile(kubeconfig, server.kubeconfig);
    let output = '';
    const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      output += String(text);
      return true;
    });
    try {
      const namespace = await makeNamespace(server, 'shown');
      await define(namespace, 'net', whereabouts('10.59.0.0/24'));
      await createPod(namespace, 'web', 'net');
      await attached(namespace, 'web');
      await call(server.client, 'PATCH', `${pools}/10.59.0.0-24`, {
        contentType: 'application/merge-patch+json',
        body: { spec: { allocations: { 9: { id: 'x', podref: `${namespace}/gone`, ifname: 'net1' } } } },
      });
      await runCommandLine(['node', 'servicenet', 'pools', '--kubeconfig', kubeconfig]);
      expect(output).toMatch(/^10\.59\.0\.0-24 +10\.59\.0\.0\/24 +254 +2 +252$/m);
      expect(output).toMatch(/^10\.59\.0\.1 +10\.59\.0\.0-24 +shown\/web +net1$/m);
      output = '';
      await runCommandLine(['node', 'servicenet', 'audit', '--kubeconfig', kubeconfig]);
      expect(output).toMatch(/^IPPool +kube-system\/10\.59\.0\.0-24 +10\.59\.0\.9 +AddressLeaked +/m);
      expect(output).toMatch(/, \d+ IPPools: 1 findings$/m);
    } finally {
      write.mockRestore();
      process.exitCode = undefined;
      await rm(folder, { recursive: true });
    }
  });
});
