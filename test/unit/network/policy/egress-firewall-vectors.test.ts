/**
 * The cases of OVN-Kubernetes' egressfirewall_test.go (pkg/util, pkg/ovn) as verdicts: what the expected ACLs match is
 * asked as connections. Cases about its database (stale ACLs, retries, audit logs) say nothing here.
 */
import { describe, expect, test } from 'vitest';
import { createHash } from 'node:crypto';
import {
  firewallRules,
  type FirewallSurroundings,
  firewallVerdict,
} from '../../../../src/network/policy/egress-firewall.ts';
import { firewallFilter } from '../../../../src/network/policy/egress-firewall.ts';
import { parseCidr } from '../../../../src/objects/address.ts';
import type { EgressFirewallRule } from '../../../../src/objects/types/openshift.ts';

const surroundings = (
  clusterCidrs: readonly string[] = [],
  nodes: FirewallSurroundings['nodes'] = [],
  names: FirewallSurroundings['names'] = new Map(),
): FirewallSurroundings => ({
  clusterCidrs: clusterCidrs.flatMap((text) => parseCidr(text) ?? []),
  nodes,
  names,
});

interface Asked {
  readonly around?: FirewallSurroundings;
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
  readonly port?: number;
  readonly namespace?: string;
}

function allowed(egress: EgressFirewallRule[], destinationAddress: string, asked: Asked = {}): boolean {
  const { around = surroundings(), protocol = 'TCP', port = 80, namespace = 'namespace1' } = asked;
  const rules = firewallRules({ metadata: { namespace, name: 'default' }, spec: { egress } });
  expect(rules.problems).toEqual([]);
  return firewallVerdict(rules, { destinationAddress, protocol, port }, around).allowed;
}

const rule = (
  type: string,
  to: EgressFirewallRule['to'],
  ports?: EgressFirewallRule['ports'],
): EgressFirewallRule => ({
  ...{ type, to },
  ...(ports === undefined ? {} : { ports }),
});
const cidr = (text: string): EgressFirewallRule['to'] => ({ cidrSelector: text });
const deny = (text: string): EgressFirewallRule => rule('Deny', cidr(text));

describe('destinations (TestValidateAndGetEgressFirewallDestination, without the DNS name resolver)', () => {
  test.each([
    ['a DNS name', { dnsName: 'www.example.com' }, undefined],
    [
      'a wildcard',
      { dnsName: '*.example.com' },
      'wildcard dns name is not supported as rule destination, *.example.com',
    ],
    ['a CIDR with host bits', cidr('1.2.3.5/23'), undefined],
    ['an address without a length', cidr('1.2.3.5'), 'invalid CIDR address: 1.2.3.5'],
    ['a CIDR of the cluster', cidr('10.1.1.1/24'), undefined],
    ['a selector', { nodeSelector: { matchLabels: { foo: 'bar' } } }, undefined],
    ['an empty selector', { nodeSelector: {} }, undefined],
    ['half an address', cidr('1.2.3./32'), 'invalid CIDR address: 1.2.3./32'],
    ['an IPv6 CIDR with host bits', cidr('2002::1234:abcd:ffff:c0a8:101/64'), undefined],
  ])('%s', (_what, to: EgressFirewallRule['to'], error) => {
    const { problems } = firewallRules({
      ...{ metadata: { namespace: 'n', name: 'default' }, spec: { egress: [rule('Allow', to)] } },
    });
    const prefix = `cannot create EgressFirewall Rule to destination ${to.cidrSelector ?? ''} for namespace n: `;
    expect(problems).toEqual(error === undefined ? [] : [`${prefix}${error}`]);
  });
});

describe('ports (computes correct L4Match)', () => {
  const cases: readonly (readonly [ports: NonNullable<EgressFirewallRule['ports']>, matched: string])[] = [
    [[{ protocol: 'TCP', port: 100 }], 'TCP 100'],
    // Only where the schema was not there yet: without a port, all of the protocol.
    [[{ protocol: 'TCP', port: 100 }, { protocol: 'UDP' }], 'TCP 100, UDP 13, UDP 100, UDP 102, UDP 400'],
    [
      [
        { protocol: 'TCP', port: 100 },
        { protocol: 'SCTP', port: 13 },
        { protocol: 'TCP', port: 102 },
        { protocol: 'UDP', port: 400 },
      ],
      'TCP 100, TCP 102, UDP 400, SCTP 13',
    ],
  ];
  test.each(cases)('%j are %s', (ports, matched) => {
    const egress = [rule('Deny', cidr('0.0.0.0/0'), ports)];
    const denied = (['TCP', 'UDP', 'SCTP'] as const).flatMap((protocol) =>
      [13, 100, 102, 400]
        .filter((port) => !allowed(egress, '1.2.3.4', { protocol, port }))
        .map((port) => `${protocol} ${port}`),
    );
    expect(denied.join(', ')).toBe(matched);
    const rules = firewallRules({ metadata: { namespace: 'n', name: 'default' }, spec: { egress } });
    const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
    const [set] = [...(firewallFilter(rules, surroundings(), hash)?.sets ?? [])].flatMap(([name, each]) =>
      name.startsWith('ports-') ? [each] : [],
    );
    const inSet = (protocol: string, port: number): boolean =>
      [...(set?.elements ?? [])].some((element) => {
        const [of = '', range = ''] = element.split(' ');
        const [first = 0, last = first] = range.split('-').map(Number);
        return of === protocol.toLowerCase() && first <= port && port <= last;
      });
    expect(
      (['TCP', 'UDP', 'SCTP'] as const)
        .flatMap((protocol) =>
          [13, 100, 102, 400].filter((port) => inSet(protocol, port)).map((port) => `${protocol} ${port}`),
        )
        .join(', '),
    ).toBe(matched);
  });
});

describe('matches (computes correct match function)', () => {
  const v4 = ['10.128.0.0/14'];
  const names = new Map([['both.example', ['192.0.2.7', '2001:db8::7']]]);
  test.each([
    ['one address', deny('1.2.3.4/32'), v4, ['1.2.3.4'], ['1.2.3.5', '2001::1']],
    [
      'a name in both families',
      rule('Deny', { dnsName: 'both.example' }),
      v4,
      ['192.0.2.7', '2001:db8::7'],
      ['192.0.2.8', '2001:db8::8'],
    ],
    ['an IPv6 CIDR', deny('2001::/64'), v4, ['2001::1', '2001::ffff:1'], ['2001:0:0:1::1', '1.2.3.4']],
    [
      'an IPv6 CIDR around the cluster',
      deny('2002::/16'),
      ['2002:0:0:1234::/64'],
      ['2002::1'],
      ['2002:0:0:1234::9', '2003::1'],
    ],
    [
      'all of IPv4, around the cluster',
      deny('0.0.0.0/0'),
      v4,
      ['1.2.3.4', '10.127.255.255', '10.132.0.0'],
      ['10.128.0.0', '10.131.255.255', '2001::1'],
    ],
    ['a CIDR inside the cluster', deny('10.129.0.0/16'), v4, [], ['10.129.0.1', '1.2.3.4']],
  ] as const)('%s', (_what, of, cluster, denied, passing) => {
    const around = surroundings(cluster, [], names);
    for (const address of denied) expect(allowed([of], address, { around }), address).toBe(false);
    for (const address of passing) expect(allowed([of], address, { around }), address).toBe(true);
  });
});

describe('objects', () => {
  const node = (name: string, address: string, labels: Record<string, string> = {}) => ({
    ...{ labels: { name, ...labels }, addresses: [address, `2001:db8::${name}`] },
  });
  const infra = rule('Allow', { nodeSelector: { matchLabels: { role: 'infra' } } });

  test('with an IPv4 CIDR with host bits match its network, all protocols', () => {
    const egress = [deny('1.2.3.4/23')];
    expect(allowed(egress, '1.2.2.0', { protocol: 'SCTP' })).toBe(false);
    expect(allowed(egress, '1.2.3.255', { protocol: 'UDP' })).toBe(false);
    expect(allowed(egress, '1.2.4.0')).toBe(true);
  });

  test('with an IPv6 CIDR match that', () => {
    const egress = [rule('Allow', cidr('2002::1234:abcd:ffff:c0a8:101/64')), deny('::/0')];
    expect([allowed(egress, '2002:0:0:1234::5'), allowed(egress, '2002::5')]).toEqual([true, false]);
  });

  test('deny UDP on port 100 alone', () => {
    const egress = [rule('Deny', cidr('1.2.3.4/23'), [{ protocol: 'UDP', port: 100 }])];
    expect(allowed(egress, '1.2.3.9', { protocol: 'UDP', port: 100 })).toBe(false);
    expect(allowed(egress, '1.2.3.9', { protocol: 'UDP', port: 101 })).toBe(true);
    expect(allowed(egress, '1.2.3.9', { protocol: 'TCP', port: 100 })).toBe(true);
  });

  test('that are updated from Allow to Deny deny, and without rules allow', () => {
    expect(allowed([rule('Allow', cidr('1.2.3.4/23'))], '1.2.3.4')).toBe(true);
    expect(allowed([deny('1.2.3.4/23')], '1.2.3.4')).toBe(false);
    expect(allowed([], '1.2.3.4')).toBe(true);
  });

  test('of a namespace with a long name work', () => {
    expect(allowed([deny('1.2.3.4/32')], '1.2.3.4', { namespace: 'n'.repeat(63) })).toBe(false);
  });

  test('leave the ranges of the cluster out, however wide the rule', () => {
    const around = surroundings(['10.128.0.0/14', '10.0.0.0/16']);
    expect(allowed([deny('10.0.0.0/8')], '10.130.1.1', { around })).toBe(true);
    expect(allowed([deny('10.0.0.0/8')], '10.0.7.7', { around })).toBe(true);
    expect(allowed([deny('10.0.0.0/8')], '10.9.9.9', { around })).toBe(false);
  });

  test('with a selector match all addresses of its Nodes, which come and go with their labels', () => {
    const egress = [infra, deny('0.0.0.0/0'), deny('::/0')];
    const one = surroundings([], [node('1', '9.9.9.9', { role: 'infra' }), node('2', '8.8.8.8')]);
    expect(
      ['9.9.9.9', '2001:db8::1', '8.8.8.8', '2001:db8::2'].map((to) => allowed(egress, to, { around: one })),
    ).toEqual([true, true, false, false]);
    const other = surroundings([], [node('1', '9.9.9.9'), node('2', '8.8.8.8', { role: 'infra' })]);
    expect(['9.9.9.9', '8.8.8.8'].map((to) => allowed(egress, to, { around: other }))).toEqual([false, true]);
  });

  test('with a selector of no Node pass that rule over', () => {
    const around = surroundings([], [node('1', '9.9.9.9')]);
    const none = rule('Deny', { nodeSelector: { matchLabels: { role: 'infra' } } });
    expect(allowed([none], '9.9.9.9', { around })).toBe(true);
    expect(allowed([infra, deny('0.0.0.0/0')], '9.9.9.9', { around })).toBe(false);
  });

  test('with an empty selector match all Nodes, and nothing else', () => {
    const around = surroundings([], [node('1', '9.9.9.9'), node('2', '8.8.8.8')]);
    const egress = [rule('Deny', { nodeSelector: {} })];
    expect(['9.9.9.9', '8.8.8.8', '7.7.7.7'].map((to) => allowed(egress, to, { around }))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('with a DNS name match its addresses, but none of the cluster', () => {
    const names = new Map([['api.example', ['192.0.2.1', '10.128.3.3']]]);
    const around = surroundings(['10.128.0.0/14'], [], names);
    const egress = [rule('Deny', { dnsName: 'api.example.' })];
    expect(allowed(egress, '192.0.2.1', { around })).toBe(false);
    expect(allowed(egress, '10.128.3.3', { around })).toBe(true);
  });

  test('take the first rule that matches, of any kind', () => {
    const names = new Map([['api.example', ['192.0.2.1']]]);
    const around = surroundings([], [node('1', '192.0.2.1', { role: 'infra' })], names);
    const name = rule('Deny', { dnsName: 'api.example' });
    expect(allowed([name, infra], '192.0.2.1', { around })).toBe(false);
    expect(allowed([infra, name], '192.0.2.1', { around })).toBe(true);
  });
});
