import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AddressPoolSpec } from '../../src/objects/types/servicenet.ts';
import { peersOf } from '../../src/network/announcing/bgp.ts';
import { readAnnounce } from '../../src/network/announcing/announcement-plan.ts';
import { readPool } from '../../src/controllers/load-balancer/pools.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { importCilium, importKubeVip } from '../../src/pools/import/read.ts';
import { importMetalLB, importMetalLBConfig } from '../../src/pools/import/metallb.ts';
import { BalancedServer } from '../support/balanced-server.ts';
import { type Answer, call } from '../support/test-server.ts';

let cluster: BalancedServer;
beforeAll(async () => {
  cluster = await BalancedServer.start();
  await cluster.pool('first', { addresses: ['192.0.2.0/24'] });
});
afterAll(async () => cluster.server.stop());

/** What the API says to a pool, which it does not store. */
async function answerTo(pool: object): Promise<Answer> {
  return call(cluster.server.client, 'POST', '/apis/servicenet.dev/v1alpha1/addresspools', {
    body: { apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool', ...pool },
    query: { dryRun: 'All' },
  });
}

const answerToSpec = (spec: AddressPoolSpec): Promise<Answer> => answerTo({ metadata: { name: 'a' }, spec });
const reasons = ({ body }: Answer): string[] =>
  listAt(body, 'details', 'causes').map(
    (cause) => textAt(cause, 'message').split(': ').slice(2).join(': ') || textAt(cause, 'message'),
  );

const neither = 'must be an address, a CIDR or a range first-last';
const hostBits = 'must begin with the first address of its CIDR';
const reversed = 'must not end before it begins';
const families = 'must begin and end in one address family';
const tooLarge = 'must be at most a /8 of IPv4 or a /64 of IPv6';

test.each([
  ['300.1.1.1', neither],
  ['', neither],
  ['banana', neither],
  ['192.0.2.0/33', neither],
  ['192.0.2.010', neither],
  ['192.0.2.1-192.0.2.2-192.0.2.3', neither],
  ['192.0.2.1-', neither],
  ['::ffff:192.0.2.1', neither],
  ['192.0.2.5/28', hostBits],
  ['2001:db8::1/64', hostBits],
  ['192.0.2.10-192.0.2.9', reversed],
  ['192.0.3.1 - 192.0.2.9', reversed],
  ['192.1.2.3-192.0.200.200', reversed],
  ['100.0.0.0-20.0.0.0', reversed],
  ['2001:db8::10-2001:db8::9', reversed],
  ['2001:db8::A-2001:DB8::9', reversed],
  ['192.0.2.1-2001:db8::1', families],
  ['0.0.0.0/0', tooLarge],
  ['2001:db8::/32', tooLarge],
])('the address "%s" is refused', async (text, reason) => {
  const answer = await answerToSpec({ addresses: [text] });
  expect([answer.status, reasons(answer).join()]).toEqual([422, expect.stringContaining(reason)]);
  if (reason === tooLarge)
    expect((await answerToSpec({ addresses: ['192.0.2.1'], exclude: [text] })).status).toBe(201);
  else expect((await answerToSpec({ addresses: ['192.0.2.1'], exclude: [text] })).status).toBe(422);
});

test.each<[string, Partial<AddressPoolSpec>]>([
  ['subnet', { subnet: '192.0.2.0' }],
  ['subnet', { subnet: '192.0.2.1/24' }],
  ['reuseDelay', { reuseDelay: 'soon' }],
  ['reuseDelay', { reuseDelay: '-90s' }],
  ['reservations[0].address', { reservations: [{ address: '300.1.1.1', namespace: 'a', name: 'b' }] }],
])('a wrong %s is refused', async (field, spec) => {
  const answer = await answerToSpec({ addresses: ['192.0.2.1'], ...spec });
  expect([
    answer.status,
    listAt(answer.body, 'details', 'causes').map((cause) => textAt(cause, 'field')),
  ]).toEqual([422, [`spec.${field}`]]);
});

const octet = fc.oneof(
  fc.constantFrom('0', '9', '10', '99', '100', '255', '256', '01'),
  fc.nat(255).map(String),
);
const ipv4 = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'));
const group = fc.oneof(
  fc.constantFrom('0', '9', 'a', 'FF', '100', '00ab', 'ffff', '12345'),
  fc.nat(0xffff).map((n) => n.toString(16)),
);
const ipv6 = fc.oneof(
  fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(':')),
  fc
    .tuple(fc.array(group, { maxLength: 4 }), fc.array(group, { maxLength: 4 }))
    .map(([a, b]) => `${a.join(':')}::${b.join(':')}`),
);
const near = ipv6.chain((text) => group.map((last) => `${text}-${text.replace(/[^:]*$/, '')}${last}`));
const address = fc.oneof(ipv4, ipv6);
const range = fc.oneof(
  address,
  near,
  fc.tuple(address, fc.nat(130)).map(([text, bits]) => `${text}/${bits}`),
  fc.tuple(ipv4, fc.constantFrom('-', ' - ', '- '), ipv4).map((parts) => parts.join('')),
  fc.tuple(address, address).map((ends) => ends.join('-')),
  fc.string({
    unit: fc.constantFrom('1', '.', ':', '-', '/', ' ', 'f', '192.0.2.', '2001:db8::'),
    maxLength: 8,
  }),
);

test('the API refuses no address that the controller takes, and tells what it can see of the others', async () => {
  await fc.assert(
    fc.asyncProperty(range, async (text) => {
      const { problems } = readPool({ metadata: { name: 'a' }, spec: { addresses: [text] } });
      const { status, body } = await answerToSpec({ addresses: [text] });
      if (problems.length === 0) expect([status, body['message']]).toEqual([201, undefined]);
      if (status !== 201) expect(problems).not.toEqual([]);
      // What CEL cannot see: how large a range is, and the order of IPv6 addresses that differ in front.
      const unseen =
        /too large/.test(problems.join()) || (text.includes(':') && /ends before/.test(problems.join()));
      if (problems.length > 0 && !unseen) expect(status).toBe(422);
    }),
    { numRuns: 300 },
  );
});

const selector = fc.oneof(
  fc.constant({}),
  fc.record({
    matchLabels: fc.dictionary(fc.string({ maxLength: 5 }), fc.string({ maxLength: 5 }), { maxKeys: 2 }),
  }),
  fc.record({
    matchExpressions: fc.array(
      fc.record({
        key: fc.oneof(fc.constantFrom('app', 'io.kubernetes.service.namespace'), fc.string({ maxLength: 4 })),
        operator: fc.constantFrom('In', 'NotIn', 'Exists', 'in'),
        values: fc.array(fc.oneof(fc.constantFrom('x', 'y'), fc.string({ maxLength: 3 })), { maxLength: 3 }),
      }),
      { maxLength: 2 },
    ),
  }),
  fc.string({ maxLength: 3 }),
);
const name = fc.oneof(fc.constantFrom('lan', 'LAN', 'a.b', 'a..b', '-a-', 'ü'), fc.string({ maxLength: 10 }));
const ranges = fc.array(range, { maxLength: 4 });
/** Values as other kinds may have them, and some that they may not. */
const sometimes = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });
const count = fc.constantFrom(
  0,
  1,
  3,
  24,
  32,
  64,
  128,
  179,
  23456,
  64512,
  65535,
  4_294_967_295,
  4_294_967_296,
  1.5,
);
const peer = fc.record({
  ...{ myASN: count, peerASN: count, peerPort: sometimes(count) },
  ...{ peerAddress: fc.oneof(address, fc.constantFrom('127.0.0.1', 'fe80::1', '::', 'router', '')) },
  ...{ sourceAddress: sometimes(address), routerID: sometimes(address) },
  holdTime: sometimes(fc.constantFrom('90s', '1m30s', '3s', '1s', '0s', '20h', '3500ms', 'soon')),
  nodeSelectors: fc.array(selector, { maxLength: 2 }),
  ...{ password: sometimes(fc.string()), enableGracefulRestart: sometimes(fc.boolean()) },
});
const named = <T>(spec: fc.Arbitrary<T>): fc.Arbitrary<{ metadata: { name: string }; spec: T }[]> =>
  fc.array(fc.record({ metadata: fc.record({ name }), spec }), { maxLength: 3 });
const announcing = fc.record({
  l2Advertisements: named(
    fc.record({
      interfaces: sometimes(fc.array(fc.constantFrom('eth0', 'eth1', 'far/too', 'longer-than-15-bytes', ''))),
      nodeSelectors: fc.array(selector, { maxLength: 2 }),
    }),
  ),
  bgpAdvertisements: named(
    fc.record({
      peers: sometimes(fc.array(name, { maxLength: 2 })),
      communities: fc.array(fc.constantFrom('64512:1', '1:99999', 'large:1:2:3', 'vpn', 'no-export', 'x')),
      ...{
        localPref: sometimes(count),
        aggregationLength: sometimes(count),
        aggregationLengthV6: sometimes(count),
      },
      nodeSelectors: fc.array(selector, { maxLength: 2 }),
    }),
  ),
  bgpPeers: named(peer),
  communities: named(fc.record({ communities: fc.constant([{ name: 'vpn', value: '64512:9' }]) })),
});
const kubeVip = fc
  .dictionary(
    fc.constantFrom(
      'vip_arp',
      'bgp_enable',
      'vip_interface',
      'bgp_as',
      'bgp_peers',
      'bgp_routerid',
      'bgp_hold_time',
    ),
    fc.oneof(
      fc.constantFrom(
        'true',
        'eth0',
        'lo',
        '64512',
        '0',
        '90',
        '10.0.0.1:64513::false',
        '[2001:db8::1]:64513:x:true',
      ),
      address,
    ),
  )
  .map((env) => {
    const variables = Object.entries(env).map(([variable, value]) => ({ name: variable, value }));
    return withRest({
      spec: { template: { spec: { containers: [{ image: 'kube-vip', env: variables }] } } },
    });
  });
const sources = fc.oneof(
  fc
    .array(
      fc.record({
        metadata: fc.record({ name }),
        spec: fc.record({
          addresses: ranges,
          autoAssign: fc.boolean(),
          avoidBuggyIPs: fc.boolean(),
          serviceAllocation: fc.record({
            priority: fc.oneof(fc.nat(), fc.double()),
            namespaces: fc.array(fc.string({ maxLength: 4 }), { maxLength: 2 }),
            serviceSelectors: fc.array(selector, { maxLength: 2 }),
          }),
        }),
      }),
      { maxLength: 3 },
    )
    .chain((pools) => announcing.map((kinds) => importMetalLB(pools, kinds))),
  fc
    .array(fc.record({ name, addresses: ranges, 'auto-assign': fc.boolean() }), { maxLength: 4 })
    .map((pools) =>
      importMetalLBConfig(withRest({ data: { config: JSON.stringify({ 'address-pools': pools }) } })),
    ),
  fc
    .array(
      fc.record({
        metadata: fc.record({ name }),
        spec: fc.record({
          blocks: fc.array(
            fc.oneof(fc.record({ cidr: range }), fc.record({ start: address, stop: address })),
            {
              maxLength: 3,
            },
          ),
          disabled: fc.boolean(),
          serviceSelector: selector,
        }),
      }),
      { maxLength: 3 },
    )
    .map((pools) => importCilium(pools)),
  fc
    .dictionary(
      fc.tuple(fc.constantFrom('cidr-', 'range-', 'allow-share-', ''), name).map((parts) => parts.join('')),
      fc.oneof(
        ranges.map((list) => list.join(',')),
        fc.constantFrom('true', '0.0.0.0/32'),
      ),
      { maxKeys: 5 },
    )
    .chain((data) => sometimes(kubeVip).map((daemonSet) => importKubeVip(withRest({ data }), daemonSet))),
);

/** A node that no selector can be wrong about. */
const anyNode = { metadata: { name: 'node' }, spec: {}, status: {} };

function withRest(rest: object): KubeObject {
  return { metadata: { name: 'config' }, ...rest };
}

test('whatever an import makes, the API takes, and the controller finds nothing wrong in it', async () => {
  await fc.assert(
    fc.asyncProperty(sources, async ({ pools, peers }) => {
      expect(new Set(peers.map(({ metadata }) => metadata.name)).size).toBe(peers.length);
      for (const body of peers) {
        const path = '/apis/servicenet.dev/v1alpha1/bgppeers';
        const answer = await call(cluster.server.client, 'POST', path, { body, query: { dryRun: 'All' } });
        expect([answer.status, answer.body['message']]).toEqual([201, undefined]);
        expect(peersOf([body], anyNode, true).problems).toEqual([]);
      }
      expect(new Set(pools.map(({ metadata }) => metadata.name)).size).toBe(pools.length);
      for (const pool of pools) {
        const { status, body } = await answerTo(pool);
        expect([status, body['message'], readPool(pool).problems]).toEqual([201, undefined, []]);
        expect(readAnnounce(pool.spec.announce).problems).toEqual([]);
      }
    }),
    { numRuns: 150 },
  );
});
