import { expect, test } from 'vitest';
import type { PlannedPort } from '../../../../src/network/gateway/plan.ts';
import {
  gatewayService,
  gatewayServiceName,
  gatewayState,
  ownerOf,
  routerPorts,
} from '../../../../src/network/gateway/service.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import type { Gateway, GatewaySpec } from '../../../../src/objects/types/gateway.ts';

function gatewayOf(spec: Partial<GatewaySpec> = {}): Gateway {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { name: 'web', namespace: 'shop', uid: 'g-1' },
    spec: { gatewayClassName: 'servicenet', listeners: [], ...spec },
  };
}

const ports: PlannedPort[] = [
  { port: 80, protocol: 'HTTP', listeners: [] },
  { port: 443, protocol: 'TLS', listeners: [] },
  { port: 80, protocol: 'UDP', listeners: [] },
];

function serviceOf(gateway: Gateway, status: Service['status'] = {}, taken: number[] = []): Service {
  const made = gatewayService(gateway, ports, undefined, new Set(taken));
  if (made === undefined) throw new Error('there is no Service');
  return { ...made, status };
}

const allocated = (status: string, message: string): Service['status'] => ({
  loadBalancer: { ingress: status === 'True' ? [{ ip: '192.0.2.7' }, { ip: '2001:db8::7' }] : [] },
  conditions: [
    {
      type: 'servicenet.dev/LoadBalancerReady',
      ...{ status: status === 'True' ? 'True' : 'False', reason: 'Assigned', message },
      lastTransitionTime: '2026-11-29T00:00:00Z',
    },
  ],
});

test('each port of a Gateway leads to a port of the routers that no other Gateway has', () => {
  const first = serviceOf(gatewayOf());
  const second = serviceOf(gatewayOf(), {}, [...routerPorts(first).values()]);
  const all = [...routerPorts(first).values(), ...routerPorts(second).values()];
  expect([...routerPorts(first).keys()]).toEqual(['TCP 80', 'TCP 443', 'UDP 80']);
  expect(new Set(all).size).toBe(6);
  expect(all.every((port) => port >= 21_000 && port < 30_000)).toBe(true);
});

test('a port keeps its target while others come and go', () => {
  const gateway = gatewayOf();
  const before = serviceOf(gateway);
  const now = gatewayService(gateway, ports.slice(1), before, new Set());
  expect(now?.spec.ports?.map(({ targetPort }) => targetPort)).toEqual([
    routerPorts(before).get('TCP 443'),
    routerPorts(before).get('UDP 80'),
  ]);
});

test('a Gateway without a port to serve has no Service', () => {
  expect(gatewayService(gatewayOf(), [], undefined, new Set())).toBeUndefined();
});

test('labels, annotations and addresses are what the Gateway asks for', () => {
  const gateway = gatewayOf({
    infrastructure: { labels: { team: 'shop' }, annotations: { 'servicenet.dev/pool': 'lan' } },
    addresses: [
      { value: '192.0.2.7' },
      { type: 'IPAddress', value: '' },
      { type: 'Hostname', value: 'a.test' },
    ],
  });
  expect(serviceOf(gateway).metadata).toEqual({
    name: 'web-servicenet',
    namespace: 'shop',
    labels: {
      team: 'shop',
      'gateway.networking.k8s.io/gateway-name': 'web',
      'gateway.networking.k8s.io/gateway-class-name': 'servicenet',
    },
    annotations: { 'servicenet.dev/pool': 'lan', 'servicenet.dev/addresses': '192.0.2.7' },
    ownerReferences: [ownerOf(gateway)],
  });
});

test.each([
  ['web', 'web-servicenet'],
  ['web.shop', 'web-shop-servicenet'],
  ['x'.repeat(70), 'x'.repeat(63)],
  ['x'.repeat(62), 'x'.repeat(62)],
])('the Service of a Gateway %s is %s', (name, service) => {
  expect(gatewayServiceName({ ...gatewayOf(), metadata: { name } })).toBe(service);
});

test('the addresses of the Service are those of the Gateway', () => {
  expect(gatewayState(gatewayOf(), undefined)).toEqual({ addresses: [], addressProblem: undefined });
  const gateway = gatewayOf();
  expect(gatewayState(gateway, serviceOf(gateway, allocated('True', '')))).toEqual({
    addresses: [
      { type: 'IPAddress', value: '192.0.2.7' },
      { type: 'IPAddress', value: '2001:db8::7' },
    ],
    addressProblem: undefined,
  });
  expect(gatewayState(gateway, serviceOf(gateway, allocated('False', 'the pool is full')))).toEqual({
    addresses: [],
    addressProblem: 'the pool is full',
  });
});

test('of addresses that are asked for, those count that the Service has', () => {
  const gateway = gatewayOf({ addresses: [{ value: '192.0.2.7' }] });
  expect(gatewayState(gateway, serviceOf(gateway, allocated('True', '')))).toEqual({
    addresses: [{ type: 'IPAddress', value: '192.0.2.7' }],
    addressProblem: undefined,
  });
  const other = gatewayOf({ addresses: [{ value: '192.0.2.9' }] });
  expect(gatewayState(other, serviceOf(other, allocated('True', 'other addresses'))).addressProblem).toBe(
    'other addresses',
  );
});

test("a Service of the name that is somebody else's is left alone", () => {
  const service = serviceOf({ ...gatewayOf(), metadata: { name: 'web', namespace: 'shop', uid: 'g-2' } });
  expect(gatewayState(gatewayOf(), service).addressProblem).toContain('shop/web-servicenet');
});
