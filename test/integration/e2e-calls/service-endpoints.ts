import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { type E2eCluster, poll } from '../../support/e2e-cluster.ts';
import { serveHostnames, stopServing } from '../../support/serve-hostnames.ts';
import {
  agnhostContainer,
  agnhostPod,
  createSync,
  deletePod,
  onNode,
  type PortMapping,
  runDeployment,
  ServiceJig,
} from '../../support/service-jig.ts';

/** The API part of the e2e tests of Services and the Pods behind them; titles are theirs. */
export function serviceEndpoints(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  const jigOf = async (name: string): Promise<ServiceJig> =>
    new ServiceJig(cluster, await cluster.namespace('services'), name);
  const remove = async ({ namespace }: ServiceJig, pod: string): Promise<void> =>
    deletePod(cluster, namespace, pod);
  const nodeNames = async (): Promise<string[]> =>
    (await cluster.readySchedulableNodes()).map((node) => textAt(node, 'metadata', 'name'));
  const tcp = (port: number, targetPort: unknown = port): JsonRecord => ({
    ports: [{ port, name: 'http', protocol: 'TCP', targetPort }],
  });

  test('[sig-network] Services should serve a basic endpoint from pods', async () => {
    const jig = await jigOf('endpoint-test2');
    await jig.create();
    await jig.endpointCount(0);
    await jig.pod('pod1', [{ containerPort: 80 }]);
    await jig.endpointPods('pod1');
    await jig.pod('pod2', [{ containerPort: 80 }]);
    await jig.endpointPods('pod1', 'pod2');
    await remove(jig, 'pod1');
    await jig.endpointPods('pod2');
    await remove(jig, 'pod2');
    await jig.endpointCount(0);
  });

  const port1: PortMapping = { name: 'portname1', target: 'pod1', port: 100 };
  const port2: PortMapping = { name: 'portname2', target: 'pod2', port: 101 };
  const [servicePort1, servicePort2] = [
    { name: 'portname1', port: 80, targetPort: 'svc1' },
    { name: 'portname2', port: 81, targetPort: 'svc2' },
  ];

  test('[sig-network] Services should serve multiport endpoints from pods', async () => {
    const jig = await jigOf('multi-endpoint-test');
    await jig.create({ ports: [servicePort1, servicePort2] });
    await jig.endpointCount(0);
    await jig.pod('pod1', [{ name: 'svc1', containerPort: 100 }]);
    await jig.endpointPorts([port1]);
    await jig.pod('pod2', [{ name: 'svc2', containerPort: 101 }]);
    await jig.endpointPorts([port1, port2]);
    await remove(jig, 'pod1');
    await jig.endpointPorts([port2]);
    await remove(jig, 'pod2');
    await jig.endpointCount(0);
  });

  test('[sig-network] Services should be updated after adding or deleting ports', async () => {
    const jig = await jigOf('edit-port-test');
    await jig.create({ ports: [servicePort1] });
    await jig.endpointCount(0);
    await jig.pod('pod1', [{ name: 'svc1', containerPort: 100 }]);
    await jig.endpointPorts([port1]);
    await jig.update((spec) => ({ ...spec, ports: [servicePort1, servicePort2] }));
    await jig.pod('pod2', [{ name: 'svc2', containerPort: 101 }]);
    await jig.endpointPorts([port1, port2]);
    await jig.update((spec) => ({ ...spec, ports: [servicePort1] }));
    await jig.endpointPorts([port1]);
  });

  test('[sig-network] Services should preserve source pod IP for traffic thru service cluster IP [LinuxOnly]', async () => {
    const jig = await jigOf('sourceip-test');
    await jig.create({ ports: [{ protocol: 'TCP', port: 8080 }] });
    await jig.pod('echo-sourceip');
    await jig.endpointCount(1);
    const labels = { deployment: 'agnhost-pause' };
    const term = {
      ...{ labelSelector: { matchLabels: labels }, topologyKey: 'kubernetes.io/hostname' },
      namespaces: [jig.namespace],
    };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
    const names = await runDeployment(cluster, jig.namespace, 'pause-pod', labels, 2, { spec: { affinity } });
    const pods = cluster.resource('pods', jig.namespace);
    const nodes = await Promise.all(
      names.map(async (name) => textAt(await pods.get(name), 'spec', 'nodeName')),
    );
    expect(new Set(nodes).size).toBe(2);
  });

  test('[sig-network] Services should allow pods to hairpin back to themselves through services', async () => {
    const jig = await jigOf('hairpin-test');
    await jig.create({ ports: [{ protocol: 'TCP', port: 8080 }] });
    await jig.pod('hairpin');
    await jig.endpointCount(1);
  });

  test('[sig-network] Services should be able to up and down services', async () => {
    const namespace = await cluster.namespace('services');
    const serve = async (name: string): Promise<string> =>
      (await serveHostnames(cluster, namespace, { name })).clusterIP;
    await serve('up-down-1');
    const second = await serve('up-down-2');
    await stopServing(cluster, namespace, 'up-down-1');
    expect(await serve('up-down-3')).not.toBe(second);
  });

  test('[sig-network] Services should work after the service has been recreated', async () => {
    const namespace = await cluster.namespace('services');
    const name = 'service-deletion';
    const { pods } = await serveHostnames(cluster, namespace, { name, replicas: 1 });
    const services = cluster.resource('services', namespace);
    const spec = { ports: [{ port: 80, targetPort: 9376, protocol: 'TCP' }], selector: { name } };
    await services.delete(name);
    await expect(services.get(name)).rejects.toMatchObject({ code: 404, reason: 'NotFound' });
    await services.create({ metadata: { name }, spec });
    await new ServiceJig(cluster, namespace, name).endpointPods(...pods);
  });

  test('[sig-network] Services should be rejected when no endpoints exist', async () => {
    const jig = await jigOf('no-pods');
    await jig.create();
    const [node = ''] = await nodeNames();
    const pod = agnhostPod('execpod-noendpoints', [agnhostContainer('agnhost-container')], {
      spec: onNode(node),
    });
    expect(textAt(await createSync(cluster, jig.namespace, pod), 'spec', 'nodeName')).toBe(node);
    await jig.endpointCount(0);
  });

  test('[sig-network] Services should be rejected for evicted pods (no endpoints exist)', async () => {
    const jig = await jigOf('evicted-pods');
    await jig.create({ publishNotReadyAddresses: true });
    const limits = { 'ephemeral-storage': '5Mi' };
    const container = { ...agnhostContainer('evicted-pod'), resources: { limits } };
    // Theirs has no labels of the Service; with them there is something to take out.
    await createSync(cluster, jig.namespace, agnhostPod('evicted-pod', [container], { labels: jig.labels }));
    await jig.endpointCount(1);
    // A simulated node has no disk that could be full: this is what kubelet writes then.
    const unready = ['Ready', 'ContainersReady'].map((type) => ({
      type,
      status: 'False',
      reason: 'PodFailed',
    }));
    const status = {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'Pod ephemeral local storage usage exceeds',
    };
    const patch = { status: { ...status, conditions: unready } };
    const pods = cluster.resource('pods', jig.namespace);
    const changed = await pods.patch('evicted-pod', 'strategic-merge', patch, 'status');
    expect(changed['status']).toMatchObject(status);
    await poll(async () => {
      const endpoints = await cluster.resource('endpoints', jig.namespace).get(jig.name);
      return listAt(endpoints, 'subsets').length === 0;
    });
    const slices = await jig.slicesUntil((found) =>
      found.every((slice) => listAt(slice, 'endpoints').length === 0),
    );
    expect(slices).toHaveLength(1);
  });

  test.each([
    ['Pod to Pod', 80, false, false],
    ['Pod (hostNetwork: true) to Pod', 8000, false, true],
    ['Pod and Node, to Pod (hostNetwork: true)', 10180, true, true],
  ])(
    '[sig-network] Services should respect internalTrafficPolicy=Local %s',
    async (_title, targetPort, serverOnHost, clientsOnHost) => {
      const jig = await jigOf('svc-itp');
      const made = await jig.create({ ...tcp(80, targetPort), internalTrafficPolicy: 'Local' });
      expect(textAt(made, 'spec', 'internalTrafficPolicy')).toBe('Local');
      const [node0 = '', node1 = ''] = await nodeNames();
      const spec = (node: string, hostNetwork: boolean): { spec: JsonRecord } => ({
        spec: { ...onNode(node), ...(hostNetwork ? { hostNetwork } : {}) },
      });
      const server = await jig.pod('echo-hostname-0', [], spec(node0, serverOnHost));
      const isOnHost = textAt(server, 'status', 'podIP') === textAt(server, 'status', 'hostIP');
      expect(isOnHost).toBe(serverOnHost);
      const [slice] = await jig.slicesUntil((slices) =>
        slices.some((each) => listAt(each, 'endpoints').length === 1),
      );
      expect(listAt(slice, 'endpoints')).toMatchObject([
        { addresses: [textAt(server, 'status', 'podIP')], nodeName: node0 },
      ]);
      for (const [name, node] of [
        ['pause-pod-0', node0],
        ['pause-pod-1', node1],
      ] as const) {
        const pod = agnhostPod(name, [agnhostContainer('agnhost-container')], spec(node, clientsOnHost));
        expect(textAt(await createSync(cluster, jig.namespace, pod), 'spec', 'nodeName')).toBe(node);
      }
    },
  );

  test('[sig-network] Services should serve endpoints on same port and different protocols', async () => {
    const jig = await jigOf('multiprotocol-test');
    const port = (name: string, protocol: string): JsonRecord => ({
      name,
      port: 80,
      targetPort: 80,
      protocol,
    });
    const [tcpPort, udpPort] = [port('tcp-port', 'TCP'), port('udp-port', 'UDP')];
    await jig.create({ type: 'ClusterIP', ports: [tcpPort, udpPort] });
    await jig.pod('pod1', [
      { name: 'tcp-port', containerPort: 80, protocol: 'TCP' },
      { name: 'udp-port', containerPort: 80, protocol: 'UDP' },
    ]);
    const tcpMapping = { name: 'tcp-port', protocol: 'TCP', target: 'pod1', port: 80 };
    const udpMapping = { name: 'udp-port', protocol: 'UDP', target: 'pod1', port: 80 };
    await jig.endpointPorts([tcpMapping, udpMapping]);
    const services = cluster.resource('services', jig.namespace);
    const before = await services.get(jig.name);
    const changed = await jig.update((spec) => ({ ...spec, ports: [tcpPort] }));
    // Resource versions are numbers that can be compared (KEP-5504).
    const [older, newer] = [before, changed].map((each) => textAt(each, 'metadata', 'resourceVersion'));
    expect([older, newer]).toEqual([
      expect.stringMatching(/^[1-9]\d*$/),
      expect.stringMatching(/^[1-9]\d*$/),
    ]);
    expect(BigInt(newer ?? '') > BigInt(older ?? '')).toBe(true);
    await jig.endpointPorts([tcpMapping]);
    await jig.update((spec) => ({ ...spec, ports: [udpPort] }));
    await jig.endpointPorts([udpMapping]);
  });

  test('[sig-network] Services should allow creating a basic SCTP service with pod and endpoints [LinuxOnly] [Serial]', async () => {
    const jig = await jigOf('sctp-endpoint-test');
    await jig.create({ ports: [{ protocol: 'SCTP', port: 5060 }] });
    await jig.endpointCount(0);
    await jig.pod('pod1', [{ containerPort: 5060, protocol: 'SCTP' }]);
    await jig.endpointPorts([{ name: '', protocol: 'SCTP', target: 'pod1', port: 5060 }]);
    await remove(jig, 'pod1');
    await jig.endpointCount(0);
  });

  test.each([
    ['ports', 8080],
    ['named ports', 'http-sidecar'],
  ])(
    '[sig-network] Services should connect to the %s exposed by restartable init containers',
    async (_title, targetPort) => {
      const jig = await jigOf('sidecar-with-port');
      const ports = [{ name: 'http-sidecar', containerPort: 8080, protocol: 'TCP' }];
      const sidecar = { ...agnhostContainer('sidecar-port', ports, 'netexec'), restartPolicy: 'Always' };
      const changes = { labels: jig.labels, spec: { initContainers: [sidecar] } };
      const pod = agnhostPod('sidecar-port', [agnhostContainer('agnhost-container')], changes);
      const running = await createSync(cluster, jig.namespace, pod);
      expect(listAt(running, 'status', 'initContainerStatuses')).toMatchObject([
        { ready: true, started: true },
      ]);
      await jig.create({ ports: [{ name: 'http-sidecar', port: 8080, targetPort }] });
      await jig.endpointPorts([{ name: 'http-sidecar', target: 'sidecar-port', port: 8080 }]);
    },
  );

  test('[sig-network] Services should support named targetPorts that resolve to different ports on different endpoints', async () => {
    const jig = await jigOf('mutable-named-port');
    const pod = async (name: string, containerPort: number): Promise<JsonRecord> =>
      jig.pod(name, [{ name: 'mutable-port', containerPort, protocol: 'TCP' }]);
    await pod('testpod0', 8080);
    await pod('testpod1', 8080);
    await jig.create({ ports: [{ name: jig.name, port: 8001, targetPort: 'mutable-port' }] });
    const on = (target: string, port: number): PortMapping => ({ name: jig.name, target, port });
    await jig.endpointPorts([on('testpod0', 8080), on('testpod1', 8080)]);
    await remove(jig, 'testpod0');
    await pod('testpod2', 8000);
    await jig.endpointPorts([on('testpod1', 8080), on('testpod2', 8000)]);
    await remove(jig, 'testpod1');
    await pod('testpod3', 8000);
    await jig.endpointPorts([on('testpod2', 8000), on('testpod3', 8000)]);
  });
}
