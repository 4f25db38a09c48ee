import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Outcome } from '../support/machine-protocol.ts';
import { forMakers } from '../support/for-makers.ts';
import {
  both,
  clusterIPs,
  externalIPs,
  families,
  loadBalancerIPs,
  ServiceNetwork,
  silence,
  unready,
} from '../support/service-network.ts';
import { Stopwatch } from '../../support/reference-time.ts';

const protocols = ['TCP', 'UDP'] as const;
const [webIPs, otherIPs] = clusterIPs;

/** Named as the tests of Kubernetes' e2e suites `network/service.go`, `network/networking.go` and `network/dual_stack.go`. */
forMakers('Services', (maker) => {
  let cluster: ServiceNetwork;

  beforeAll(async () => {
    cluster = await ServiceNetwork.start(maker, { 'node-1': ['client', 'a-1', 'b-1'], 'node-2': ['c-2'] });
  });
  afterAll(() => cluster.close());

  it('should function for pod-Service, node-Service and client IP, by TCP and UDP (dual stack)', async () => {
    const ports = protocols.map((protocol) => ({
      ...{ name: protocol.toLowerCase(), protocol, port: 80, targetPort: 8080 },
    }));
    await cluster.apply({ spec: { ports }, backends: ['a-1', 'c-2'] });
    for (const family of families) {
      for (const protocol of protocols) {
        for (const from of ['client', 'node-1', 'c-2']) {
          const answering = await cluster.answering(from, webIPs[family], { protocol });
          expect(answering, `${from}, ${family}, ${protocol}`).toEqual(['a-1', 'c-2']);
        }
      }
    }
  });

  it('should serve endpoints on same port and different protocols', async () => {
    const tcp = { name: 'tcp', protocol: 'TCP', port: 80, targetPort: 8080 };
    const udp = { name: 'udp', protocol: 'UDP', port: 80, targetPort: 8080 };
    const expectAnswers = async (byTcp: string, byUdp: string): Promise<void> => {
      for (const family of families) {
        expect(await cluster.answering('client', webIPs[family], { protocol: 'TCP', times: 3 })).toEqual([
          byTcp,
        ]);
        expect(await cluster.answering('client', webIPs[family], { protocol: 'UDP', times: 3 })).toEqual([
          byUdp,
        ]);
      }
    };
    await cluster.apply({ spec: { ports: [tcp, udp] }, backends: ['a-1'] });
    await expectAnswers('a-1', 'a-1');
    await cluster.apply({ spec: { ports: [tcp] }, backends: ['a-1'] });
    await expectAnswers('a-1', 'refused');
    await cluster.apply({ spec: { ports: [udp] }, backends: ['a-1'] });
    await expectAnswers('refused', 'a-1');
  });

  it('should serve multiport endpoints from pods', async () => {
    const ports = [
      { name: 'one', port: 80, targetPort: 8080 },
      { name: 'two', port: 81, targetPort: 8081 },
    ];
    await cluster.apply({ spec: { ports }, backends: ['c-2'] });
    for (const family of families) {
      expect(await cluster.ask('client', webIPs[family], 80)).toMatchObject({ name: 'c-2', port: 8080 });
      expect(await cluster.ask('client', webIPs[family], 81)).toMatchObject({ name: 'c-2', port: 8081 });
      expect(await cluster.ask('client', webIPs[family], 82)).toBe('refused');
    }
  });

  it('should allow pods to hairpin back to themselves through services', async () => {
    const ports = protocols.map((protocol) => ({ name: protocol, protocol, port: 80, targetPort: 8080 }));
    await cluster.apply({ spec: { ports }, backends: ['a-1'] });
    for (const family of families) {
      for (const protocol of protocols) {
        const answer = await cluster.ask('a-1', webIPs[family], 80, { protocol });
        expect(answer).toMatchObject({ name: 'a-1' });
        expect(answer, 'its own address would be answered without the node').not.toMatchObject({
          client: cluster.addresses('a-1')[family],
        });
      }
    }
  });

  it('should preserve source pod IP for traffic thru service cluster IP', async () => {
    await cluster.apply({ backends: ['c-2'] }, { name: 'near', backends: ['a-1'] });
    for (const family of families) {
      const client = cluster.addresses('client')[family];
      expect(await cluster.ask('client', webIPs[family])).toEqual({ name: 'c-2', port: 8080, client });
      expect(await cluster.ask('client', otherIPs[family])).toEqual({ name: 'a-1', port: 8080, client });
    }
  });

  it('should be rejected when no endpoints exist: at every destination, by TCP and UDP', async () => {
    const ports = protocols.map((protocol, index) => ({
      ...{ name: protocol, protocol, port: 80, targetPort: 8080, nodePort: 30_080 + index },
    }));
    const spec = { type: 'LoadBalancer', ports, externalIPs: both(externalIPs) };
    const ingress = both(loadBalancerIPs).map((ip) => ({ ip }));
    for (const backends of [[], [unready('a-1')]]) {
      await cluster.apply({ spec, ingress, backends });
      for (const family of families) {
        for (const [index, protocol] of protocols.entries()) {
          const ask = (from: string, address: string, port = 80): Promise<Outcome> =>
            cluster.ask(from, address, port, { protocol });
          const outcomes = await Promise.all([
            ask('client', webIPs[family]),
            ask('node-1', webIPs[family]),
            ask('outside', externalIPs[family]),
            ask('outside', loadBalancerIPs[family]),
            ask('outside', cluster.addresses('node-2')[family], 30_080 + index),
          ]);
          expect(outcomes, `${family}, ${protocol}`).toEqual(Array(5).fill('refused'));
        }
      }
    }
  });

  it('should be rejected at once, not when the client repeats its SYN after a second', async () => {
    await cluster.apply({ backends: [] });
    for (const family of families) {
      const took: number[] = [];
      for (let i = 0; i < 5; i++) {
        const sinceAsked = new Stopwatch();
        expect(await cluster.ask('client', webIPs[family])).toBe('refused');
        took.push(sinceAsked.elapsedMs());
      }
      // The quickest: others may have waited for a busy machine.
      expect(Math.min(...took), family).toBeLessThan(900);
    }
  });

  it('should be rejected at ports that a Service does not have, and unanswered where no Service is', async () => {
    await cluster.apply({ backends: ['a-1'] });
    for (const family of families) {
      expect(await cluster.ask('client', webIPs[family], 9999)).toBe('refused');
      expect(await cluster.ask('client', webIPs[family], 80, { protocol: 'UDP' })).toBe('refused');
      expect(await cluster.ask('client', otherIPs[family], 80, { timeout: silence })).toBe('silence');
    }
  });

  it('should be able to up and down services', async () => {
    const [first, second] = [
      { name: 'first', backends: ['a-1'] },
      { name: 'second', backends: ['c-2'] },
    ];
    await cluster.apply(first, second);
    expect(await cluster.answering('client', webIPs.IPv4, { times: 3 })).toEqual(['a-1']);
    expect(await cluster.answering('client', otherIPs.IPv4, { times: 3 })).toEqual(['c-2']);
    await cluster.apply(first);
    expect(await cluster.answering('client', webIPs.IPv4, { times: 3 })).toEqual(['a-1']);
    expect(await cluster.ask('client', otherIPs.IPv4, 80, { timeout: silence })).toBe('silence');
    await cluster.apply(first, { name: 'third', backends: ['b-1'] });
    expect(await cluster.answering('client', otherIPs.IPv4, { times: 3 })).toEqual(['b-1']);
  });

  it('should implement service.kubernetes.io/service-proxy-name', async () => {
    const labels = { 'service.kubernetes.io/service-proxy-name': 'other' };
    await cluster.apply({ backends: ['a-1'] }, { name: 'theirs', labels, backends: ['a-1'] });
    for (const family of families) {
      expect(await cluster.ask('client', webIPs[family])).toMatchObject({ name: 'a-1' });
      expect(await cluster.ask('client', otherIPs[family], 80, { timeout: silence })).toBe('silence');
    }
  });

  it('should implement service.kubernetes.io/headless', async () => {
    const sliceLabels = { 'service.kubernetes.io/headless': '' };
    await cluster.apply({ backends: ['a-1'] }, { name: 'headless', sliceLabels, backends: ['a-1'] });
    for (const family of families) {
      expect(await cluster.ask('client', webIPs[family])).toMatchObject({ name: 'a-1' });
      expect(await cluster.ask('client', otherIPs[family]), 'its endpoints are not read').toBe('refused');
    }
    await cluster.apply({ backends: ['a-1'] }, { name: 'headless', backends: ['a-1'] });
    expect(await cluster.ask('client', otherIPs.IPv4)).toMatchObject({ name: 'a-1' });
  });
});
