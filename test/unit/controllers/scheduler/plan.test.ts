import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Occupancy } from '../../../../src/controllers/scheduler/occupancy.ts';
import { placePod } from '../../../../src/controllers/scheduler/plan.ts';
import type { Node, Pod } from '../../../../src/objects/types/core.generated.ts';
import { node, pod } from '../workloads/samples.ts';

const zone = 'topology.kubernetes.io/zone';

function pending(name: string, spec: Pod['spec'] = {}): Pod {
  return pod(name, { phase: 'Pending', spec: { nodeName: '', ...spec } });
}

function place(each: Pod, nodes: readonly Node[], occupancy = new Occupancy()): string {
  const candidates = nodes.map((candidate) => occupancy.candidate(candidate));
  const placement = placePod(each, candidates);
  return 'node' in placement ? placement.node : placement.message;
}

describe('placePod', () => {
  it('spreads over zones, and over the nodes of a zone', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 40 }),
        (zones, perZone, count) => {
          const nodes = Array.from({ length: zones * perZone }, (_, i) =>
            node(`n${i}`, { [zone]: `z${i % zones}` }),
          );
          const occupancy = new Occupancy();
          const perNode = new Map<string, number>(nodes.map(({ metadata }) => [metadata.name ?? '', 0]));
          for (let i = 0; i < count; i++) {
            const each = pending(`p${i}`);
            const chosen = place(each, nodes, occupancy);
            occupancy.take(each, chosen);
            perNode.set(chosen, (perNode.get(chosen) ?? 0) + 1);
          }
          const spread = (counts: readonly number[]): number => Math.max(...counts) - Math.min(...counts);
          const perZoneCounts = Array.from({ length: zones }, (_, z) =>
            nodes
              .filter(({ metadata }) => metadata.labels?.[zone] === `z${z}`)
              .reduce((sum, { metadata }) => sum + (perNode.get(metadata.name ?? '') ?? 0), 0),
          );
          expect(spread(perZoneCounts)).toBeLessThanOrEqual(1);
          expect(spread([...perNode.values()])).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 50 },
    );
  });

  it.each<[string, Pod['spec'], string]>([
    ['a node selector', { nodeSelector: { disk: 'fast' } }, 'fast'],
    [
      'required node affinity',
      {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'disk', operator: 'In', values: ['slow'] }] },
                { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['fast'] }] },
              ],
            },
          },
        },
      },
      'fast',
    ],
    [
      'a toleration',
      { tolerations: [{ key: 'gpu', operator: 'Exists' }], nodeSelector: { gpu: 'yes' } },
      'gpu',
    ],
    ['no toleration', { nodeSelector: { gpu: 'yes' } }, '1 node(s) had untolerated taint(s)'],
    ['a cordon', { nodeSelector: { off: 'yes' } }, '1 node(s) were unschedulable'],
    [
      'nothing that fits',
      { nodeSelector: { none: '' } },
      "2 node(s) didn't match Pod's node affinity/selector",
    ],
  ])('follows %s', (_name, spec, expected) => {
    const nodes = [
      node('plain'),
      node('fast', { disk: 'fast' }),
      node('gpu', { gpu: 'yes' }, { taints: [{ key: 'gpu', value: 'true', effect: 'NoSchedule' }] }),
      node('off', { off: 'yes' }, { unschedulable: true }),
    ];
    expect(place(pending('p', spec), nodes)).toContain(expected);
  });

  it('keeps Pods apart that want to be, also those that were placed a moment ago', () => {
    const apart: Pod['spec'] = {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: 'kubernetes.io/hostname' },
          ],
        },
      },
    };
    const nodes = [node('a'), node('b')];
    const occupancy = new Occupancy();
    const placed = ['p', 'q', 'r'].map((name) => {
      const each = pending(name, apart);
      const chosen = place(each, nodes, occupancy);
      if (chosen.length === 1) occupancy.take(each, chosen);
      return chosen;
    });
    expect(placed).toEqual([
      'a',
      'b',
      "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
    ]);
  });

  it.each<[string, object, object, boolean]>([
    ['the same port', {}, {}, false],
    ['another port', {}, { hostPort: 81 }, true],
    ['another protocol', {}, { protocol: 'UDP' }, true],
    ['the same port of all addresses and of one', { hostIP: '0.0.0.0' }, { hostIP: '127.0.0.1' }, false],
    ['the same port of two addresses', { hostIP: '127.0.0.2' }, { hostIP: '127.0.0.1' }, true],
  ])('puts Pods on one node by their host ports: %s', (_, first, second, fits) => {
    const withPort = (name: string, port: object, list: 'containers' | 'initContainers'): Pod => {
      const ports = [{ containerPort: 80, hostPort: 80, protocol: 'TCP', ...port }];
      const restartPolicy = list === 'initContainers' ? { restartPolicy: 'Always' } : {};
      return pending(name, { [list]: [{ name: 'c', image: 'x', ports, ...restartPolicy }] });
    };
    for (const list of ['containers', 'initContainers'] as const) {
      const occupancy = new Occupancy();
      const taker = withPort('p', first, list);
      occupancy.take(taker, 'a');
      const other = withPort('q', second, 'containers');
      expect(placed(other, occupancy)).toMatch(
        fits
          ? /^a$/
          : /^0\/1 nodes are available: 1 node\(s\) didn't have free ports for the requested pod ports\. /,
      );
      occupancy.leave(taker.metadata.uid ?? '');
      expect(placed(other, occupancy)).toBe('a');
    }

    function placed(each: Pod, occupancy: Occupancy): string {
      return place(each, [node('a')], occupancy);
    }
  });

  it('fills no node beyond its number of Pods, and says when there is no node', () => {
    const small = node('small');
    small.status.allocatable = { pods: '2' };
    const occupancy = new Occupancy();
    const placed = ['p', 'q', 'r'].map((name) => {
      const each = pending(name);
      const chosen = place(each, [small], occupancy);
      if (chosen === 'small') occupancy.take(each, chosen);
      return chosen;
    });
    expect(placed).toEqual([
      'small',
      'small',
      '0/1 nodes are available: 1 Too many pods. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
    ]);
    expect(place(pending('p'), [])).toBe('no nodes available to schedule pods');
  });

  it('gives away no more of a resource than a node has, and gives it again when a Pod has left', () => {
    const small = node('small');
    small.status.allocatable = { pods: '110', cpu: '2', memory: '1Gi' };
    const occupancy = new Occupancy();
    const asks = (requests: Record<string, string>): Pod['spec'] => ({
      containers: [{ name: 'c', resources: { requests } }],
    });
    const first = pending('first', asks({ cpu: '1500m', memory: '512Mi' }));
    expect(place(first, [small], occupancy)).toBe('small');
    occupancy.take(first, 'small');
    const [most, fits, foreign] = [
      pending('most', asks({ cpu: '501m', memory: '600Mi' })),
      pending('fits', asks({ cpu: '0.5', memory: '512Mi' })),
      pending('foreign', asks({ 'example.com/dongle': '1' })),
    ];
    expect(place(most, [small], occupancy)).toMatch(
      /^0\/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory\. /,
    );
    expect(place(fits, [small], occupancy)).toBe('small');
    expect(place(foreign, [small], occupancy)).toContain('1 Insufficient example.com/dongle');
    occupancy.leave(first.metadata.uid ?? '');
    expect(place(most, [small], occupancy)).toBe('small');
  });
});

describe('the words for a Pod that fits nowhere', () => {
  const asks = (requests: Record<string, string>, more: Pod['spec'] = {}): Pod['spec'] => ({
    containers: [{ name: 'c', resources: { requests } }],
    ...more,
  });
  const sized = (name: string, cpu: string): Node => {
    const each = node(name);
    each.status.allocatable = { pods: '110', cpu };
    return each;
  };
  const nodes = [
    sized('a', '2'),
    sized('b', '1'),
    node('t', {}, { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }),
  ];
  const named = (...values: string[]): Pod['spec'] => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values }] }],
        },
      },
    },
  });
  // By kube-scheduler 1.36: fit.go (Unresolvable), default_preemption.go and FitError.Error, for nodes as above with a Pod
  // of 1 CPU and priority 0 on a, and one with host port 80 and priority 5 on b.
  it.each<[string, Pod['spec'], string]>([
    [
      'more than a node has, less than another has',
      asks({ cpu: '1500m' }),
      '0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.',
    ],
    [
      'more than any node has',
      asks({ cpu: '64' }),
      '0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.',
    ],
    [
      'a policy that never preempts',
      asks({ cpu: '64' }, { preemptionPolicy: 'Never' }),
      '0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.',
    ],
    [
      'a node by its name, as of a DaemonSet',
      { ...asks({ cpu: '2' }), ...named('a') },
      "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
    ],
    [
      'names that cannot be',
      named(),
      '0/3 nodes are available: pod affinity terms conflict. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.',
    ],
    [
      'a Pod of a lower priority in the way',
      asks({ cpu: '1500m' }, { priority: 1 }),
      '0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: not simulated, Pods of a lower priority stay.',
    ],
    [
      'a Pod of a lower priority, and one of a higher one',
      {
        ...named('b'),
        containers: [{ name: 'c', image: 'x', ports: [{ containerPort: 80, hostPort: 80 }] }],
        priority: 5,
      },
      "0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: 0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 2 Preemption is not helpful for scheduling.",
    ],
  ])('%s', (_, spec, message) => {
    const occupancy = new Occupancy();
    occupancy.take(pending('small', asks({ cpu: '1' })), 'a');
    occupancy.take(pending('low', { priority: 1 }), 'b');
    const containers = [{ name: 'c', image: 'x', ports: [{ containerPort: 80, hostPort: 80 }] }];
    occupancy.take(pending('port', { containers, priority: 5 }), 'b');
    expect(place(pending('p', spec), nodes, occupancy)).toBe(message);
  });

  it('of its volumes', () => {
    const candidates = nodes.map((each) => new Occupancy().candidate(each));
    const problem = 'pod has unbound immediate PersistentVolumeClaims';
    expect(placePod(pending('p'), candidates, { problem, obstacle: () => undefined })).toEqual({
      message: `0/3 nodes are available: ${problem}. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.`,
    });
  });
});

describe('Occupancy', () => {
  it('counts each Pod once, however often it is seen and wherever it was promised a seat', () => {
    const operations = fc.array(
      fc.tuple(fc.constantFrom('take', 'observe', 'finish', 'leave'), fc.nat(4), fc.nat(2)),
    );
    fc.assert(
      fc.property(operations, (steps) => {
        const occupancy = new Occupancy();
        const seats = new Map<string, string>();
        for (const [what, which, where] of steps) {
          const target = `n${where}`;
          const uid = `uid-p${which}`;
          const each = pod(`p${which}`, { spec: { nodeName: target } });
          if (what === 'take') occupancy.take(each, target);
          else if (what === 'observe') occupancy.observe(each);
          else if (what === 'finish')
            occupancy.observe(pod(`p${which}`, { phase: 'Succeeded', spec: { nodeName: target } }));
          else occupancy.leave(uid);
          if (what === 'take' || what === 'observe') seats.set(uid, target);
          else seats.delete(uid);
          for (const name of ['n0', 'n1', 'n2']) {
            const expected = [...seats.values()].filter((seat) => seat === name).length;
            expect(occupancy.candidate(node(name)).pods).toBe(expected);
          }
          expect(occupancy.has(uid)).toBe(seats.has(uid));
        }
      }),
    );
  });
});
