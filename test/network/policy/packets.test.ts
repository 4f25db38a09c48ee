import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { policyPod, type PolicySide } from '../../../src/network/policy/network-policy.ts';
import {
  firewallRules,
  firewallVerdict,
  type FirewallSurroundings,
} from '../../../src/network/policy/egress-firewall.ts';
import { firewallFilter } from '../../../src/network/policy/egress-firewall.ts';
import { policyRules } from '../../../src/network/policy/network-policy.ts';
import type { AddressedPod } from '../../../src/network/policy/policy-plan.ts';
import { PolicyIndex } from '../../../src/network/policy/policy-index.ts';
import { directionVerdict } from '../../../src/network/policy/policy-verdict.ts';
import { Nft } from '../../../src/node/nftables/nft.ts';
import { PolicyTable } from '../../../src/node/policy/policy-table.ts';
import { parseCidr } from '../../../src/objects/address.ts';
import { keyOf } from '../../../src/objects/meta.ts';
import type { Namespace, Pod } from '../../../src/objects/types/core.generated.ts';
import type { NetworkPolicy } from '../../../src/objects/types/networking.generated.ts';
import type { EgressFirewallRule } from '../../../src/objects/types/openshift.ts';
import { randomNamespaces, randomPod, randomPolicy } from '../../support/random-policies.ts';
import { missingFor } from '../support/gate.ts';
import { startNetwork, type TestNetwork } from '../support/network.ts';

const missing = missingFor('user');
const lacks = missing === '' ? '' : ` (missing: ${missing})`;

/** Never the same for two texts, and as long as names may be. */
const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

const podNames = ['a-1', 'b-1', 'c-2'] as const;
const nodeNames = ['node-1', 'node-2'] as const;
const machines = [...podNames, ...nodeNames] as const;

/** With what may be excepted. */
const blocks = {
  '10.244.1.0/24': ['10.244.1.3/32', '10.244.1.2/31'],
  '192.0.2.0/24': ['192.0.2.12/32'],
  'fd00:244::/32': ['fd00:244:1::/64'],
  '0.0.0.0/0': ['10.0.0.0/8'],
  '::/0': ['fd00:244:1::/64'],
};

describe.skipIf(missing !== '')(`policies in the kernel${lacks}`, () => {
  let network: TestNetwork;

  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': ['a-1', 'b-1'], 'node-2': ['c-2'] });
    await Promise.all(
      machines.flatMap((name) => [
        network.at(name).machine.serve(8080),
        network.at(name).machine.serve(8081),
        network.at(name).machine.serve(8080, 'UDP'),
      ]),
    );
  });
  afterAll(() => network.close());

  it('decide on real packets as network/policy does, for random policies and Pods', async () => {
    const nodes = nodeNames.map((name) => ({
      index: new PolicyIndex(name, hash),
      table: new PolicyTable(new Nft(network.at(name).machine.host)),
    }));
    let before: World = { namespaces: [], pods: [], policies: [] };
    const world = fc.record({
      namespaces: randomNamespaces,
      pods: fc.tuple(
        ...podNames.map((name) =>
          randomPod({
            ...{ name, node: `node-${name.slice(-1)}` },
            addresses: [network.at(name).addresses.IPv4, network.at(name).addresses.IPv6],
          }),
        ),
      ),
      policies: fc
        .subarray(['p', 'q', 'r', 's'], { minLength: 2 })
        .chain((names) => fc.tuple(...names.map((name) => randomPolicy(name, blocks)))),
    });
    await fc.assert(
      fc.asyncProperty(fc.noShrink(world), async (now) => {
        for (const { index, table } of nodes) {
          apply(index, before, now);
          await table.sync(index.plan());
        }
        before = now;
        const wrong = await Promise.all(
          machines.flatMap((source) =>
            machines
              .filter((destination) => destination !== source)
              .flatMap((destination) =>
                (['IPv4', 'IPv6'] as const).map((family) => compare(now, source, destination, family)),
              ),
          ),
        );
        expect(wrong.flat()).toEqual([]);
        for (const { index, table } of nodes) {
          table.invalidate();
          const settled = await table.sync(index.plan());
          expect(settled, 'what is listed is what was written').toEqual({ transactions: 0, commands: 0 });
        }
      }),
      { numRuns: Number(process.env['POLICY_RUNS'] ?? 4) },
    );
    for (const { table } of nodes) await table.cleanUp();
  });

  it('decide as EgressFirewalls do, for random ones', async () => {
    const index = new PolicyIndex('node-1', hash);
    const table = new PolicyTable(new Nft(network.at('node-1').machine.host));
    const { addresses } = network.at('a-1');
    const pod = { ...sideOfPod, addresses: [addresses.IPv4, addresses.IPv6] };
    index.setPod(pod.pod.key, pod);
    const surroundings: FirewallSurroundings = {
      clusterCidrs: ['10.244.0.0/16', 'fd00:244::/32'].flatMap((text) => parseCidr(text) ?? []),
      nodes: nodeNames.map((name) => ({
        labels: { name },
        addresses: [network.at(name).addresses.IPv4, network.at(name).addresses.IPv6],
      })),
      names: new Map([['node-2.example', [network.at('node-2').addresses.IPv6]]]),
    };
    await fc.assert(
      fc.asyncProperty(
        fc.noShrink(fc.array(firewallRule, { minLength: 1, maxLength: 4 })),
        async (egress) => {
          const rules = firewallRules({ metadata: { namespace: 'x', name: 'default' }, spec: { egress } });
          const filter = firewallFilter(rules, surroundings, hash);
          index.setFirewalls(new Map(filter === undefined ? [] : [['x', filter]]));
          await table.sync(index.plan());
          const wrong = await Promise.all(
            ['b-1', 'c-2', ...nodeNames].flatMap((destination) =>
              (['IPv4', 'IPv6'] as const).flatMap((family) =>
                [8080, 8081].map(async (port) => {
                  const destinationAddress = network.at(destination).addresses[family];
                  const connection = { destinationAddress, protocol: 'TCP', port } as const;
                  const { allowed } = firewallVerdict(rules, connection, surroundings);
                  const timeout = allowed ? 10_000 : 300;
                  const outcome = await network.at('a-1').machine.ask(destinationAddress, port, { timeout });
                  return (typeof outcome === 'object') === allowed ? [] : [{ ...connection, allowed }];
                }),
              ),
            ),
          );
          expect(wrong.flat(), JSON.stringify(egress)).toEqual([]);
          table.invalidate();
          expect(await table.sync(index.plan())).toEqual({ transactions: 0, commands: 0 });
        },
      ),
      { numRuns: Number(process.env['POLICY_RUNS'] ?? 4) },
    );
    await table.cleanUp();
  });

  /** @returns where kernel and verdict differ. */
  async function compare(
    now: World,
    source: string,
    destination: string,
    family: 'IPv4' | 'IPv6',
  ): Promise<readonly string[]> {
    const policies = now.policies.map(policyRules);
    const sourceAddress = network.at(source).addresses[family];
    const destinationAddress = network.at(destination).addresses[family];
    const each = await Promise.all(
      (
        [
          ['TCP', 8080],
          ['TCP', 8081],
          ['UDP', 8080],
        ] as const
      ).map(async ([protocol, port]) => {
        // A node answers datagrams of its own Pods from another of its addresses.
        if (protocol === 'UDP' && destination.startsWith('node-')) return [];
        const connection = {
          ...{ source: sideOf(source, now), sourceAddress, destination: sideOf(destination, now) },
          ...{ destinationAddress, protocol, port },
        };
        const isAllowed = (['egress', 'ingress'] as const).every(
          (direction) => directionVerdict(policies, connection, direction).allowed,
        );
        const timeout = isAllowed ? 10_000 : 300;
        const outcome = await network.at(source).machine.ask(destinationAddress, port, { protocol, timeout });
        const isAnswered = typeof outcome === 'object';
        return isAnswered === isAllowed
          ? []
          : [
              `${source} → ${destination} ${family} ${protocol} ${port}: ${isAnswered ? 'an answer' : 'none'}`,
            ];
      }),
    );
    return each.flat();
  }
});

const sideOfPod: Pick<AddressedPod, 'pod'> = {
  pod: {
    ...{ kind: 'pod', key: 'x/a-1', namespace: 'x', namespaceLabels: {}, labels: {}, ports: [] },
    ...{ node: 'node-1', hostNetwork: false },
  },
};

const firewallRule: fc.Arbitrary<EgressFirewallRule> = fc
  .record({
    type: fc.constantFrom('Allow', 'Deny'),
    ports: fc.constantFrom<EgressFirewallRule['ports'][]>(
      undefined,
      [{ protocol: 'TCP', port: 8080 }],
      [{ protocol: 'UDP', port: 8081 }],
    ),
    to: fc.constantFrom<EgressFirewallRule['to']>(
      { cidrSelector: '0.0.0.0/0' },
      { cidrSelector: '::/0' },
      { cidrSelector: '192.0.2.11/32' },
      { cidrSelector: '192.0.2.12/31' },
      { cidrSelector: '2001:db8::/64' },
      { nodeSelector: {} },
      { nodeSelector: { matchLabels: { name: 'node-2' } } },
      { nodeSelector: { matchLabels: { name: 'no-node' } } },
      { dnsName: 'node-2.example.' },
      { dnsName: 'nowhere.example' },
    ),
  })
  .map(({ type, ports, to }) => ({ type, to, ...(ports === undefined ? {} : { ports }) }));

/** What there is at a time. */
interface World {
  readonly namespaces: readonly Namespace[];
  readonly pods: readonly Pod[];
  readonly policies: readonly NetworkPolicy[];
}

function sideOf(name: string, { pods, namespaces }: World): PolicySide {
  const pod = pods.find(({ metadata }) => metadata.name === name);
  if (pod === undefined) return { kind: 'node', name };
  const labels = namespaces.find(({ metadata }) => metadata.name === pod.metadata.namespace)?.metadata.labels;
  return policyPod(pod, labels ?? {});
}

/** Tells an index what came, changed and went. */
function apply(index: PolicyIndex, before: World, after: World): void {
  for (const old of before.pods) index.setPod(keyOf(old), undefined);
  for (const old of before.policies) index.setPolicy(keyOf(old), undefined);
  for (const policy of after.policies) index.setPolicy(keyOf(policy), policyRules(policy));
  for (const pod of after.pods) {
    const side = sideOf(pod.metadata.name ?? '', after);
    const addresses = pod.status.podIPs?.flatMap(({ ip }) => ip) ?? [];
    if (side.kind === 'pod') index.setPod(keyOf(pod), { pod: side, addresses });
  }
}
