/** The packets, blocks and ports of kube-network-policies' networkpolicy_test.go, with its answers. */
import { describe, expect, test } from 'vitest';
import { policyPod } from '../../../../src/network/policy/network-policy.ts';
import { policyRules } from '../../../../src/network/policy/network-policy.ts';
import { directionVerdict } from '../../../../src/network/policy/policy-verdict.ts';
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicySpec,
} from '../../../../src/objects/types/networking.generated.ts';

const ab = { matchLabels: { a: 'b' } };

/** Only the namespaces foo and bar are known, and have labels. */
function pod(name: string, namespace: string, labels: Record<string, string>) {
  const ports = [{ name: 'http', containerPort: 80, protocol: 'TCP' }];
  return policyPod(
    { metadata: { name, namespace, labels }, spec: { containers: [{ name: 'c', ports }] }, status: {} },
    namespace === 'blocked' ? {} : { a: 'b' },
  );
}

const pods = {
  a: { side: pod('a', 'foo', { a: 'b' }), address: '192.168.1.11' },
  b: { side: pod('b', 'bar', { a: 'b' }), address: '192.168.2.22' },
  c: { side: pod('c', 'blocked', { c: 'd' }), address: '192.168.3.33' },
  d: { side: pod('d', 'bar', { c: 'd' }), address: '192.168.4.44' },
  outside: { side: { kind: 'other' } as const, address: '10.0.0.1' },
};

const policy = (namespace: string, spec: Partial<NetworkPolicySpec>): NetworkPolicy => ({
  metadata: { namespace, name: JSON.stringify(spec) },
  spec: { podSelector: {}, ...spec },
});
const denyIngress = policy('bar', { policyTypes: ['Ingress'] });
const denyEgress = policy('bar', { policyTypes: ['Egress'] });
const allowIngress = policy('bar', { policyTypes: ['Ingress'], ingress: [{}] });
const emptyIngress = policy('bar', { policyTypes: ['Ingress'], ingress: [] });
const block = { ipBlock: { cidr: '192.168.0.0/16' } };
const blockIngress = policy('bar', { policyTypes: ['Ingress'], ingress: [{ from: [block] }] });
const egress = (rule: { to?: NetworkPolicyPeer[]; ports?: NetworkPolicyPort[] }): NetworkPolicy =>
  policy('foo', { podSelector: ab, policyTypes: ['Egress'], egress: [rule] });
const high = egress({ ports: [{ protocol: 'TCP', port: 30_000, endPort: 65_537 }], to: [] });
const toBlock = egress({ to: [block] });
const toPods = egress({ to: [{ podSelector: ab }] });
const toNamespaces = egress({ to: [{ namespaceSelector: ab }] });
const toBoth = egress({ to: [{ podSelector: ab, namespaceSelector: ab }] });
const fromBoth = policy('bar', {
  ...{ podSelector: ab, policyTypes: ['Ingress'] },
  ingress: [{ from: [{ podSelector: ab, namespaceSelector: ab }] }],
});

function reaches(
  policies: readonly NetworkPolicy[],
  from: keyof typeof pods,
  to: keyof typeof pods,
  port: number,
  protocol: 'TCP' | 'UDP' = 'TCP',
): boolean {
  const connection = {
    ...{ source: pods[from].side, sourceAddress: pods[from].address },
    ...{ destination: pods[to].side, destinationAddress: pods[to].address, protocol, port },
  };
  const rules = policies.map(policyRules);
  return (['egress', 'ingress'] as const).every(
    (direction) => directionVerdict(rules, connection, direction).allowed,
  );
}

describe('packets', () => {
  test.each([
    ['no network policy', [], 'a', 'b', 80, true],
    ['deny ingress', [denyIngress], 'a', 'b', 80, false],
    ['deny egress', [denyEgress], 'b', 'a', 80, false],
    ['deny egress on reply does not have effect', [denyEgress], 'a', 'b', 80, true],
    ['allow all override deny ingress', [denyIngress, allowIngress], 'a', 'b', 80, true],
    // There, a list without rules that is not nil allows all: no server stores one. Here it denies, as the API says.
    ['an empty list of rules', [denyIngress, emptyIngress], 'a', 'b', 80, false],
    ['ip block override deny ingress', [denyIngress, blockIngress], 'a', 'b', 80, true],
    ['ip block deny ingress', [blockIngress], 'outside', 'b', 80, false],
    ['multiport deny egress port', [denyEgress, high], 'a', 'b', 80, false],
    ['multiport allow egress port', [denyEgress, high], 'a', 'b', 30_080, true],
    ['multiport allow egress', [denyEgress, high, toBlock], 'a', 'b', 80, true],
    ['multiport allow egress port selector not match ns', [denyEgress, high, toPods], 'a', 'b', 80, false],
    [
      'multiport allow egress port selector not match pod selector',
      [denyEgress, high, toPods],
      'a',
      'c',
      80,
      false,
    ],
    ['multiport allow egress ns selector', [denyEgress, high, toNamespaces], 'a', 'b', 80, true],
    ['multiport allow egress ns selector fail', [denyEgress, high, toNamespaces], 'a', 'c', 80, false],
    ['multiport allow egress ns and pod selector', [denyEgress, high, toBoth], 'a', 'b', 80, true],
    ['multiport allow egress ns and pod selector fail', [denyEgress, high, toBoth], 'a', 'c', 80, false],
    ['multiport allow ingress ns and pod selector', [denyIngress, fromBoth], 'a', 'b', 80, true],
    ['multiport allow ingress ns and pod selector fail', [denyIngress, fromBoth], 'a', 'd', 80, false],
  ] as const)('%s', (_name, policies, from, to, port, expected) => {
    expect(reaches(policies, from, to, port)).toBe(expected);
  });
});

describe('blocks', () => {
  test.each([
    ['match cidr', '192.168.1.0/24', [], true],
    ['no match cidr', '10.0.0.0/24', [], false],
    ['match cidr and not except', '192.168.0.0/16', ['192.168.2.0/24'], true],
    ['match cidr and except', '192.168.0.0/16', ['192.168.1.0/24'], false],
  ] as const)('%s', (_name, cidr, except, expected) => {
    const from = [{ ipBlock: { cidr, except: [...except] } }];
    expect(reaches([policy('bar', { ingress: [{ from }] })], 'a', 'b', 80)).toBe(expected);
  });
});

describe('ports', () => {
  const port = (protocol: string, number: number | string, endPort?: number): NetworkPolicyPort[] => [
    { protocol, port: number, ...(endPort === undefined ? {} : { endPort }) },
  ];
  test.each([
    ['empty', [], 'TCP', 30_000, true],
    ['match TCP', port('TCP', 30_000), 'TCP', 30_000, true],
    ['match UDP', port('UDP', 30_000), 'UDP', 30_000, true],
    ['no match TCP', port('TCP', 30_000), 'TCP', 138, false],
    ['no match UDP', port('UDP', 30_000), 'UDP', 138, false],
    ['match TCP range', port('TCP', 30_000, 65_537), 'TCP', 30_138, true],
    ['match UDP range', port('UDP', 30_000, 65_537), 'UDP', 30_138, true],
    ['no match TCP range', port('TCP', 30_000, 65_537), 'TCP', 138, false],
    ['no match UDP range', port('UDP', 30_000, 65_537), 'UDP', 138, false],
    ['match TCP named port', port('TCP', 'http'), 'TCP', 80, true],
    ['no match UDP named port', port('UDP', 'http'), 'TCP', 80, false],
  ] as const)('%s', (_name, ports, protocol, number, expected) => {
    expect(reaches([policy('bar', { ingress: [{ ports: [...ports] }] })], 'a', 'b', number, protocol)).toBe(
      expected,
    );
  });
});
