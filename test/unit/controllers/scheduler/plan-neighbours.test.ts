import { describe, expect, it } from 'vitest';
import { Occupancy } from '../../../../src/controllers/scheduler/occupancy.ts';
import { placePod } from '../../../../src/controllers/scheduler/plan.ts';
import type {
  Pod,
  PodAffinityTerm,
  TopologySpreadConstraint,
} from '../../../../src/objects/types/core.generated.ts';
import { node, pod } from '../workloads/samples.ts';

const nodes = [
  node('a1', { zone: 'a', host: 'a1' }),
  node('a2', { zone: 'a', host: 'a2' }),
  node('b1', { zone: 'b', host: 'b1' }),
  node('x', { host: 'x' }),
];

function made(
  name: string,
  labels: Readonly<Record<string, string>>,
  spec: Pod['spec'] = {},
  namespace = 'ns',
): Pod {
  const each = pod(name, { phase: 'Pending', spec: { nodeName: '', ...spec } });
  each.metadata = { ...each.metadata, name, namespace, uid: `${namespace}-${name}`, labels: { ...labels } };
  return each;
}

/** Where a Pod may be, by asking node by node; the reasons of the others. */
function allowed(each: Pod, there: Readonly<Record<string, readonly Pod[]>>): { on: string; why: string } {
  const occupancy = new Occupancy();
  for (const [at, pods] of Object.entries(there)) for (const other of pods) occupancy.take(other, at);
  const candidates = nodes.map((one) => occupancy.candidate(one));
  const spaces: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    ns: {},
    team: { kind: 'team' },
  };
  const volumes = (only: string) => ({
    problem: undefined,
    obstacle: (one: { readonly metadata: { readonly name?: string } }) =>
      one.metadata.name === only ? undefined : { reasons: ['another is asked'], isLasting: true },
  });
  const on = nodes.flatMap(({ metadata: { name = '' } }) =>
    'node' in placePod(each, candidates, volumes(name), (space) => spaces[space]) ? [name] : [],
  );
  const placed = placePod(each, candidates, undefined, (space) => spaces[space]);
  const why = 'message' in placed ? placed.message.replace(/ preemption: .*/, '') : '';
  return { on: on.join(' '), why };
}

const near = (...terms: readonly Partial<PodAffinityTerm>[]): Pod['spec'] => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms.map(termOf) } },
});
const apart = (...terms: readonly Partial<PodAffinityTerm>[]): Pod['spec'] => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms.map(termOf) } },
});
const termOf = (term: Partial<PodAffinityTerm>): PodAffinityTerm => ({
  ...{ topologyKey: 'zone', labelSelector: { matchLabels: { app: 'cache' } } },
  ...term,
});
const cache = { app: 'cache' };
const web = { app: 'web' };

describe('required Pod affinity', () => {
  const at = { a1: [made('c', cache)] };
  it.each<[string, Pod, Readonly<Record<string, readonly Pod[]>>, string]>([
    ['leads to the domain of a Pod that it means', made('w', web, near({})), at, 'a1 a2'],
    ['finds none', made('w', web, near({})), {}, ''],
    ['needs none for the first one that means itself', made('c1', cache, near({})), {}, 'a1 a2 b1'],
    ['means Pods of its namespace', made('w', web, near({}), 'team'), at, ''],
    ['may name another namespace', made('w', web, near({ namespaces: ['ns'] }), 'team'), at, 'a1 a2'],
    [
      'may choose namespaces by labels',
      made('w', web, near({ namespaceSelector: { matchLabels: { kind: 'team' } } })),
      { b1: [made('c', cache, {}, 'team')], a1: [made('c', cache)] },
      'b1',
    ],
    ['may mean all namespaces', made('w', web, near({ namespaceSelector: {} }), 'team'), at, 'a1 a2'],
    [
      'needs one Pod that all terms mean',
      made('w', web, near({}, { labelSelector: { matchLabels: { tier: 'hot' } }, topologyKey: 'host' })),
      { a1: [made('c', cache)], b1: [made('h', { ...cache, tier: 'hot' })] },
      'b1',
    ],
  ])('%s', (_, each, there, on) => {
    const found = allowed(each, there);
    expect(found.on).toBe(on);
    if (on === '')
      expect(found.why).toBe("0/4 nodes are available: 4 node(s) didn't match pod affinity rules.");
  });
});

describe('required Pod anti-affinity', () => {
  it('is that of the Pod, and of those that are there', () => {
    expect(allowed(made('w', web, apart({})), { a1: [made('c', cache)] }).on).toBe('b1 x');
    const loner = made('c', cache, apart({ labelSelector: { matchLabels: web } }));
    expect(allowed(made('w', web), { a1: [loner] }).on).toBe('b1 x');
    expect(allowed(made('w', web, {}, 'team'), { a1: [loner] }).on).toBe('a1 a2 b1 x');
    const wide = made('c', cache, apart({ labelSelector: { matchLabels: web }, topologyKey: 'host' }));
    const all = Object.fromEntries(
      ['a1', 'a2', 'b1', 'x'].map((at) => [at, [{ ...wide, metadata: { ...wide.metadata, uid: at } }]]),
    );
    expect(allowed(made('w', web), all).why).toBe(
      "0/4 nodes are available: 4 node(s) didn't satisfy existing pods anti-affinity rules.",
    );
  });
});

describe('topologySpreadConstraints', () => {
  const spread = (constraint: Partial<TopologySpreadConstraint>, more: Pod['spec'] = {}): Pod['spec'] => ({
    ...more,
    topologySpreadConstraints: [
      {
        ...{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' },
        ...{ labelSelector: { matchLabels: web }, ...constraint },
      },
    ],
  });
  const one = { a1: [made('w1', web)] };
  const leaving = made('w1', web);
  leaving.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  it.each<[string, Pod, Readonly<Record<string, readonly Pod[]>>, string]>([
    ['keep the skew, where the label is', made('w', web, spread({})), one, 'b1'],
    ['allow more', made('w', web, spread({ maxSkew: 2 })), one, 'a1 a2 b1'],
    ['count a Pod only that they mean', made('w', cache, spread({})), one, 'a1 a2 b1'],
    ['do not count what is leaving', made('w', web, spread({})), { a1: [leaving] }, 'a1 a2 b1'],
    ['do not count another namespace', made('w', web, spread({}), 'team'), one, 'a1 a2 b1'],
    ['only wish', made('w', web, spread({ whenUnsatisfiable: 'ScheduleAnyway' })), one, 'a1 a2 b1 x'],
    ['want so many domains', made('w', web, spread({ minDomains: 3 })), one, 'b1'],
    [
      'look at the nodes that the Pod may have',
      made('w', web, spread({}, { nodeSelector: { zone: 'a' } })),
      one,
      'a1 a2',
    ],
    [
      'look at all nodes where that is ignored',
      made('w', web, spread({ nodeAffinityPolicy: 'Ignore' }, { nodeSelector: { zone: 'a' } })),
      one,
      '',
    ],
  ])('%s', (_, each, there, on) => {
    expect(allowed(each, there).on).toBe(on);
  });

  it('say so', () => {
    const each = made('w', web, spread({}, { nodeSelector: { host: 'x' } }));
    expect(allowed(each, {}).why).toBe(
      "0/4 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label), 3 node(s) didn't match Pod's node affinity/selector.",
    );
    const selected = made(
      'w',
      web,
      spread({ nodeAffinityPolicy: 'Ignore' }, { nodeSelector: { zone: 'a' } }),
    );
    expect(allowed(selected, one).why).toBe(
      "0/4 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod topology spread constraints.",
    );
  });
});
