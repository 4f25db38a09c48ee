import { describe, expect, test } from 'vitest';
import { announcedPools, assignedAddresses } from '../../../../src/network/announcing/assigned-addresses.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import type { Endpoint, EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import type { AddressPool } from '../../../../src/objects/types/servicenet.ts';

function pool(name: string, addresses: string[], creationTimestamp: string): AddressPool {
  return { metadata: { name, creationTimestamp }, spec: { addresses, announce: {} } };
}

function service(
  name: string,
  ips: readonly string[],
  spec: object = {},
  conditions = ['servicenet.dev/LoadBalancerReady'],
): Service {
  return {
    metadata: { namespace: 'shop', name },
    spec: { type: 'LoadBalancer', ...spec },
    status: {
      loadBalancer: { ingress: ips.map((ip) => ({ ip, ipMode: 'VIP' })) },
      conditions: conditions.map((type) => ({
        ...{ type, status: 'True', reason: 'Assigned', message: '' },
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })),
    },
  };
}

function slice(...endpoints: Endpoint[]): EndpointSlice {
  return { metadata: { name: 'a' }, addressType: 'IPv4', endpoints, ports: [] };
}

const at = (
  nodeName: string,
  conditions: NonNullable<Endpoint['conditions']> = { ready: true },
): Endpoint => ({
  ...{ addresses: ['10.0.0.1'], nodeName, conditions },
});

const none = (): EndpointSlice[] => [];
const local = { externalTrafficPolicy: 'Local' };

test('an address in two pools is announced as the older one says; one in none, as if by default', () => {
  const pools = announcedPools([
    pool('new', ['192.0.2.0/24'], '2026-02-01T00:00:00Z'),
    pool('old', ['192.0.2.7'], '2026-01-01T00:00:00Z'),
  ]);
  const found = assignedAddresses([service('web', ['192.0.2.7', '192.0.2.8', '203.0.113.1'])], none, pools);
  expect([...found.values()].map((one) => one.pool)).toEqual(['old', 'new', undefined]);
  expect(found.get('203.0.113.1')?.announcement.layer2).toBeDefined();
});

test.each<[string, Service]>([
  ['that another load balancer serves', service('web', ['192.0.2.7'], {}, [])],
  ['that is none any more', service('web', ['192.0.2.7'], { type: 'ClusterIP' })],
])('a Service %s has nothing to announce', (_, one) => {
  expect(assignedAddresses([one], none, []).size).toBe(0);
});

describe('externalTrafficPolicy Local', () => {
  const nodes = (...endpoints: Endpoint[]): ReadonlySet<string> | undefined =>
    assignedAddresses([service('web', ['192.0.2.7'], local)], () => [slice(...endpoints)], []).get(
      '192.0.2.7',
    )?.localNodes;

  test('needs a ready endpoint, or one that serves while it ends where none is ready anywhere', () => {
    const ending = { ready: false, serving: true, terminating: true };
    expect(nodes(at('a'), at('b', ending), at('c', { ready: false }))).toEqual(new Set(['a']));
    expect(nodes(at('b', ending), at('c', { ready: false }))).toEqual(new Set(['b']));
    expect(nodes()).toEqual(new Set());
  });

  test('of Services that share an address needs an endpoint of each', () => {
    const found = assignedAddresses(
      [service('a', ['192.0.2.7'], local), service('b', ['192.0.2.7'], local), service('c', ['192.0.2.7'])],
      (key) => [slice(...(key === 'shop/a' ? [at('n1'), at('n2')] : [at('n2'), at('n3')]))],
      [],
    );
    expect(found.get('192.0.2.7')?.localNodes).toEqual(new Set(['n2']));
  });
});
