import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { at, conditionStatus, listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { type E2eCluster, poll } from '../../support/e2e-cluster.ts';
import {
  agnhostContainer,
  agnhostPod,
  createSync,
  onNode,
  podUntil,
  ServiceJig,
} from '../../support/service-jig.ts';

/**
 * The API part of the e2e tests of Services with Pods that are not ready or terminate; titles are theirs. A simulated
 * node runs no probes and no hooks: annotations say what they would come to.
 */
export function serviceTerminating(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  const jigOf = async (name: string): Promise<ServiceJig> =>
    new ServiceJig(cluster, await cluster.namespace('services'), name);
  const slow = { 'servicenet.dev/stop-after': '300s' };
  const unready = { 'servicenet.dev/readiness': 'false' };
  const http = [{ port: 80, name: 'http', protocol: 'TCP', targetPort: 80 }];

  /** The conditions of the one endpoint of the Service, once they are so. */
  async function conditionsBecome(jig: ServiceJig, wanted: JsonRecord): Promise<void> {
    await jig.slicesUntil((slices) => {
      const conditions = slices.flatMap((slice) =>
        listAt(slice, 'endpoints').map((each) => at(each, 'conditions')),
      );
      return JSON.stringify(conditions) === JSON.stringify([wanted]);
    });
  }

  /** The addresses of the Service's Endpoints, once they are so. */
  async function endpointsBecome(jig: ServiceJig, wanted: readonly string[]): Promise<void> {
    await poll(async () => {
      const endpoints = await cluster.resource('endpoints', jig.namespace).get(jig.name);
      const addresses = listAt(endpoints, 'subsets').flatMap((subset) => listAt(subset, 'addresses'));
      return addresses.map((address) => textAt(address, 'ip')).join() === wanted.join();
    });
  }

  test('[sig-network] Services should create endpoints for unready pods', async () => {
    const jig = await jigOf('tolerate-unready');
    const name = 'slow-terminating-unready-pod';
    const exec = (...command: string[]): JsonRecord => ({ exec: { command } });
    const container = {
      ...agnhostContainer(name, [{ containerPort: 80, protocol: 'TCP' }], 'netexec', '--http-port=80'),
      readinessProbe: exec('/bin/false'),
      lifecycle: { preStop: exec('/bin/sleep', '100') },
    };
    const deployments = cluster.resource('deployments', jig.namespace);
    await deployments.create({
      metadata: { name, labels: jig.labels },
      spec: {
        ...{ replicas: 1, selector: { matchLabels: jig.labels }, strategy: { type: 'Recreate' } },
        template: {
          metadata: { labels: jig.labels, annotations: { ...slow, ...unready } },
          spec: { terminationGracePeriodSeconds: 100, containers: [container] },
        },
      },
    });
    await jig.create({ ports: http, publishNotReadyAddresses: true });
    // `VerifyPods`: there are so many, and they run.
    const pods = cluster.resource('pods', jig.namespace);
    const query = { labelSelector: `testid=${textAt(jig.labels, 'testid')}` };
    let pod: unknown;
    await poll(async () => {
      const items = listAt(await pods.list(query), 'items');
      pod = items[0];
      return items.length === 1 && textAt(pod, 'status', 'phase') === 'Running';
    });
    const address = textAt(pod, 'status', 'podIP');
    await conditionsBecome(jig, { ready: true, serving: false, terminating: false });
    await endpointsBecome(jig, [address]);

    await deployments.retryOnConflict(name, (deployment) => ({
      ...deployment,
      spec: { ...recordAt(deployment, 'spec'), replicas: 0 },
    }));
    await jig.update((spec) => ({ ...spec, publishNotReadyAddresses: false }));
    await conditionsBecome(jig, { ready: false, serving: false, terminating: true });
    await endpointsBecome(jig, []);
    await jig.update((spec) => ({ ...spec, publishNotReadyAddresses: true }));
    await conditionsBecome(jig, { ready: true, serving: false, terminating: true });
    await endpointsBecome(jig, [address]);

    for (const item of listAt(await pods.list(query), 'items')) {
      await pods.delete(textAt(item, 'metadata', 'name'), { gracePeriodSeconds: 0 });
    }
    expect(listAt(await pods.list(query), 'items')).toEqual([]);
    await jig.endpointCount(0);
  });

  /** A web server on the first node that takes five minutes to stop, behind the Service, and clients on two nodes. */
  async function terminatingServer(jig: ServiceJig, grace: number): Promise<JsonRecord> {
    const [node0 = '', node1 = ''] = (await cluster.readySchedulableNodes()).map((node) =>
      textAt(node, 'metadata', 'name'),
    );
    const probe = (path: string): JsonRecord => ({ httpGet: { path, port: 80, scheme: 'HTTP' } });
    const container = {
      ...agnhostContainer('agnhost', [{ containerPort: 80 }], 'netexec', `--delay-shutdown=${grace}`),
      ...{ readinessProbe: probe('/readyz'), livenessProbe: probe('/healthz') },
    };
    const spec = { ...onNode(node0), terminationGracePeriodSeconds: grace };
    const pod = agnhostPod('webserver-pod', [container], { labels: jig.labels, annotations: slow, spec });
    const server = await createSync(cluster, jig.namespace, pod);
    await jig.endpointCount(1);
    for (const [name, node] of [
      ['pause-pod-0', node0],
      ['pause-pod-1', node1],
    ] as const) {
      const client = agnhostPod(name, [agnhostContainer('agnhost-container')], { spec: onNode(node) });
      await createSync(cluster, jig.namespace, client);
    }
    const deleted = await cluster.resource('pods', jig.namespace).delete('webserver-pod');
    expect(textAt(deleted, 'metadata', 'deletionTimestamp')).not.toBe('');
    expect(numberAt(deleted, 'metadata', 'deletionGracePeriodSeconds')).toBe(grace);
    return server;
  }

  test.each([
    ['be able', 'true', 'svc-tolerate-unready'],
    ['not be able', 'false', 'svc-not-tolerate-unready'],
  ])(
    '[sig-network] Services should %s to connect to terminating and unready endpoints if PublishNotReadyAddresses is %s',
    async (_title, publish, name) => {
      const jig = await jigOf(name);
      const publishNotReadyAddresses = publish === 'true';
      await jig.create({ type: 'NodePort', ports: http, publishNotReadyAddresses });
      const server = await terminatingServer(jig, 300);
      const annotations = unready;
      await cluster
        .resource('pods', jig.namespace)
        .patch('webserver-pod', 'merge', { metadata: { annotations } });
      await podUntil(cluster, jig.namespace, 'webserver-pod', (pod) => {
        return conditionStatus(listAt(pod, 'status', 'conditions'), 'Ready') !== 'True';
      });
      await conditionsBecome(jig, { ready: publishNotReadyAddresses, serving: false, terminating: true });
      await endpointsBecome(jig, publishNotReadyAddresses ? [textAt(server, 'status', 'podIP')] : []);
    },
  );

  /** What proxies fall back to: an endpoint that serves and terminates. */
  const serving = { ready: false, serving: true, terminating: true };

  test.each([
    ['terminating endpoints', 'internalTrafficPolicy=Cluster', {}],
    ['local terminating endpoints', 'internalTrafficPolicy=Local', { internalTrafficPolicy: 'Local' }],
    ['terminating endpoints', 'externallTrafficPolicy=Cluster', { type: 'NodePort' }],
    [
      'local terminating endpoints',
      'externalTrafficPolicy=Local',
      { type: 'NodePort', externalTrafficPolicy: 'Local' },
    ],
  ])(
    '[sig-network] Services should fallback to %s when there are no ready endpoints with %s',
    async (_title, _policy, spec) => {
      const jig = await jigOf('svc-proxy-terminating');
      expect((await jig.create({ ports: http, ...spec }))['spec']).toMatchObject(spec);
      await terminatingServer(jig, 100);
      await conditionsBecome(jig, serving);
    },
  );

  test('[sig-network] Services should fail health check node port if there are only terminating endpoints', async () => {
    const jig = await jigOf('svc-proxy-terminating');
    const made = await jig.create({ ports: http, type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
    expect(numberAt(made, 'spec', 'healthCheckNodePort')).toBeGreaterThanOrEqual(30000);
    await terminatingServer(jig, 100);
    await conditionsBecome(jig, serving);
    await endpointsBecome(jig, []);
  });
}
