import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/objects/types/core.generated.ts';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { describePods, inUrl, PodNetwork, until } from '../support/pod-network.ts';

const networks = 'k8s.v1.cni.cncf.io/networks';

/** Further networks of Pods, by real interfaces: who reaches whom over which. */
describePods('Secondary networks', () => {
  let pods: PodNetwork;

  beforeAll(async () => {
    pods = await PodNetwork.start({
      platform: 'openshift',
      serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112',
    });
  });
  afterAll(() => pods.server.stop());

  async function define(name: string, config: JsonRecord): Promise<void> {
    const made = await pods.call('POST', pods.path('network-attachment-definitions', 'k8s.cni.cncf.io/v1'), {
      ...{ apiVersion: 'k8s.cni.cncf.io/v1', kind: 'NetworkAttachmentDefinition', metadata: { name } },
      spec: { config: JSON.stringify({ cniVersion: '1.0.0', ...config }) },
    });
    expect(made.status).toBe(201);
  }

  /** Makes a Pod that serves on port 80, with these networks. */
  async function make(name: string, node: string, annotation: string): Promise<Pod> {
    const annotations = { [networks]: annotation };
    await pods.pod(name, name, { ports: [{ containerPort: 80 }] }, { annotations, spec: { nodeName: node } });
    const [pod] = await pods.running(name, 1);
    if (pod === undefined) throw new Error(`${name} does not run`);
    return pod;
  }

  const inPod = (name: string) => ({ pod: `default/${name}` });
  /** Who answers, and by which client address it sees who asks. */
  const seen = async (from: string, address: string): Promise<readonly string[]> => {
    const answer = await until(
      () => pods.get(inPod(from), `http://${inUrl(address)}`),
      (each) => each !== undefined,
    );
    return [textAt(answer, 'pod'), textAt(answer, 'client')];
  };
  const show = async (name: string, ...words: readonly string[]): Promise<string> =>
    (await pods.server.run(['ip', ...words], inPod(name))).stdout;

  it('macvlan joins Pods of different nodes in a network of their own, with the addresses that they were given', async () => {
    await define('storage', {
      type: 'macvlan',
      mtu: 1400,
      ipam: {
        type: 'static',
        routes: [{ dst: '10.77.0.0/16', gw: '192.168.70.2' }],
      },
    });
    const ask = (ip: string, mac?: string): string =>
      JSON.stringify([{ name: 'storage', ips: [`192.168.70.${ip}/24`, `fd70::${ip}/64`], mac }]);
    await make('m1', 'node-1', ask('1', '02:00:00:00:00:70'));
    await make('m2', 'node-2', ask('2'));
    await make('m3', 'node-1', ask('3'));
    for (const [from, to] of [
      ['m1', 2],
      ['m2', 1],
      // Of one node.
      ['m1', 3],
    ] as const) {
      expect(await seen(from, `192.168.70.${to}`)).toEqual([`m${to}`, `192.168.70.${from.slice(1)}`]);
      expect(await seen(from, `fd70::${to}`)).toEqual([`m${to}`, `fd70::${from.slice(1)}`]);
    }
    const link = await show('m1', 'link', 'show', 'net1');
    expect(link).toContain('mtu 1400');
    expect(link).toContain('02:00:00:00:00:70');
    expect(await show('m1', 'route', 'show', '10.77.0.0/16')).toContain('via 192.168.70.2 dev net1');
    // The cluster's own network is as it was.
    const { clusterIP = '' } = await pods.service('m2', {}, 80);
    expect((await seen('m1', clusterIP))[0]).toBe('m2');
    // A node is in no such network.
    expect(await pods.curl({ node: 'node-1' }, 'http://192.168.70.1')).toBe('');
  });

  it('an interface has the name that is asked for, and ends with its Pod', async () => {
    await define('named', {
      type: 'macvlan',
      ipam: { type: 'static', addresses: [{ address: '192.168.71.1/24' }] },
    });
    await make('named-1', 'node-1', 'default/named@data0');
    expect(await show('named-1', 'address', 'show', 'data0')).toContain('192.168.71.1/24');
    await pods.delete('pods', 'named-1');
    // Its address is free for another one.
    await make('named-2', 'node-2', 'named@data0');
    await define('other', {
      type: 'macvlan',
      ipam: { type: 'static', addresses: [{ address: '192.168.71.2/24' }] },
    });
    await make('named-3', 'node-1', 'other');
    expect(await seen('named-3', '192.168.71.1')).toEqual(['named-2', '192.168.71.2']);
  });

  it('Pods of a Deployment reach each other by the addresses that an IPPool gives them', async () => {
    await define('pool', {
      ...{ type: 'macvlan', master: 'eth2' },
      ipam: { type: 'whereabouts', range: '192.168.72.0/24', exclude: ['192.168.72.0/30'] },
    });
    await pods.deploy(
      'ranged',
      3,
      { ports: [{ containerPort: 80 }] },
      { annotations: { [networks]: 'pool' } },
    );
    const found = (await pods.running('ranged', 3)).map((pod) => ({
      name: pod.metadata.name ?? '',
      address: secondAddress(pod),
    }));
    expect(found.map(({ address }) => address).sort()).toEqual([
      '192.168.72.4',
      '192.168.72.5',
      '192.168.72.6',
    ]);
    for (const from of found) {
      for (const to of found) {
        expect(await seen(from.name, to.address)).toEqual([to.name, from.address]);
      }
    }
  });

  it('a bridge joins the Pods of a node, and its gateway is the node', async () => {
    await define('local', {
      ...{ type: 'bridge', bridge: 'br-local', isGateway: true },
      ipam: { type: 'host-local', ranges: [[{ subnet: '10.88.0.0/24' }]] },
    });
    await make('b1', 'node-1', 'local');
    const second = await make('b2', 'node-1', 'local');
    await make('b3', 'node-2', 'local');
    const address = secondAddress(second);
    expect(address).toMatch(/^10\.88\.0\.\d+$/);
    const [name, client = ''] = await seen('b1', address);
    expect(name).toBe('b2');
    expect(client).toMatch(/^10\.88\.0\.\d+$/);
    expect(await pods.get({ node: 'node-1' }, `http://${address}`)).toMatchObject({
      ...{ pod: 'b2', client: '10.88.0.1' },
    });
  });

  it('a Pod meets the outside machine on a LAN of its own, where that is the gateway', async () => {
    await define('lan', {
      ...{ type: 'macvlan', master: 'eth1' },
      ipam: {
        type: 'static',
        addresses: [{ address: '192.168.90.5/24', gateway: '192.168.90.1' }],
        routes: [{ dst: '203.0.113.0/24', gw: '192.168.90.1' }],
      },
    });
    await make('l1', 'node-2', 'lan');
    const answer = await until(
      () => pods.get({ outside: true }, 'http://192.168.90.5'),
      (each) => each !== undefined,
    );
    expect(answer).toMatchObject({ pod: 'l1', client: '192.168.90.1' });
    // The other way, behind the gateway.
    await pods.server.run(['ip', 'address', 'add', '203.0.113.1/32', 'dev', 'lo'], { outside: true });
    const listening = pods.server.run([process.execPath, '-e', serveOnce, '203.0.113.1'], { outside: true });
    expect(
      await until(
        () => pods.curl(inPod('l1'), 'http://203.0.113.1:8000'),
        (text) => text !== '',
      ),
    ).toBe('192.168.90.5');
    await listening;
  });

  it('the outside machine leaves a gateway alone that a pool may give to a Service', async () => {
    const outside = async (): Promise<string> =>
      (await pods.server.run(['ip', '-br', 'address', 'show', 'eth1'], { outside: true })).stdout;
    const pool = (exclude: readonly string[]): Promise<unknown> =>
      pods.call('POST', '/apis/servicenet.dev/v1alpha1/addresspools', {
        ...{ apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool', metadata: { name: 'lan' } },
        spec: { addresses: ['192.168.93.0/28'], exclude },
      });
    await pool([]);
    const ipam = (gateway: string): object => ({
      type: 'static',
      addresses: [{ address: '192.168.93.100/24', gateway }],
    });
    await define('pooled', { type: 'macvlan', master: 'eth1', ipam: ipam('192.168.93.1') });
    await define('free', { type: 'macvlan', master: 'eth1', ipam: ipam('192.168.93.20') });
    expect(await until(outside, (text) => text.includes('192.168.93.20/24'))).not.toContain(
      '192.168.93.1/24',
    );
    await pods.call('DELETE', '/apis/servicenet.dev/v1alpha1/addresspools/lan');
    await until(outside, (text) => text.includes('192.168.93.1/24'));
    await pool([]);
    await until(outside, (text) => !text.includes('192.168.93.1/24'));
    await pods.call('DELETE', '/apis/servicenet.dev/v1alpha1/addresspools/lan');
    await pool(['192.168.93.1']);
    await until(outside, (text) => text.includes('192.168.93.1/24'));
  });

  it('the default route goes where a Pod asks for it, and the cluster stays in reach', async () => {
    await define('way', {
      ...{ type: 'macvlan', master: 'eth1' },
      ipam: { type: 'static', addresses: [{ address: '192.168.91.5/24', gateway: '192.168.91.1' }] },
    });
    await make('way-1', 'node-1', JSON.stringify([{ name: 'way', 'default-route': ['192.168.91.1'] }]));
    expect(await show('way-1', 'route', 'show', 'default')).toBe('default via 192.168.91.1 dev net1 \n');
    await pods.deploy('served', 1, { ports: [{ containerPort: 80 }] });
    const { clusterIP = '' } = await pods.service('served', {}, 80);
    expect((await seen('way-1', clusterIP))[0]).toMatch(/^served-/);
  });

  describe('says by an Event', () => {
    const events = async (name: string, reason: string): Promise<string> => {
      const message = async (): Promise<string> => {
        const { body } = await pods.call('GET', pods.path('events'));
        const found = listAt(body, 'items').find(
          (event) => textAt(event, 'reason') === reason && textAt(event, 'involvedObject', 'name') === name,
        );
        return textAt(found, 'message');
      };
      return await until(message, (text) => text !== '');
    };
    const begin = (name: string, annotation: string): Promise<void> =>
      pods.pod(
        name,
        name,
        { ports: [{ containerPort: 80 }] },
        { annotations: { [networks]: annotation }, spec: { nodeName: 'node-1' } },
      );

    it('that there is no plugin, and the Pod runs without the interface', async () => {
      await define('fast', { type: 'sriov' });
      await make('e1', 'node-1', 'fast');
      expect(await events('e1', 'UnsupportedPlugin')).toBe(
        'network default/fast: there is no plugin sriov: there is no interface net1',
      );
      expect(await show('e1', '-br', 'link')).not.toContain('net1');
    });

    it('that a master does not exist, and the Pod waits', async () => {
      await define('nowhere', { type: 'macvlan', master: 'ens7f0' });
      await begin('e2', 'nowhere');
      expect(await events('e2', 'FailedCreatePodSandBox')).toContain('ens7f0');
      const { body } = await pods.call('GET', pods.path('pods/e2'));
      expect(textAt(body, 'status', 'phase')).toBe('Pending');
    });

    it('that one interface cannot be made, and makes all of them once it can', async () => {
      await define('first', {
        ...{ type: 'macvlan', master: 'eth3' },
        ipam: { type: 'static', addresses: [{ address: '192.168.92.5/24', gateway: '192.168.92.1' }] },
      });
      await define('late', { type: 'macvlan', master: 'br-late' });
      const asked = [{ name: 'first', 'default-route': ['192.168.92.1'] }, { name: 'late' }];
      await begin('e3', JSON.stringify(asked));
      expect(await events('e3', 'FailedCreatePodSandBox')).toContain('br-late');
      await define('late-bridge', { type: 'bridge', bridge: 'br-late' });
      await make('e4', 'node-1', 'late-bridge');
      await pods.running('e3', 1);
      expect(await show('e3', 'route', 'show', 'default')).toBe('default via 192.168.92.1 dev net1 \n');
      expect(await show('e3', '-br', 'link')).toContain('net2@');
    });
  });
});

/** The first address of a Pod's first further interface, by its `network-status`. */
function secondAddress({ metadata }: Pod): string {
  const status: unknown = JSON.parse(metadata.annotations?.['k8s.v1.cni.cncf.io/network-status'] ?? '[]');
  const [, attached] = listAt({ status }, 'status');
  return String(listAt(attached, 'ips')[0]);
}

/** Answers one request with the address of who asks; ends by itself. */
const serveOnce = `
const server = require('node:http').createServer((request, response) => {
  response.setHeader('connection', 'close').end(request.socket.remoteAddress);
  server.close();
});
server.listen(8000, process.argv[1]);
setTimeout(() => process.exit(1), 60_000).unref();
`;
