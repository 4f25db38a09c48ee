import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { planEgress } from '../../../../src/network/egress/egress-plan.ts';
import { egressChoice, egressRules } from '../../../../src/network/egress/egress-plan.ts';
import type { PolicyPod } from '../../../../src/network/policy/network-policy.ts';
import { parseCidr } from '../../../../src/objects/address.ts';
import type { EgressIP } from '../../../../src/objects/types/openshift.ts';

function egressIP(
  name: string,
  spec: Partial<EgressIP['spec']>,
  items: Readonly<Record<string, string>>,
  creationTimestamp = '2026-01-01T00:00:00Z',
): EgressIP {
  return {
    ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressIP', metadata: { name, creationTimestamp } },
    spec: { egressIPs: Object.keys(items), namespaceSelector: {}, ...spec },
    status: { items: Object.entries(items).map(([ip, node]) => ({ egressIP: ip, node })) },
  };
}

function pod(name: string, more: Partial<PolicyPod> = {}): PolicyPod {
  return {
    ...{ kind: 'pod', key: `shop/${name}`, namespace: 'shop', namespaceLabels: { team: 'shop' } },
    ...{ labels: { app: name }, node: 'n1', hostNetwork: false, ports: [] },
    ...more,
  };
}

describe('the EgressIP of a Pod', () => {
  const selecting = (app: string): Partial<EgressIP['spec']> => ({
    podSelector: { matchLabels: { app } },
  });

  test.each<[string, PolicyPod, readonly EgressIP[], string | undefined, readonly string[]]>([
    [
      'is none without a match',
      pod('b'),
      [egressIP('one', selecting('a'), { '1.1.1.1': 'n1' })],
      undefined,
      [],
    ],
    [
      'is that whose namespace and labels match, both',
      pod('a'),
      [
        egressIP(
          'other',
          { namespaceSelector: { matchLabels: { team: 'x' } }, ...selecting('a') },
          { '1.1.1.1': 'n1' },
        ),
        egressIP('own', { namespaceSelector: { matchLabels: { team: 'shop' } } }, { '1.1.1.2': 'n1' }),
      ],
      'own',
      [],
    ],
    [
      'is the oldest; the others stand by',
      pod('a'),
      [
        egressIP('young', {}, { '1.1.1.1': 'n1' }, '2026-02-01T00:00:00Z'),
        egressIP('old', {}, { '1.1.1.2': 'n1' }, '2026-01-01T00:00:00Z'),
      ],
      'old',
      ['young'],
    ],
    [
      'is none that has no address',
      pod('a'),
      [egressIP('old', {}, {}), egressIP('young', {}, { '1.1.1.1': 'n1' }, '2026-02-01T00:00:00Z')],
      'young',
      [],
    ],
    [
      'is none for the host network',
      pod('a', { hostNetwork: true }),
      [egressIP('one', {}, { '1.1.1.1': 'n1' })],
      undefined,
      [],
    ],
  ])('%s', (_, of, objects, servedBy, standby) => {
    const choice = egressChoice(of, egressRules(objects));
    expect([choice.servedBy?.name, choice.standby]).toEqual([servedBy, standby]);
  });

  test('with a selector that does not parse is none, which is said', () => {
    const said: string[] = [];
    const broken = egressIP(
      'bad',
      { namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } },
      { '1.1.1.1': 'n1' },
    );
    expect(egressChoice(pod('a'), egressRules([broken], said)).servedBy).toBeUndefined();
    expect(said).toEqual([expect.stringMatching(/^bad: spec\.namespaceSelector: .*; no Pod is selected$/)]);
  });
});

describe('the plan of a node', () => {
  const cidrs = (...texts: readonly string[]) => texts.flatMap((text) => parseCidr(text) ?? []);
  const nodes = ['n1', 'n2', 'n3'].map((name, index) => ({
    name,
    podCIDRs: cidrs(`10.244.${index}.0/24`),
    addresses: [`192.0.2.${index + 1}`],
  }));

  test('without EgressIPs that have addresses is empty', () => {
    const input = {
      qos: new Map(),
      nodeName: 'n1',
      nodes,
      clusterCIDRs: [],
      pods: [{ pod: pod('a'), addresses: ['10.244.0.2'] }],
    };
    for (const rules of [[], egressRules([egressIP('one', {}, {})])]) {
      expect(planEgress({ ...input, rules })).toEqual({
        leave: new Map(),
        sources: new Map(),
        inside: [],
        marks: new Map(),
        standbys: new Map(),
      });
    }
  });

  test('says of Pods of the node which EgressIPs stand by', () => {
    const rules = egressRules([
      egressIP('one', {}, { '1.1.1.1': 'n1' }),
      egressIP('two', {}, { '1.1.1.2': 'n2' }),
    ]);
    const pods = ['n1', 'n2'].map((node, index) => ({
      pod: pod(node, { node }),
      addresses: [`10.244.${index}.2`],
    }));
    const { standbys } = planEgress({
      nodeName: 'n1',
      qos: new Map(),
      rules,
      nodes,
      clusterCIDRs: [],
      pods,
    });
    expect([...standbys]).toEqual([['shop/n1', { servedBy: 'one', standby: ['two'] }]]);
  });

  test('takes Pods and nodes as inside, in both families', () => {
    const { inside } = planEgress({
      ...{
        nodeName: 'n1',
        rules: egressRules([egressIP('one', {}, { '1.1.1.1': 'n1' })]),
        pods: [],
        qos: new Map(),
      },
      nodes: [
        {
          name: 'n1',
          podCIDRs: cidrs('10.244.0.0/24', 'fd00::/64'),
          addresses: ['192.0.2.1', '2001:db8::1'],
        },
      ],
      clusterCIDRs: cidrs('10.244.0.0/16'),
    });
    expect(inside).toEqual([
      '10.244.0.0/16',
      '10.244.0.0/24',
      '192.0.2.1/32',
      '2001:db8::1/128',
      'fd00::/64',
    ]);
  });

  test('an address of two Pods is that of the later one, even if no EgressIP selects it', () => {
    const rules = egressRules([
      egressIP('one', { podSelector: { matchLabels: { app: 'a' } } }, { '1.1.1.1': 'n1' }),
    ]);
    const both = [pod('a'), pod('b')].map((each) => ({ pod: each, addresses: ['10.244.0.2'] }));
    const plan = planEgress({ nodeName: 'n1', qos: new Map(), rules, nodes, clusterCIDRs: [], pods: both });
    expect(plan.sources.size).toBe(0);
  });

  test('all together give each connection one way out and one source: that of the node by which it leaves', () => {
    const names = nodes.map(({ name }) => name);
    const node = fc.constantFrom(...names, 'gone');
    const address = fc.constantFrom('1.1.1.1', '1.1.1.2', '1.1.1.3', '2001:db8::1', '2001:db8::2');
    const object = fc.record({
      app: fc.constantFrom('a', 'b'),
      items: fc.dictionary(address, node, { maxKeys: 3 }),
    });
    const ofPod = fc.record({ app: fc.constantFrom('a', 'b', 'c'), node: fc.constantFrom(...names) });
    fc.assert(
      fc.property(fc.array(object, { maxLength: 4 }), fc.array(ofPod, { maxLength: 6 }), (objects, some) => {
        const rules = egressRules(
          objects.map(({ app, items }, index) =>
            egressIP(`e${index}`, { podSelector: { matchLabels: { app } } }, items),
          ),
        );
        const pods = some.map((one, index) => ({
          pod: pod(one.app, { node: one.node }),
          addresses: [`10.244.9.${index}`, `fd00::${index + 1}`],
        }));
        const plans = new Map(
          names.map((nodeName) => [
            nodeName,
            planEgress({ nodeName, qos: new Map(), rules, pods, nodes, clusterCIDRs: [] }),
          ]),
        );
        for (const { pod: of, addresses } of pods) {
          const chosen = rules.find(
            (rule, index) => objects[index]?.app === of.labels['app'] && rule.exits.length > 0,
          );
          for (const own of addresses) {
            const family = own.includes(':') ? 'IPv6' : 'IPv4';
            const exits = (chosen?.exits ?? []).filter(
              (exit) => exit.family === family && exit.node !== 'gone',
            );
            const ways = plans.get(of.node)?.leave.get(own) ?? (exits.length > 0 ? [of.node] : []);
            expect(new Set(ways)).toEqual(new Set(exits.map((exit) => exit.node)));
            for (const name of names) {
              const source = plans.get(name)?.sources.get(own);
              expect(source === undefined).toBe(!ways.includes(name));
              if (source !== undefined) expect(exits).toContainEqual({ address: source, family, node: name });
            }
          }
        }
      }),
    );
  });
});
