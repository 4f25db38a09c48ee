import { afterAll, beforeAll, expect, it } from 'vitest';
import type { IPFamily } from '../../../src/objects/address.ts';
import type { ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import { forMakers } from '../support/for-makers.ts';
import {
  both,
  clusterIPs,
  externalIPs,
  families,
  loadBalancerIPs,
  ServiceNetwork,
  silence,
  terminating,
} from '../support/service-network.ts';

const [webIPs] = clusterIPs;
const nodePort = 30_080;
const ingress = both(loadBalancerIPs).map((ip) => ({ ip }));
const external: ServiceSpec = {
  ...{ type: 'LoadBalancer', externalIPs: both(externalIPs) },
  ports: [{ port: 80, targetPort: 8080, nodePort }],
};

/** Named as the tests of Kubernetes' e2e suites `network/service.go`, `loadbalancer.go` and `traffic_distribution.go`. */
forMakers('traffic policies', (maker) => {
  let cluster: ServiceNetwork;

  beforeAll(async () => {
    cluster = await ServiceNetwork.start(
      maker,
      { 'node-1': ['client', 'a-1', 'b-1'], 'node-2': ['c-2'] },
      { 'node-1': 'zone-a', 'node-2': 'zone-b' },
    );
  });
  afterAll(() => cluster.close());

  type Answering = readonly string[];

  /** Who answers a client outside: at node-1 by the external IP, the load balancer's and the node port, then at node-2. */
  async function expectOutside(
    family: IPFamily,
    expected: readonly [Answering, Answering, Answering, Answering],
  ): Promise<void> {
    const destinations = [
      [externalIPs[family], 80],
      [loadBalancerIPs[family], 80],
      [cluster.addresses('node-1')[family], nodePort],
      [cluster.addresses('node-2')[family], nodePort],
    ] as const;
    const answering = destinations.map(([address, port], index) =>
      cluster.expecting('outside', address, port, expected[index] ?? []),
    );
    expect(await Promise.all(answering), family).toEqual(expected);
  }

  it('should respect internalTrafficPolicy=Local Pod to Pod, and Pod and Node, to Pod', async () => {
    const spec = { internalTrafficPolicy: 'Local' };
    await cluster.apply({ spec, backends: ['a-1', 'b-1', 'c-2'] });
    for (const family of families) {
      expect(await cluster.answering('client', webIPs[family])).toEqual(['a-1', 'b-1']);
      expect(await cluster.answering('node-1', webIPs[family])).toEqual(['a-1', 'b-1']);
      expect(await cluster.answering('node-2', webIPs[family], { times: 5 })).toEqual(['c-2']);
    }
    await cluster.apply({ spec, backends: ['c-2'] });
    for (const family of families) {
      const asked = await cluster.ask('client', webIPs[family], 80, { timeout: silence });
      expect(asked, 'dropped: there are endpoints, though not here').toBe('silence');
      expect(await cluster.ask('c-2', webIPs[family])).toMatchObject({ name: 'c-2' });
    }
    await cluster.apply({ spec, backends: [] });
    expect(await cluster.ask('client', webIPs.IPv4), 'refused: there are none').toBe('refused');
  });

  it('should preserve the source address with externalTrafficPolicy=Local, and replace it with Cluster', async () => {
    for (const externalTrafficPolicy of ['Local', 'Cluster']) {
      await cluster.apply({ spec: { ...external, externalTrafficPolicy }, ingress, backends: ['a-1'] });
      for (const family of families) {
        const client = cluster.addresses('outside')[family];
        const isKept = externalTrafficPolicy === 'Local';
        const nodeIP = cluster.addresses('node-1')[family];
        for (const [address, port] of [
          [externalIPs[family], 80],
          [loadBalancerIPs[family], 80],
          [nodeIP, nodePort],
        ] as const) {
          const outcome = await cluster.ask('outside', address, port);
          const what = `${externalTrafficPolicy}, ${address}`;
          expect(outcome, what).toMatchObject({ name: 'a-1' });
          expect(typeof outcome === 'string' ? outcome : outcome.client === client, what).toBe(isKept);
        }
      }
    }
  });

  it('should only target nodes with endpoints: externalTrafficPolicy=Local is silent at the others', async () => {
    const spec = { ...external, externalTrafficPolicy: 'Local' };
    await cluster.apply({ spec, ingress, backends: ['a-1', 'b-1'] });
    for (const family of families) {
      const here = ['a-1', 'b-1'];
      await expectOutside(family, [here, here, here, ['silence']]);
    }
    await cluster.apply({ spec, ingress, backends: ['c-2'] });
    for (const family of families) {
      await expectOutside(family, [['silence'], ['silence'], ['silence'], ['c-2']]);
    }
    await cluster.apply({ spec, ingress, backends: [] });
    for (const family of families) {
      const asked = await Promise.all([
        cluster.ask('outside', externalIPs[family]),
        cluster.ask('outside', cluster.addresses('node-1')[family], nodePort),
        cluster.ask('outside', cluster.addresses('node-2')[family], nodePort),
      ]);
      expect(asked).toEqual(['refused', 'refused', 'refused']);
    }
  });

  it('should work from pods and nodes with externalTrafficPolicy=Local, wherever the endpoints are', async () => {
    const spec = { ...external, externalTrafficPolicy: 'Local' };
    await cluster.apply({ spec, ingress, backends: ['a-1', 'c-2'] });
    for (const family of families) {
      const nodeIP = cluster.addresses('node-1')[family];
      for (const from of ['client', 'node-1']) {
        expect(await cluster.answering(from, loadBalancerIPs[family])).toEqual(['a-1', 'c-2']);
        expect(await cluster.answering(from, externalIPs[family])).toEqual(['a-1', 'c-2']);
        expect(await cluster.answering(from, nodeIP, { port: nodePort })).toEqual(['a-1', 'c-2']);
      }
      const client = cluster.addresses('client')[family];
      await expect(cluster.ask('client', loadBalancerIPs[family])).resolves.toMatchObject({ client });
    }
  });

  it('should fallback to terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Cluster and externalTrafficPolicy=Cluster', async () => {
    await cluster.apply({
      spec: external,
      ingress,
      backends: ['a-1', terminating('b-1'), terminating('c-2')],
    });
    for (const family of families) {
      expect(await cluster.answering('client', webIPs[family])).toEqual(['a-1']);
      await expectOutside(family, [['a-1'], ['a-1'], ['a-1'], ['a-1']]);
    }
    await cluster.apply({ spec: external, ingress, backends: [terminating('b-1'), terminating('c-2')] });
    for (const family of families) {
      expect(await cluster.answering('client', webIPs[family])).toEqual(['b-1', 'c-2']);
      const answering = await cluster.answering('outside', externalIPs[family]);
      expect(answering).toEqual(['b-1', 'c-2']);
    }
  });

  it('should fallback to local terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Local and externalTrafficPolicy=Local', async () => {
    const spec = { ...external, internalTrafficPolicy: 'Local', externalTrafficPolicy: 'Local' };
    await cluster.apply({ spec, ingress, backends: ['a-1', terminating('b-1'), 'c-2'] });
    for (const family of families) {
      expect(await cluster.answering('client', webIPs[family])).toEqual(['a-1']);
      await expectOutside(family, [['a-1'], ['a-1'], ['a-1'], ['c-2']]);
    }
    await cluster.apply({ spec, ingress, backends: [terminating('a-1'), terminating('b-1'), 'c-2'] });
    for (const family of families) {
      const here = ['a-1', 'b-1'];
      expect(await cluster.answering('client', webIPs[family]), 'ready elsewhere does not count').toEqual(
        here,
      );
      await expectOutside(family, [here, here, here, ['c-2']]);
    }
  });

  it('should route traffic to an endpoint in the same zone or node, and fall back when there is none', async () => {
    const inZone = (pod: string, zone: string, node: string) => ({
      ...{ pod, hints: { forZones: [{ name: zone }], forNodes: [{ name: node }] } },
    });
    await cluster.apply({
      backends: [inZone('a-1', 'zone-a', 'node-1'), inZone('c-2', 'zone-b', 'node-2')],
    });
    for (const family of families) {
      expect(await cluster.answering('client', webIPs[family], { times: 10 })).toEqual(['a-1']);
      expect(await cluster.answering('c-2', webIPs[family], { times: 10 })).toEqual(['c-2']);
    }
    await cluster.apply({ backends: [inZone('c-2', 'zone-b', 'node-2')] });
    expect(await cluster.answering('client', webIPs.IPv4, { times: 5 })).toEqual(['c-2']);
    await cluster.apply({ backends: [inZone('a-1', 'zone-a', 'node-1'), 'c-2'] });
    expect(await cluster.answering('client', webIPs.IPv4), 'one has no hint').toEqual(['a-1', 'c-2']);
  });
});
