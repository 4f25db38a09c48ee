import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { at, listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { type E2eCluster, poll } from '../../support/e2e-cluster.ts';
import {
  addressOf,
  healthCheckNodePortOf,
  LoadBalancerJig,
  nodePortOf,
  startBalancedCluster,
} from '../../support/load-balancer-jig.ts';
import {
  agnhostContainer,
  agnhostPod,
  createSync,
  deploymentComplete,
  onNode,
} from '../../support/service-jig.ts';

/** The API part of the e2e tests of load balancers (loadbalancer.go), with ours as the provider; titles are theirs. */
export function loadBalancer(): void {
  let cluster: E2eCluster;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    ({ cluster, stop } = await startBalancedCluster());
  });
  afterAll(async () => stop());

  const jigOf = async (name: string, baseName = 'loadbalancers'): Promise<LoadBalancerJig> =>
    new LoadBalancerJig(cluster, await cluster.namespace(baseName), name);

  const firstPort = (spec: JsonRecord, change: (port: JsonRecord) => JsonRecord): JsonRecord => {
    const [first, ...others] = listAt(spec, 'ports');
    return { ...spec, ports: [change(recordAt(first)), ...others] };
  };

  test('[sig-network] LoadBalancers [Feature:LoadBalancer] [TCP] should be able to change the type and ports of the service [Slow]', async () => {
    const jig = await jigOf('mutability-test-tcp');
    expect(at(await jig.createPlain(), 'spec', 'type')).toBe('ClusterIP');
    await jig.runNetexec();
    const asNodePort = await jig.update((spec) => ({ ...spec, type: 'NodePort' }));
    const nodePort = nodePortOf(asNodePort);
    const balanced = await jig.update((spec) => ({ ...spec, type: 'LoadBalancer' }));
    expect(nodePortOf(balanced)).toBe(nodePort);
    const address = addressOf(await jig.balanced());

    const other = nodePort === 32767 ? 30000 : nodePort + 1;
    const moved = await jig.update((spec) => firstPort(spec, (port) => ({ ...port, nodePort: other })));
    expect([nodePortOf(moved), addressOf(moved)]).toEqual([other, address]);
    const renumbered = await jig.update((spec) => firstPort(spec, (port) => ({ ...port, port: 81 })));
    expect(numberAt(listAt(renumbered, 'spec', 'ports')[0], 'port')).toBe(81);
    expect([nodePortOf(renumbered), addressOf(renumbered)]).toEqual([other, address]);

    const deployments = cluster.resource('deployments', jig.namespace);
    for (const replicas of [0, 1]) {
      await deployments.retryOnConflict(jig.name, (each) => ({
        ...each,
        spec: { ...recordAt(each, 'spec'), replicas },
      }));
      await deploymentComplete(cluster, jig.namespace, jig.name);
    }
    const back = await jig.update((spec) => ({ ...spec, type: 'ClusterIP' }));
    expect(nodePortOf(back)).toBe(0);
    await jig.unbalanced();
  });

  test('[sig-network] LoadBalancers [Feature:LoadBalancer] should only allow access from service loadbalancer source ranges [Slow]', async () => {
    const jig = await jigOf('lb-sourcerange');
    await jig.createPlain({ type: 'LoadBalancer' });
    await jig.runNetexec();
    const [accepting, dropping] = await cluster.readySchedulableNodes();
    const onNamed = async (name: string, node: JsonRecord | undefined): Promise<JsonRecord> => {
      const spec = { nodeName: textAt(node, 'metadata', 'name') };
      return createSync(cluster, jig.namespace, agnhostPod(name, [agnhostContainer('agnhost')], { spec }));
    };
    const accept = await onNamed('execpod-accept', accepting);
    await onNamed('execpod-drop', dropping);
    const address = addressOf(await jig.balanced());
    const { podIP, hostIP } = recordAt(accept, 'status');
    for (const loadBalancerSourceRanges of [
      [`${String(podIP)}/32`, `${String(hostIP)}/32`],
      ['0.0.0.0/1', '128.0.0.0/1'],
      ['255.0.0.0/32'],
      undefined,
    ]) {
      const changed = await jig.update((spec) => ({ ...spec, loadBalancerSourceRanges }));
      expect(at(changed, 'spec', 'loadBalancerSourceRanges')).toEqual(loadBalancerSourceRanges);
      expect(addressOf(changed)).toBe(address);
    }
    await jig.deleteAndWait();
  });

  const policies = ['Local', 'Cluster'];

  test.each(policies)(
    '[sig-network] LoadBalancers [Feature:LoadBalancer] should have session affinity work for LoadBalancer service with %s traffic policy [Slow] [LinuxOnly]',
    async (externalTrafficPolicy) => {
      const jig = await jigOf('affinity-lb');
      await jig.createPlain({ type: 'LoadBalancer', externalTrafficPolicy, sessionAffinity: 'ClientIP' });
      await jig.run(3);
      expect(at(await jig.balanced(), 'spec', 'sessionAffinity')).toBe('ClientIP');
      await jig.endpointCount(3);
      await jig.deleteAndWait();
    },
  );

  test.each(policies)(
    '[sig-network] LoadBalancers [Feature:LoadBalancer] should be able to switch session affinity for LoadBalancer service with %s traffic policy [Slow] [LinuxOnly]',
    async (externalTrafficPolicy) => {
      const jig = await jigOf('affinity-lb-transition');
      await jig.createPlain({ type: 'LoadBalancer', externalTrafficPolicy, sessionAffinity: 'ClientIP' });
      await jig.run(3);
      const address = addressOf(await jig.balanced());
      for (const sessionAffinity of ['None', 'ClientIP']) {
        const switched = await jig.update((spec) => ({ ...spec, sessionAffinity }));
        expect([at(switched, 'spec', 'sessionAffinity'), addressOf(switched)]).toEqual([
          sessionAffinity,
          address,
        ]);
      }
      await jig.deleteAndWait();
    },
  );

  test('[sig-network] LoadBalancers [Feature:LoadBalancer] should handle load balancer cleanup finalizer for service [Slow]', async () => {
    const jig = await jigOf('lb-finalizer');
    await jig.create({ type: 'LoadBalancer' });
    await jig.balanced();
    await jig.finalizerIs(true);
    await jig.changeType('ClusterIP');
    await jig.finalizerIs(false);
    await jig.changeType('LoadBalancer');
    await jig.finalizerIs(true);
    await jig.deleteAndWait();
  });

  test('[sig-network] LoadBalancers [Feature:LoadBalancer] should be able to create LoadBalancer Service without NodePort and change it [Slow]', async () => {
    const jig = await jigOf('reallocate-nodeport-test');
    await jig.createPlain();
    await jig.runNetexec();
    const without = { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false };
    expect(nodePortOf(await jig.update((spec) => ({ ...spec, ...without })))).toBe(0);
    const address = addressOf(await jig.balanced());
    const changed = await jig.update((spec) => ({ ...spec, allocateLoadBalancerNodePorts: true }));
    expect(nodePortOf(changed)).not.toBe(0);
    expect(addressOf(changed)).toBe(address);
  });

  test.each([
    ['different', 1],
    ['the same', 0],
  ])(
    '[sig-network] LoadBalancers [Feature:LoadBalancer] should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on %s nodes',
    async (_where, second) => {
      const jig = await jigOf('svc-udp');
      const nodes = await cluster.readySchedulableNodes();
      const ports = [{ port: 80, name: 'udp', protocol: 'UDP', targetPort: 80 }];
      await jig.create({ type: 'LoadBalancer', ports });
      await jig.balanced();
      const server = async (name: string, hostname: string, node: number): Promise<void> => {
        const container = agnhostContainer('agnhost-container', [], 'netexec', '--udp-port=80');
        const spec = { hostname, ...onNode(textAt(nodes[node], 'metadata', 'name')) };
        await createSync(cluster, jig.namespace, agnhostPod(name, [container], { labels: jig.labels, spec }));
      };
      const udp = { name: 'udp', protocol: 'UDP', port: 80 };
      await server('pod-server-1', 'hostname1', 0);
      await jig.endpointPorts([{ ...udp, target: 'pod-server-1' }]);
      await server('pod-server-2', 'hostname2', second);
      await cluster.resource('pods', jig.namespace).delete('pod-server-1');
      await jig.endpointPorts([{ ...udp, target: 'pod-server-2' }]);
    },
  );

  const local = { externalTrafficPolicy: 'Local' };

  test.each([
    ['work for type=LoadBalancer', 'external-local-lb'],
    ['work from pods', 'external-local-pods'],
  ])(
    '[sig-network] LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] [Slow] should %s',
    async (_title, name) => {
      const jig = await jigOf(name, 'esipp');
      const service = await jig.createLoadBalancer(local);
      await jig.runController(1);
      expect(healthCheckNodePortOf(service)).toEqual(expect.any(Number));
      expect(listAt(service, 'status', 'loadBalancer', 'ingress')).toMatchObject([{ ipMode: 'VIP' }]);
      const changed = await jig.changeType('ClusterIP');
      expect([healthCheckNodePortOf(changed), nodePortOf(changed)]).toEqual([undefined, 0]);
      await jig.deleteAndWait();
    },
  );

  test('[sig-network] LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] [Slow] should only target nodes with endpoints', async () => {
    const jig = await jigOf('external-local-nodes', 'esipp');
    const ports = [{ name: 'http', protocol: 'TCP', port: 8081, targetPort: 80 }];
    const spec = { type: 'LoadBalancer', sessionAffinity: 'None', ports, ...local };
    const service = await jig.createPlain(spec);
    await jig.balanced();
    expect(healthCheckNodePortOf(service)).toEqual(expect.any(Number));
    for (const [index, node] of (await cluster.readySchedulableNodes()).entries()) {
      const nodeName = textAt(node, 'metadata', 'name');
      const name = `${jig.name}-${index}`;
      await jig.runNetexec({ nodeName }, name);
      await jig.slicesUntil((slices) => {
        const found = slices.flatMap((slice) => listAt(slice, 'endpoints'));
        return found.length === 1 && textAt(found[0], 'nodeName') === nodeName;
      });
      await cluster.resource('deployments', jig.namespace).delete(name);
      await jig.slicesUntil((slices) => slices.every((slice) => listAt(slice, 'endpoints').length === 0));
    }
    await jig.update((before) => ({ ...before, type: 'ClusterIP' }));
    await jig.unbalanced();
    await cluster.resource('services', jig.namespace).delete(jig.name);
  });

  test('[sig-network] LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] [Slow] should target all nodes with endpoints', async () => {
    const jig = await jigOf('external-local-update', 'esipp');
    await jig.createLoadBalancer(local);
    const term = { labelSelector: { matchLabels: jig.labels }, topologyKey: 'kubernetes.io/hostname' };
    const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    await jig.runController(2, { affinity: { podAntiAffinity } });
    const slices = await jig.slicesUntil(
      (found) => found.flatMap((slice) => listAt(slice, 'endpoints')).length === 2,
    );
    const nodes = slices
      .flatMap((slice) => listAt(slice, 'endpoints'))
      .map((each) => textAt(each, 'nodeName'));
    expect(new Set(nodes).size).toBe(2);
    await jig.deleteAndWait();
  });

  test.each(policies)(
    '[sig-network] LoadBalancers [Feature:LoadBalancer] should not have connectivity disruption during rolling update with externalTrafficPolicy=%s [Slow]',
    async (externalTrafficPolicy) => {
      const jig = await jigOf('test-lb-rolling-update');
      const container = agnhostContainer('app', [{ containerPort: 80 }], 'netexec', '--http-port=80');
      const daemonSets = cluster.resource('daemonSets', jig.namespace);
      const maxUnavailable = '10%';
      await daemonSets.create({
        metadata: { name: jig.name, labels: jig.labels },
        spec: {
          selector: { matchLabels: jig.labels },
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable } },
          template: {
            metadata: { labels: jig.labels },
            spec: { containers: [container], terminationGracePeriodSeconds: 60 },
          },
        },
      });
      const rolledOut = async (): Promise<void> =>
        poll(async () => {
          const { metadata, status } = await daemonSets.get(jig.name);
          const counts = ['desiredNumberScheduled', 'updatedNumberScheduled', 'numberAvailable'];
          const seen = numberAt(status, 'observedGeneration') === numberAt(metadata, 'generation');
          return seen && counts.every((each) => numberAt(status, each) === 3);
        });
      await rolledOut();
      const address = addressOf(await jig.createLoadBalancer({ externalTrafficPolicy }));
      // Theirs updates five times.
      for (let version = 1; version <= 2; version++) {
        const env = [{ name: 'VERSION', value: String(version) }];
        const body = { spec: { template: { spec: { containers: [{ name: 'app', env }] } } } };
        const patched = await daemonSets.patch(jig.name, 'strategic-merge', body);
        const [first] = listAt(patched, 'spec', 'template', 'spec', 'containers');
        expect(first).toMatchObject({ image: container['image'], env });
        await rolledOut();
        await jig.slicesUntil((slices) => {
          const found = slices.flatMap((slice) => listAt(slice, 'endpoints'));
          return found.filter((each) => at(each, 'conditions', 'ready') === true).length === 3;
        });
      }
      expect(addressOf(await jig.balanced())).toBe(address);
    },
  );
}
