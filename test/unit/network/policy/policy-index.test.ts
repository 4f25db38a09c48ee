import fc from 'fast-check';
import { expect, test } from 'vitest';
import { policyRules } from '../../../../src/network/policy/network-policy.ts';
import { PolicyIndex } from '../../../../src/network/policy/policy-index.ts';
import { type FilterRule, type PolicyPlan, selfSets } from '../../../../src/network/policy/policy-plan.ts';
import { parseAddress } from '../../../../src/objects/address.ts';
import { joinKey } from '../../../../src/objects/meta.ts';
import { bruteForce, type BrutePod } from './brute-force.ts';
import { namespaces, podOf, pods, policy, randomPolicy } from './samples.ts';

interface Packet {
  readonly source: string;
  readonly destination: string;
  readonly protocol: string;
  readonly port: number;
}

/** What a kernel with the plan does to a new connection in one direction: the meaning of sets and chains. */
function passes(plan: PolicyPlan, direction: 'ingress' | 'egress', packet: Packet): boolean {
  const { source, destination, protocol, port } = packet;
  const subject = direction === 'ingress' ? destination : source;
  const other = direction === 'ingress' ? source : destination;
  if (source === destination && plan.sets.get(selfSets.IPv4)?.elements.has(source) === true) return true;
  const value = (address: string): bigint => parseAddress(address)?.value ?? 0n;
  const isIn = (name: string): boolean => {
    const { kind, elements } = plan.sets.get(name) ?? expect.unreachable(`no set ${name}`);
    return [...elements].some((element) => {
      if (kind === 'endpoint') return element === `${destination} ${protocol.toLowerCase()} ${port}`;
      if (kind === 'range') {
        const [first = '', last = ''] = element.split('-');
        return value(first) <= value(other) && value(other) <= value(last);
      }
      if (kind === 'port') {
        const [name_, ports = ''] = element.split(' ');
        const [first = 0, last = 0] = ports.split('-').map(Number);
        return name_ === protocol.toLowerCase() && first <= port && port <= last;
      }
      return element === other;
    });
  };
  const decide = (rules: readonly FilterRule[]): boolean | undefined => {
    for (const rule of rules) {
      if (rule.kind === 'drop') return false;
      if (rule.kind === 'policy') {
        const decided = decide(plan.chains.get(rule.chain) ?? expect.unreachable(`no chain ${rule.chain}`));
        if (decided !== undefined) return decided;
      } else if (rule.kind === 'allow' && rule.family !== 'IPv6') {
        const named = [rule.peers, rule.ports, rule.endpoints].flatMap((name) => name ?? []);
        if (named.every(isIn)) return true;
      }
    }
    return undefined;
  };
  const chain = plan.subjects[direction].get(subject);
  return chain === undefined || (decide(plan.chains.get(chain) ?? []) ?? true);
}

function setPod(index: PolicyIndex, pod: BrutePod): void {
  index.setPod(joinKey(pod.namespace, pod.name), { pod: podOf(pod), addresses: [pod.address] });
}

test('a plan lets through what policies allow, in whatever order Pods, policies and labels came', () => {
  const ends: readonly (BrutePod | string)[] = [...pods, '203.0.113.7'];
  const address = (end: BrutePod | string): string => (typeof end === 'string' ? end : end.address);
  fc.assert(
    fc.property(
      fc.array(randomPolicy, { maxLength: 4 }),
      fc.array(randomPolicy, { maxLength: 2 }),
      fc.shuffledSubarray([...pods], { minLength: pods.length }),
      fc.constantFrom(79, 80, 81, 82),
      fc.constantFrom('TCP' as const, 'UDP' as const),
      (policies, former, order, port, protocol) => {
        const index = new PolicyIndex('n1', (text) => Buffer.from(text).toString('hex'));
        // What was there before, and other labels of namespaces, leave nothing behind.
        former.forEach((each, i) => index.setPolicy(joinKey('x', `p${i}`), policyRules(each)));
        for (const pod of order.slice(0, 3)) setPod(index, pod);
        index.setNamespaceLabels('y', { team: 'c' });
        former.forEach((_each, i) => index.setPolicy(joinKey('x', `p${i}`), undefined));
        policies.forEach((each, i) => index.setPolicy(joinKey('x', `p${i}`), policyRules(each)));
        for (const pod of order) setPod(index, pod);
        index.setNamespaceLabels('y', namespaces.y);

        const plan = index.plan();
        for (const source of ends) {
          for (const destination of ends) {
            const packet = { source: address(source), destination: address(destination), protocol, port };
            for (const [direction, type] of [
              ['ingress', 'Ingress'],
              ['egress', 'Egress'],
            ] as const) {
              // What a node sends to its own Pods is not filtered at all.
              const isLocal = typeof source !== 'string' && source.hostNetwork && direction === 'ingress';
              if (isLocal) continue;
              const world = { namespaces, policies };
              expect(passes(plan, direction, packet)).toBe(
                bruteForce(world, type, source, destination, protocol, port),
              );
            }
          }
        }
      },
    ),
    { numRuns: 150 },
  );
});

test('a plan names nothing that is no longer used, and keeps the sets that have not changed', () => {
  const index = new PolicyIndex('n1', (text) => Buffer.from(text).toString('hex'));
  for (const pod of pods) setPod(index, pod);
  const from = [{ podSelector: { matchLabels: { pod: 'a' } } }];
  index.setPolicy(joinKey('x', 'p'), policyRules(policy({ ingress: [{ from }] })));
  const before = index.plan();
  const name = [...before.sets.keys()].find((each) => /^pods-.*-4$/.test(each)) ?? expect.unreachable();
  const [first = expect.unreachable()] = pods;
  setPod(index, { ...first, name: 'z', address: '10.0.1.77', labels: { pod: 'z' } });
  expect(index.plan().sets.get(name)?.elements).toBe(before.sets.get(name)?.elements);
  setPod(index, { ...first, address: '10.0.1.78' });
  expect([...(index.plan().sets.get(name)?.elements ?? [])]).toEqual(['10.0.1.78']);
  index.setPolicy(joinKey('x', 'p'), undefined);
  const { sets, chains, subjects } = index.plan();
  expect([[...sets.keys()], chains.size, subjects.ingress.size]).toEqual([['self-4', 'self-6'], 0, 0]);
});

test('Pods of other nodes, of host networks and without addresses are not filtered', () => {
  const index = new PolicyIndex('n1', (text) => text);
  const [first = expect.unreachable()] = pods;
  setPod(index, { ...first, node: 'n2' });
  setPod(index, { ...first, name: 'host', hostNetwork: true });
  index.setPod('x/waiting', { pod: podOf({ ...first, name: 'waiting' }), addresses: [] });
  index.setPolicy('x/p', policyRules(policy({ ingress: [] })));
  expect(index.plan().subjects.ingress.size).toBe(0);
});

test('an address that goes from one Pod to another at once is that of the other, whose end gives it back', () => {
  const index = new PolicyIndex('n1', (text) => Buffer.from(text).toString('hex'));
  const [a = expect.unreachable(), b = expect.unreachable()] = pods;
  const later = { ...b, address: a.address };
  const from = [{ podSelector: { matchLabels: { pod: 'a' } } }];
  index.setPolicy(
    'x/p',
    policyRules(policy({ podSelector: { matchLabels: { pod: 'a' } }, ingress: [{ from }] })),
  );
  setPod(index, a);
  const held = (): readonly unknown[] => {
    const { sets, subjects } = index.plan();
    const [peers] = [...sets].flatMap(([name, set]) => (/^pods-.*-4$/.test(name) ? [[...set.elements]] : []));
    return [[...subjects.ingress.keys()], peers];
  };
  expect(held()).toEqual([[a.address], [a.address]]);
  setPod(index, later);
  expect(held(), 'before the first is known to be gone').toEqual([[], undefined]);
  index.setPod(joinKey(a.namespace, a.name), {
    pod: podOf({ ...a, labels: { pod: 'a', more: 'b' } }),
    addresses: [a.address],
  });
  expect(held(), 'a change of the first takes nothing back').toEqual([[], undefined]);
  index.setPod(joinKey(b.namespace, b.name), undefined);
  expect(held()).toEqual([[a.address], [a.address]]);
  setPod(index, later);
  index.setPod(joinKey(a.namespace, a.name), undefined);
  expect(held()).toEqual([[], undefined]);
});
