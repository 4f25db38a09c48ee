import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Service } from '../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../src/objects/types/discovery.generated.ts';
import { forMakers } from '../support/for-makers.ts';
import { endpointSlice, service } from '../support/objects.ts';
import { clusterIPs, families, ServiceNetwork, silence } from '../support/service-network.ts';
import { confirmedHalves, halves, listTable } from '../support/table-listing.ts';

const [webIPs, oddIPs, hugeIPs] = clusterIPs;
const injection = '10.244.1.2 : drop }; flush ruleset; add element ip servicenet cluster-ips { 192.0.2.1';

forMakers('objects that are odd', (maker) => {
  let cluster: ServiceNetwork;

  beforeAll(async () => {
    cluster = await ServiceNetwork.start(maker, { 'node-1': ['client', 'a-1'], 'node-2': ['c-2'] });
  });
  afterAll(() => cluster.close());

  /** A Service that nothing is wrong with. */
  const good = (): readonly [Service, readonly EndpointSlice[]] => [
    service({ clusterIPs: [webIPs.IPv4, webIPs.IPv6], ports: [{ port: 80, targetPort: 8080 }] }),
    families.map((family) =>
      endpointSlice(family, [{ address: cluster.addresses('c-2')[family], node: 'node-2' }], 8080),
    ),
  ];

  /** Applies the Service beside the good one, and finds both tables whole and the good one reached. */
  async function apply(odd: Service, slices: readonly EndpointSlice[]): Promise<void> {
    const [web, webSlices] = good();
    await cluster.applyObjects([odd, web], [...slices, ...webSlices]);
    for (const family of families) {
      expect(await cluster.answering('client', webIPs[family], { times: 3 })).toEqual(['c-2']);
    }
    for (const family of ['ip', 'ip6'] as const) {
      const table = await listTable(cluster.network.at('node-1').machine.host, family);
      expect(halves(table)).toEqual([]);
    }
  }

  it('of a Service with addresses that do not parse, the others answer', async () => {
    const odd = service(
      {
        ...{ type: 'LoadBalancer', clusterIPs: [oddIPs.IPv4, 'fd00:96::zz'] },
        externalIPs: ['203.0.113.999', '', injection, '203.0.113.1'],
        loadBalancerSourceRanges: ['192.0.2.0/33', injection, '192.0.2.0/24'],
        ports: [{ port: 80, targetPort: 8080 }],
      },
      'odd',
      ['203.0.113.2', 'example.org', injection],
    );
    await apply(odd, [endpointSlice('IPv4', [{ address: '10.244.1.3', node: 'node-1' }], 8080, 'odd')]);
    expect(await cluster.answering('client', oddIPs.IPv4, { times: 3 })).toEqual(['a-1']);
    expect(await cluster.answering('outside', '203.0.113.1', { times: 3 })).toEqual(['a-1']);
    expect(await cluster.answering('outside', '203.0.113.2', { times: 3 }), 'in the range').toEqual(['a-1']);
    expect(await cluster.ask('client', '203.0.113.2', 80, { timeout: silence }), 'out of it').toBe('silence');
  });

  it('of a Service with ports out of range, the others answer', async () => {
    const ports = [
      { name: 'zero', port: 0, targetPort: 8080 },
      { name: 'high', port: 65_536, targetPort: 8080 },
      { name: 'negative', port: -1, targetPort: 8080 },
      { name: 'part', port: 80.5, targetPort: 8080 },
      { name: 'odd', protocol: 'tcp }; flush ruleset', port: 82, targetPort: 8080 },
      { name: 'node', port: 81, targetPort: 8080, nodePort: 70_000 },
      { name: 'right', port: 80, targetPort: 8080, nodePort: 30_080 },
      { name: 'right again', port: 80, targetPort: 8081 },
    ];
    const odd = service({ type: 'NodePort', clusterIPs: [oddIPs.IPv4], ports }, 'odd');
    const slice: EndpointSlice = {
      ...endpointSlice('IPv4', [{ address: '10.244.1.3', node: 'node-1' }], 8080, 'odd'),
      ports: [
        ...['right', 'node'].map((name) => ({ name, port: 8080, protocol: 'TCP' })),
        { name: 'right', port: 65_536, protocol: 'TCP' },
        { name: 'right', port: 0, protocol: 'TCP' },
        { name: 'right', protocol: 'TCP' },
        { port: 8080, protocol: 'TCP' },
      ],
    };
    await apply(odd, [slice]);
    expect(await cluster.answering('client', oddIPs.IPv4, { times: 10 })).toEqual(['a-1']);
    expect(await cluster.answering('client', oddIPs.IPv4, { port: 81, times: 3 })).toEqual(['a-1']);
    const nodePort = { port: 30_080, times: 3 };
    expect(await cluster.answering('outside', cluster.addresses('node-2').IPv4, nodePort)).toEqual(['a-1']);
    expect(await cluster.ask('client', oddIPs.IPv4, 82)).toBe('refused');
  });

  it('of slices with odd, doubled and misplaced endpoints, the others answer', async () => {
    const addresses = [
      '10.244.1.3',
      '10.244.1.3',
      '10.244.1.300',
      '',
      injection,
      'fd00:244:1::3',
      '010.244.1.3',
    ];
    const slice = endpointSlice(
      'IPv4',
      addresses.map((address) => ({ address, node: 'node-1' })),
      8080,
      'odd',
    );
    const without: EndpointSlice = {
      ...slice,
      metadata: { ...slice.metadata, name: 'odd-2' },
      endpoints: [{ addresses: [] }],
    };
    const again: EndpointSlice = { ...slice, metadata: { ...slice.metadata, name: 'odd-3' } };
    const odd = service(
      { clusterIPs: [oddIPs.IPv4, oddIPs.IPv6], ports: [{ port: 80, targetPort: 8080 }] },
      'odd',
    );
    await apply(odd, [slice, without, again]);
    expect(await cluster.answering('client', oddIPs.IPv4)).toEqual(['a-1']);
    expect(await cluster.ask('client', oddIPs.IPv6), 'no IPv6 endpoint in an IPv6 slice').toBe('refused');
  });

  it('a Service of 5,000 endpoints answers while it comes, changes and goes, and is never there by half', async () => {
    const [pod, node] = ['a-1', 'node-1'].map((name) => cluster.network.at(name).machine.host);
    await pod?.exec('ip', ['route', 'add', 'local', '10.250.0.0/16', 'dev', 'lo']);
    await node?.exec('ip', ['route', 'add', '10.250.0.0/16', 'dev', 'a-1']);
    const [web, webSlices] = good();
    const huge = async (from: number, count: number, sessionAffinity = 'None'): Promise<void> => {
      const located = Array.from({ length: count }, (_, i) => ({
        ...{ address: `10.250.${(from + i) >> 8}.${(from + i) & 255}`, node: 'node-1' },
      }));
      // A slice holds up to 1,000 endpoints.
      const slices = Array.from({ length: Math.ceil(count / 1000) }, (_, part): EndpointSlice => {
        const slice = endpointSlice('IPv4', located.slice(part * 1000, (part + 1) * 1000), 8080, 'huge');
        return { ...slice, metadata: { ...slice.metadata, name: `huge-${part}` } };
      });
      const ports = [{ port: 80, targetPort: 8080 }];
      const own = service({ clusterIPs: [hugeIPs.IPv4], ports, sessionAffinity }, 'huge');
      await cluster.applyObjects([own, web], [...slices, ...webSlices]);
    };
    let done = false;
    const wrong: unknown[] = [];
    /** Once the Service answers, every connection is answered. */
    const watch = async (): Promise<void> => {
      let answered = false;
      while (!done) {
        const outcome = await cluster.ask('client', hugeIPs.IPv4);
        if (typeof outcome === 'object') answered = true;
        else if (answered || outcome === 'silence') wrong.push(outcome);
        if (node !== undefined) wrong.push(...(await confirmedHalves(node, 'ip')));
      }
    };
    await huge(1, 1);
    const watching = watch();
    try {
      await huge(1, 5000);
      await huge(501, 4999);
      await huge(501, 3);
      await huge(1, 2000, 'ClientIP');
      await huge(1, 5000);
    } finally {
      done = true;
      await watching;
    }
    expect(wrong).toEqual([]);
    await cluster.applyObjects([web], webSlices);
    expect(await cluster.answering('client', webIPs.IPv4, { times: 3 })).toEqual(['c-2']);
    expect(await cluster.ask('client', hugeIPs.IPv4, 80, { timeout: silence })).toBe('silence');
  });
});
