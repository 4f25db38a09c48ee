import { describe, expect, test } from 'vitest';
import type { ServicePort, ServiceSpec } from '../../../../../src/objects/types/core.generated.ts';
import { failure, ServiceWorld, v4 } from './world.ts';

function nodePort(...ports: ServicePort[]): ServiceSpec {
  return { type: 'NodePort', ports };
}
const tcp = (port: number, number?: number): ServicePort => ({
  name: `t${port}`,
  port,
  ...(number === undefined ? {} : { nodePort: number }),
});
const udp = (port: number, number?: number): ServicePort => ({
  ...tcp(port, number),
  name: `u${port}`,
  protocol: 'UDP',
});
const local: ServiceSpec = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: [{ port: 80 }] };

function numbers({ ports = [] }: ServiceSpec): (number | undefined)[] {
  return ports.map((port) => port.nodePort);
}

describe('a create', () => {
  test('shares one number between protocols of one port', () => {
    const world = new ServiceWorld(v4);
    const [first, second] = numbers(world.create('a', nodePort(tcp(53), udp(53))).spec);
    expect(second).toBe(first);
    expect(world.ports()).toEqual([first]);
  });

  test('uses a number that any of them asks for', () => {
    const world = new ServiceWorld(v4);
    expect(numbers(world.create('a', nodePort(tcp(53), udp(53, 30001))).spec)).toEqual([30001, 30001]);
    expect(numbers(world.create('b', nodePort(tcp(53, 30002), udp(53, 30003))).spec)).toEqual([30002, 30003]);
    expect(world.ports()).toEqual([30001, 30002, 30003]);
  });

  test('does not share between different ports', () => {
    const cause = 'spec.ports[1].nodePort: Invalid value: 30001: provided port is already allocated';
    const world = new ServiceWorld(v4);
    const create = (): unknown => world.create('a', nodePort(tcp(53, 30001), udp(54, 30001)));
    expect(failure(create)).toEqual({ code: 422, causes: [cause] });
    expect(world.ports()).toEqual([]);
  });

  test.each([29999, 32768, -1, 80])('refuses %i, which is outside of the range', (number) => {
    expect(failure(() => new ServiceWorld(v4).create('a', nodePort(tcp(80, number)))).causes).toEqual([
      `spec.ports[0].nodePort: Invalid value: ${number}: provided port is not in the valid range. The range of valid ports is 30000-32767`,
    ]);
  });

  test('again, with the number that the Service has, answers 422 and not 409', () => {
    const world = new ServiceWorld(v4);
    world.create('a', nodePort(tcp(80, 30001)));
    expect(failure(() => world.create('a', nodePort(tcp(80, 30001)))).code).toBe(422);
    expect(failure(() => world.create('a', nodePort(tcp(80)))).code).toBe(409);
    expect(world.ports()).toEqual([30001]);
  });

  test('in a full range answers 500', () => {
    const world = new ServiceWorld(v4, { first: 30000, last: 30001 });
    world.create('a', nodePort(tcp(80), tcp(81)));
    expect(failure(() => world.create('b', nodePort(tcp(80))))).toEqual({
      code: 500,
      causes: ['Internal error occurred: failed to allocate a nodePort: range is full'],
    });
    expect(failure(() => world.create('b', local)).code).toBe(500);
    expect(world.addresses.size).toBe(1);
  });

  test('of a LoadBalancer without automatic ports takes explicit ones only', () => {
    const world = new ServiceWorld(v4);
    const { spec } = world.create('a', {
      type: 'LoadBalancer',
      allocateLoadBalancerNodePorts: false,
      ports: [tcp(80), tcp(81, 30001)],
    });
    expect(numbers(spec)).toEqual([undefined, 30001]);
    expect(world.ports()).toEqual([30001]);
  });

  test('of an ExternalName stores numbers without taking them; its removal frees them for all', () => {
    const world = new ServiceWorld(v4);
    world.create('a', { type: 'ExternalName', externalName: 'x', ports: [tcp(80, 30001)] });
    expect(world.ports()).toEqual([]);
    world.create('b', nodePort(tcp(80, 30001)));
    world.delete('a');
    expect(world.ports()).toEqual([]);
  });
});

describe('the health check port', () => {
  test('is taken with LoadBalancer and Local, and given back without', () => {
    const world = new ServiceWorld(v4);
    const { healthCheckNodePort } = world.create('a', local).spec;
    expect(world.ports()).toContain(healthCheckNodePort);
    const { spec } = world.patch('a', { externalTrafficPolicy: 'Cluster' });
    expect(spec).not.toHaveProperty('healthCheckNodePort');
    expect(world.ports()).toEqual(numbers(spec));
    expect(
      world.patch('a', { externalTrafficPolicy: 'Local', healthCheckNodePort: 30001 }).spec
        .healthCheckNodePort,
    ).toBe(30001);
    world.delete('a');
    expect(world.ports()).toEqual([]);
  });

  test('that cannot be had answers 500', () => {
    const world = new ServiceWorld(v4);
    world.create('a', nodePort(tcp(80, 30001)));
    const wanted = (number: number): string[] =>
      failure(() => world.create('b', { ...local, healthCheckNodePort: number })).causes;
    const head = 'Internal error occurred: failed to allocate requested HealthCheck NodePort';
    expect(wanted(30001)).toEqual([`${head} 30001: provided port is already allocated`]);
    expect(wanted(80)).toEqual([
      `${head} 80: provided port is not in the valid range. The range of valid ports is 30000-32767`,
    ]);
    const full = new ServiceWorld(v4, { first: 30000, last: 30000 });
    expect(failure(() => full.create('a', local)).causes).toEqual([
      'Internal error occurred: failed to allocate a HealthCheck NodePort 0: range is full',
    ]);
    expect(full.ports()).toEqual([]);
  });

  test('is another number than the node ports of the same Service', () => {
    const spec = { ...local, ports: [tcp(80, 30001)], healthCheckNodePort: 30001 };
    const world = new ServiceWorld(v4);
    expect(failure(() => world.create('a', spec)).code).toBe(500);
    expect(world.ports()).toEqual([]);
  });
});

describe('an update', () => {
  test('gives each new port a number of its own', () => {
    const world = new ServiceWorld(v4);
    world.create('a', { ports: [tcp(53), udp(53)] });
    const [first, second] = numbers(world.patch('a', { type: 'NodePort' }).spec);
    expect(first).not.toBe(second);
    expect(world.ports()).toEqual([first, second].sort());
  });

  test('accepts one explicit number for two protocols, whatever the ports', () => {
    const world = new ServiceWorld(v4);
    world.create('a', nodePort(tcp(53, 30001)));
    world.put('a', nodePort(tcp(53, 30002), udp(54, 30002)));
    expect(world.ports()).toEqual([30002]);
  });

  test('of two ports of one protocol to one number is a plain error', () => {
    const world = new ServiceWorld(v4);
    world.create('a', nodePort(tcp(53, 30001)));
    expect(failure(() => world.put('a', nodePort(tcp(53, 30001), tcp(54, 30001))))).toEqual({
      code: 500,
      causes: ['duplicate nodePort: {TCP 30001}'],
    });
    expect(world.ports()).toEqual([30001]);
  });

  test('swaps numbers, releases removed ones, and refuses taken ones', () => {
    const world = new ServiceWorld(v4);
    world.create('a', nodePort(tcp(80, 30001), tcp(81, 30002)));
    world.create('b', nodePort(tcp(80, 30003)));
    expect(numbers(world.put('a', nodePort(tcp(80, 30002), tcp(81, 30001))).spec)).toEqual([30002, 30001]);
    expect(failure(() => world.put('a', nodePort(tcp(80, 30002), tcp(81, 30003)))).causes).toEqual([
      'spec.ports[1].nodePort: Invalid value: 30003: provided port is already allocated',
    ]);
    world.put('a', nodePort(tcp(81, 30001)));
    expect(world.ports()).toEqual([30001, 30003]);
  });

  test('to no automatic ports keeps those that are sent and releases the others', () => {
    const world = new ServiceWorld(v4);
    world.create('a', { type: 'LoadBalancer', ports: [tcp(80, 30001), tcp(81, 30002)] });
    const { spec } = world.put('a', {
      type: 'LoadBalancer',
      allocateLoadBalancerNodePorts: false,
      ports: [tcp(80, 30001), tcp(81)],
    });
    expect(numbers(spec)).toEqual([30001, undefined]);
    expect(world.ports()).toEqual([30001]);
    const again = numbers(world.patch('a', { allocateLoadBalancerNodePorts: true }).spec);
    expect(again[0]).toBe(30001);
    expect(world.ports()).toEqual(again.sort());
  });
});

describe('a dry run', () => {
  test('shows dummies and takes nothing', () => {
    const world = new ServiceWorld(v4);
    const auto = world.create('a', { ...local, ports: [tcp(80), tcp(81)] }, { dryRun: true }).spec;
    expect([...numbers(auto), auto.healthCheckNodePort]).toEqual([32769, 32770, 32771]);
    expect(auto.clusterIP).toBe('10.96.0.0');
    expect(numbers(world.create('a', nodePort(tcp(80, 30031), tcp(81)), { dryRun: true }).spec)).toEqual([
      30031, 30032,
    ]);
    expect([world.ports(), world.addresses.size, world.services.size]).toEqual([[], 0, 0]);
  });

  test('lets ports outside of the range pass, but not taken ones', () => {
    const world = new ServiceWorld(v4);
    world.create('a', nodePort(tcp(80, 30001)));
    const dry = (number: number): unknown => world.create('b', nodePort(tcp(80, number)), { dryRun: true });
    dry(29999);
    expect(failure(() => dry(30001)).causes).toEqual([
      'spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated',
    ]);
  });

  test('of an update or a delete gives nothing back', () => {
    const world = new ServiceWorld(v4);
    world.create('a', nodePort(tcp(80, 30001)));
    world.patch('a', { type: 'ExternalName', externalName: 'x' }, true);
    const reservation = world.delete('a', true);
    expect([world.ports(), world.addresses.size]).toEqual([[30001], 1]);
    expect([reservation?.creates, reservation?.deletes]).toEqual([[], []]);
  });
});
