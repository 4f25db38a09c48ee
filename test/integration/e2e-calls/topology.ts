import { afterAll, beforeAll, expect, test } from 'vitest';
import { type JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, textAt } from '../../../src/objects/json.ts';
import { E2eCluster, poll } from '../../support/e2e-cluster.ts';
import { agnhostContainer, agnhostPod, createSync, onNode, ServiceJig } from '../../support/service-jig.ts';

/**
 * The API part of the e2e tests of topology (topology_hints.go, traffic_distribution.go): what EndpointSlices tell the
 * proxies that send the traffic. The simulated nodes are in three zones, two in each.
 */
export function topology(): void {
  const nodeCount = 6;
  let cluster: E2eCluster;
  beforeAll(async () => {
    cluster = await E2eCluster.start({ nodes: nodeCount });
  });
  afterAll(async () => cluster.stop());

  const zoneLabel = 'topology.kubernetes.io/zone';
  const zoneOf = (node: JsonRecord): string => textAt(node, 'metadata', 'labels', zoneLabel);

  const endpointsOf = (slices: readonly JsonRecord[]): readonly unknown[] =>
    slices.flatMap((slice) => listAt(slice, 'endpoints'));

  test('[sig-network] Topology Hints should distribute endpoints evenly', async () => {
    const namespace = await cluster.namespace('topology-hints');
    const labels = { clientLabelKey: 'client' };
    const container = agnhostContainer('app', [{ containerPort: 9376 }], 'serve-hostname');
    const daemonSets = cluster.resource('daemonSets', namespace);
    await daemonSets.create({
      metadata: { name: 'topology-serve-hostname', labels },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container] } },
      },
    });
    const jig = new ServiceJig(cluster, namespace, 'topology-hints');
    await cluster.resource('services', namespace).create({
      metadata: { name: jig.name, annotations: { 'service.kubernetes.io/topology-mode': 'Auto' } },
      spec: {
        ...{ selector: labels, publishNotReadyAddresses: true },
        ports: [{ name: 'example', port: 80, targetPort: 9376, protocol: 'TCP' }],
      },
    });
    await poll(async () => {
      const { status } = await daemonSets.get('topology-serve-hostname');
      const counts = ['desiredNumberScheduled', 'currentNumberScheduled', 'numberReady'];
      return counts.every((each) => numberAt(status, each) === nodeCount);
    });
    const nodes = listAt(await cluster.resource('nodes').list(), 'items');
    const cpus = nodes.map((node) => textAt(node, 'status', 'allocatable', 'cpu'));
    expect(new Set(cpus).size).toBe(1);

    const slices = await jig.slicesUntil((found) => endpointsOf(found).length === nodeCount);
    for (const endpoint of endpointsOf(slices)) {
      const name = textAt(endpoint, 'zone');
      expect(name).not.toBe('');
      expect(endpoint).toHaveProperty('hints', { forZones: [{ name }] });
    }
  });

  /** A Service of this distribution, Pods on these nodes behind it, and a client on each node of the others. */
  async function distributed(
    trafficDistribution: string,
    servers: readonly JsonRecord[],
    clients: readonly JsonRecord[],
  ): Promise<{ jig: ServiceJig; endpoints: readonly unknown[] }> {
    const namespace = await cluster.namespace('traffic-distribution');
    const jig = new ServiceJig(cluster, namespace, 'traffic-dist-test-service');
    const selector = { app: namespace };
    const made = await cluster.resource('services', namespace).create({
      metadata: { name: jig.name },
      spec: { selector, trafficDistribution, ports: [{ port: 80, targetPort: 9376, protocol: 'TCP' }] },
    });
    expect(textAt(made, 'spec', 'trafficDistribution')).toBe(trafficDistribution);
    const podsOn = async (what: string, nodes: readonly JsonRecord[], labels: JsonRecord): Promise<void> => {
      const pods = nodes.map((node, index) => {
        const on = textAt(node, 'metadata', 'name');
        const container = agnhostContainer('agnhost-container', [], 'serve-hostname');
        return agnhostPod(`${what}-${index}-${on}`, [container], { labels, spec: onNode(on) });
      });
      await Promise.all(pods.map((pod) => createSync(cluster, namespace, pod)));
    };
    await podsOn('server', servers, selector);
    await jig.endpointCount(servers.length);
    await podsOn('client', clients, {});
    const slices = await jig.slicesUntil((found) =>
      endpointsOf(found).every((endpoint) => listAt(endpoint, 'hints', 'forZones').length > 0),
    );
    return { jig, endpoints: endpointsOf(slices) };
  }

  /** The nodes that could be used, by zone. */
  async function byZone(): Promise<readonly [JsonRecord, JsonRecord][]> {
    const nodes = await cluster.readySchedulableNodes();
    return [...new Set(nodes.map(zoneOf))].map((zone) => {
      const [first = {}, second = {}] = nodes.filter((node) => zoneOf(node) === zone);
      return [first, second];
    });
  }

  const sameZone = (endpoints: readonly unknown[]): void => {
    for (const endpoint of endpoints)
      expect(endpoint).toHaveProperty('hints', { forZones: [{ name: textAt(endpoint, 'zone') }] });
  };

  test.each(['PreferClose', 'PreferSameZone'])(
    '[sig-network] Traffic Distribution should route traffic to an endpoint in the same zone when using %s',
    async (distribution) => {
      const [[first] = [{}], [second] = [{}], [third] = [{}]] = await byZone();
      const { endpoints } = await distributed(distribution, [first, second], [first, second, third]);
      expect(endpoints.map((each) => textAt(each, 'zone')).sort()).toEqual(
        [zoneOf(first), zoneOf(second)].sort(),
      );
      sameZone(endpoints);
    },
  );

  test.each(['PreferClose', 'PreferSameZone'])(
    '[sig-network] Traffic Distribution should route traffic correctly between pods on multiple nodes when using %s',
    async (distribution) => {
      const [first = [{}, {}], second = [{}, {}], third = [{}, {}]] = await byZone();
      const servers = [...first, second[1]];
      const { endpoints } = await distributed(distribution, servers, [...first, second[0], third[0]]);
      expect(endpoints).toHaveLength(3);
      sameZone(endpoints);
    },
  );

  /** The node first, and the zone for clients on other nodes. */
  const sameNode = (endpoints: readonly unknown[]): void => {
    for (const endpoint of endpoints) {
      const forNodes = [{ name: textAt(endpoint, 'nodeName') }];
      expect(endpoint).toHaveProperty('hints', { forNodes, forZones: [{ name: textAt(endpoint, 'zone') }] });
    }
  };

  test('[sig-network] Traffic Distribution should route traffic to an endpoint on the same node or fall back to same zone when using PreferSameNode', async () => {
    const [first = [{}, {}], second = [{}, {}], third = [{}, {}]] = await byZone();
    const servers = [...first, second[1]];
    const { endpoints } = await distributed('PreferSameNode', servers, [...first, second[0], third[0]]);
    expect(endpoints).toHaveLength(3);
    sameNode(endpoints);
  });

  test('[sig-network] Traffic Distribution should route traffic to an endpoint on the same node when using PreferSameNode and fall back when the endpoint becomes unavailable', async () => {
    const [first = {}, second = {}] = await cluster.readySchedulableNodes();
    const { jig, endpoints } = await distributed('PreferSameNode', [first, second], [first, second]);
    sameNode(endpoints);
    const [on, other] = [first, second].map((node) => textAt(node, 'metadata', 'name'));
    await cluster.resource('pods', jig.namespace).delete(`server-0-${on}`);
    await jig.endpointCount(1);
    await jig.slicesUntil((slices) => textAt(endpointsOf(slices)[0], 'nodeName') === other);
    const container = agnhostContainer('agnhost-container', [], 'serve-hostname');
    const labels = { app: jig.namespace };
    const again = agnhostPod('server-0-new', [container], { labels, spec: onNode(on ?? '') });
    await createSync(cluster, jig.namespace, again);
    await jig.endpointCount(2);
    sameNode(endpointsOf(await jig.slicesUntil(() => true)));
  });
}
