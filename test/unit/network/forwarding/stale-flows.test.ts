import { describe, expect, it } from 'vitest';
import {
  mayLeaveStaleFlows,
  staleFlows,
  type UdpFlow,
} from '../../../../src/network/forwarding/stale-flows.ts';
import { ForwardingPlanner } from '../../../../src/network/forwarding/planner.ts';
import type { ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { Endpoint } from '../../../../src/objects/types/discovery.generated.ts';
import {
  serviceIP,
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

function flow(destination: string, port: number, replySource: string, replyPort = 5353): UdpFlow {
  return { family: 'IPv4', destination, port, replySource, replyPort };
}

describe('stale flows', () => {
  it.each([
    ['a cluster IP', serviceIP, 53, serviceIP],
    ['an external IP', '203.0.113.7', 53, '203.0.113.7'],
    ['a load balancer IP', '203.0.113.8', 53, '203.0.113.8'],
    ['a node port, at whatever address', '192.0.2.99', 30_053, undefined],
  ])('are those to %s whose endpoint is gone', (_, destination, port, deleted) => {
    const planned = dns([endpoint('10.1.1.1')]);
    const flows = [flow(destination, port, '10.1.1.1'), flow(destination, port, '10.1.1.2')];
    expect(staleFlows(planned, flows)).toEqual([
      { family: 'IPv4', destination: deleted, port, replySource: '10.1.1.2', replyPort: 5353 },
    ]);
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

  it('do not exist where no endpoint serves', () => {
    const planned = dns([endpoint('10.1.1.1', { conditions: goneEndpoint })]);
    expect(staleFlows(planned, [flow(serviceIP, 53, '10.1.1.1')])).toEqual([]);
  });

  it('are not those to other ports and addresses, or to the address of a TCP port', () => {
    const flows = [flow(serviceIP, 54, '10.1.1.9'), flow('10.96.0.11', 53, '10.1.1.9')];
    expect(staleFlows(dns([endpoint('10.1.1.1')]), flows)).toEqual([]);
    const tcp = plan(service(), [slice([endpoint('10.1.1.1')])]);
    expect(staleFlows(tcp, [flow(serviceIP, 80, '10.1.1.9')])).toEqual([]);
  });

  it('are named once for all that the same deletion ends', () => {
    const planned = dns([endpoint('10.1.1.1')]);
    const flows = Array.from({ length: 3 }, () => flow(serviceIP, 53, '10.1.1.2'));
    expect(staleFlows(planned, flows)).toHaveLength(1);
  });
});

describe('stale flows are looked for', () => {
  const planner = new ForwardingPlanner(node(), options());
  const key = 'default/web';
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

  it('after a change of UDP endpoints, and after no other', () => {
    expect(change('UDP', '10.1.1.1'), 'a new Service').toBe(true);
    expect(change('UDP', '10.1.1.1'), 'nothing new').toBe(false);
    expect(change('UDP', '10.1.1.2')).toBe(true);
    expect(change('TCP', '10.1.1.3')).toBe(false);
    expect(mayLeaveStaleFlows(planner.apply([{ key, service: undefined, slices: [] }]))).toBe(false);
  });
});
