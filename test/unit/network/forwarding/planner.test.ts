import { describe, expect, it } from 'vitest';
import type { Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import { ForwardingPlanner, planForwarding } from '../../../../src/network/forwarding/planner.ts';
import {
  outsideClient,
  serviceIP,
  endpoint,
  flow,
  ingress,
  ips,
  local,
  node,
  onlyPort,
  options,
  plan,
  localPodIP,
  service,
  slice,
} from './fixtures.ts';

const sharedIP = '203.0.113.9';
const olderTime = '2026-01-01T00:00:00Z';
const newerTime = '2026-02-01T00:00:00Z';

function shared(name: string, n: number, created = olderTime, spec: Partial<ServiceSpec> = {}): Service {
  const clusterIP = `10.96.0.${n}`;
  return service({ clusterIP, clusterIPs: [clusterIP], externalIPs: [sharedIP], ...spec }, { name, created });
}

const slices = ['a', 'b', 'c'].map((of, i) =>
  slice([endpoint(`10.1.1.${i + 1}`)], {}, { name: `${of}-1`, of }),
);

function input(one: Service) {
  const name = one.metadata.name ?? '';
  return {
    key: `default/${name}`,
    service: one,
    slices: slices.filter((each) => each.metadata.name === `${name}-1`),
  };
}

describe('two Services with one address and port', () => {
  it.each([
    ['the older one has it', shared('a', 1, newerTime), shared('b', 2, olderTime), '10.1.1.2'],
    ['of two of one age the first by name has it', shared('b', 2), shared('a', 1), '10.1.1.1'],
    [
      'a cluster IP goes before an older external IP',
      shared('a', 1),
      shared('b', 2, newerTime, { clusterIP: sharedIP, clusterIPs: [sharedIP], externalIPs: [] }),
      '10.1.1.2',
    ],
  ])('%s, whichever comes first', (_, first, second, winner) => {
    const forwards = plan([first, second], slices);
    const backwards = plan([second, first], slices);
    expect(flow(forwards, outsideClient, sharedIP, 80)).toContain(winner);
    expect(backwards.services).toEqual(forwards.services);
    expect(backwards.destinations).toEqual(forwards.destinations);
  });

  it('lets a load balancer IP go before an older external IP', () => {
    const balanced = service(
      { type: 'LoadBalancer', clusterIP: '10.96.0.2', clusterIPs: ['10.96.0.2'] },
      { name: 'b', created: newerTime, status: ingress(sharedIP) },
    );
    expect(flow(plan([shared('a', 1), balanced], slices), outsideClient, sharedIP, 80)).toContain('10.1.1.2');
  });

  it('keeps the rest of the other one and names it', () => {
    const planned = plan([shared('a', 1), shared('b', 2)], slices);
    expect(flow(planned, localPodIP, '10.96.0.2', 80)).toBe('10.1.1.2:8080');
    expect(planned.services.get('default/a')?.problems).toEqual([]);
    expect(planned.services.get('default/b')?.problems).toEqual([
      {
        reason: 'DestinationConflict',
        kind: 'Service',
        key: 'default/b',
        message: `externalIP ${sharedIP} TCP 80 belongs to default/a`,
      },
    ]);
  });

  it('lets Services share an address with different ports', () => {
    const ports = [{ name: 'http', port: 81 }];
    const planned = plan([shared('a', 1), shared('b', 2, olderTime, { ports })], slices);
    expect([80, 81].map((port) => flow(planned, outsideClient, sharedIP, port))).toEqual([
      '10.1.1.1:8080*',
      '10.1.1.2:8080*',
    ]);
    expect(planned.services.get('default/b')?.problems).toEqual([]);
  });

  it('hands the address on when the one that has it goes, and tells all that change', () => {
    const planner = new ForwardingPlanner(node(), options());
    planner.apply([shared('a', 1), shared('b', 2), shared('c', 3)].map(input));
    const changes = planner.apply([{ key: 'default/a', service: undefined, slices: [] }]);
    expect(changes.map(({ key }) => key).sort()).toEqual(['default/a', 'default/b', 'default/c']);
    expect(flow(planner.plan, outsideClient, sharedIP, 80)).toBe('10.1.1.2:8080*');
    expect(planner.plan.services.get('default/c')?.problems).toMatchObject([
      { message: `externalIP ${sharedIP} TCP 80 belongs to default/b` },
    ]);
  });

  it('gives the address to a newcomer once all that had it are gone', () => {
    const planner = new ForwardingPlanner(node(), options());
    planner.apply([shared('a', 1), shared('b', 2)].map(input));
    for (const key of ['default/b', 'default/a']) planner.apply([{ key, service: undefined, slices: [] }]);
    planner.apply([input(shared('c', 3))]);
    expect(flow(planner.plan, outsideClient, sharedIP, 80)).toBe('10.1.1.3:8080*');
  });

  it('changes no other Service when one that did not have it goes', () => {
    const planner = new ForwardingPlanner(node(), options());
    planner.apply([shared('a', 1), shared('b', 2), shared('c', 3)].map(input));
    const changes = planner.apply([{ key: 'default/c', service: undefined, slices: [] }]);
    expect(changes.map(({ key }) => key)).toEqual(['default/c']);
  });
});

describe('changes', () => {
  it('tells nothing when nothing that matters changed', () => {
    const planner = new ForwardingPlanner(node(), options());
    expect(planner.apply([input(shared('a', 1))])).toHaveLength(1);
    const relabelled = shared('a', 1);
    relabelled.metadata.annotations = { 'example.com/note': 'x' };
    expect(planner.apply([input(relabelled)])).toEqual([]);
  });

  it('tells the plan before and after, and keeps both whole', () => {
    const planner = new ForwardingPlanner(node(), options());
    planner.apply([{ key: 'default/web', service: service(), slices: [slice([endpoint('10.1.1.1')])] }]);
    const moved = service({ clusterIP: '10.96.0.77', clusterIPs: ['10.96.0.77'] });
    const [change] = planner.apply([{ key: 'default/web', service: moved, slices: [] }]);
    expect(change?.before?.ports[0]).toMatchObject({
      clusterIP: serviceIP,
      clusterEndpoints: [{ address: '10.1.1.1' }],
    });
    expect(change?.after?.ports[0]).toMatchObject({ clusterIP: '10.96.0.77', clusterEndpoints: [] });
    expect([...planner.plan.clusterIPs.keys()]).toEqual(['10.96.0.77']);
    expect([...planner.plan.destinations.keys()]).toEqual(['10.96.0.77 TCP 80']);
  });

  it('knows a port with another name for another one', () => {
    const planner = new ForwardingPlanner(node(), options());
    const one = slice([endpoint('10.1.1.1')]);
    planner.apply([{ key: 'default/web', service: service(), slices: [one] }]);
    const renamed = service({ ports: [{ name: 'www', port: 80 }] });
    const [change] = planner.apply([{ key: 'default/web', service: renamed, slices: [one] }]);
    expect(change?.before?.ports.map(({ id }) => id)).toEqual(['default/web:http/TCP/IPv4']);
    expect(change?.after?.ports.map(({ id }) => id)).toEqual(['default/web:www/TCP/IPv4']);
    expect(flow(planner.plan, localPodIP, serviceIP, 80)).toBe('reject NoEndpoints');
  });

  it('drops a Service that turns headless', () => {
    const planner = new ForwardingPlanner(node(), options());
    planner.apply([{ key: 'default/web', service: service(), slices: [] }]);
    const headless = service({ clusterIP: 'None', clusterIPs: ['None'] });
    const [change] = planner.apply([{ key: 'default/web', service: headless, slices: [] }]);
    expect(change?.after).toBeUndefined();
    expect(planner.plan.services.size + planner.plan.destinations.size + planner.plan.clusterIPs.size).toBe(
      0,
    );
  });
});

describe('bad input', () => {
  it('leaves out the odd port and keeps the others', () => {
    const odd = service({
      ports: [
        { name: 'big', port: 70000 },
        { name: 'fraction', port: 80.5 },
        { name: 'icmp', protocol: 'ICMP', port: 81 },
        { name: 'http', port: 80, nodePort: 99999 },
        { name: 'http', port: 82 },
        { name: 'www', port: 80 },
      ],
    });
    const planned = plan(odd, [slice([endpoint('10.1.1.1')])]);
    expect(onlyPort(planned)).toMatchObject({ name: 'http', port: 80 });
    expect(flow(planned, localPodIP, serviceIP, 80)).toBe('10.1.1.1:8080');
    expect(planned.services.get('default/web')?.problems.map(({ reason }) => reason)).toEqual([
      'InvalidPort',
      'InvalidProtocol',
      'Duplicate',
    ]);
  });

  it('leaves out the node port that two ports of a Service have in the second', () => {
    const twice = service({
      type: 'NodePort',
      ports: [
        { name: 'a', port: 80, nodePort: 30080 },
        { name: 'b', port: 81, nodePort: 30080 },
      ],
    });
    const planned = plan(twice, []);
    const owner = planned.destinations.get('IPv4 TCP 30080');
    expect(owner?.port.name).toBe('a');
    expect(planned.services.get('default/web')?.problems).toMatchObject([{ reason: 'Duplicate' }]);
  });

  it('names endpoints without an address, of another family, and those there twice, once for each slice', () => {
    const odd = slice([
      endpoint('10.1.1.1'),
      endpoint('fd00:1::1'),
      endpoint('::ffff:10.1.1.1'),
      endpoint('fd00:1::2'),
      endpoint('', { addresses: [] }),
    ]);
    const planned = plan(service(), [odd]);
    expect(ips(onlyPort(planned).clusterEndpoints)).toEqual(['10.1.1.1']);
    expect(planned.services.get('default/web')?.problems).toEqual([
      {
        reason: 'AddressFamilyMismatch',
        kind: 'EndpointSlice',
        key: 'default/web-1',
        message: 'endpoint fd00:1::1 is not IPv4 (and 1 more)',
      },
      {
        reason: 'NoAddress',
        kind: 'EndpointSlice',
        key: 'default/web-1',
        message: 'an endpoint has no address and is left out',
      },
      {
        reason: 'Duplicate',
        kind: 'EndpointSlice',
        key: 'default/web-1',
        message: 'endpoint 10.1.1.1 port 8080 is there twice',
      },
    ]);
  });

  it('plans a Service whose only cluster IP cannot be read as one without ports', () => {
    const planned = plan(service({ clusterIP: 'nonsense', clusterIPs: ['nonsense'] }), []);
    expect(planned.services.get('default/web')).toMatchObject({
      ports: [],
      problems: [{ reason: 'InvalidAddress' }],
    });
  });

  it.each([
    [0, 'NoHealthCheckNodePort'],
    [70000, 'InvalidPort'],
  ])('has no health check on port %i, and says so', (healthCheckNodePort, reason) => {
    const balanced = service({ type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort });
    const planned = plan(balanced, []).services.get('default/web');
    expect(planned).toMatchObject({ healthChecks: [], problems: [{ reason }] });
  });

  it('plans 5,000 endpoints in one Service', () => {
    const many = Array.from({ length: 5 }, (_, i) =>
      slice(
        Array.from({ length: 1000 }, (_, j) => local(`10.1.${i * 4 + (j >> 8)}.${j & 255}`)),
        {},
        { name: `web-${i}` },
      ),
    );
    expect(onlyPort(plan(service(), many)).clusterEndpoints).toHaveLength(5000);
  });
});

it('plans many Services in steps as it does at once, also those that contend', () => {
  const many = Array.from({ length: 350 }, (_, i) => {
    const clusterIP = `10.96.${i >> 8}.${i & 255}`;
    // Each third one wants the same address, and the oldest of them comes last.
    const externalIPs = i % 3 === 1 ? [sharedIP] : [];
    const created = new Date(Date.UTC(2026, 0, 1) - i * 1000).toISOString();
    return service({ clusterIP, clusterIPs: [clusterIP], externalIPs }, { name: `s${i}`, created });
  });
  const ofMany = many.map(({ metadata: { name = '' } }, i) =>
    slice([endpoint(`10.1.${i >> 8}.${i & 255}`)], {}, { name: `${name}-1`, of: name }),
  );
  const planner = new ForwardingPlanner(node(), options());
  planner.apply(
    many.map((one, i) => ({
      ...{ key: `default/${one.metadata.name ?? ''}`, service: one },
      slices: ofMany.slice(i, i + 1),
    })),
  );
  const inSteps = planForwarding(many, ofMany, node(), options());
  expect(inSteps).toEqual(planner.plan);
  expect(flow(inSteps, outsideClient, sharedIP, 80)).toContain('10.1.1.93');
});
