import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type {
  EndpointSlice,
  Endpoint as SliceEndpoint,
} from '../../../../src/objects/types/discovery.generated.ts';
import type { Service, ServicePort } from '../../../../src/objects/types/core.generated.ts';
import type { ForwardingPlan } from '../../../../src/network/forwarding/forwarding-plan.ts';
import { ForwardingPlanner } from '../../../../src/network/forwarding/planner.ts';
import { verdictFor } from '../../../../src/network/forwarding/verdict.ts';
import { ownNodeIP, node, options, plan, told } from './fixtures.ts';
import { type Arrival, expected, type World } from './reference.ts';
import { runs } from '../../../support/runs.ts';

const serviceNames = ['a', 'b', 'c', 'd'];
const serviceIPs = ['10.96.0.1', '10.96.0.2', '10.96.0.3', '10.96.0.4'];
const outsideIPs = ['203.0.113.1', '203.0.113.2', ownNodeIP];
const podIPs = ['10.1.0.1', '10.1.0.2', '10.1.1.1', '10.1.1.2'];
const clientIPs = ['198.51.100.1', '198.51.7.1', ownNodeIP, '203.0.113.1', ...podIPs];
const sourceRanges = ['198.51.100.0/24', '198.51.0.0/16', '192.0.0.0/8', '0.0.0.0/0', '10.1.0.1/32'];
const servicePorts: readonly ServicePort[] = [
  { name: 'http', protocol: 'TCP', port: 80, nodePort: 30080 },
  { name: 'http', protocol: 'UDP', port: 80, nodePort: 30080 },
  { name: 'www', protocol: 'TCP', port: 8080 },
];

const names = (of: readonly string[]) => fc.subarray([...of]).map((list) => list.map((name) => ({ name })));

const endpoints: fc.Arbitrary<SliceEndpoint> = fc.record(
  {
    addresses: fc.constantFrom(...podIPs).map((ip) => [ip]),
    conditions: fc.record(
      { ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() },
      { requiredKeys: [] },
    ),
    nodeName: fc.constantFrom('here', 'elsewhere'),
    hints: fc.record({ forNodes: names(['here', 'elsewhere']), forZones: names(['a', 'b']) }),
  },
  { requiredKeys: ['addresses', 'conditions'] },
);

function slicesOf(name: string): fc.Arbitrary<EndpointSlice[]> {
  const slice = fc.record({
    ports: fc.subarray([
      { name: 'http', protocol: 'TCP', port: 8080 },
      { name: 'http', protocol: 'UDP', port: 8080 },
      { name: 'www', protocol: 'TCP', port: 9090 },
    ]),
    endpoints: fc.array(endpoints, { maxLength: 4 }),
  });
  return fc.array(slice, { maxLength: 2 }).map((list) =>
    list.map((one, i) => ({
      metadata: {
        namespace: 'default',
        name: `${name}-${i}`,
        labels: { 'kubernetes.io/service-name': name },
      },
      addressType: 'IPv4',
      ...one,
    })),
  );
}

function serviceOf(name: string): fc.Arbitrary<Service> {
  const policy = fc.constantFrom('Cluster', 'Local');
  return fc
    .record({
      created: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'),
      labels: fc.constantFrom({}, {}, {}, { 'service.kubernetes.io/service-proxy-name': 'x' }),
      clusterIP: fc.constantFrom(...serviceIPs, 'None'),
      type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
      ports: fc.subarray([...servicePorts]),
      externalIPs: fc.subarray(outsideIPs),
      ingress: fc.subarray(outsideIPs),
      ipMode: fc.constantFrom('VIP', 'Proxy'),
      ranges: fc.subarray(sourceRanges),
      internalTrafficPolicy: policy,
      externalTrafficPolicy: policy,
    })
    .map(({ created, labels, ingress, ipMode, ranges, type, ...drawn }) => {
      // As the API server has it: only some types have these.
      const hasNodePorts = type === 'NodePort' || type === 'LoadBalancer';
      const isExternal = hasNodePorts || drawn.externalIPs.length > 0;
      return {
        metadata: { namespace: 'default', name, labels, creationTimestamp: created },
        spec: {
          ...drawn,
          type,
          clusterIPs: [drawn.clusterIP],
          externalTrafficPolicy: isExternal ? drawn.externalTrafficPolicy : 'Cluster',
          ports: drawn.ports.map((port) => ({ ...port, nodePort: hasNodePorts ? (port.nodePort ?? 0) : 0 })),
          loadBalancerSourceRanges: ranges,
        },
        status:
          type === 'LoadBalancer' ? { loadBalancer: { ingress: ingress.map((ip) => ({ ip, ipMode })) } } : {},
      };
    });
}

const inputs = fc.constantFrom(...serviceNames).chain((name) =>
  fc.record({
    key: fc.constant(`default/${name}`),
    service: fc.option(serviceOf(name), { nil: undefined, freq: 5 }),
    slices: slicesOf(name),
  }),
);

const worlds: fc.Arbitrary<World> = fc
  .record({
    all: fc.tuple(
      ...serviceNames.map((name) => fc.record({ service: serviceOf(name), slices: slicesOf(name) })),
    ),
    zone: fc.constantFrom('a', undefined),
    detectsPods: fc.boolean(),
    masqueradeAll: fc.boolean(),
  })
  .map(({ all, ...rest }) => ({
    services: all.map(({ service }) => service),
    slices: all.flatMap(({ slices }) => slices),
    nodeName: 'here',
    nodeIP: ownNodeIP,
    ...rest,
  }));

const arrivals: fc.Arbitrary<Arrival> = fc.record({
  source: fc.constantFrom('pod', 'node', 'other'),
  from: fc.constantFrom(...clientIPs),
  to: fc.constantFrom(...serviceIPs, ...outsideIPs, '10.96.9.9', '203.0.113.99'),
  port: fc.constantFrom(80, 8080, 30080, 81),
  protocol: fc.constantFrom('TCP', 'UDP'),
});

function actual(planned: ForwardingPlan, { source, from, to, port, protocol }: Arrival): string {
  return told(
    verdictFor(planned, {
      source,
      sourceAddress: from,
      destinationAddress: to,
      destinationPort: port,
      protocol: protocol === 'UDP' ? 'UDP' : 'TCP',
    }),
  );
}

describe('a random plan', () => {
  it('does with every packet what a walk over the objects says', () => {
    fc.assert(
      fc.property(worlds, fc.array(arrivals, { minLength: 20, maxLength: 20 }), (world, packets) => {
        const planned = plan(
          [...world.services],
          [...world.slices],
          {
            masqueradeAll: world.masqueradeAll,
            ...(world.detectsPods ? {} : { podDetection: undefined }),
          },
          { labels: world.zone === undefined ? {} : { 'topology.kubernetes.io/zone': world.zone } },
        );
        for (const packet of packets) expect(actual(planned, packet)).toBe(expected(world, packet));
      }),
      { numRuns: runs(150, 500) },
    );
  });

  it('is the same Service by Service as from scratch, and its changes lead from one to the next', () => {
    fc.assert(
      fc.property(fc.array(fc.array(inputs, { maxLength: 3 }), { maxLength: 8 }), (batches) => {
        const planner = new ForwardingPlanner(node(), options());
        const now = new Map<string, { service: Service; slices: EndpointSlice[] }>();
        const followed = new Map<string, unknown>();
        for (const batch of batches) {
          for (const { key, service, slices } of batch) {
            if (service === undefined) now.delete(key);
            else now.set(key, { service, slices });
          }
          for (const { key, before, after } of planner.apply(batch)) {
            expect(followed.get(key)).toEqual(before);
            if (after === undefined) followed.delete(key);
            else followed.set(key, after);
          }
        }
        const all = [...now.values()];
        const scratch = plan(
          all.map(({ service }) => service),
          all.flatMap(({ slices }) => slices),
        );
        expect(planner.plan).toEqual(scratch);
        expect(followed).toEqual(scratch.services);
      }),
      { numRuns: runs(100, 300) },
    );
  });

  it('gives each destination to one Service port, which has it in its list', () => {
    fc.assert(
      fc.property(worlds, ({ services, slices }) => {
        const planned = plan([...services], [...slices]);
        const listed = [...planned.services.values()].flatMap(({ ports }) =>
          ports.flatMap((port) =>
            port.destinations.map((destination) => [destination.key, { port, destination }] as const),
          ),
        );
        expect(listed).toHaveLength(planned.destinations.size);
        expect(new Map(listed)).toEqual(planned.destinations);
      }),
    );
  });
});
