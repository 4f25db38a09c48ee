import { describe, expect, test } from 'vitest';
import { isServed, readRequest } from '../../../../src/controllers/load-balancer/request.ts';
import type { Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';

const settings = { loadBalancerClass: 'servicenet.dev/lb', isDefaultClass: true, compat: true };

function service(spec: Partial<ServiceSpec>, annotations: Record<string, string> = {}): Service {
  return {
    metadata: { namespace: 'n', name: 's', creationTimestamp: '2026-01-01T00:00:00Z', annotations },
    spec: { type: 'LoadBalancer', ipFamilies: ['IPv4'], ports: [{ port: 80, protocol: 'TCP' }], ...spec },
    status: {},
  };
}

describe('isServed', () => {
  test.each([
    [{}, true, true],
    [{}, false, false],
    [{ loadBalancerClass: 'servicenet.dev/lb' }, false, true],
    [{ loadBalancerClass: 'other.io/lb' }, true, false],
    [{ type: 'NodePort' }, true, false],
  ])('%j with default class %s: %s', (spec, isDefaultClass, expected) => {
    expect(isServed(service(spec), { ...settings, isDefaultClass })).toBe(expected);
  });
});

describe('readRequest', () => {
  test.each([
    'servicenet.dev/addresses',
    'metallb.io/loadBalancerIPs',
    'metallb.universe.tf/loadBalancerIPs',
    'kube-vip.io/loadbalancerIPs',
    'purelb.io/addresses',
    'lbipam.cilium.io/ips',
    'io.cilium/lb-ipam-ips',
  ])('reads addresses from %s', (name) => {
    const dual = { ipFamilies: ['IPv6', 'IPv4'], ipFamilyPolicy: 'PreferDualStack' };
    const request = readRequest(
      service(dual, { [name]: ' 192.0.2.5, 2001:DB8::5 ,192.0.2.5' }),
      {},
      settings,
    );
    expect(request.problems).toEqual([]);
    expect([...request.addresses]).toEqual([
      ['IPv4', '192.0.2.5'],
      ['IPv6', '2001:db8::5'],
    ]);
    expect(request).toMatchObject({ families: ['IPv6', 'IPv4'], needsAll: false });
    const own = readRequest(service(dual, { [name]: '192.0.2.5' }), {}, { ...settings, compat: false });
    expect(own.addresses.size).toBe(name.startsWith('servicenet') ? 1 : 0);
  });

  test('reads pool, sharing key and consent from the annotations of each load balancer', () => {
    const metallb = { 'metallb.io/address-pool': 'p', 'metallb.io/allow-shared-ip': 'k' };
    expect(readRequest(service({}, metallb), {}, settings)).toMatchObject({ pools: ['p'], sharingKey: 'k' });
    const cilium = { 'lbipam.cilium.io/sharing-key': 'k', 'lbipam.cilium.io/sharing-cross-namespace': 'a,b' };
    expect([...readRequest(service({}, cilium), {}, settings).sharingNamespaces]).toEqual(['a', 'b']);
    const purelb = { 'purelb.io/service-group': 'g', 'servicenet.dev/pool': 'mine, other' };
    expect(readRequest(service({}, purelb), {}, settings)).toMatchObject({
      pools: ['mine', 'other'],
      problems: [],
    });
  });

  test('takes spec.loadBalancerIP without an annotation', () => {
    expect([...readRequest(service({ loadBalancerIP: '192.0.2.7' }), {}, settings).addresses]).toEqual([
      ['IPv4', '192.0.2.7'],
    ]);
    const both = service({ loadBalancerIP: '192.0.2.7' }, { 'servicenet.dev/addresses': '192.0.2.8' });
    expect(readRequest(both, {}, settings).addresses.get('IPv4')).toBe('192.0.2.8');
  });

  test.each([
    ['nonsense', 'not an IP address'],
    ['192.0.2.010', 'not an IP address'],
    ['::ffff:192.0.2.1', 'not an IP address'],
    ['2001:db8::1', 'not an IPv6 Service'],
    ['192.0.2.1,192.0.2.2', 'two IPv4 addresses'],
    [Array.from({ length: 20 }, (_, i) => `192.0.2.${i}`).join(','), '20 addresses'],
    ['0.0.0.0', 'DHCP'],
    ['x'.repeat(100_000), 'not an IP address'],
  ])('refuses the address %.40s', (text, word) => {
    const { problems } = readRequest(service({}, { 'servicenet.dev/addresses': text }), {}, settings);
    expect(problems.join()).toContain(word);
    expect(problems.join().length).toBeLessThan(200);
  });

  test('has a problem when annotations of two load balancers contradict each other', () => {
    const annotations = {
      'metallb.io/loadBalancerIPs': '192.0.2.1',
      'kube-vip.io/loadbalancerIPs': '192.0.2.2',
    };
    expect(readRequest(service({}, annotations), {}, settings).problems).toHaveLength(1);
    const overruled = { ...annotations, 'servicenet.dev/addresses': '192.0.2.3' };
    expect(readRequest(service({}, overruled), {}, settings).problems).toEqual([]);
  });

  test('compares backends by traffic policy and selector', () => {
    const local = { externalTrafficPolicy: 'Local', selector: { b: '2', a: '1' } };
    expect(readRequest(service(local), {}, settings).backend).toBe('Local:a=1,b=2');
    expect(readRequest(service({ selector: { a: '1' } }), {}, settings).backend).toBe('');
  });
});
