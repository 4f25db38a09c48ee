import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseAddress } from '../../../../../src/objects/address.ts';
import type { ServicePort, ServiceSpec } from '../../../../../src/objects/types/core.generated.ts';
import { StatusError } from '../../../../../src/objects/status.ts';
import { ServiceWorld, type Cluster } from './world.ts';
import { runs } from '../../../../support/runs.ts';

/** Ranges so small that they are full now and then. */
const clusters: Cluster[] = [
  { families: ['IPv4'], cidrs: ['10.0.0.0/29'] },
  { families: ['IPv6', 'IPv4'], cidrs: ['fd00::/125', '10.0.0.0/29'] },
];
const range = { first: 30000, last: 30007 };

/** Mostly undefined: what a request leaves out is decided by the server. */
function rarely<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}

const number = fc.integer({ min: 29999, max: 30008 });
const ports: fc.Arbitrary<ServicePort[]> = fc
  .uniqueArray(fc.constantFrom('80/TCP', '80/UDP', '81/TCP'), { minLength: 1 })
  .chain((keys) => fc.tuple(fc.constant(keys), fc.array(rarely(number), { minLength: 3, maxLength: 3 })))
  .map(([keys, numbers]) =>
    keys.map((key, i) => {
      const [digits = '', protocol = ''] = key.split('/');
      const nodePort = numbers[i];
      const base = { name: `p${digits}${protocol.toLowerCase()}`, port: Number(digits), protocol };
      return nodePort === undefined ? base : { ...base, nodePort };
    }),
  );
const clusterIPs = fc.constantFrom<string[]>(
  ['10.0.0.1'],
  ['10.0.0.2', 'fd00::2'],
  ['FD00:0::2'],
  ['fd00::3', '10.0.0.6'],
  ['None'],
);
/** A spec that has the fields of its type; with `wild`, also those of others, which is refused as a rule. */
const spec: fc.Arbitrary<ServiceSpec> = fc
  .record({
    wild: rarely(fc.constant(true)),
    type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
    ports,
    clusterIPs: rarely(clusterIPs),
    ipFamilyPolicy: fc.constantFrom(undefined, 'SingleStack', 'PreferDualStack', 'RequireDualStack'),
    ipFamilies: rarely(fc.constantFrom<string[]>(['IPv4'], ['IPv6'], ['IPv4', 'IPv6'], ['IPv6', 'IPv4'])),
    local: fc.boolean(),
    healthCheckNodePort: rarely(number),
    allocate: rarely(fc.boolean()),
    sessionAffinity: rarely(fc.constant('Wrong')),
  })
  .map(({ wild = false, type, ports, clusterIPs, local, allocate, ...more }) => {
    const balanced = wild || type === 'LoadBalancer';
    const outside = balanced || type === 'NodePort';
    const addressed = wild || type !== 'ExternalName';
    const made: { [K in keyof ServiceSpec]: ServiceSpec[K] | undefined } = {
      type,
      // Numbers of an ExternalName are not allocated, which makes kube-apiserver lose count: node-ports.test.ts.
      ports: type !== 'ExternalName' && outside ? ports : ports.map(({ nodePort: _, ...rest }) => rest),
      externalName: 'x',
      clusterIP: addressed ? clusterIPs?.[0] : undefined,
      clusterIPs: addressed ? clusterIPs : undefined,
      ipFamilyPolicy: addressed ? more.ipFamilyPolicy : undefined,
      ipFamilies: addressed ? more.ipFamilies : undefined,
      externalTrafficPolicy: outside && local ? 'Local' : undefined,
      healthCheckNodePort: balanced && local ? more.healthCheckNodePort : undefined,
      allocateLoadBalancerNodePorts: balanced ? allocate : undefined,
      sessionAffinity: more.sessionAffinity,
    };
    return defined(made);
  });

function defined(spec: { [K in keyof ServiceSpec]: ServiceSpec[K] | undefined }): ServiceSpec {
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined));
}

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const dryRun = rarely(fc.constant(true)).map((chosen) => chosen ?? false);
const step = fc.record({
  what: fc.constantFrom('write', 'write', 'write', 'patch', 'delete'),
  name,
  spec,
  dryRun,
});

/** What the stored Services have is what the allocators hold: nothing leaks, nothing is given twice. */
function check(world: ServiceWorld): void {
  const addresses: string[] = [];
  const ports: number[] = [];
  for (const { spec } of world.services.values()) {
    for (const ip of spec.clusterIPs ?? [])
      if (ip !== 'None') addresses.push(parseAddress(ip)?.canonical ?? ip);
    const numbers = new Set((spec.ports ?? []).map(({ nodePort }) => nodePort ?? 0));
    for (const number of numbers) if (number !== 0) ports.push(number);
    if (spec.healthCheckNodePort !== undefined) ports.push(spec.healthCheckNodePort);
    expect((spec.ipFamilies ?? []).length, 'as many addresses as families').toBe(
      spec.clusterIPs?.[0] === 'None' ? (spec.ipFamilies ?? []).length : (spec.clusterIPs ?? []).length,
    );
  }
  expect([...world.addresses.keys()].sort()).toEqual(addresses.sort());
  for (const held of addresses) expect(world.allocators.isHeld(held)).toBe(true);
  expect(world.ports()).toEqual(ports.sort((a, b) => a - b));
}

test('over random histories the allocators hold exactly what the stored Services have', () => {
  const answered = { ok: 0, refused: 0 };
  fc.assert(
    fc.property(
      fc.constantFrom(...clusters),
      fc.array(step, { minLength: 1, maxLength: 25 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (cluster, steps, random) => {
        const world = new ServiceWorld(cluster, range, () => random);
        for (const { what, name, spec, dryRun } of steps) {
          try {
            if (!world.services.has(name)) world.create(name, spec, { dryRun });
            else if (what === 'write') world.put(name, spec, { dryRun });
            else if (what === 'patch') world.patch(name, spec, dryRun);
            else world.delete(name, dryRun);
            answered.ok++;
          } catch (error) {
            if (!(error instanceof StatusError)) throw error;
            answered.refused++;
          }
          check(world);
        }
        for (const left of [...world.services.keys()]) world.delete(left);
        expect([world.addresses.size, world.ports()]).toEqual([0, []]);
        for (let i = 0; i < 6; i++) expect(world.allocators.allocateNext('IPv4', () => random)).toBeTruthy();
      },
    ),
    { numRuns: runs(200, 400) },
  );
  expect(
    Math.min(answered.ok, answered.refused),
    'both happen often enough to mean something',
  ).toBeGreaterThan(1000);
});
