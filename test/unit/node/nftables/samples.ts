/** A node, and Services at random. */
import fc from 'fast-check';
import type { ServiceInput } from '../../../../src/network/forwarding/planner.ts';
import {
  endpointSlice,
  forwardingNode,
  forwardingOptions,
  service,
} from '../../../network/support/objects.ts';

export const node = forwardingNode('node-1', { IPv4: '192.0.2.11', IPv6: '2001:db8::b' });
export const options = { ...forwardingOptions, families: ['IPv4'] as const };

/** A Service at random, and its endpoints. */
export const state = fc.record({
  number: fc.integer({ min: 1, max: 3 }),
  exists: fc.boolean(),
  type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
  sessionAffinity: fc.constantFrom('None', 'ClientIP'),
  externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
  internalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
  ranges: fc.constantFrom([], ['192.0.2.0/24', '192.0.2.64/26', '203.0.113.7/32']),
  externalIPs: fc.constantFrom([], ['198.51.100.1']),
  endpoints: fc.uniqueArray(fc.record({ host: fc.integer({ min: 1, max: 6 }), isLocal: fc.boolean() }), {
    maxLength: 6,
    selector: ({ host }) => host,
  }),
});
type State = typeof state extends fc.Arbitrary<infer T> ? T : never;

/** All contend for the external IP 198.51.100.1:80. */
export function input({ number, exists, endpoints, ranges, ...rest }: State): ServiceInput {
  const name = `web-${number}`;
  const ports = [
    { port: 80, targetPort: 8080, ...(rest.type === 'ClusterIP' ? {} : { nodePort: 30_000 + number }) },
  ];
  const spec = {
    ...rest,
    ...{ clusterIPs: [`10.96.0.${number}`], externalIPs: [...rest.externalIPs], ports },
    ...(rest.type === 'LoadBalancer' ? { loadBalancerSourceRanges: [...ranges] } : {}),
  };
  const located = endpoints.map(({ host, isLocal }) => ({
    ...{ address: `10.244.1.${host}`, node: isLocal ? 'node-1' : 'node-2' },
  }));
  return {
    key: `shop/${name}`,
    service: exists
      ? service(spec, name, rest.type === 'LoadBalancer' ? [`203.0.113.${number}`] : [])
      : undefined,
    slices: [endpointSlice('IPv4', located, 8080, name)],
  };
}

/** A Service with so many endpoints, the first of which has a number. */
export function many(number: number, endpoints: number, from: number): ServiceInput {
  const name = `web-${number}`;
  const clusterIP = `10.96.${number >> 8}.${(number & 255) + 1}`;
  return {
    key: `shop/${name}`,
    service: service({ clusterIPs: [clusterIP], ports: [{ port: 80, targetPort: 8080 }] }, name),
    slices: [endpointSlice('IPv4', pods(endpoints, from), 8080, name)],
  };
}

export function pods(count: number, from: number): { address: string; node: string }[] {
  return Array.from({ length: count }, (_, i) => ({
    ...{ address: `10.200.${(from + i) >> 8}.${(from + i) & 255}`, node: 'node-2' },
  }));
}
