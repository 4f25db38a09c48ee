import { describe, expect, it } from 'vitest';
import {
  formerDestinations,
  mayLeaveStaleFlows,
  staleFlows as staleFlowsOf,
  type UdpDestination,
  type UdpFlow,
} from '../../../../src/network/forwarding/stale-flows.ts';
import { ForwardingPlanner } from '../../../../src/network/forwarding/planner.ts';
import type { ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { Endpoint } from '../../../../src/objects/types/discovery.generated.ts';
import {
  serviceIP,
  ownNodeIP,
  endpoint,
  goneEndpoint,
  ingress,
  node,
  options,
  plan,
  service,
  slice,
  terminatingEndpoint,
} from './fixtures.ts';

const ports = [{ name: 'dns', protocol: 'UDP', port: 53, nodePort: 30_053 }];

function dns(endpoints: Endpoint[], spec: Partial<ServiceSpec> = {}) {
  const wanted = { type: 'LoadBalancer', externalIPs: ['203.0.113.7'], ports, ...spec };
  return plan(service(wanted, { status: ingress('203.0.113.8') }), [
    slice(endpoints, { ports: [{ name: 'dns', protocol: 'UDP', port: 5353 }] }),
  ]);
}

const key = 'default/web';

function flow(destination: string, port: number, replySource: string, replyPort = 5353): UdpFlow {
  return { family: 'IPv4', destination, port, replySource, replyPort };
}

function staleFlows(
  planned: ReturnType<typeof plan>,
  flows: readonly UdpFlow[],
  former: readonly UdpDestination[] = [],
): readonly UdpFlow[] {
  return staleFlowsOf(planned, former, flows);
}

const frontends = [
  ['a cluster IP', serviceIP, 53],
  ['an external IP', '203.0.113.7', 53],
  ['a load balancer IP', '203.0.113.8', 53],
  ['a node port', ownNodeIP, 30_053],
] as const;

describe('stale flows', () => {
  describe.each(frontends)('to %s', (_, destination, port) => {
    const gone = flow(destination, port, '10.1.1.2');
    const kept = flow(destination, port, '10.1.1.1');

    it('are those whose endpoint is gone', () => {
      expect(staleFlows(dns([endpoint('10.1.1.1')]), [kept, gone])).toEqual([gone]);
    });

    it('are all that were translated where no endpoint serves any more', () => {
      const own = flow(destination, port, destination, port);
      expect(staleFlows(dns([]), [kept, gone, own])).toEqual([kept, gone]);
      const dead = dns([endpoint('10.1.1.1', { conditions: goneEndpoint })]);
      expect(staleFlows(dead, [kept, gone, own])).toEqual([kept, gone]);
    });

    it('are all that were translated once the Service has gone, or no longer answers there', () => {
      const planner = new ForwardingPlanner(node(), options());
      const own = flow(destination, port, destination, port);
      const wanted = { type: 'LoadBalancer', externalIPs: ['203.0.113.7'], ports };
      const before = service(wanted, { status: ingress('203.0.113.8') });
      const slices = [
        slice([endpoint('10.1.1.1')], { ports: [{ name: 'dns', protocol: 'UDP', port: 5353 }] }),
      ];
      planner.apply([{ key, service: before, slices }]);
      for (const after of [undefined, service({ ports: [{ name: 'dns', protocol: 'TCP', port: 53 }] })]) {
        const changes = planner.apply([{ key, service: after, slices }]);
        expect(mayLeaveStaleFlows(changes)).toBe(true);
        const former = formerDestinations(changes);
        expect(staleFlows(planner.plan, [kept, own], former)).toEqual([kept]);
        planner.apply([{ key, service: before, slices }]);
        expect(staleFlows(planner.plan, [kept, gone], former), 'it is back').toEqual([gone]);
      }
    });
  });

  it('are those to cluster IPs that no Service has, also where an agent before knew the Service', () => {
    const flows = [flow('10.96.0.77', 53, '10.1.1.2'), flow('10.96.0.77', 53, '10.96.0.77', 53)];
    expect(staleFlows(dns([]), [...flows, flow('10.97.0.77', 53, '10.1.1.2')])).toEqual([flows[0]]);
  });

  it('are not those to other machines at the number of a node port', () => {
    const planned = dns([endpoint('10.1.1.1')]);
    expect(staleFlows(planned, [flow('192.0.2.99', 30_053, '192.0.2.99', 30_053)])).toEqual([]);
    const everywhere = plan(service({ type: 'NodePort', ports }), [], { nodePortAddresses: [] });
    const translated = flow('192.0.2.99', 30_053, '10.1.1.2');
    expect(staleFlows(everywhere, [translated]), 'an address that the node got meanwhile').toEqual([
      translated,
    ]);
    expect(staleFlows(everywhere, [flow('192.0.2.99', 30_053, '192.0.2.99', 30_053)])).toEqual([]);
  });

  it('are not those of the Service that has an address when a node port of another one has its number', () => {
    const other = service(
      {
        clusterIP: '10.96.0.11',
        clusterIPs: ['10.96.0.11'],
        externalIPs: [ownNodeIP],
        ports: [{ protocol: 'UDP', port: 30_053 }],
      },
      { name: 'other' },
    );
    const slices = [
      slice([endpoint('10.1.1.1')], { ports: [{ name: 'dns', protocol: 'UDP', port: 5353 }] }),
      slice(
        [endpoint('10.1.1.9')],
        { ports: [{ name: '', protocol: 'UDP', port: 5353 }] },
        { name: 'other-1', of: 'other' },
      ),
    ];
    const both = plan([service({ type: 'NodePort', ports }), other], slices);
    expect(staleFlows(both, [flow(ownNodeIP, 30_053, '10.1.1.9')])).toEqual([]);
  });

  it('are those that began before there was an endpoint, and so are not translated', () => {
    const planned = dns([endpoint('10.1.1.1')]);
    expect(staleFlows(planned, [flow(serviceIP, 53, serviceIP)])).toHaveLength(1);
  });

  it('are those to another port of an endpoint: the target port has changed', () => {
    const planned = dns([endpoint('10.1.1.1')]);
    expect(staleFlows(planned, [flow(serviceIP, 53, '10.1.1.1', 5300)])).toHaveLength(1);
    expect(staleFlows(planned, [flow(serviceIP, 53, '10.1.1.1', 5353)])).toEqual([]);
  });

  it('are not those of endpoints that still serve while they terminate', () => {
    const planned = dns([endpoint('10.1.1.1'), endpoint('10.1.1.2', { conditions: terminatingEndpoint })]);
    expect(staleFlows(planned, [flow(serviceIP, 53, '10.1.1.2')])).toEqual([]);
  });

  it('are not those of endpoints that the policy leaves out', () => {
    const planned = dns([endpoint('10.1.1.1')], { internalTrafficPolicy: 'Local' });
    expect(staleFlows(planned, [flow(serviceIP, 53, '10.1.1.1')])).toEqual([]);
  });

  it('are not those to other ports and addresses', () => {
    const flows = [flow('203.0.113.7', 54, '10.1.1.9'), flow('203.0.113.9', 53, '10.1.1.9')];
    expect(staleFlows(dns([endpoint('10.1.1.1')]), flows)).toEqual([]);
  });

  it('are named once for all that the same deletion ends', () => {
    const planned = dns([endpoint('10.1.1.1')]);
    const flows = Array.from({ length: 3 }, () => flow(serviceIP, 53, '10.1.1.2'));
    expect(staleFlows(planned, flows)).toHaveLength(1);
  });
});

describe('stale flows are looked for', () => {
  const planner = new ForwardingPlanner(node(), options());
  const udp = (...addresses: string[]) =>
    slice(
      addresses.map((address) => endpoint(address)),
      {
        ports: [{ name: 'dns', protocol: 'UDP', port: 5353 }],
      },
    );
  const change = (protocol: 'TCP' | 'UDP', address: string) => {
    const spec = { ports: [{ name: 'dns', protocol, port: 53 }] };
    return mayLeaveStaleFlows(planner.apply([{ key, service: service(spec), slices: [udp(address)] }]));
  };

  it('after a change of UDP endpoints, after the end of a UDP port, and after no other', () => {
    expect(change('UDP', '10.1.1.1'), 'a new Service').toBe(true);
    expect(change('UDP', '10.1.1.1'), 'nothing new').toBe(false);
    expect(change('UDP', '10.1.1.2')).toBe(true);
    expect(change('TCP', '10.1.1.3'), 'the UDP port has gone').toBe(true);
    expect(change('TCP', '10.1.1.4')).toBe(false);
    expect(mayLeaveStaleFlows(planner.apply([{ key, service: undefined, slices: [] }]))).toBe(false);
  });
});
