import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  planDaemonSet,
  planDaemonSetStatus,
} from '../../../../../src/controllers/workloads/daemon-sets/plan.ts';
import type { DaemonSet } from '../../../../../src/objects/types/apps.generated.ts';
import type { Node, Pod, PodSpec } from '../../../../../src/objects/types/core.generated.ts';
import { node, now, pod } from '../samples.ts';

function daemonSet(
  rollingUpdate: { maxUnavailable?: number; maxSurge?: number } = { maxUnavailable: 1 },
): DaemonSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'ns', uid: 'u', generation: 2 },
    spec: {
      selector: { matchLabels: { app: 'agent' } },
      template: { metadata: { labels: { app: 'agent' } }, spec: { containers: [{ name: 'main' }] } },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate },
    },
    status: {},
  };
}

function daemon(nodeName: string, hash: string, traits: { ready?: boolean; serial?: number } = {}): Pod {
  return pod(`agent-${nodeName}-${hash}-${traits.serial ?? 0}`, {
    labels: { app: 'agent', 'controller-revision-hash': hash },
    spec: { nodeName },
    ...(traits.ready === undefined ? {} : { ready: traits.ready }),
  });
}

/** Runs plans until nothing is left to do; returns the fewest ready and the most Pods on the way. */
function roll(
  set: DaemonSet,
  nodes: readonly Node[],
  start: readonly Pod[],
): { pods: Pod[]; fewest: number; most: number } {
  let pods = [...start];
  let fewest = nodes.length;
  let most = pods.length;
  for (let i = 0; i < 100; i++) {
    const { create, remove } = planDaemonSet({ daemonSet: set, pods, nodes, hash: 'new', now });
    if (create.length === 0 && remove.length === 0) return { pods, fewest, most };
    pods = pods.filter((each) => !remove.includes(each));
    for (const draft of create) {
      const terms =
        draft.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
      const target = terms?.[0]?.matchFields?.[0]?.values?.[0] ?? '';
      pods.push(
        daemon(target, draft.metadata.labels?.['controller-revision-hash'] ?? '', {
          ready: false,
          serial: i,
        }),
      );
    }
    const isReady = (each: Pod): boolean => each.status.conditions?.[0]?.status === 'True';
    fewest = Math.min(fewest, pods.filter(isReady).length);
    most = Math.max(most, pods.length);
    // Nothing more is begun while those are not ready, beyond what the budget allows.
    pods = pods.map((each) =>
      isReady(each)
        ? each
        : daemon(each.spec.nodeName ?? '', each.metadata.labels?.['controller-revision-hash'] ?? '', {
            serial: i,
          }),
    );
  }
  throw new Error('the update does not end');
}

describe('planDaemonSet', () => {
  it('updates every node and never lacks the daemon on more than it may', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 9 }), (count, maxUnavailable) => {
        const nodes = Array.from({ length: count }, (_, i) => node(`n${i}`));
        const old = nodes.map(({ metadata }) => daemon(metadata.name ?? '', 'old'));
        const { pods, fewest } = roll(daemonSet({ maxUnavailable }), nodes, old);
        expect(fewest).toBeGreaterThanOrEqual(Math.max(0, count - maxUnavailable));
        expect(pods.map(({ spec }) => spec.nodeName).sort()).toEqual(
          nodes.map(({ metadata }) => metadata.name).sort(),
        );
        expect(pods.every(({ metadata }) => metadata.labels?.['controller-revision-hash'] === 'new')).toBe(
          true,
        );
      }),
    );
  });

  it('with a surge never lacks it at all', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 9 }), (count, surge) => {
        const nodes = Array.from({ length: count }, (_, i) => node(`n${i}`));
        const old = nodes.map(({ metadata }) => daemon(metadata.name ?? '', 'old'));
        const { pods, fewest, most } = roll(daemonSet({ maxUnavailable: 0, maxSurge: surge }), nodes, old);
        expect(fewest).toBe(count);
        expect(most).toBeLessThanOrEqual(count + surge);
        expect(pods).toHaveLength(count);
      }),
    );
  });

  it('runs where it tolerates the taints, and leaves where it does not', () => {
    const nodes = [
      node('plain'),
      node(
        'cordoned',
        {},
        { unschedulable: true, taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] },
      ),
      node('special', {}, { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }),
      node('bad', {}, { taints: [{ key: 'broken', effect: 'NoExecute' }] }),
    ];
    const bad = daemon('bad', 'new');
    const special = daemon('special', 'new');
    const { create, remove } = planDaemonSet({
      daemonSet: daemonSet(),
      pods: [bad, special],
      nodes,
      hash: 'new',
      now,
    });
    expect(create).toHaveLength(2);
    expect(remove).toEqual([bad]);
  });
});

describe('the Pods of planDaemonSet', () => {
  const planOf = (set: DaemonSet, pods: readonly Pod[], nodes: readonly Node[] = [node('a')]) =>
    planDaemonSet({ daemonSet: set, pods, nodes, hash: 'new', now });
  const withTemplate = (spec: PodSpec): DaemonSet => {
    const set = daemonSet();
    return { ...set, spec: { ...set.spec, template: { ...set.spec.template, spec } } };
  };

  it('are meant for one node, whatever terms the template has', () => {
    const nodeSelectorTerms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'Exists' }] }];
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
    const { create } = planOf(withTemplate({ affinity: { nodeAffinity } }), []);
    expect(create[0]?.spec?.affinity).toEqual({
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }],
        },
      },
    });
  });

  it('are for the node that the template names, if it names one', () => {
    const { create, remove } = planOf(
      withTemplate({ nodeName: 'b' }),
      [daemon('a', 'new')],
      [node('a'), node('b')],
    );
    expect(create).toHaveLength(1);
    expect(remove.map(({ spec }) => spec.nodeName)).toEqual(['a']);
  });

  it('tolerate for ever what the template tolerates for a time, and no network in their node’s', () => {
    const timed = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };
    const own = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' };
    const tolerations = [{ ...timed, tolerationSeconds: 30 }, own];
    const { create } = planOf(withTemplate({ hostNetwork: true, tolerations }), []);
    const made = create[0]?.spec?.tolerations ?? [];
    expect(made.slice(0, 3)).toEqual([timed, own, { ...own, operator: 'Exists' }]);
    expect(made.at(-1)?.key).toBe('node.kubernetes.io/network-unavailable');
    expect(made).toHaveLength(8);
  });

  it('are labelled with the generation of the template where the server counts it', () => {
    const set = daemonSet();
    set.metadata.annotations = { 'deprecated.daemonset.template.generation': '3' };
    expect(planOf(set, []).create[0]?.metadata.labels).toEqual({
      app: 'agent',
      'pod-template-generation': '3',
      'controller-revision-hash': 'new',
    });
  });

  it('go when they ended, or wait for a node that is gone', () => {
    const failed = { ...daemon('a', 'new'), status: { phase: 'Failed' } };
    expect(planOf(daemonSet(), [failed])).toMatchObject({
      create: [],
      remove: [failed],
      ended: [{ pod: failed, node: 'a' }],
    });
    const term = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['gone'] }] };
    const affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } },
    };
    const waiting = pod('waiting', { phase: 'Pending', spec: { nodeName: '', affinity } });
    const bound = daemon('gone', 'new', { serial: 1 });
    expect(planOf(daemonSet(), [daemon('a', 'new'), waiting, bound]).remove).toEqual([waiting]);
  });

  it('are replaced at once with a surge where they leave or are not ready', () => {
    const surge = daemonSet({ maxUnavailable: 0, maxSurge: 1 });
    const leaving = pod('leaving', { leaving: true, spec: { nodeName: 'a' } });
    expect(planOf(surge, [leaving]).create).toHaveLength(1);
    expect(planOf(daemonSet(), [leaving]).create).toHaveLength(0);
    const nodes = [node('a'), node('b'), node('c')];
    const old = nodes.map(({ metadata }) => daemon(metadata.name ?? '', 'old', { ready: false }));
    expect(planOf(surge, old, nodes).create).toHaveLength(3);
    const [first] = old;
    const fresh = daemon('a', 'new', { ready: false });
    expect(planOf(surge, [...old.slice(0, 1), fresh]).remove).toEqual([first]);
  });
});

describe('planDaemonSetStatus', () => {
  it('looks at the oldest Pod of a node', () => {
    const fresh = daemon('a', 'new', { ready: false });
    const old = pod('old', { age: 190, spec: { nodeName: 'a' } });
    const input = { daemonSet: daemonSet(), pods: [fresh, old], nodes: [node('a')], hash: 'new', now };
    const status = planDaemonSetStatus(input);
    expect(status).toMatchObject({ numberReady: 1, numberAvailable: 1 });
    expect(status).not.toHaveProperty('updatedNumberScheduled');
  });

  it('counts nodes, not Pods', () => {
    const nodes = [node('a'), node('b'), node('c', {}, { taints: [{ key: 'x', effect: 'NoSchedule' }] })];
    const pods = [daemon('a', 'new'), daemon('b', 'old', { ready: false }), daemon('c', 'old')];
    expect(planDaemonSetStatus({ daemonSet: daemonSet(), pods, nodes, hash: 'new', now })).toEqual({
      currentNumberScheduled: 2,
      numberMisscheduled: 1,
      desiredNumberScheduled: 2,
      numberReady: 1,
      observedGeneration: 2,
      updatedNumberScheduled: 1,
      numberAvailable: 1,
      numberUnavailable: 1,
    });
  });
});
