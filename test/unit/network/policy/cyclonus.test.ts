/**
 * Cyclonus' kinds of cases (pkg/generator: targets, peers, ports and protocols, rules, conflicts) in its cluster:
 * namespaces x, y and z with the Pods a, b and c, which listen on 80 and 81 by TCP, UDP and SCTP. The answers are those of
 * a matcher written apart, for every pair of Pods and an address outside.
 */
import { describe, expect, test } from 'vitest';
import { policyRules } from '../../../../src/network/policy/network-policy.ts';
import { directionVerdict } from '../../../../src/network/policy/policy-verdict.ts';
import type { LabelSelector } from '../../../../src/objects/meta.ts';
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicySpec,
} from '../../../../src/objects/types/networking.generated.ts';
import { bruteForce, type BrutePod, type BruteWorld } from './brute-force.ts';

const protocols = ['TCP', 'UDP', 'SCTP'] as const;
const numbers = [80, 81] as const;
const letters = ['x', 'y', 'z'] as const;
const namespaces = Object.fromEntries(letters.map((ns) => [ns, { ns }]));
const pods: readonly BrutePod[] = letters.flatMap((namespace, i) =>
  ['a', 'b', 'c'].map((name, k) => ({
    ...{ namespace, name, labels: { pod: name }, address: `192.168.${i}.${k + 1}`, node: `n${k}` },
    hostNetwork: false,
    ports: protocols.flatMap((protocol) =>
      numbers.map((containerPort) => ({
        ...{ name: `serve-${containerPort}-${protocol.toLowerCase()}`, protocol, containerPort },
      })),
    ),
  })),
);
const ends: readonly (BrutePod | string)[] = [...pods, '203.0.113.7'];

function side(end: BrutePod | string) {
  if (typeof end === 'string') return { kind: 'other' } as const;
  const { namespace, name, labels, node, hostNetwork, ports } = end;
  return {
    ...{ kind: 'pod' as const, key: `${namespace}/${name}`, namespace, labels, node, hostNetwork },
    namespaceLabels: namespaces[namespace] ?? {},
    ports: ports.map((each) => ({ name: each.name, protocol: each.protocol, port: each.containerPort })),
  };
}

const addressOf = (end: BrutePod | string): string => (typeof end === 'string' ? end : end.address);
const sides = ends.map((end) => ({ end, side: side(end), address: addressOf(end) }));

/** Whether the verdict is the matcher's for every connection; how many are allowed, so that a case says something. */
function compare(policies: readonly NetworkPolicy[]): number {
  const world: BruteWorld = { namespaces, policies };
  const parsed = policies.map(policyRules);
  let count = 0;
  const wrong: string[] = [];
  for (const from of sides) {
    for (const to of sides) {
      for (const protocol of protocols) {
        for (const port of numbers) {
          const connection = {
            ...{ source: from.side, sourceAddress: from.address, destination: to.side },
            ...{ destinationAddress: to.address, protocol, port },
          };
          for (const direction of ['Ingress', 'Egress'] as const) {
            const ours = directionVerdict(parsed, connection, direction === 'Ingress' ? 'ingress' : 'egress');
            if (ours.allowed) count++;
            if (ours.allowed !== bruteForce(world, direction, from.end, to.end, protocol, port)) {
              wrong.push(`${direction} ${from.address} ${to.address} ${protocol} ${port}`);
            }
          }
        }
      }
    }
  }
  expect(wrong).toEqual([]);
  return count;
}

const policy = (spec: Partial<NetworkPolicySpec>, namespace = 'x', name = 'base'): NetworkPolicy => ({
  metadata: { namespace, name },
  spec: { podSelector: { matchLabels: { pod: 'a' } }, ...spec },
});
/** A rule in one direction or the other. */
const rules = (
  peers: NetworkPolicyPeer[],
  ports: NetworkPolicyPort[],
): readonly Partial<NetworkPolicySpec>[] => [
  { policyTypes: ['Ingress'], ingress: [{ from: peers, ports }] },
  { policyTypes: ['Egress'], egress: [{ to: peers, ports }] },
];

const selectors = (
  key: string,
  [first, second]: readonly [string, string],
): readonly (LabelSelector | undefined)[] => [
  undefined,
  {},
  { matchLabels: { [key]: first } },
  { matchExpressions: [{ key, operator: 'In', values: [first, second] }] },
  { matchExpressions: [{ key, operator: 'NotIn', values: [first] }] },
  { matchExpressions: [{ key, operator: 'Exists' }] },
  { matchExpressions: [{ key, operator: 'DoesNotExist' }] },
];
const blocks: readonly NetworkPolicyPeer[] = [
  { ipBlock: { cidr: '192.168.0.0/16' } },
  { ipBlock: { cidr: '192.168.1.0/24', except: ['192.168.1.2/32'] } },
  { ipBlock: { cidr: '0.0.0.0/0', except: ['192.168.0.0/16'] } },
];
const peers: readonly NetworkPolicyPeer[] = [
  ...selectors('pod', ['a', 'b']).flatMap((podSelector) =>
    selectors('ns', ['x', 'y']).flatMap((namespaceSelector) =>
      podSelector === undefined && namespaceSelector === undefined
        ? []
        : [
            {
              ...(podSelector === undefined ? {} : { podSelector }),
              ...(namespaceSelector === undefined ? {} : { namespaceSelector }),
            },
          ],
    ),
  ),
  ...blocks,
];
const ports: readonly NetworkPolicyPort[] = [
  ...protocols.flatMap((protocol): NetworkPolicyPort[] => [
    { protocol },
    { protocol, port: 80 },
    { protocol, port: 79, endPort: 80 },
    { protocol, port: 80, endPort: 81 },
    { protocol, port: `serve-81-${protocol.toLowerCase()}` },
    { protocol, port: 'serve-80-nothing' },
  ]),
  { port: 81 },
];
const all = pods.length * pods.length * protocols.length * numbers.length;

describe("cyclonus' cases", () => {
  test('targets: namespaces and selectors of Pods', () => {
    for (const namespace of letters) {
      for (const podSelector of selectors('pod', ['a', 'b'])) {
        for (const types of [['Ingress'], ['Egress'], ['Ingress', 'Egress']]) {
          const spec = {
            podSelector: podSelector ?? { matchLabels: { pod: 'nothing' } },
            policyTypes: types,
          };
          expect(compare([policy(spec, namespace)])).toBeGreaterThan(all);
        }
      }
    }
  });

  test('peers: selectors of Pods, of namespaces and of both, and blocks', () => {
    for (const peer of peers) for (const spec of rules([peer], [])) compare([policy(spec)]);
    for (const [i, peer] of peers.entries()) {
      const other = peers[(i * 7 + 3) % peers.length] ?? expect.unreachable();
      for (const spec of rules([peer, other], [{ protocol: 'UDP', port: 80 }])) compare([policy(spec)]);
    }
  });

  test('ports and protocols: numbers, names, ranges and pairs of them', () => {
    for (const port of ports) {
      for (const spec of rules([], [port])) compare([policy(spec)]);
      for (const other of ports.slice(0, 5))
        for (const spec of rules([], [port, other])) compare([policy(spec)]);
    }
  });

  test('rules: none, empty ones and several', () => {
    const from = [{ podSelector: { matchLabels: { pod: 'b' } } }];
    const counts = [
      { policyTypes: ['Ingress'] },
      { policyTypes: ['Ingress'], ingress: [] },
      { policyTypes: ['Ingress'], ingress: [{}] },
      { policyTypes: ['Ingress'], ingress: [{ from: [], ports: [] }] },
      { policyTypes: ['Ingress'], ingress: [{ from }, { ports: [{ port: 80 }] }] },
      { policyTypes: ['Egress'] },
      { policyTypes: ['Egress'], egress: [{}] },
      { egress: [{}] },
      { ingress: [{}], egress: [{ to: from }] },
      {},
    ].map((spec) => compare([policy(spec)]));
    expect(counts[0]).toBe(counts[1]);
    expect(counts[2]).toBe(counts[3]);
    expect(counts[1]).toBeLessThan(counts[2] ?? 0);
  });

  test('conflicts: a policy that denies beside one that allows, in either order, on either side', () => {
    const denying = [
      policy({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] }, 'x', 'deny-x'),
      policy({ podSelector: {}, policyTypes: ['Ingress'] }, 'y', 'deny-y'),
      policy({ policyTypes: ['Egress'] }, 'x', 'deny-a'),
    ];
    const allowing = [
      policy(
        { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{}], egress: [{}] },
        'x',
        'allow-x',
      ),
      policy(
        { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports: [{ port: 80 }] }] },
        'y',
        'allow-y',
      ),
      ...rules([{ namespaceSelector: { matchLabels: { ns: 'y' } } }], [{ port: 81 }]).map((spec) =>
        policy(spec, 'x', 'allow-a'),
      ),
    ];
    for (const deny of denying) {
      for (const allow of allowing) {
        expect(compare([deny, allow])).toBe(compare([allow, deny]));
      }
    }
  });
});
