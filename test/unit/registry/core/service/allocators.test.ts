import { describe, expect, test } from 'vitest';
import { ServiceAllocators } from '../../../../../src/registry/core/service/allocators.ts';
import { dual46, dual64, failure, ServiceWorld, v4, v6 } from './world.ts';

const nodePortRange = { first: 30000, last: 32767 };
const ports = [{ port: 80 }];

function refused(world: ServiceWorld, clusterIP: string, dryRun = false): string[] {
  return failure(() => world.create('x', { ports, clusterIP }, { dryRun })).causes;
}

describe('an explicit address', () => {
  test('is stored as it is written, under its canonical name', () => {
    const world = new ServiceWorld(v6);
    expect(world.create('a', { ports, clusterIP: 'FD00:10:96:0::5' }).spec.clusterIPs).toEqual([
      'FD00:10:96:0::5',
    ]);
    expect([...world.addresses.values()]).toEqual([
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'IPAddress',
        metadata: {
          name: 'fd00:10:96::5',
          labels: {
            'ipaddress.kubernetes.io/ip-family': 'IPv6',
            'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
          },
        },
        spec: { parentRef: { resource: 'services', namespace: 'ns', name: 'a' } },
      },
    ]);
    world.delete('a');
    expect(world.addresses.size).toBe(0);
  });

  test('is refused when it is taken, in any spelling', () => {
    const world = new ServiceWorld(v6);
    world.create('a', { ports, clusterIP: 'fd00:10:96::5' });
    expect(refused(world, 'FD00:10:96::5')).toEqual([
      'spec.clusterIPs: Invalid value: ["FD00:10:96::5"]: failed to allocate IP FD00:10:96::5: provided IP is already allocated',
    ]);
  });

  test.each(['10.96.0.0', '10.96.255.255', '10.95.255.255', '192.0.2.1'])(
    '%s is not in the range',
    (address) => {
      expect(refused(new ServiceWorld(v4), address)).toEqual([
        `spec.clusterIPs: Invalid value: ["${address}"]: failed to allocate IP ${address}: the provided network does not match the current range`,
      ]);
    },
  );

  test('that fails beside another one leaves nothing behind', () => {
    const world = new ServiceWorld(dual46);
    world.create('a', { ports, clusterIP: '10.97.0.5' });
    world.create('b', { ports, clusterIP: 'fd00:10:97::5' });
    expect(
      failure(() => world.create('c', { ports, clusterIP: '10.97.0.5', ipFamilyPolicy: 'PreferDualStack' }))
        .causes,
    ).toEqual([
      'spec.clusterIPs: Invalid value: ["10.97.0.5",""]: failed to allocate IP 10.97.0.5: provided IP is already allocated',
    ]);
    const second = {
      ports,
      ipFamilyPolicy: 'PreferDualStack',
      clusterIP: '10.97.0.6',
      clusterIPs: ['10.97.0.6', 'fd00:10:97::5'],
    };
    expect(failure(() => world.create('c', second)).code).toBe(422);
    expect(world.allocators.isHeld('10.97.0.6')).toBe(false);
  });

  test('shows a bad Service name as a bad IPAddress', () => {
    const world = new ServiceWorld(v4);
    expect(failure(() => world.create('a/b', { ports, clusterIP: '10.96.0.5' })).causes).toEqual([
      'spec.clusterIPs: Invalid value: ["10.96.0.5"]: failed to allocate IP 10.96.0.5: IPAddress.networking.k8s.io "10.96.0.5" is invalid: spec.parentRef.name: Invalid value: "a/b": may not contain \'/\'',
    ]);
    expect(failure(() => world.create('a/b')).causes[0]).toMatch(
      /^spec\.clusterIPs: Invalid value: \[""\]: failed to allocate IP: IPAddress\.networking\.k8s\.io "10\.96\.\d+\.\d+" is invalid/,
    );
    expect(world.allocators.isHeld('10.96.0.5')).toBe(false);
  });
});

describe('a full range', () => {
  test('answers 500, and gives out again what comes back', () => {
    const world = new ServiceWorld({ families: ['IPv4'], cidrs: ['10.0.0.0/30'] });
    world.create('a');
    world.create('b');
    expect(failure(() => world.create('c'))).toEqual({
      code: 500,
      causes: ['Internal error occurred: failed to allocate a serviceIP for Service "c": range is full'],
    });
    const address = world.get('a').spec.clusterIP;
    world.delete('a');
    expect(world.create('c').spec.clusterIP).toBe(address);
  });
});

describe('ServiceCIDRs', () => {
  test('come and go: a second one helps a full one, and gives nothing once it is not ready', () => {
    const world = new ServiceWorld({ families: ['IPv4'], cidrs: ['10.0.0.0/30'] });
    world.create('a');
    world.create('b');
    world.allocators.setServiceCIDR('more', ['10.0.1.0/30'], true);
    expect(world.create('c').spec.clusterIP).toMatch(/^10\.0\.1\./);
    world.allocators.setServiceCIDR('more', ['10.0.1.0/30'], false);
    expect(failure(() => world.create('d')).code).toBe(500);
    expect(refused(world, '10.0.1.2')[0]).toMatch(/does not match the current range$/);
    world.delete('c');
    world.allocators.removeServiceCIDR('more');
    world.allocators.setServiceCIDR('more', ['10.0.1.0/30'], true);
    expect([world.create('e'), world.create('f')].map(({ spec }) => spec.clusterIP).sort()).toEqual([
      '10.0.1.1',
      '10.0.1.2',
    ]);
  });

  test('that overlap know of each other’s addresses', () => {
    const world = new ServiceWorld({ families: ['IPv4'], cidrs: ['10.0.0.0/29'] });
    world.create('a', { ports, clusterIP: '10.0.0.1' });
    world.allocators.setServiceCIDR('inner', ['10.0.0.0/30'], true);
    world.create('b', { ports, clusterIP: '10.0.0.2' });
    world.allocators.removeServiceCIDR('kubernetes');
    expect(failure(() => world.create('c')).code).toBe(500);
    world.delete('a');
    expect(world.create('c').spec.clusterIP).toBe('10.0.0.1');
  });

  test('that two objects list stay until both are gone, and are ready while one is', () => {
    const allocators = new ServiceAllocators({ families: ['IPv4'], nodePortRange });
    allocators.setServiceCIDR('a', ['10.0.0.0/30'], true);
    allocators.setServiceCIDR('b', ['10.0.0.0/30', 'fd00::/112'], false);
    allocators.removeServiceCIDR('a');
    expect(() => allocators.allocateNext('IPv4', () => 0)).toThrow('range is full');
    allocators.setServiceCIDR('b', ['10.0.0.0/30'], true);
    expect(allocators.allocateNext('IPv4', () => 0)).toBe('10.0.0.1');
    expect(() => allocators.allocateNext('IPv6', () => 0)).toThrow('range is full');
  });

  test('of a family that the cluster does not have are ignored', () => {
    const world = new ServiceWorld(v4);
    world.allocators.setServiceCIDR('six', ['fd00:10:96::/112'], true);
    expect(refused(world, 'fd00:10:96::5')).toEqual([
      'spec.clusterIPs[0]: Invalid value: ["fd00:10:96::5"]: IPv6 is not configured on this cluster',
    ]);
  });
});

describe('IPAddress objects of others', () => {
  test('block their address, before or after the CIDR comes', () => {
    const world = new ServiceWorld({ families: ['IPv4'], cidrs: [] });
    world.allocators.commit('10.0.0.1');
    world.allocators.commit('10.0.0.1');
    world.allocators.commit('10.0.00.2');
    expect(['10.0.0.1', '10.0.00.2'].map((text) => world.allocators.isHeld(text))).toEqual([true, false]);
    world.allocators.setServiceCIDR('kubernetes', ['10.0.0.0/29'], true);
    world.allocators.commit('10.0.0.2');
    world.allocators.commit('255.255.255.255');
    for (const address of ['10.0.0.1', '10.0.0.2'])
      expect(refused(world, address)[0]).toMatch(/already allocated$/);
    const given = ['a', 'b', 'c', 'd'].map((name) => world.create(name).spec.clusterIP);
    expect(given.sort()).toEqual(['10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6']);
    world.allocators.release('10.0.0.1');
    expect(world.create('e').spec.clusterIP).toBe('10.0.0.1');
  });
});

describe('a request that is under way', () => {
  test('and fails does not free the address that an IPAddress object took meanwhile', () => {
    const { allocators } = new ServiceWorld({ families: ['IPv4'], cidrs: ['10.0.0.0/30'] });
    expect(allocators.allocateNext('IPv4', () => 0)).toBe('10.0.0.1');
    allocators.commit('10.0.0.1');
    allocators.rollback('10.0.0.1');
    expect(allocators.isHeld('10.0.0.1')).toBe(true);
    expect(allocators.allocateNext('IPv4', () => 0)).toBe('10.0.0.2');
    allocators.release('10.0.0.1');
    expect(allocators.allocateNext('IPv4', () => 0)).toBe('10.0.0.1');
  });

  test('keeps its address from others, and from a CIDR that comes meanwhile', () => {
    const { allocators } = new ServiceWorld({ families: ['IPv4'], cidrs: ['10.0.0.0/30'] });
    allocators.allocate('10.0.0.2', () => undefined);
    allocators.release('10.0.0.2');
    allocators.setServiceCIDR('outer', ['10.0.0.0/29'], true);
    allocators.removeServiceCIDR('kubernetes');
    const given = [1, 2, 3, 4, 5].map(() => allocators.allocateNext('IPv4', () => 0));
    expect(given).toEqual(['10.0.0.1', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6']);
  });
});

describe('a dry run', () => {
  test('shows the base address of each family, and lets taken addresses pass', () => {
    const world = new ServiceWorld(dual64);
    const { spec } = world.create('a', { ports, ipFamilyPolicy: 'RequireDualStack' }, { dryRun: true });
    expect(spec.clusterIPs).toEqual(['fd00:10:98::', '10.98.0.0']);
    world.create('a', { ports, clusterIP: '10.98.0.5' });
    world.create('b', { ports, clusterIP: '10.98.0.5' }, { dryRun: true });
    expect(world.services.size).toBe(1);
  });

  test('names the range that an address is outside of', () => {
    expect(refused(new ServiceWorld(dual64), '10.98.255.255', true)).toEqual([
      'spec.clusterIPs: Invalid value: ["10.98.255.255"]: failed to allocate IP 10.98.255.255: the provided IP (10.98.255.255) is not in the valid range. The range of valid IPs is 10.98.0.0/16',
    ]);
  });

  test('without a ready CIDR says so', () => {
    const world = new ServiceWorld({ families: ['IPv4'], cidrs: [] });
    expect(refused(world, '10.0.0.1', true)[0]).toMatch(
      /: failed to allocate IP 10\.0\.0\.1: allocator not ready$/,
    );
  });
});

test('a delete takes the addresses along, and leaves the Endpoints to their controller', () => {
  const world = new ServiceWorld(v4);
  world.create('a', { ports, clusterIP: '10.96.0.5' });
  expect(world.delete('a')?.deletes).toEqual([
    { group: 'networking.k8s.io', plural: 'ipaddresses', namespace: '', name: '10.96.0.5' },
  ]);
});

test('at start the ports of stored Services are taken, those of an ExternalName are not', () => {
  const before = new ServiceWorld(v4);
  before.create('a', { type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }] });
  before.create('b', {
    type: 'LoadBalancer',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 30002,
    ports: [{ port: 80, nodePort: 30003 }],
  });
  before.create('c', { type: 'ExternalName', externalName: 'x', ports: [{ port: 80, nodePort: 30004 }] });
  const allocators = new ServiceAllocators({ families: ['IPv4'], nodePortRange });
  for (const service of before.services.values()) allocators.adopt(service);
  expect(allocators.nodePorts.used).toBe(3);
  for (const port of [30001, 30002, 30003]) expect(allocators.nodePorts.has(port)).toBe(true);
});
