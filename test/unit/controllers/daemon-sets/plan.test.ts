import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planDaemonSet, planDaemonSetStatus } from '../../../../src/controllers/daemon-sets/plan.ts';
import type { Node } from '../../../../src/objects/node.ts';
import type { Pod } from '../../../../src/objects/pod.ts';
import type { DaemonSet } from '../../../../src/objects/workloads.ts';
import { node, now, pod } from '../workloads/samples.ts';

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

describe('planDaemonSetStatus', () => {
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
