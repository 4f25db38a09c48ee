import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import type { RunPlace } from '../../../src/testing/index.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

/** Tests of `test/e2e/network/loadbalancer.go` by their names and steps; nodes announce the addresses to the LAN. */
describePods('[sig-network] LoadBalancers', () => {
  const outside = { outside: true } as const;
  let cluster: PodNetwork;
  let pods: PodNetwork;
  let namespaces = 0;

  beforeAll(async () => {
    cluster = await PodNetwork.start({ addressPools: ['198.51.100.0/24'] });
    // By ARP, not by the node that leads in whatever has no route.
    const toLan = ['ip', 'route', 'replace', '198.51.100.0/24', 'dev', 'eth0'];
    expect(await cluster.server.run(toLan, outside)).toMatchObject({ exitCode: 0, stderr: '' });
  });
  afterAll(() => cluster.server.stop());

  const inNamespace = async (steps: () => Promise<void>): Promise<void> => {
    pods = await cluster.inNamespace(`load-balancers-${++namespaces}`);
    await steps();
    await pods.call('DELETE', `/api/v1/namespaces/${pods.namespace}`);
  };
  const test = (name: string, steps: () => Promise<void>): void => it(name, () => inNamespace(steps));
  const ports = [{ containerPort: 80 }, { containerPort: 8081, protocol: 'UDP' }];
  const podOn = (node: string, name: string) =>
    pods.pod(name, 'web', { ports }, { spec: { nodeName: node } });
  const answering = (where: RunPlace, url: string, names: readonly string[]) =>
    until(
      () => pods.namesOf(where, url, 10 * names.length),
      (found) => found.join() === names.join(),
    );
  const change = async (spec: Partial<ServiceSpec>): Promise<ServiceSpec> => {
    const { status, body } = await pods.call('PATCH', `${pods.path('services')}/web`, { spec });
    expect(status, JSON.stringify(body)).toBe(200);
    return body['spec'] as ServiceSpec;
  };
  /** The address of the Service, once it has one. */
  const balanced = (): Promise<string> =>
    until(
      async () => {
        const { body } = await pods.call('GET', `${pods.path('services')}/web`);
        return textAt(listAt(body, 'status', 'loadBalancer', 'ingress')[0], 'ip');
      },
      (address) => address !== '',
    );
  const statusOf = (where: RunPlace, url: string): Promise<string> =>
    pods.curl(where, url, '-o', '/dev/null', '-w', '%{http_code}');
  /** What answers a packet of UDP from outside; empty: nothing does. */
  const askUdp = async (address: string, port: number): Promise<string> => {
    const ask = `exec 3<>/dev/udp/${address}/${port}; printf hostname >&3; timeout 1 dd bs=512 count=1 status=none <&3`;
    return (await pods.server.run(['bash', '-c', ask], outside)).stdout;
  };
  const local = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' };

  test('should have session affinity work, and be able to switch it, with Local and Cluster traffic policy', async () => {
    await podOn('node-1', 'web-1');
    await podOn('node-1', 'web-2');
    await pods.running('web', 2);
    const both = ['web-1', 'web-2'];
    await pods.service('web', local, 80);
    const url = `http://${await balanced()}`;
    for (const externalTrafficPolicy of ['Local', 'Cluster']) {
      await change({ externalTrafficPolicy, sessionAffinity: 'None' });
      await answering(outside, url, both);
      await change({ sessionAffinity: 'ClientIP' });
      await until(
        () => pods.namesOf(outside, url, 20),
        (names) => names.length === 1,
      );
      await change({ sessionAffinity: 'None' });
      await answering(outside, url, both);
    }
  });

  it.each(['TCP', 'UDP'])('[%s] should be able to change the type and ports of the service', (protocol) =>
    inNamespace(async () => {
      const targetPort = protocol === 'TCP' ? 80 : 8081;
      const port = (own: object) => ({ ports: [{ port: 80, protocol, targetPort, ...own }] });
      const [node = ''] = await pods.addressesOf('node-1');
      await pods.service('web', port({}), 0);
      await podOn('node-2', 'web');
      const ask = (address: string, number: number): Promise<string> =>
        protocol === 'TCP'
          ? pods.curl(outside, `http://${address}:${number}/hostname`)
          : askUdp(address, number);
      const answers = (address: string, number: number, wanted: string) =>
        until(
          () => ask(address, number),
          (said) => said.trim() === wanted,
        );
      const first = (await change({ type: 'NodePort' })).ports?.[0]?.nodePort ?? 0;
      await answers(node, first, 'web');
      await change({ type: 'LoadBalancer' });
      const address = await balanced();
      for (const at of [[node, first] as const, [address, 80] as const]) await answers(...at, 'web');
      // Another node port, another port: the old ones lead nowhere, and the address stays.
      const second = first === 32_767 ? first - 1 : first + 1;
      await change(port({ nodePort: second }));
      for (const at of [[node, second] as const, [address, 80] as const]) await answers(...at, 'web');
      await answers(node, first, '');
      await change(port({ nodePort: second, port: 81 }));
      for (const at of [[node, second] as const, [address, 81] as const]) await answers(...at, 'web');
      await answers(address, 80, '');
      expect(await balanced()).toBe(address);
      // Without Pods, and with one again.
      await pods.delete('pods', 'web');
      for (const at of [[node, second] as const, [address, 81] as const]) await answers(...at, '');
      await podOn('node-1', 'web-again');
      for (const at of [[node, second] as const, [address, 81] as const]) await answers(...at, 'web-again');
      await change({ type: 'ClusterIP', ...port({ nodePort: null, port: 81 }) });
      for (const at of [[node, second] as const, [address, 81] as const]) await answers(...at, '');
    }),
  );

  test('should be able to create LoadBalancer Service without NodePort and change it', async () => {
    await podOn('node-2', 'web');
    await pods.service('web', {}, 80);
    const without = await change({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false });
    expect(without.ports?.[0]?.nodePort).toBeUndefined();
    const address = await balanced();
    await answering(outside, `http://${address}`, ['web']);
    const { ports: [port] = [] } = await change({ allocateLoadBalancerNodePorts: true });
    const [node = ''] = await pods.addressesOf('node-1');
    await answering(outside, `http://${node}:${port?.nodePort}`, ['web']);
    expect(await balanced()).toBe(address);
    await answering(outside, `http://${address}`, ['web']);
  });

  test('should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on different nodes, and on the same nodes', async () => {
    const udp = [{ name: 'udp', protocol: 'UDP', port: 80, targetPort: 8081 }];
    await pods.service('web', { type: 'LoadBalancer', ports: udp }, 0);
    const address = await balanced();
    await podOn('node-1', 'server-1');
    const log = join(mkdtempSync(join(tmpdir(), 'servicenet-flow-')), 'seen');
    // One flow, of one source port: it moves to the second Pod, and from that to the third.
    const flow = `exec 3<>/dev/udp/${address}/80; wanted='server-1 server-2 server-3'
      for name in $wanted; do
        for i in $(seq 300); do
          printf hostname >&3; n=$(timeout 1 dd bs=512 count=1 status=none <&3)
          [ "$n" = $name ] && { echo $name >>${log}; break; }
          sleep 0.1
        done
      done`;
    const seen = pods.server.run(['bash', '-c', flow], outside);
    const answers = (name: string) =>
      until(
        () => askUdp(address, 80),
        (said) => said === name,
      );
    const hasReached = (name: string) =>
      until(
        () => Promise.resolve(existsSync(log) ? readFileSync(log, 'utf8') : ''),
        (text) => text.includes(name),
      );
    await answers('server-1');
    await hasReached('server-1');
    for (const [node, name, last] of [
      ['node-2', 'server-2', 'server-1'],
      ['node-2', 'server-3', 'server-2'],
    ] as const) {
      await podOn(node, name);
      await until(
        () => pods.running('web', 2),
        (running) => running.length === 2,
      );
      await pods.delete('pods', last);
      await answers(name);
      await hasReached(name);
    }
    await seen;
    expect(readFileSync(log, 'utf8')).toBe('server-1\nserver-2\nserver-3\n');
  });

  test('ExternalTrafficPolicy: Local should work for type=LoadBalancer', async () => {
    await podOn('node-2', 'web');
    const spec = await pods.service('web', local, 80);
    const address = await balanced();
    await answering(outside, `http://${address}`, ['web']);
    // The Pod sees the client.
    expect(await pods.curl(outside, `http://${address}/clientip`)).toMatch(/^172\.19\.255\.2:/);
    const [node = ''] = await pods.addressesOf('node-2');
    const health = `http://${node}:${spec.healthCheckNodePort}`;
    expect(await statusOf(outside, health)).toBe('200');
    await change({ type: 'ClusterIP' });
    for (const url of [health, `http://${address}`]) {
      await until(
        () => statusOf(outside, url),
        (code) => code === '000',
      );
    }
  });

  test('ExternalTrafficPolicy: Local should only target nodes with endpoints, and target all nodes with endpoints', async () => {
    const spec = await pods.service('web', local, 80);
    const url = `http://${await balanced()}`;
    const nodes = ['node-1', 'node-2'];
    const health = async (): Promise<readonly string[]> =>
      Promise.all(
        nodes.map(async (name) => {
          const [address = ''] = await pods.addressesOf(name);
          return await statusOf(outside, `http://${address}:${spec.healthCheckNodePort}`);
        }),
      );
    const healthy = (codes: readonly string[]) => until(health, (found) => found.join() === codes.join());
    for (const name of nodes) {
      await podOn(name, `on-${name}`);
      await healthy(nodes.map((each) => (each === name ? '200' : '503')));
      // The node with the endpoint takes the address over.
      await answering(outside, url, [`on-${name}`]);
      await pods.delete('pods', `on-${name}`);
      await healthy(['503', '503']);
    }
    for (const name of nodes) await podOn(name, `all-${name}`);
    await healthy(['200', '200']);
    // One of the nodes has the address; each leads to what runs on it.
    const names = await until(
      () => pods.namesOf(outside, url, 10),
      (found) => found.length === 1,
    );
    expect(nodes.map((name) => `all-${name}`)).toEqual(expect.arrayContaining([...names]));
    for (const name of nodes) {
      const [address = ''] = await pods.addressesOf(name);
      await answering(outside, `http://${address}:${spec.ports?.[0]?.nodePort}`, [`all-${name}`]);
    }
  });
});
