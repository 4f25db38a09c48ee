import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dscpFor, marksOf, qosRules } from '../../../../src/network/egress/egress-plan.ts';
import type { PolicyPod } from '../../../../src/network/policy/network-policy.ts';
import { parseAddress, parseCidr } from '../../../../src/objects/address.ts';
import type { EgressQoS, EgressQoSRule } from '../../../../src/objects/types/openshift.ts';

function qos(egress: EgressQoSRule[], name = 'default'): EgressQoS {
  return {
    ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressQoS', metadata: { name, namespace: 'shop' } },
    spec: { egress },
  };
}

function pod(app: string, hostNetwork = false): PolicyPod {
  return {
    ...{ kind: 'pod', key: `shop/${app}`, namespace: 'shop', namespaceLabels: {} },
    ...{ labels: { app }, node: 'n1', hostNetwork, ports: [] },
  };
}

/** The value and the rule, as `46 by 0`. */
function decided(rules: EgressQoSRule[], of: PolicyPod, to: string): string {
  const [address, read] = [parseAddress(to), qosRules(qos(rules))];
  const found = address && read && dscpFor(of, address, read);
  return found === undefined ? 'none' : `${found.dscp} by ${found.rule}`;
}

const web = { matchLabels: { app: 'web' } };

describe('the DSCP value of a packet', () => {
  test.each<[string, EgressQoSRule[], PolicyPod, string, string]>([
    [
      'is that of the first rule that matches',
      [{ dscp: 46 }, { dscp: 10 }],
      pod('web'),
      '1.1.1.1',
      '46 by 0',
    ],
    [
      'is that of the rule with the destination',
      [
        { dscp: 46, dstCIDR: '1.1.0.0/16' },
        { dscp: 10, dstCIDR: '2.0.0.0/8' },
      ],
      ...[pod('web'), '2.1.1.1', '10 by 1'],
    ] as [string, EgressQoSRule[], PolicyPod, string, string],
    ['is 0 where a rule says 0', [{ dscp: 0 }, { dscp: 10 }], pod('web'), '1.1.1.1', '0 by 0'],
    ['is of both families without a destination', [{ dscp: 46 }], pod('web'), '2001:db8::1', '46 by 0'],
    ['is of its own family alone with one', [{ dscp: 46, dstCIDR: '0.0.0.0/0' }], pod('web'), '::1', 'none'],
    ['is that of rules that select the Pod', [{ dscp: 46, podSelector: web }], pod('db'), '1.1.1.1', 'none'],
    [
      'is that of all Pods with an empty selector',
      [{ dscp: 46, podSelector: {} }],
      pod('db'),
      '1.1.1.1',
      '46 by 0',
    ],
    ['is none for the host network', [{ dscp: 46 }], pod('web', true), '1.1.1.1', 'none'],
    ['is none without a rule', [], pod('web'), '1.1.1.1', 'none'],
  ])('%s', (_, rules, of, to, wanted) => {
    expect(decided(rules, of, to)).toBe(wanted);
  });

  test('is none by an object of another name', () => {
    expect(qosRules(qos([{ dscp: 46 }], 'other'))).toBeUndefined();
  });

  test.each<[string, EgressQoSRule[], string]>([
    ['a CIDR that is none', [{ dscp: 1 }, { dscp: 2, dstCIDR: '1.1.1.1' }], 'invalid CIDR address: 1.1.1.1'],
    [
      'a selector that is none',
      [{ dscp: 2, podSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } }],
      'spec.egress[0].podSelector',
    ],
    [
      'more than 1000 rules',
      Array.from({ length: 1001 }, () => ({ dscp: 1 })),
      'cannot create EgressQoS with 1001 rules - maximum is 1000',
    ],
  ])('%s keeps all rules out of force', (_, rules, problem) => {
    const read = qosRules(qos(rules));
    expect(read?.rules).toEqual([]);
    expect(read?.problems).toEqual([expect.stringContaining(problem)]);
  });

  test('by the list for a Pod is the same', () => {
    const cidr = fc.constantFrom('10.0.0.0/8', '10.1.0.0/16', '0.0.0.0/0', '2001:db8::/32', '::/0');
    const rule = fc.record(
      { dscp: fc.integer({ min: 0, max: 63 }), dstCIDR: cidr, podSelector: fc.constantFrom(web, {}) },
      { requiredKeys: ['dscp'] },
    );
    const address = fc.constantFrom('10.1.2.3', '10.2.2.3', '192.0.2.1', '2001:db8::1', '2001:dead::1');
    fc.assert(
      fc.property(
        fc.array(rule, { maxLength: 6 }),
        fc.constantFrom('web', 'db'),
        address,
        (rules, app, to) => {
          const [read, parsed] = [qosRules(qos(rules)), parseAddress(to)];
          if (read === undefined || parsed === undefined) throw new Error('not read');
          const first = marksOf(pod(app), parsed.family, read).find(
            (mark) => mark.to === undefined || contains(mark.to.canonical, to),
          );
          expect(first?.dscp).toBe(dscpFor(pod(app), parsed, read)?.dscp);
        },
      ),
    );
  });
});

function contains(cidr: string, address: string): boolean {
  const [range, parsed] = [parseCidr(cidr), parseAddress(address)];
  if (range === undefined || parsed?.family !== range.family) return false;
  const bits = BigInt((range.family === 'IPv4' ? 32 : 128) - range.prefixLength);
  return range.network >> bits === parsed.value >> bits;
}
