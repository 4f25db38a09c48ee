import { expect, test } from 'vitest';
import type { Service, ServiceSpec } from '../../../../../src/objects/types/core.generated.ts';
import { setServiceDefaults } from '../../../../../src/registry/core/service/normalize.ts';
import { ServiceWorld, v4, v6 } from './world.ts';

function defaulted(spec: ServiceSpec): Service {
  const service: Service = { metadata: { name: 'a' }, spec: structuredClone(spec), status: {} };
  setServiceDefaults(service);
  const once = structuredClone(service);
  setServiceDefaults(service);
  expect(service, 'defaulting twice is defaulting once').toEqual(once);
  return service;
}

test.each<[string, ServiceSpec, ServiceSpec]>([
  ['nothing', {}, { type: 'ClusterIP', sessionAffinity: 'None', internalTrafficPolicy: 'Cluster' }],
  [
    'ExternalName',
    { type: 'ExternalName', externalName: 'x' },
    { type: 'ExternalName', externalName: 'x', sessionAffinity: 'None' },
  ],
  ['NodePort', { type: 'NodePort' }, { externalTrafficPolicy: 'Cluster', internalTrafficPolicy: 'Cluster' }],
  [
    'LoadBalancer',
    { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
    { externalTrafficPolicy: 'Local', allocateLoadBalancerNodePorts: true },
  ],
  [
    'allocateLoadBalancerNodePorts false stays',
    { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false },
    { allocateLoadBalancerNodePorts: false },
  ],
  ['externalIPs', { externalIPs: ['192.0.2.1'] }, { type: 'ClusterIP', externalTrafficPolicy: 'Cluster' }],
  [
    'ports',
    { ports: [{ port: 80 }, { port: 81, targetPort: 'http', protocol: 'UDP' }, { port: 82, targetPort: 0 }] },
    {
      ports: [
        { port: 80, targetPort: 80, protocol: 'TCP' },
        { port: 81, targetPort: 'http', protocol: 'UDP' },
        { port: 82, targetPort: 82, protocol: 'TCP' },
      ],
    },
  ],
  [
    'ClientIP',
    { sessionAffinity: 'ClientIP' },
    { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } } },
  ],
  [
    'ClientIP without a number',
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: {} } },
    { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } } },
  ],
  [
    'ClientIP with 0 is the client’s mistake',
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
    { sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
  ],
])('%s', (_, spec, expected) => {
  expect(defaulted(spec).spec).toMatchObject(expected);
});

test('fields that a type has no default for stay absent', () => {
  expect(Object.keys(defaulted({ type: 'ExternalName' }).spec).sort()).toEqual(['sessionAffinity', 'type']);
  expect(defaulted({ sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } } }).spec).not.toHaveProperty(
    'sessionAffinityConfig',
  );
});

test('a spec and a status that are missing altogether are filled in', () => {
  const bare: Pick<Service, 'metadata'> & Partial<Service> = { metadata: {} };
  // @ts-expect-error a decoder may leave out both
  setServiceDefaults(bare);
  expect(bare).toEqual({
    metadata: {},
    spec: { type: 'ClusterIP', sessionAffinity: 'None', internalTrafficPolicy: 'Cluster' },
    status: { loadBalancer: {} },
  });
});

test('ingress with an ip gets the mode VIP, but only of a LoadBalancer', () => {
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { hostname: 'x' }] } };
  const balanced: Service = { metadata: {}, spec: { type: 'LoadBalancer' }, status: structuredClone(status) };
  setServiceDefaults(balanced);
  expect(balanced.status.loadBalancer?.ingress).toEqual([
    { ip: '192.0.2.1', ipMode: 'VIP' },
    { hostname: 'x' },
  ]);
  const plain: Service = { metadata: {}, spec: {}, status: structuredClone(status) };
  setServiceDefaults(plain);
  expect(plain.status).toEqual(status);
});

test('a created Service has what section 1.1 lists, and a status that the client cannot send', () => {
  const { spec, status } = new ServiceWorld(v4).create('a', { type: 'LoadBalancer', ports: [{ port: 80 }] });
  const nodePort = spec.ports?.[0]?.nodePort ?? 0;
  expect(nodePort).toBeGreaterThanOrEqual(30086);
  expect(spec.clusterIP).toMatch(/^10\.96\./);
  expect(spec).toEqual({
    ports: [{ protocol: 'TCP', port: 80, targetPort: 80, nodePort }],
    clusterIP: spec.clusterIP,
    clusterIPs: [spec.clusterIP],
    type: 'LoadBalancer',
    sessionAffinity: 'None',
    externalTrafficPolicy: 'Cluster',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    allocateLoadBalancerNodePorts: true,
    internalTrafficPolicy: 'Cluster',
  });
  expect(status).toEqual({ loadBalancer: {} });
});

test.each<[string, ServiceSpec, ServiceSpec]>([
  [
    'an ExternalName without its internal policy',
    { type: 'ExternalName', internalTrafficPolicy: 'Local' },
    { type: 'ExternalName' },
  ],
  [
    'one from before clusterIPs',
    { type: 'ClusterIP', clusterIP: 'fd00::5' },
    { clusterIPs: ['fd00::5'], ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' },
  ],
  [
    'two addresses without families',
    { type: 'ClusterIP', clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00::5'] },
    { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' },
  ],
  [
    'headless without selector',
    { type: 'ClusterIP', clusterIP: 'None' },
    { clusterIPs: ['None'], ipFamilies: ['IPv6', 'IPv4'], ipFamilyPolicy: 'RequireDualStack' },
  ],
  [
    'headless with selector',
    { type: 'ClusterIP', clusterIP: 'None', selector: { a: 'b' } },
    { clusterIPs: ['None'], ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' },
  ],
])('readers see %s', (_, stored, seen) => {
  const world = new ServiceWorld(v6);
  const service: Service = Object.freeze({
    metadata: { name: 'a' },
    spec: Object.freeze(stored),
    status: {},
  });
  const decorated = world.strategy.decorate?.(service);
  expect(decorated?.spec).toEqual({ ...(stored.type === 'ExternalName' ? {} : stored), ...seen });
});

test('readers of an ordinary Service get the stored object itself', () => {
  const world = new ServiceWorld(v4);
  world.create('a');
  const stored = world.get('a');
  expect(world.strategy.decorate?.(stored)).toBe(stored);
});

test('clients select by clusterIP and type', () => {
  const world = new ServiceWorld(v4);
  const service = world.create('a', { ports: [{ port: 80 }], clusterIP: '10.96.0.7' });
  expect(world.strategy.fields?.(service)).toEqual({
    'spec.clusterIP': '10.96.0.7',
    'spec.type': 'ClusterIP',
  });
});
