import { describe, expect, test } from 'vitest';
import {
  type EgressRouterPlan,
  readEgressRouter,
  redirectOf,
} from '../../../../src/network/egress/egress-router.ts';
import type { JsonRecord } from '../../../../src/objects/json.ts';

function configWith(ip: JsonRecord, more: JsonRecord = {}): JsonRecord {
  return {
    ...{ cniVersion: '0.4.0', type: 'egress-router', name: 'nad' },
    ip: { addresses: ['192.0.2.10/24'], gateway: '192.0.2.1', ...ip },
    ...more,
  };
}

function planOf(ip: JsonRecord, more?: JsonRecord): EgressRouterPlan {
  const plan = readEgressRouter(configWith(ip, more));
  if ('problem' in plan) throw new Error(plan.problem);
  return plan;
}

function problemOf(ip: JsonRecord, more?: JsonRecord): string {
  const plan = readEgressRouter(configWith(ip, more));
  return 'problem' in plan ? plan.problem : '';
}

// The example of egress-router-cni's docs: https://github.com/openshift/egress-router-cni
const documented = ['80 UDP 10.100.3.0', '8080 TCP 203.0.113.26 80', '8443 TCP 203.0.113.27 443'];

describe('where a port leads', () => {
  const cases: readonly (readonly [
    protocol: 'TCP' | 'UDP' | 'SCTP',
    port: number,
    withoutFallback: string,
    withFallback: string,
  ])[] = [
    ['UDP', 80, '10.100.3.0:80 rule', '10.100.3.0:80 rule'],
    ['TCP', 8080, '203.0.113.26:80 rule', '203.0.113.26:80 rule'],
    ['TCP', 8443, '203.0.113.27:443 rule', '203.0.113.27:443 rule'],
    // The port alone is not enough.
    ['TCP', 80, 'rejected', '203.0.113.9:80 fallback'],
    ['UDP', 8080, 'rejected', '203.0.113.9:8080 fallback'],
    ['SCTP', 8080, 'rejected', '203.0.113.9:8080 fallback'],
    // The target port is none to connect to.
    ['TCP', 443, 'rejected', '203.0.113.9:443 fallback'],
  ];
  const said = (plan: EgressRouterPlan, protocol: 'TCP' | 'UDP' | 'SCTP', port: number): string => {
    const verdict = redirectOf(plan, protocol, port);
    if (verdict.verdict === 'rejected') return 'rejected';
    return `${verdict.destination}:${verdict.port} ${verdict.by}`;
  };

  test.each(cases)('%s %i', (protocol, port, withoutFallback, withFallback) => {
    expect(said(planOf({ destinations: documented }), protocol, port)).toBe(withoutFallback);
    const plan = planOf({ destinations: documented, fallbackIP: '203.0.113.9' });
    expect(said(plan, protocol, port)).toBe(withFallback);
  });

  test('everything leads to the fallback where there are no rules, and nothing without one', () => {
    expect(said(planOf({ destinations: [], fallbackIP: '203.0.113.9' }), 'SCTP', 1)).toBe(
      '203.0.113.9:1 fallback',
    );
    expect(said(planOf({}), 'TCP', 80)).toBe('rejected');
  });

  test('the first of two rules decides, and a destination alone is for every port behind it', () => {
    const destinations = ['80 TCP 203.0.113.1', '80 TCP 203.0.113.2', '203.0.113.3'];
    const plan = planOf({ destinations, fallbackIP: '203.0.113.9' });
    expect(said(plan, 'TCP', 80)).toBe('203.0.113.1:80 rule');
    expect(said(plan, 'TCP', 81)).toBe('203.0.113.3:81 fallback');
  });
});

test('only the first address counts, with its family', () => {
  expect(
    planOf({
      ...{ addresses: ['2001:DB8::0:5/64', '192.0.2.9/24'], gateway: '2001:db8::1' },
      destinations: ['80 tcp 2001:db8:1::1'],
    }),
  ).toEqual({
    ...{ family: 'IPv6', address: '2001:db8::5', prefixLength: 64, gateway: '2001:db8::1', mode: 'bridge' },
    redirects: [{ match: { protocol: 'TCP', port: 80 }, destination: '2001:db8:1::1' }],
  });
});

test('interfaceArgs are read', () => {
  expect(planOf({}, { interfaceArgs: { master: 'eth1', mode: 'private' } })).toMatchObject({
    ...{ master: 'eth1', mode: 'private' },
  });
});

describe('what the plugin fails with', () => {
  const cases: readonly (readonly [ip: JsonRecord, problem: string])[] = [
    [{ addresses: [] }, 'unable to parse IP address "": invalid CIDR address'],
    [{ addresses: [''] }, 'unable to parse IP address "": invalid CIDR address'],
    [{ addresses: ['192.0.2.10'] }, 'unable to parse IP address "192.0.2.10": invalid CIDR address'],
    [{ gateway: '' }, 'no route to the gateway "": it is no IPv4 address'],
    [{ gateway: '2001:db8::1' }, 'no route to the gateway "2001:db8::1": it is no IPv4 address'],
    [{ fallbackIP: '2001:db8::1' }, 'invalid fallbackIP "2001:db8::1" of a router with an IPv4 address'],
  ];
  test.each(cases)('%j', (ip, problem) => {
    expect(problemOf(ip)).toBe(problem);
  });

  test.each([
    ...['0 TCP 203.0.113.1', '80 ICMP 203.0.113.1', '80 TCP 2001:db8::1', '80 TCP 203.0.113.1 65536'],
    ...['80 TCP', '80 TCP 203.0.113.1 1 2', 'x', ''],
  ])('the destination "%s"', (text) => {
    const problem = `invalid destination "${text}" of a router with an IPv4 address`;
    expect(problemOf({ destinations: [text] })).toBe(problem);
  });

  test('ipvlan', () => {
    const problem = 'there is no interfaceType "ipvlan": only macvlan';
    expect(problemOf({}, { interfaceType: 'ipvlan' })).toBe(problem);
  });
});
