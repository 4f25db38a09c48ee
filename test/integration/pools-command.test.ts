import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { isNotFound } from '../../src/client/errors.ts';
import { services } from '../../src/client/resources.ts';
import { runCommandLine } from '../../src/commands/program.ts';
import type { RunningControllers } from '../../src/controllers/run.ts';
import { isRecord } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { commandLine } from '../support/command-line.ts';
import { parseManifests } from '../support/manifests.ts';
import { call } from '../support/test-server.ts';
import { addressesOf, BalancedServer, startLoadBalancer } from '../support/balanced-server.ts';

/** A definition that takes any object, as another load balancer's would for our purposes. */
const definition = (group: string, version: string, kind: string, scope: string): object => {
  const plural = `${kind.toLowerCase()}s`;
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [{ name: version, served: true, storage: true, schema }],
    },
  };
};

describe('servicenet pools and import', () => {
  let cluster: BalancedServer;
  let running: RunningControllers;
  let folder = '';
  let output = '';
  let errors = '';

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'servicenet-pools-'));
    cluster = await BalancedServer.start();
    await writeFile(join(folder, 'kubeconfig'), cluster.server.kubeconfig);
    running = startLoadBalancer(cluster.server.client);
    await cluster.pool('lan', { addresses: ['192.0.2.1-192.0.2.2'] });
    for (const name of ['a', 'b']) {
      await cluster.service(name);
      await cluster.untilReason(name, 'Assigned');
    }
    await cluster.service('c');
    await cluster.untilReason('c', 'PoolExhausted');
  });

  afterAll(async () => {
    await running.stop();
    await cluster.server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  beforeEach(() => {
    output = '';
    errors = '';
  });

  /** Runs a command in this process. */
  const servicenet = async (...args: string[]): Promise<number> => {
    const out = vi
      .spyOn(process.stdout, 'write')
      .mockImplementation((text) => (output += text.toString()) !== '');
    const err = vi
      .spyOn(process.stderr, 'write')
      .mockImplementation((text) => (errors += text.toString()) !== '');
    try {
      process.exitCode = undefined;
      return await runCommandLine([
        'node',
        'servicenet',
        ...args,
        '--kubeconfig',
        join(folder, 'kubeconfig'),
      ]);
    } finally {
      process.exitCode = undefined;
      out.mockRestore();
      err.mockRestore();
    }
  };

  const create = async (path: string, body: object): Promise<void> => {
    const deadline = Date.now() + 60_000;
    for (;;) {
      try {
        await cluster.server.client.request('POST', path, { body });
        return;
      } catch (error) {
        if (!isNotFound(error) || Date.now() > deadline) throw error;
        await sleep(20);
      }
    }
  };
  const poolOf = (name: string, spec: object): object => ({
    apiVersion: 'servicenet.dev/v1alpha1',
    kind: 'AddressPool',
    metadata: { name },
    spec,
  });
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

  /** The specs of the AddressPools that were printed, by name. */
  const printed = (): Record<string, unknown> =>
    Object.fromEntries(
      parseAllDocuments(output).map((document) => {
        const object: unknown = document.toJS();
        const spec = isRecord(object) ? object['spec'] : undefined;
        return [String(document.getIn(['metadata', 'name'])), spec];
      }),
    );

  test('shows pools, who holds what, and who waits', async () => {
    expect(await servicenet('pools')).toBe(0);
    expect(output).toBe(
      [
        'POOL   FAMILY   TOTAL   USED   FREE   QUARANTINED   PROBLEMS',
        'lan    IPv4     2       2      0      0',
        '',
        'ADDRESS     POOL   SERVICE     PORTS    ANNOUNCED',
        '192.0.2.1   lan    default/a   TCP/80   <none>',
        '192.0.2.2   lan    default/b   TCP/80   <none>',
        '',
        'WAITING     REASON          MESSAGE',
        'default/c   PoolExhausted   no free IPv4 address in lan (2 addresses)',
        '',
      ].join('\n'),
    );
  });

  test('shows which node has each address of an EgressIP', async () => {
    const egress = definition('k8s.ovn.org', 'v1', 'EgressIP', 'Cluster');
    await create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', egress);
    await create('/apis/k8s.ovn.org/v1/egressips', {
      ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressIP', metadata: { name: 'shop' } },
      spec: { egressIPs: ['10.0.0.10', '2001:DB8::A'], namespaceSelector: {} },
      status: { items: [{ egressIP: '2001:db8::a', node: 'n1' }] },
    });
    expect(await servicenet('pools')).toBe(0);
    expect(output).toMatch(
      /^EGRESS ADDRESS +EGRESSIP +NODE\n10\.0\.0\.10 +shop +<none>\n2001:db8::a +shop +n1\n/m,
    );
  });

  test('the same as JSON', async () => {
    expect(await servicenet('pools', '-o', 'json')).toBe(0);
    expect(JSON.parse(output)).toMatchObject({
      pools: [{ name: 'lan', ipv4: { total: 2, used: 2, free: 0, quarantined: 0 }, problems: [] }],
      addresses: [
        { address: '192.0.2.1', pool: 'lan', services: [{ service: 'default/a', ports: ['TCP/80'] }] },
        { address: '192.0.2.2', pool: 'lan', services: [{ service: 'default/b', ports: ['TCP/80'] }] },
      ],
      waiting: [{ service: 'default/c', reason: 'PoolExhausted' }],
    });
  });

  test('says what an edit would do, and does nothing', async () => {
    const file = join(folder, 'pool.yaml');
    const plan = (spec: object): Promise<void> => writeFile(file, JSON.stringify(poolOf('lan', spec)));
    await plan({ addresses: ['192.0.2.1-192.0.2.3'] });
    expect(await servicenet('pools', 'plan', '-f', file)).toBe(0);
    expect(output).toBe(
      'SERVICE     FAMILY   EFFECT   FROM   TO\ndefault/c   IPv4     gains           192.0.2.3\n',
    );

    output = '';
    await plan({ addresses: ['192.0.2.1/32', '192.0.2.8/32'], shrinkPolicy: 'Reassign' });
    expect(await servicenet('pools', 'plan', '-f', file, '-o', 'json')).toBe(1);
    expect(JSON.parse(output)).toEqual({
      effects: [
        { service: 'default/b', family: 'IPv4', effect: 'moves', from: '192.0.2.2', to: '192.0.2.8' },
      ],
      problems: [],
    });

    output = '';
    expect(await servicenet('pools', 'plan', '--delete', 'lan')).toBe(0);
    expect(output.match(/stays/g)).toHaveLength(2);
    expect(addressesOf(await cluster.read('b'))).toEqual(['192.0.2.2']);
  });

  test('refuses what is no pool, and a pool that is not there', async () => {
    const file = join(folder, 'service.yaml');
    await writeFile(file, 'apiVersion: v1\nkind: Service\nmetadata: {name: x}\n');
    expect(await servicenet('pools', 'plan', '-f', file)).toBe(2);
    expect(errors).toContain('Service x is not an AddressPool');
    expect(await servicenet('pools', 'plan', '--delete', 'gone')).toBe(2);
    expect(errors).toContain('there is no AddressPool gone to delete');
    for (const [name, why] of [
      ['Bad_Name', 'a lowercase RFC 1123 subdomain'],
      ['', 'it has no name'],
    ] as const) {
      await writeFile(file, JSON.stringify(poolOf(name, { addresses: ['203.0.113.1'] })));
      expect(await servicenet('pools', 'plan', '-f', file)).toBe(2);
      expect(errors).toContain(why);
    }
  });

  test('fails for a plan with problems', async () => {
    const file = join(folder, 'wrong.yaml');
    await writeFile(file, JSON.stringify(poolOf('wrong', { addresses: ['203.0.113.1/24', '203.0.113.7'] })));
    expect(await servicenet('pools', 'plan', '-f', file)).toBe(1);
    expect(output).toContain('Problem: wrong: spec.addresses[0]');
  });

  test('imports the ConfigMap of MetalLB before 0.13', async () => {
    await create('/api/v1/namespaces/default/configmaps', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'metallb' },
      data: { config: 'address-pools: [{ name: old, protocol: layer2, addresses: [203.0.113.128/28] }]' },
    });
    expect(await servicenet('import', 'metallb', '--config-map', 'default/metallb')).toBe(0);
    expect(printed()['old']).toEqual({ addresses: ['203.0.113.128/28'], announce: { layer2: {} } });
  });

  test('imports MetalLB: its pools, and what Services have beside them', async () => {
    expect(await servicenet('import', 'metallb')).toBe(1);
    expect(errors).toContain('the cluster has no ipaddresspools.metallb.io');
    await create(crds, definition('metallb.io', 'v1beta1', 'IPAddressPool', 'Namespaced'));
    await create('/api/v1/namespaces', { metadata: { name: 'metallb-system' } });
    await create('/api/v1/namespaces/metallb-system/configmaps', {
      metadata: { name: 'config' },
      data: { config: 'address-pools: [{ name: left, protocol: layer2, addresses: [203.0.113.130/28] }]' },
    });
    await expect.poll(() => servicenet('import', 'metallb')).toBe(0);
    expect(printed()).toEqual({ left: { addresses: ['203.0.113.128/28'], announce: { layer2: {} } } });
    await create('/apis/metallb.io/v1beta1/namespaces/default/ipaddresspools', {
      apiVersion: 'metallb.io/v1beta1',
      kind: 'IPAddressPool',
      metadata: { name: 'dmz' },
      spec: { addresses: ['203.0.113.0/28'], autoAssign: false },
    });
    await cluster.service('theirs', { loadBalancerClass: 'metallb' });
    await cluster.clients
      .for(services)
      .mergePatch(
        'default',
        'theirs',
        { status: { loadBalancer: { ingress: [{ ip: '203.0.113.3' }, { ip: '198.51.100.77' }] } } },
        { subresource: 'status' },
      );
    await create(crds, definition('metallb.io', 'v1beta1', 'L2Advertisement', 'Namespaced'));
    await create('/apis/metallb.io/v1beta1/namespaces/default/l2advertisements', {
      apiVersion: 'metallb.io/v1beta1',
      kind: 'L2Advertisement',
      metadata: { name: 'all' },
      spec: {},
    });
    output = '';
    expect(await servicenet('import', 'metallb')).toBe(0);
    expect(printed()).toEqual({
      dmz: { addresses: ['203.0.113.0/28'], autoAssign: false, announce: { layer2: {} } },
      'imported-addresses': { addresses: ['198.51.100.77/32'], autoAssign: false },
    });
    expect(output).not.toContain('not imported');
    expect(output).toContain(
      '# 1 Service has the loadBalancerClass metallb: run the controller with --lb-class=metallb',
    );
  });

  test('imports Cilium', async () => {
    await create(crds, definition('cilium.io', 'v2alpha1', 'CiliumLoadBalancerIPPool', 'Cluster'));
    await create('/apis/cilium.io/v2alpha1/ciliumloadbalancerippools', {
      apiVersion: 'cilium.io/v2alpha1',
      kind: 'CiliumLoadBalancerIPPool',
      metadata: { name: 'blue' },
      spec: { blocks: [{ cidr: '203.0.113.64/28' }], allowFirstLastIPs: 'No' },
    });
    expect(await servicenet('import', 'cilium')).toBe(0);
    expect(printed()['blue']).toEqual({ addresses: ['203.0.113.64/28'], avoidFirstLast: true });
  });

  test('imports kube-vip', async () => {
    await create('/api/v1/namespaces/kube-system/configmaps', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'kubevip' },
      data: { 'range-global': '203.0.113.100-203.0.113.110' },
    });
    expect(await servicenet('import', 'kube-vip')).toBe(0);
    expect(printed()['kube-vip-global']).toEqual({ addresses: ['203.0.113.100-203.0.113.110'] });
  });
});

test('pools says that there is no AddressPool kind, and shows the IPPools of a cluster without it', async () => {
  const server = await startApiServer();
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-pools-'));
  try {
    const kubeconfig = join(folder, 'kubeconfig');
    await writeFile(kubeconfig, server.kubeconfig);
    expect(await commandLine('pools', '--kubeconfig', kubeconfig)).toEqual({
      ...{ code: 1, output: '' },
      errors: 'servicenet: the cluster has no AddressPool kind: apply deploy/crds first\n',
    });
    const text = await readFile('deploy/crds/whereabouts.cni.cncf.io_ippools.yaml', 'utf8');
    const [body] = parseManifests(text);
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    await server.client.request('POST', definitions, { body });
    const pool = {
      apiVersion: 'whereabouts.cni.cncf.io/v1alpha1',
      kind: 'IPPool',
      metadata: { name: '192.0.2.0-24', namespace: 'kube-system' },
      spec: { range: '192.0.2.0/24', allocations: { '5': { id: 'c', podref: 'shop/web', ifname: 'net1' } } },
    };
    const path = '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools';
    await expect
      .poll(async () => (await call(server.client, 'POST', path, { body: pool })).status, { timeout: 60_000 })
      .toBe(201);
    const { code, output, errors } = await commandLine('pools', '--kubeconfig', kubeconfig);
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(output).toMatch(/^There are no AddressPools\.\n/);
    expect(output).toMatch(/^192\.0\.2\.5 +192\.0\.2\.0-24 +shop\/web +net1$/m);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
});

test('the load balancer waits for the definition of AddressPools, says so, and goes on once it is there', async () => {
  const server: TestServer = await startApiServer();
  const running = startLoadBalancer(server.client);
  try {
    const problem = (): string | undefined =>
      running
        .healthChecks()
        .find(({ name }) => name === 'informer-sync')
        ?.check();
    await expect
      .poll(problem)
      .toBe('not synced yet: addresspools.servicenet.dev (the server does not serve it: apply deploy/crds)');
    const { offerAddresses } = await import('../../src/commands/default-pool.ts');
    await offerAddresses(server.client, ['192.0.2.0/24']);
    await expect.poll(problem).toBeUndefined();
  } finally {
    await running.stop();
    await server.stop();
  }
});
