import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PolicyConnection } from '../../../../src/network/policy/network-policy.ts';
import { policyRules } from '../../../../src/network/policy/network-policy.ts';
import { directionVerdict } from '../../../../src/network/policy/policy-verdict.ts';
import type { NetworkPolicy } from '../../../../src/objects/types/networking.generated.ts';
import { bruteForce, type BrutePod, type BruteWorld } from './brute-force.ts';
import { namespaces, pods, policy, randomPolicy, sideOf } from './samples.ts';

function connection(
  source: BrutePod | string,
  destination: BrutePod | string,
  port: number,
  protocol: 'TCP' | 'UDP' = 'TCP',
): PolicyConnection {
  const addressOf = (given: BrutePod | string): string => (typeof given === 'string' ? given : given.address);
  return {
    ...{ source: sideOf(source), sourceAddress: addressOf(source) },
    ...{ destination: sideOf(destination), destinationAddress: addressOf(destination), protocol, port },
  };
}

const [xa = expect.unreachable(), xb = expect.unreachable(), , ya = expect.unreachable()] = pods;

describe('NetworkPolicies', () => {
  const verdict = (
    policies: readonly NetworkPolicy[],
    direction: 'ingress' | 'egress',
    ...given: Parameters<typeof connection>
  ) => directionVerdict(policies.map(policyRules), connection(...given), direction);

  test('that select no Pod isolate none', () => {
    const policies = [policy({ podSelector: { matchLabels: { pod: 'b' } } }), policy({}, 'y')];
    expect(verdict(policies, 'ingress', ya, xa, 80)).toEqual({
      allowed: true,
      reason: 'NotIsolated',
      policies: [],
    });
  });

  test('without rules deny, with an empty rule allow', () => {
    expect(verdict([policy({ ingress: [] })], 'ingress', ya, xa, 80)).toEqual({
      ...{ allowed: false, reason: 'NoRuleMatches', policies: [{ policy: 'x/p', rule: undefined }] },
    });
    expect(verdict([policy({ ingress: [{}] })], 'ingress', ya, xa, 80)).toMatchObject({
      policies: [{ rule: { index: 0, peer: undefined, port: undefined } }],
    });
  });

  test('isolate in the direction that they list, and by default in egress only with rules for it', () => {
    const onlyEgress = policy({ policyTypes: ['Egress'] });
    expect(verdict([onlyEgress], 'ingress', ya, xa, 80).reason).toBe('NotIsolated');
    expect(verdict([onlyEgress], 'egress', xa, ya, 80).reason).toBe('NoRuleMatches');
    expect(verdict([policy({})], 'egress', xa, ya, 80).reason).toBe('NotIsolated');
    expect(verdict([policy({ egress: [{}] })], 'egress', xa, ya, 80).reason).toBe('Allowed');
  });

  test('add up: one rule of one policy is enough, and the verdict names it', () => {
    const from = [
      { ipBlock: { cidr: '10.9.0.0/16' } },
      { namespaceSelector: { matchLabels: { team: 'b' } } },
    ];
    const policies = [
      policy({}, 'x', 'deny'),
      policy({ ingress: [{ from, ports: [{ port: 81 }, { port: 80 }] }] }),
    ];
    expect(verdict(policies, 'ingress', ya, xa, 80)).toEqual({
      allowed: true,
      reason: 'Allowed',
      policies: [
        { policy: 'x/deny', rule: undefined },
        { policy: 'x/p', rule: { index: 0, peer: 1, port: 1 } },
      ],
    });
  });

  test('find a named port in the destination, not in the source', () => {
    const policies = [policy({ ingress: [{ ports: [{ port: 'http' }] }] })];
    expect(verdict(policies, 'ingress', xa, xb, 81).allowed).toBe(true);
    expect(verdict(policies, 'ingress', xb, xa, 81).allowed).toBe(false);
  });

  // Kubernetes' e2e test `network_policy.go`: not all ports if it cannot limit to the requested one.
  test('allow nothing by the name of a port that no container has', () => {
    const policies = [policy({ ingress: [{ ports: [{ port: 'no-such-port' }] }] })];
    for (const port of [80, 81]) expect(verdict(policies, 'ingress', ya, xa, port).allowed).toBe(false);
  });

  test('find no named port in a Pod of the host network, which is an address of its node to them', () => {
    const host = pods.at(-1) ?? expect.unreachable();
    const to = [{ ipBlock: { cidr: '192.168.0.0/16' } }];
    const egress = (port: string | number) => [
      policy({ policyTypes: ['Egress'], egress: [{ to, ports: [{ port }] }] }),
    ];
    expect(verdict(egress('http'), 'egress', xa, host, 89).allowed).toBe(false);
    expect(verdict(egress(89), 'egress', xa, host, 89).allowed).toBe(true);
  });

  test('leave a Pod to itself, its node to it, and Pods of the host network out', () => {
    const policies = [policy({ policyTypes: ['Ingress', 'Egress'] })];
    const host = pods.at(-1) ?? expect.unreachable();
    expect(verdict(policies, 'ingress', xa, xa, 80).reason).toBe('SamePod');
    expect(verdict(policies, 'ingress', host, xa, 80).reason).toBe('OwnNode');
    expect(verdict(policies, 'ingress', { ...host, node: 'n2' }, xa, 80).reason).toBe('NoRuleMatches');
    expect(verdict(policies, 'egress', host, ya, 80).reason).toBe('HostNetwork');
  });

  test('with what does not parse match nothing there, and say so', () => {
    const broken = policyRules(
      policy({
        podSelector: { matchExpressions: [{ key: 'a', operator: 'Near', values: ['b'] }] },
        ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/33' } }] }],
      }),
    );
    expect(broken.problems).toEqual([
      'spec.podSelector: "Near" is not a valid label selector operator; it selects no Pods',
      'spec.ingress[0].from[0].ipBlock.cidr: "10.0.0.0/33" is not a CIDR; it matches nothing',
    ]);
    expect(directionVerdict([broken], connection(ya, xa, 80), 'ingress').reason).toBe('NotIsolated');
  });
});

test('for all pairs of Pods, the verdict is that of a matcher written apart', () => {
  const ends: readonly (BrutePod | string)[] = [...pods, '203.0.113.7'];
  fc.assert(
    fc.property(
      fc.array(randomPolicy, { maxLength: 4 }),
      fc.constantFrom(79, 80, 81, 82),
      fc.constantFrom('TCP' as const, 'UDP' as const),
      (policies, port, protocol) => {
        const world: BruteWorld = { namespaces, policies };
        const parsed = policies.map(policyRules);
        for (const source of ends) {
          for (const destination of ends) {
            const of = connection(source, destination, port, protocol);
            for (const direction of ['Ingress', 'Egress'] as const) {
              const { allowed } = directionVerdict(
                parsed,
                of,
                direction === 'Ingress' ? 'ingress' : 'egress',
              );
              expect(allowed).toBe(bruteForce(world, direction, source, destination, protocol, port));
            }
          }
        }
      },
    ),
    { numRuns: 200 },
  );
});
