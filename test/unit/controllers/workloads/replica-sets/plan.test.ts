import { describe, expect, it } from 'vitest';
import {
  planReplicas,
  planReplicaSetStatus,
} from '../../../../../src/controllers/workloads/replica-sets/plan.ts';
import type { ReplicaSet } from '../../../../../src/objects/types/apps.generated.ts';
import { now, pod } from '../samples.ts';

function replicaSet(replicas: number, status: ReplicaSet['status'] = {}): ReplicaSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web', namespace: 'ns', uid: 'u', generation: 4 },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web', tier: 'front' } },
        spec: { containers: [{ name: 'main' }] },
      },
    },
    status,
  };
}

describe('planReplicas', () => {
  it('makes what is missing; Pods that finished or are leaving do not count', () => {
    const pods = [pod('a'), pod('b', { phase: 'Failed' }), pod('c', { leaving: true })];
    const { create, remove } = planReplicas(replicaSet(3), pods, [], now);
    expect(remove).toEqual([]);
    expect(create).toHaveLength(2);
    expect(create[0]).toEqual({
      metadata: {
        namespace: 'ns',
        generateName: 'web-',
        labels: { app: 'web', tier: 'front' },
        ownerReferences: [
          {
            apiVersion: 'apps/v1',
            kind: 'ReplicaSet',
            name: 'web',
            uid: 'u',
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: { containers: [{ name: 'main' }] },
    });
  });

  it('makes no more than 500 at once', () => {
    expect(planReplicas(replicaSet(2000), [], [], now).create).toHaveLength(500);
  });

  const firstOf = (...pods: ReturnType<typeof pod>[]): string | undefined => {
    const first = planReplicas(replicaSet(pods.length - 1), pods, pods, now).remove[0]?.metadata.name;
    const reversed = [...pods].reverse();
    expect(planReplicas(replicaSet(pods.length - 1), reversed, reversed, now).remove[0]?.metadata.name).toBe(
      first,
    );
    return first;
  };

  it.each([
    // 2^32 ns and 2^33 ns are 4.3 s and 8.6 s.
    ['the smaller uid where both became ready at about the same time', { readyFor: 5 }, { readyFor: 8 }, 'a'],
    ['that, restarted or not', { readyFor: 5 }, { readyFor: 8, restarts: 9 }, 'a'],
    ['who became ready later', { readyFor: 8 }, { readyFor: 9 }, 'a'],
    ['the smaller uid of about the same age', { age: 60, readyFor: 4 }, { age: 61, readyFor: 4 }, 'a'],
    ['the younger one', { age: 69, readyFor: 4 }, { age: 68, readyFor: 4 }, 'b'],
    ['one of an unknown phase', {}, { phase: '' }, 'b'],
  ])('deletes %s', (_what, a, b, first) => {
    expect(firstOf(pod('a', a), pod('b', b))).toBe(first);
  });

  it.each([
    ['-1', true],
    ['-2147483648', true],
    ['-2147483649', false],
    ['+5', false],
    ['-01', true],
    ['many', false],
  ])('reads the deletion cost %s as Go does', (cost, isCost) => {
    const annotations = { 'controller.kubernetes.io/pod-deletion-cost': cost };
    expect(firstOf(pod('a'), pod('b', { annotations }))).toBe(isCost ? 'b' : 'a');
  });

  it('deletes a Pod whose sidecar was restarted more often, where the containers were as often', () => {
    const b = pod('b');
    b.spec.initContainers = [{ name: 'proxy', restartPolicy: 'Always' }, { name: 'setup' }];
    const status = { ready: true, image: 'i', imageID: 'i' };
    b.status.initContainerStatuses = [{ ...status, name: 'setup', restartCount: 7 }];
    expect(firstOf(pod('a'), b)).toBe('a');
    b.status.initContainerStatuses = [{ ...status, name: 'proxy', restartCount: 1 }];
    expect(firstOf(pod('a'), b)).toBe('b');
  });

  it('deletes the Pods that are missed least', () => {
    const order = [
      pod('unassigned', { spec: { nodeName: '' }, phase: 'Pending' }),
      pod('pending', { phase: 'Pending' }),
      pod('unready', { ready: false }),
      pod('cheap', { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-1' } }),
      pod('crowded-young', { readyFor: 2, age: 3 }),
      pod('crowded-restarted', { restarts: 3 }),
      pod('crowded'),
      pod('alone', { spec: { nodeName: 'n2' } }),
      pod('dear', { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '10' } }),
    ];
    const shuffled = [...order].sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1));
    for (let keep = 0; keep < order.length; keep++) {
      const { remove } = planReplicas(replicaSet(keep), shuffled, shuffled, now);
      const names = remove.map(({ metadata }) => metadata.name);
      expect(names).toEqual(order.slice(0, order.length - keep).map(({ metadata }) => metadata.name));
    }
  });
});

describe('planReplicaSetStatus', () => {
  it('counts as kube-controller-manager does', () => {
    const set = replicaSet(4);
    set.spec.minReadySeconds = 30;
    const labels = { app: 'web', tier: 'front' };
    const pods = [
      pod('a', { labels }),
      pod('b', { readyFor: 10 }),
      pod('c', { ready: false }),
      pod('d', { leaving: true }),
    ];
    expect(planReplicaSetStatus(set, pods, undefined, now)).toEqual({
      replicas: 3,
      fullyLabeledReplicas: 1,
      readyReplicas: 2,
      availableReplicas: 1,
      terminatingReplicas: 1,
      observedGeneration: 4,
    });
  });

  it('does not count finished Pods as terminating', () => {
    const pods = [pod('a', { leaving: true }), pod('b', { leaving: true, phase: 'Succeeded' })];
    expect(planReplicaSetStatus(replicaSet(1), pods, undefined, now)).toMatchObject({
      terminatingReplicas: 1,
    });
  });

  it('reports a failure once, and takes it back', () => {
    const failure = { reason: 'FailedCreate', message: 'no' };
    const first = planReplicaSetStatus(replicaSet(1), [], failure, now);
    expect(first.conditions).toEqual([
      { type: 'ReplicaFailure', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z', ...failure },
    ]);
    const again = { reason: 'FailedDelete', message: 'no, again' };
    expect(planReplicaSetStatus(replicaSet(1, first), [], again, now + 5000)).toEqual(first);
    expect(planReplicaSetStatus(replicaSet(1, first), [], undefined, now).conditions).toBeUndefined();
  });
});
