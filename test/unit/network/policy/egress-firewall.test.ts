import { describe, expect, test } from 'vitest';
import {
  firewallRules,
  type FirewallSurroundings,
  firewallVerdict,
} from '../../../../src/network/policy/egress-firewall.ts';
import { parseCidr } from '../../../../src/objects/address.ts';
import type { EgressFirewallRule } from '../../../../src/objects/types/openshift.ts';

const surroundings: FirewallSurroundings = {
  clusterCidrs: [parseCidr('10.128.0.0/14') ?? expect.unreachable()],
  nodes: [{ labels: { role: 'infra' }, addresses: ['192.168.0.5'] }],
  names: new Map([['www.example.com', ['198.51.100.7']]]),
};

function firewall(egress: EgressFirewallRule[], name = 'default') {
  return firewallRules({ metadata: { namespace: 'shop', name }, spec: { egress } });
}

function verdict(egress: EgressFirewallRule[], destinationAddress: string, port = 443) {
  return firewallVerdict(firewall(egress), { destinationAddress, protocol: 'TCP', port }, surroundings);
}

const denyAll: EgressFirewallRule = { type: 'Deny', to: { cidrSelector: '0.0.0.0/0' } };
const allow = (to: EgressFirewallRule['to']): EgressFirewallRule => ({ type: 'Allow', to });

describe('an EgressFirewall', () => {
  test('is decided by the first rule that matches, however wide', () => {
    const rules = [denyAll, allow({ cidrSelector: '198.51.100.7/32' })];
    expect(verdict(rules, '198.51.100.7')).toEqual({ allowed: false, reason: 'RuleMatches', rule: 0 });
    expect(verdict(rules.toReversed(), '198.51.100.7')).toMatchObject({ allowed: true, rule: 0 });
  });

  test('allows what no rule matches', () => {
    expect(verdict([{ ...denyAll, to: { cidrSelector: '2001:db8::/32' } }], '198.51.100.7').reason).toBe(
      'NoRuleMatches',
    );
  });

  test('never is about the network of Pods, but about nodes', () => {
    expect(verdict([denyAll], '10.129.0.3')).toMatchObject({ allowed: true, reason: 'InClusterNetwork' });
    expect(verdict([denyAll], '192.168.0.5').allowed).toBe(false);
    expect(
      verdict([allow({ nodeSelector: { matchLabels: { role: 'infra' } } }), denyAll], '192.168.0.5').rule,
    ).toBe(0);
    expect(
      verdict([allow({ nodeSelector: { matchLabels: { role: 'web' } } }), denyAll], '192.168.0.5').rule,
    ).toBe(1);
  });

  test('knows names by their addresses, in any case and with a dot at the end', () => {
    expect(verdict([allow({ dnsName: 'WWW.example.com.' }), denyAll], '198.51.100.7').rule).toBe(0);
    expect(verdict([allow({ dnsName: 'example.org' }), denyAll], '198.51.100.7').rule).toBe(1);
  });

  test('with ports is about these alone', () => {
    const rule = {
      ...denyAll,
      ports: [
        { protocol: 'UDP', port: 53 },
        { protocol: 'TCP', port: 25 },
      ],
    };
    expect(verdict([rule], '198.51.100.7', 25).allowed).toBe(false);
    expect(verdict([rule], '198.51.100.7', 53).allowed).toBe(true);
    expect(verdict([{ ...denyAll, ports: [{ protocol: 'xUDPx', port: 443 }] }], '198.51.100.7').allowed).toBe(
      true,
    );
  });

  test('denies with every type but Allow', () => {
    expect(verdict([{ ...denyAll, type: 'AllowAll' }], '198.51.100.7').allowed).toBe(false);
  });

  test.each([
    [
      [denyAll, allow({ cidrSelector: '10.0.0.0' })],
      'cannot create EgressFirewall Rule to destination 10.0.0.0 for namespace shop: invalid CIDR address: 10.0.0.0',
    ],
    [
      [denyAll, allow({ dnsName: '*.example.com' })],
      'cannot create EgressFirewall Rule to destination  for namespace shop: wildcard dns name is not supported as rule destination, *.example.com',
    ],
    [
      [denyAll, allow({})],
      'cannot create EgressFirewall Rule to destination  for namespace shop: one of cidrSelector, dnsName and nodeSelector is required',
    ],
    [
      [denyAll, allow({ nodeSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } })],
      'cannot create EgressFirewall Rule to destination  for namespace shop: rule destination has invalid node selector, err: "Near" is not a valid label selector operator',
    ],
  ])('with one rule that does not parse is not in force at all', (rules, problem) => {
    expect(firewall(rules).problems).toEqual([problem]);
    expect(verdict(rules, '198.51.100.7')).toEqual({ allowed: true, reason: 'NotInForce', rule: undefined });
  });

  test('of another name, or with more than 8001 rules, is not in force', () => {
    expect(firewall([denyAll], 'mine').problems).toEqual(['an EgressFirewall has to be called default']);
    expect(firewall(Array.from({ length: 8001 }, () => denyAll)).problems).toEqual([]);
    expect(firewall(Array.from({ length: 8002 }, () => denyAll)).problems).toEqual([
      'egressFirewall for namespace shop has too many rules, max allowed number is 8000',
    ]);
  });
});
