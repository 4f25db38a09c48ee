import { afterAll, beforeAll, expect, it } from 'vitest';
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
} from '../support/service-network.ts';

const [webIPs] = clusterIPs;
const nodePort = 30_080;
const ingress = both(loadBalancerIPs).map((ip) => ({ ip }));

/** Named as the tests of Kubernetes' e2e suites `network/service.go` and `network/loadbalancer.go`. */
forMakers('Services that are reached from outside', (maker) => {
  let cluster: ServiceNetwork;

  beforeAll(async () => {
    cluster = await ServiceNetwork.start(maker, { 'node-1': ['client', 'a-1'], 'node-2': ['c-2'] });
  });
  afterAll(() => cluster.close());

  it.for(['TCP', 'UDP'] as const)(
    'should be able to create a functioning NodePort service: at every node, by %s',
    async (protocol) => {
      const spec = { type: 'NodePort', ports: [{ protocol, port: 80, targetPort: 8080, nodePort }] };
      await cluster.apply({ spec, backends: ['a-1', 'c-2'] });
      for (const family of families) {
        for (const node of ['node-1', 'node-2']) {
          const address = cluster.addresses(node)[family];
          for (const from of ['outside', 'client', 'node-1']) {
            const answering = await cluster.answering(from, address, { port: nodePort, protocol });
            expect(answering, `${from} to ${node}, ${family}`).toEqual(['a-1', 'c-2']);
          }
        }
      }
    },
  );

  it('should be able to update service type to NodePort listening on same port number but different protocols', async () => {
    const tcp = { name: 'tcp', protocol: 'TCP', port: 80, targetPort: 8080, nodePort };
    const udp = { ...tcp, name: 'udp', protocol: 'UDP' };
    await cluster.apply({ spec: { type: 'NodePort', ports: [tcp] }, backends: ['a-1'] });
    const address = cluster.addresses('node-1').IPv4;
    const byUdp = { port: nodePort, protocol: 'UDP', times: 1 } as const;
    expect(await cluster.answering('outside', address, byUdp)).toEqual(['refused']);
    await cluster.apply({ spec: { type: 'NodePort', ports: [tcp, udp] }, backends: ['a-1'] });
    expect(await cluster.answering('outside', address, byUdp)).toEqual(['a-1']);
    expect(await cluster.answering('outside', address, { port: nodePort, times: 1 })).toEqual(['a-1']);
    await cluster.apply({
      spec: { ports: [tcp, udp].map(({ nodePort: _, ...port }) => port) },
      backends: ['a-1'],
    });
    expect(await cluster.answering('outside', address, { port: nodePort, times: 1 })).toEqual(['refused']);
  });

  it('takes the bit that asks for masquerading off the packet mark again, and leaves the other bits (D9)', async () => {
    const spec = { type: 'NodePort', ports: [{ port: 80, targetPort: 8080, nodePort }] };
    await cluster.apply({ spec, backends: ['c-2'] });
    const { host } = cluster.network.at('node-1').machine;
    const nft = async (...words: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await host.exec('nft', words);
      expect(exitCode, stderr).toBe(0);
      return stdout;
    };
    const chain = (name: string, hook: string, priority: number): Promise<string> =>
      nft('add', 'chain', 'ip', 'marks', name, `{ type filter hook ${hook} priority ${priority}; }`);
    await nft('add', 'table', 'ip', 'marks');
    try {
      // A network plugin's bit, and what is left when packets go out.
      await chain('before', 'prerouting', -150);
      await nft('add', 'rule', 'ip', 'marks', 'before', `tcp dport ${nodePort} meta mark set 0x1`);
      await chain('after', 'postrouting', 200);
      for (const mark of ['0x1', '0x4001']) {
        await nft('add', 'rule', 'ip', 'marks', 'after', `tcp dport 8080 meta mark ${mark} counter`);
      }
      const address = cluster.addresses('node-1').IPv4;
      expect(await cluster.ask('outside', address, nodePort)).toMatchObject({
        ...{ name: 'c-2', client: address },
      });
      const listed = await nft('list', 'chain', 'ip', 'marks', 'after');
      expect(listed).toMatch(/mark 0x00000001 counter packets [1-9]/);
      expect(listed).toMatch(/mark 0x00004001 counter packets 0 /);
    } finally {
      await nft('delete', 'table', 'ip', 'marks');
    }
  });

  it('should not serve node ports at other addresses of the node than its own', async () => {
    const spec = { type: 'NodePort', ports: [{ port: 80, targetPort: 8080, nodePort }] };
    await cluster.apply({ spec, backends: ['a-1'] });
    expect(await cluster.ask('node-1', '127.0.0.1', nodePort)).toBe('refused');
    expect(await cluster.ask('client', '10.244.1.1', nodePort), 'of an interface to a Pod').toBe('refused');
  });

  it('should be possible to connect to a service via ExternalIP', async () => {
    const spec = { externalIPs: both(externalIPs) };
    await cluster.apply({ spec, backends: ['a-1', 'c-2'] });
    for (const family of families) {
      for (const from of ['outside', 'client', 'node-1']) {
        const answering = await cluster.answering(from, externalIPs[family]);
        expect(answering, `${from}, ${family}`).toEqual(['a-1', 'c-2']);
      }
    }
  });

  it('should handle load balancer addresses in the cluster, unless ipMode is Proxy', async () => {
    const spec = { type: 'LoadBalancer', ports: [{ port: 80, targetPort: 8080, nodePort }] };
    await cluster.apply({ spec, ingress, backends: ['c-2'] });
    for (const family of families) {
      expect(await cluster.ask('client', loadBalancerIPs[family])).toMatchObject({ name: 'c-2' });
      expect(await cluster.ask('outside', loadBalancerIPs[family])).toMatchObject({ name: 'c-2' });
    }
    const proxied = ingress.map(({ ip }) => ({ ip, ipMode: 'Proxy' }));
    await cluster.apply({ spec, ingress: proxied, backends: ['c-2'] });
    const asked = await cluster.ask('client', loadBalancerIPs.IPv4, 80, { timeout: silence });
    expect(asked, 'it goes out to the load balancer, which is nowhere here').toBe('silence');
  });

  it('should only allow access from service loadbalancer source ranges', async () => {
    const apply = (loadBalancerSourceRanges: string[], more: ServiceSpec = {}): Promise<void> => {
      const ports = [{ port: 80, targetPort: 8080, nodePort }];
      const externals = both(externalIPs);
      const spec = { type: 'LoadBalancer', ports, externalIPs: externals, loadBalancerSourceRanges, ...more };
      return cluster.apply({ spec, ingress, backends: ['c-2'] });
    };
    /** From outside, a Pod and the node. */
    const expectOf = async (address: string, expected: readonly [string, string, string]): Promise<void> => {
      const asked = ['outside', 'client', 'node-1'].map((from, index) =>
        cluster.expecting(from, address, 80, [expected[index] ?? '']),
      );
      expect((await Promise.all(asked)).flat(), address).toEqual(expected);
    };
    for (const externalTrafficPolicy of ['Cluster', 'Local']) {
      const policy = { externalTrafficPolicy };
      await apply(['192.0.2.2/32', ' 2001:db8::2/128'], policy);
      for (const family of families) {
        const fromOutside = externalTrafficPolicy === 'Local' ? 'silence' : 'c-2';
        await expectOf(loadBalancerIPs[family], [fromOutside, 'silence', 'silence']);
      }
      await apply(['10.244.1.0/24', 'fd00:244:1::/64'], policy);
      for (const family of families) {
        await expectOf(loadBalancerIPs[family], ['silence', 'c-2', 'silence']);
      }
    }
    for (const family of families) {
      expect(await cluster.ask('outside', cluster.addresses('node-2')[family], nodePort)).toMatchObject({
        name: 'c-2',
      });
      expect(
        await cluster.ask('node-1', webIPs[family]),
        'ranges are of load balancer addresses',
      ).toMatchObject({
        name: 'c-2',
      });
      expect(await cluster.ask('node-1', externalIPs[family])).toMatchObject({ name: 'c-2' });
    }
    await apply([]);
    for (const family of families) await expectOf(loadBalancerIPs[family], ['c-2', 'c-2', 'c-2']);
  });

  it('gives an address that two Services claim to one of them, and the other one keeps the rest', async () => {
    const external = both(externalIPs);
    const first = { name: 'first', spec: { externalIPs: external }, backends: ['a-1'] };
    const second = { name: 'second', spec: { externalIPs: external }, backends: ['c-2'] };
    await cluster.apply(first, second);
    for (const family of families) {
      expect(await cluster.answering('outside', externalIPs[family])).toEqual(['a-1']);
      expect(await cluster.answering('client', clusterIPs[0][family], { times: 3 })).toEqual(['a-1']);
      expect(await cluster.answering('client', clusterIPs[1][family], { times: 3 })).toEqual(['c-2']);
    }
    await cluster.apply(second);
    for (const family of families) {
      expect(await cluster.answering('outside', externalIPs[family], { times: 3 })).toEqual(['c-2']);
    }
  });
});
