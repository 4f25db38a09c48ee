import { describe, expect, test } from 'vitest';
import type { ServiceSpec } from '../../../../../src/objects/types/core.generated.ts';
import { dual46, failure, ServiceWorld, v4 } from './world.ts';

const ports = [{ port: 80 }];

function world(spec: ServiceSpec): ServiceWorld {
  const made = new ServiceWorld(v4);
  made.create('a', spec);
  return made;
}

describe('a manifest without allocated values', () => {
  test('keeps the address, the node ports by name and the health check port', () => {
    const made = world({
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      clusterIP: '10.96.0.9',
      healthCheckNodePort: 30100,
      ports: [
        { name: 'x', port: 80, nodePort: 30001 },
        { name: 'y', port: 81, nodePort: 30002 },
      ],
    });
    const { spec } = made.put('a', {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      ports: [
        { name: 'y', port: 90 },
        { name: 'x', port: 91 },
      ],
    });
    expect(spec.ports?.map(({ nodePort }) => nodePort)).toEqual([30002, 30001]);
    expect([spec.clusterIP, spec.clusterIPs, spec.healthCheckNodePort]).toEqual([
      '10.96.0.9',
      ['10.96.0.9'],
      30100,
    ]);
    expect(made.ports()).toEqual([30001, 30002, 30100]);
  });

  test('gets a new node port for a renamed port', () => {
    const made = world({ type: 'NodePort', ports: [{ name: 'x', port: 80, nodePort: 30001 }] });
    const number = made.put('a', { type: 'NodePort', ports: [{ name: 'z', port: 80 }] }).spec.ports?.[0]
      ?.nodePort;
    expect(number).not.toBe(30001);
    expect(made.ports()).toEqual([number]);
  });

  test('does not refill a number that another port has taken over', () => {
    const made = world({
      type: 'NodePort',
      ports: [
        { name: 'x', port: 80, nodePort: 30001 },
        { name: 'y', port: 81, nodePort: 30002 },
      ],
    });
    const after = made.put('a', {
      type: 'NodePort',
      ports: [
        { name: 'x', port: 80, nodePort: 30002 },
        { name: 'y', port: 81 },
      ],
    }).spec.ports;
    expect(after?.[0]?.nodePort).toBe(30002);
    expect([30001, 30002]).not.toContain(after?.[1]?.nodePort);
  });

  test('of a headless Service stays headless, even with clusterIP cleared', () => {
    const made = world({ clusterIP: 'None', ports });
    expect(made.put('a', { ports }).spec).toMatchObject({ clusterIP: 'None', clusterIPs: ['None'] });
  });
});

describe('the address of a Service', () => {
  test.each<[string, Parameters<ServiceWorld['patch']>[1], string]>([
    [
      'cannot change',
      { clusterIP: '10.96.0.10' },
      'spec.clusterIPs[0]: Invalid value: ["10.96.0.10"]: may not change once set',
    ],
    [
      'cannot become None',
      { clusterIP: 'None' },
      'spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set',
    ],
    [
      'cannot change in the plural alone',
      { clusterIPs: ['10.96.0.10'] },
      'spec.clusterIPs: Invalid value: ["10.96.0.10"]: first value must match `clusterIP`',
    ],
  ])('%s', (_, changes, cause) => {
    expect(failure(() => world({ clusterIP: '10.96.0.9', ports }).patch('a', changes)).causes).toEqual([
      cause,
    ]);
  });

  test.each([{ clusterIP: undefined }, { clusterIP: '' }, { clusterIP: undefined, clusterIPs: undefined }])(
    'comes back when %o clears it',
    (changes) => {
      const { spec } = world({ clusterIP: '10.96.0.9', ports }).patch('a', changes);
      expect([spec.clusterIP, spec.clusterIPs]).toEqual(['10.96.0.9', ['10.96.0.9']]);
    },
  );

  test('None cannot become an address', () => {
    expect(
      failure(() =>
        world({ clusterIP: 'None', ports, selector: { a: 'b' } }).patch('a', { clusterIP: '10.96.0.9' }),
      ).causes,
    ).toEqual(['spec.clusterIPs[0]: Invalid value: ["10.96.0.9"]: may not change once set']);
  });

  test('in a spelling that is no longer allowed passes when it was stored so', () => {
    const made = world({ clusterIP: '10.96.0.9', ports, externalIPs: ['192.0.2.1'] });
    const stored = made.get('a');
    made.services.set('a', {
      ...stored,
      spec: {
        ...stored.spec,
        clusterIP: '10.96.00.9',
        clusterIPs: ['10.96.00.9'],
        externalIPs: ['192.0.2.01'],
      },
    });
    expect(made.patch('a', { sessionAffinity: 'ClientIP' }).spec.clusterIPs).toEqual(['10.96.00.9']);
  });
});

describe('a change of type', () => {
  const full: Record<string, ServiceSpec> = {
    ClusterIP: { type: 'ClusterIP', ports },
    NodePort: { type: 'NodePort', ports },
    LoadBalancer: { type: 'LoadBalancer', ports, externalTrafficPolicy: 'Local', loadBalancerClass: 'x/y' },
    ExternalName: { type: 'ExternalName', ports },
    headless: { type: 'ClusterIP', clusterIP: 'None', ports },
  };
  const has: Record<string, { addresses: number; ports: number }> = {
    ClusterIP: { addresses: 1, ports: 0 },
    NodePort: { addresses: 1, ports: 1 },
    LoadBalancer: { addresses: 1, ports: 1 },
    ExternalName: { addresses: 0, ports: 0 },
    headless: { addresses: 0, ports: 0 },
  };
  const pairs = Object.keys(full).flatMap((from) =>
    ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'].map((to) => [from, to] as const),
  );
  const refused = new Set(['headless NodePort', 'headless LoadBalancer']);

  test.each(pairs.filter(([from, to]) => !refused.has(`${from} ${to}`)))(
    'by a patch of type alone, from %s to %s, leaves and holds what the new type has',
    (from, to) => {
      const made = world({ externalName: 'x', ...full[from] });
      const { spec } = made.patch('a', { type: to });
      const kept = from === 'headless' && to === 'ClusterIP' ? 'headless' : to;
      const local = from === 'LoadBalancer' && to === 'LoadBalancer' ? 1 : 0;
      expect(made.addresses.size).toBe(has[kept]?.addresses);
      expect(made.ports()).toHaveLength((has[kept]?.ports ?? 0) + local);
      expect(spec.clusterIPs?.filter((ip) => ip !== 'None') ?? []).toEqual([...made.addresses.keys()]);
      if (to !== 'LoadBalancer') {
        expect(spec).not.toHaveProperty('loadBalancerClass');
        expect(spec).not.toHaveProperty('allocateLoadBalancerNodePorts');
        expect(spec).not.toHaveProperty('healthCheckNodePort');
      }
      expect('externalTrafficPolicy' in spec).toBe(to === 'NodePort' || to === 'LoadBalancer');
      expect('ipFamilies' in spec).toBe(to !== 'ExternalName');
      made.delete('a');
      expect([made.addresses.size, made.ports()], 'nothing leaks').toEqual([0, []]);
    },
  );

  test.each(['NodePort', 'LoadBalancer'])('from headless to %s is refused', (type) => {
    expect(failure(() => world({ clusterIP: 'None', ports }).patch('a', { type })).causes).toEqual([
      `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for ${type} services`,
    ]);
  });

  test('drops only what the client left as it was', () => {
    const made = world({
      type: 'LoadBalancer',
      ports: [{ port: 80, nodePort: 30001 }],
      loadBalancerClass: 'x/y',
    });
    const changes = {
      type: 'ClusterIP',
      ports: [{ port: 80, nodePort: 30002 }],
      loadBalancerClass: 'x/z',
      allocateLoadBalancerNodePorts: false,
      externalTrafficPolicy: 'Local',
    };
    expect(failure(() => made.patch('a', changes)).causes).toEqual([
      "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
      "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
      "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'",
      "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
      'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
    ]);
    expect(made.ports()).toEqual([30001]);
  });

  test('never drops source ranges', () => {
    const made = world({ type: 'LoadBalancer', ports, loadBalancerSourceRanges: ['10.0.0.0/8'] });
    expect(failure(() => made.patch('a', { type: 'NodePort' })).causes).toEqual([
      "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
    ]);
    made.patch('a', { type: 'NodePort', loadBalancerSourceRanges: undefined });
  });

  test('away from LoadBalancer empties its status, any other change keeps it', () => {
    const made = world({ type: 'LoadBalancer', ports });
    const ingress = [{ ip: '192.0.2.1', ipMode: 'VIP' }];
    made.putStatus('a', { loadBalancer: { ingress } }, { type: 'LoadBalancer' });
    expect(made.put('a', { type: 'LoadBalancer', ports: [{ port: 81 }] }).status).toEqual({
      loadBalancer: { ingress },
    });
    expect(made.patch('a', { type: 'NodePort' }).status).toEqual({ loadBalancer: {} });
  });

  test('from ExternalName takes the address that it names', () => {
    const made = world({ type: 'ExternalName', externalName: 'x' });
    made.create('b', { clusterIP: '10.96.0.9', ports });
    const to = (clusterIP: string): unknown => made.patch('a', { type: 'ClusterIP', ports, clusterIP });
    expect(failure(() => to('10.96.0.9')).causes).toEqual([
      'spec.clusterIPs: Invalid value: ["10.96.0.9"]: failed to allocate IP 10.96.0.9: provided IP is already allocated',
    ]);
    to('10.96.0.10');
    expect([...made.addresses.keys()]).toEqual(['10.96.0.9', '10.96.0.10']);
  });

  test.each<[string, ServiceSpec, ServiceSpec]>([
    ['nothing', {}, {}],
    ['the address that it has', { clusterIP: '10.96.0.9' }, {}],
    ['that in the plural alone', { clusterIPs: ['10.96.0.9'] }, {}],
    ['another address', { clusterIP: '10.96.0.5' }, { clusterIP: '10.96.0.5', clusterIPs: ['10.96.0.5'] }],
    ['None', { clusterIP: 'None' }, { clusterIP: 'None', clusterIPs: ['None'] }],
  ])('to ExternalName by a PUT that names %s frees the address', (_what, named, seen) => {
    const made = world({ clusterIP: '10.96.0.9', ports });
    made.put('a', { type: 'ExternalName', externalName: 'x', ...named });
    const read = made.strategy.decorate?.(made.get('a')).spec;
    expect(read).toEqual({ type: 'ExternalName', externalName: 'x', sessionAffinity: 'None', ...seen });
    expect(made.addresses.size).toBe(0);
  });

  test('that fails gives back what it took and keeps what it had', () => {
    const made = world({ type: 'ExternalName', externalName: 'x' });
    failure(() => made.patch('a', { type: 'NodePort', ports, sessionAffinity: 'X' }));
    expect([made.addresses.size, made.ports()]).toEqual([0, []]);
    const back = world({ type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }] });
    failure(() => back.patch('a', { type: 'ExternalName' }));
    expect([back.addresses.size, back.ports()]).toEqual([1, [30001]]);
  });
});

describe('update-only rules', () => {
  test('the class of a LoadBalancer stays; its form is checked twice', () => {
    const made = world({ type: 'LoadBalancer', ports });
    expect(failure(() => made.patch('a', { loadBalancerClass: '/x' })).causes).toEqual([
      'spec.loadBalancerClass: Invalid value: "/x": may not change once set',
      'spec.loadBalancerClass: Invalid value: "/x": prefix part must be non-empty',
      'spec.loadBalancerClass: Invalid value: "/x": prefix part must be non-empty',
    ]);
    const classed = world({ type: 'LoadBalancer', ports, loadBalancerClass: 'x' });
    expect(failure(() => classed.put('a', { type: 'LoadBalancer', ports })).causes).toEqual([
      'spec.loadBalancerClass: Invalid value: null: may not change once set',
    ]);
    expect(
      world({ ports }).patch('a', { type: 'LoadBalancer', loadBalancerClass: 'x' }).spec.loadBalancerClass,
    ).toBe('x');
  });

  test('the health check port stays', () => {
    const local: ServiceSpec = {
      type: 'LoadBalancer',
      ports,
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 30001,
    };
    expect(failure(() => world(local).patch('a', { healthCheckNodePort: 30002 })).causes).toEqual([
      'spec.healthCheckNodePort: Forbidden: field is immutable',
    ]);
  });

  test('headless to headless may change families', () => {
    const made = new ServiceWorld(dual46);
    made.create('a', { clusterIP: 'None', ports, selector: { a: 'b' } });
    const changes = { ipFamilies: ['IPv6', 'IPv4'], ipFamilyPolicy: 'RequireDualStack' };
    expect(made.patch('a', changes).spec.ipFamilies).toEqual(['IPv6', 'IPv4']);
  });

  test('labels are reported three times, changed identities twice', () => {
    const made = world({ ports });
    const metadata = { uid: 'other', labels: { '': 'x' }, finalizers: ['x'] };
    const fields = failure(() => made.put('a', { ports }, { metadata })).causes.map(
      (cause) => cause.split(': ')[0],
    );
    expect(fields).toEqual([
      'metadata.labels',
      'metadata.labels',
      'metadata.uid',
      'metadata.labels',
      'metadata.labels',
      'metadata.uid',
      'metadata.labels',
      'metadata.labels',
      'metadata.finalizers[0]',
    ]);
  });
});

describe('/status', () => {
  test('writes status only', () => {
    const made = world({ type: 'LoadBalancer', ports });
    const spec = made.get('a').spec;
    const after = made.putStatus(
      'a',
      { loadBalancer: { ingress: [{ hostname: 'x.example' }] } },
      { type: 'NodePort' },
    );
    expect(after.spec).toEqual(spec);
    expect(after.status).toEqual({ loadBalancer: { ingress: [{ hostname: 'x.example' }] } });
  });

  test('checks ingress', () => {
    const made = world({ type: 'LoadBalancer', ports });
    const ingress = [
      { ip: '192.0.2.01', ipMode: 'Magic' },
      { ipMode: 'VIP', hostname: '192.0.2.1' },
      { hostname: 'Bad_Name' },
    ];
    const { causes } = failure(() =>
      made.putStatus('a', { loadBalancer: { ingress } }, { type: 'LoadBalancer' }),
    );
    expect(causes.map((cause) => cause.slice(0, 110))).toEqual([
      'status.loadBalancer.ingress[0].ip: Invalid value: "192.0.2.01": must not have leading 0s',
      'status.loadBalancer.ingress[0].ipMode: Unsupported value: "Magic": supported values: "Proxy", "VIP"',
      'status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set',
      'status.loadBalancer.ingress[1].hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address',
      'status.loadBalancer.ingress[2].hostname: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consis',
    ]);
  });

  test('needs a mode when the body’s own type gave no default', () => {
    const made = world({ type: 'LoadBalancer', ports });
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
    expect(failure(() => made.putStatus('a', status)).causes).toEqual([
      'status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set',
    ]);
    expect(made.putStatus('a', status, { type: 'LoadBalancer' }).status.loadBalancer?.ingress).toEqual([
      { ip: '192.0.2.1', ipMode: 'VIP' },
    ]);
  });

  test('is for LoadBalancers only, and warns about spelling', () => {
    const made = world({ type: 'NodePort', ports });
    const status = { loadBalancer: { ingress: [{ ip: '2001:DB8::1', ipMode: 'VIP' }] } };
    expect(failure(() => made.putStatus('a', status)).causes).toEqual([
      "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'",
    ]);
    const balanced = world({ type: 'LoadBalancer', ports });
    balanced.putStatus('a', status);
    expect(balanced.warnings).toEqual([
      'status.loadBalancer.ingress[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")',
    ]);
  });
});
