import { afterAll, beforeAll, expect, it } from 'vitest';
import { conditionStatus, listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

/** Nodes in three zones; the first and the last are in one. */
const nodes = ['node-1', 'node-2', 'node-3', 'node-4'] as const;

/** Tests of `traffic_distribution.go` and `topology_hints.go` of `test/e2e/network`, by their names and steps. */
describePods('[sig-network] several nodes', () => {
  let cluster: PodNetwork;
  let pods: PodNetwork;
  let namespaces = 0;

  beforeAll(async () => {
    cluster = await PodNetwork.start({ nodes: nodes.length });
    const zones = await Promise.all(
      nodes.map(async (name) => {
        const { body } = await until(
          () => cluster.call('GET', `/api/v1/nodes/${name}`),
          (node) => conditionStatus(listAt(node.body, 'status', 'conditions'), 'Ready') === 'True',
        );
        return recordAt(body, 'metadata', 'labels')['topology.kubernetes.io/zone'];
      }),
    );
    expect(zones).toEqual(['zone-a', 'zone-b', 'zone-c', 'zone-a']);
  });
  afterAll(() => cluster.server.stop());

  const test = (name: string, steps: () => Promise<void>): void => {
    it(name, async () => {
      pods = await cluster.inNamespace(`nodes-${++namespaces}`);
      await steps();
      await pods.call('DELETE', `/api/v1/namespaces/${pods.namespace}`);
    });
  };
  const ports = [{ containerPort: 80 }];
  const serveOn = (node: string) => pods.pod(`on-${node}`, 'web', { ports }, { spec: { nodeName: node } });
  const clientOn = async (node: string) => {
    await pods.pod(`client-${node}`, 'client', {}, { spec: { nodeName: node } });
    await until(
      () => pods.call('GET', `${pods.path('pods')}/client-${node}`),
      ({ body }) => textAt(body, 'status', 'phase') === 'Running',
    );
    return { pod: `${pods.namespace}/client-${node}` };
  };
  const reaches = (where: { pod: string }, names: readonly string[]) =>
    until(
      () => pods.namesOf(where, 'http://web', 10 * names.length),
      (found) => found.join() === [...names].sort().join(),
    );

  test('should route traffic correctly between pods on multiple nodes when using PreferClose and PreferSameZone', async () => {
    for (const node of ['node-1', 'node-2', 'node-4']) await serveOn(node);
    await pods.running('web', 3);
    const clients = await Promise.all(nodes.map(clientOn));
    const [inA, inB, inC, alsoInA] = clients;
    if (inA === undefined || inB === undefined || inC === undefined || alsoInA === undefined) {
      throw new Error('there are four nodes');
    }
    await pods.service('web', {}, 80);
    for (const trafficDistribution of ['PreferClose', 'PreferSameZone']) {
      const { status } = await pods.call('PATCH', `${pods.path('services')}/web`, {
        spec: { trafficDistribution },
      });
      expect(status).toBe(200);
      await Promise.all([
        ...[inA, alsoInA].map((client) => reaches(client, ['on-node-1', 'on-node-4'])),
        reaches(inB, ['on-node-2']),
        // No endpoint is in its zone.
        reaches(inC, ['on-node-1', 'on-node-2', 'on-node-4']),
      ]);
    }
  });

  test('should route traffic to an endpoint on the same node or fall back to same zone when using PreferSameNode', async () => {
    for (const node of ['node-1', 'node-2', 'node-4']) await serveOn(node);
    await pods.running('web', 3);
    await pods.service('web', { trafficDistribution: 'PreferSameNode' }, 80);
    const [first, second, third] = await Promise.all([
      clientOn('node-1'),
      clientOn('node-2'),
      clientOn('node-3'),
    ]);
    await Promise.all([
      reaches(first, ['on-node-1']),
      reaches(second, ['on-node-2']),
      reaches(third, ['on-node-1', 'on-node-2', 'on-node-4']),
    ]);
    await pods.delete('pods', 'on-node-1');
    await reaches(first, ['on-node-4']);
    await pods.delete('pods', 'on-node-4');
    await reaches(first, ['on-node-2']);
  });

  test('Topology Hints should distribute endpoints evenly', async () => {
    // One on each node, as with their DaemonSet: as many in each zone as its share of the CPUs is.
    for (const node of nodes) await serveOn(node);
    await pods.running('web', nodes.length);
    await pods.service('web', {}, 80);
    const annotations = { 'service.kubernetes.io/topology-mode': 'auto' };
    await pods.call('PATCH', `${pods.path('services')}/web`, { metadata: { annotations } });
    const hints = async (): Promise<readonly string[]> => {
      const { body } = await pods.call('GET', pods.path('endpointslices', 'discovery.k8s.io/v1'));
      return listAt(body, 'items')
        .flatMap((slice) => listAt(slice, 'endpoints'))
        .map((endpoint) => {
          const zones = listAt(endpoint, 'hints', 'forZones').map((zone) => textAt(zone, 'name'));
          return `${textAt(endpoint, 'targetRef', 'name')}: ${zones.join()}`;
        })
        .sort();
    };
    const wanted = ['on-node-1: zone-a', 'on-node-2: zone-b', 'on-node-3: zone-c', 'on-node-4: zone-a'];
    await until(hints, (found) => found.join() === wanted.join());
    await Promise.all([
      ...['node-1', 'node-4'].map(async (node) => reaches(await clientOn(node), ['on-node-1', 'on-node-4'])),
      ...['node-2', 'node-3'].map(async (node) => reaches(await clientOn(node), [`on-${node}`])),
    ]);
  });
});
