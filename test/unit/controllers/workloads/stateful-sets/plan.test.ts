import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  claimOwners,
  draftClaims,
  isStale,
  planStatefulSet,
  planStatefulSetStatus,
} from '../../../../../src/controllers/workloads/stateful-sets/plan.ts';
import { draftPod, isMember } from '../../../../../src/controllers/workloads/stateful-sets/plan.ts';
import { hashOfData, planHistory } from '../../../../../src/controllers/workloads/plan-history.ts';
import type { ControllerRevision, StatefulSet } from '../../../../../src/objects/types/apps.generated.ts';
import type { Pod } from '../../../../../src/objects/types/core.generated.ts';
import { now, pod } from '../samples.ts';

function statefulSet(spec: Partial<StatefulSet['spec']> = {}, image = 'i:1'): StatefulSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db', namespace: 'ns', uid: 'u', generation: 1 },
    spec: {
      replicas: 3,
      serviceName: 'db',
      selector: { matchLabels: { app: 'db' } },
      template: { metadata: { labels: { app: 'db' } }, spec: { containers: [{ name: 'main', image }] } },
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      ...spec,
    },
    status: {},
  };
}

function revisionOf(set: StatefulSet, revision: number): ControllerRevision {
  const { create } = planHistory(set, set.spec.template, [], hashOfData, undefined);
  if (create === undefined) throw new Error('a first revision is always created');
  return { ...create, data: create.data, revision };
}

/** A set whose Pods do what its plans say; each is ready on request. */
class Model {
  readonly set: StatefulSet;
  readonly current: ControllerRevision;
  readonly update: ControllerRevision;
  pods: Pod[] = [];

  constructor(set: StatefulSet, current: ControllerRevision, update: ControllerRevision) {
    this.set = set;
    this.current = current;
    this.update = update;
  }

  step(): boolean {
    const { set, pods, current, update } = this;
    const plan = planStatefulSet({ set, pods, current, update, now });
    this.pods = this.pods.filter((each) => !plan.remove.includes(each));
    for (const { ordinal, revision } of plan.create) {
      const { metadata } = draftPod(set, revision, ordinal);
      this.pods.push(pod(metadata.name ?? '', { ready: false, labels: metadata.labels ?? {} }));
    }
    return plan.create.length > 0 || plan.remove.length > 0;
  }

  get unready(): Pod[] {
    return this.pods.filter(({ status }) => status.conditions?.[0]?.status !== 'True');
  }

  makeReady(): void {
    this.pods = this.pods.map(({ metadata }) => pod(metadata.name ?? '', { labels: metadata.labels ?? {} }));
  }
}

describe('planStatefulSet', () => {
  it('goes from any state to its Pods, with at most one of them not ready at any time', () => {
    const arbitrary = fc.record({
      replicas: fc.integer({ min: 0, max: 6 }),
      partition: fc.integer({ min: 0, max: 7 }),
      start: fc.integer({ min: 0, max: 3 }),
      present: fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.boolean()), {
        maxLength: 8,
        selector: ([ordinal]) => ordinal,
      }),
    });
    fc.assert(
      fc.property(arbitrary, ({ replicas, partition, start, present }) => {
        const set = statefulSet({
          replicas,
          ordinals: { start },
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } },
        });
        const current = revisionOf(statefulSet({}, 'i:0'), 1);
        const update = revisionOf(set, 2);
        const model = new Model(set, current, update);
        for (const [ordinal, isNew] of present) {
          const { metadata } = draftPod(set, isNew ? update : current, ordinal);
          model.pods.push(pod(metadata.name ?? '', { labels: metadata.labels ?? {} }));
        }
        for (let i = 0; ; i++) {
          expect(i).toBeLessThan(100);
          const changed = model.step();
          expect(model.unready.length).toBeLessThanOrEqual(1);
          // While one is not ready nothing else is begun.
          if (model.unready.length > 0) expect(model.step()).toBe(false);
          model.makeReady();
          if (!changed) break;
        }
        const names = model.pods.map(({ metadata }) => metadata.name).sort();
        expect(names).toEqual(Array.from({ length: replicas }, (_, i) => `db-${start + i}`));
        for (const { metadata } of model.pods) {
          const ordinal = Number(metadata.name?.slice(3));
          if (ordinal < start + partition) continue;
          expect(metadata.labels?.['controller-revision-hash']).toBe(update.metadata.name);
        }
      }),
    );
  });

  it('makes all Pods at once when Parallel', () => {
    const set = statefulSet({ podManagementPolicy: 'Parallel' });
    const revision = revisionOf(set, 1);
    const model = new Model(set, revision, revision);
    model.step();
    expect(model.pods).toHaveLength(3);
  });

  it.each([
    ['the highest', [true, true], 'db-4'],
    ['the one that is not ready', [true, false], 'db-4'],
    ['nothing while a higher one is not ready beside a lower one', [false, false], undefined],
    ['the higher one first, if it is ready', [false, true], 'db-4'],
  ])('scales down: %s', (_what, [third, fourth], name) => {
    const set = statefulSet({ replicas: 3 });
    const update = revisionOf(set, 1);
    const pods = [0, 1, 2].map((ordinal) => pod(`db-${ordinal}`));
    pods.push(pod('db-3', { ready: third ?? true }), pod('db-4', { ready: fourth ?? true }));
    const { remove } = planStatefulSet({ set, pods, current: update, update, now });
    expect(remove[0]?.metadata.name).toBe(name);
  });

  describe('rolls as many Pods at once as may be unavailable', () => {
    const start = (spec: Partial<StatefulSet['spec']>, unready: readonly number[] = []) => {
      const set = statefulSet({ replicas: 5, ...spec });
      const current = revisionOf(statefulSet({}, 'i:0'), 1);
      const update = revisionOf(set, 2);
      const pods = [0, 1, 2, 3, 4].map((ordinal) =>
        pod(`db-${ordinal}`, {
          ready: !unready.includes(ordinal),
          labels: draftPod(set, current, ordinal).metadata.labels ?? {},
        }),
      );
      return planStatefulSet({ set, pods, current, update, now }).remove.map(({ metadata }) => metadata.name);
    };
    const rolling = (maxUnavailable: number | string, partition = 0) => ({
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition, maxUnavailable } },
    });
    const parallel = { podManagementPolicy: 'Parallel' };

    it.each<[string, Partial<StatefulSet['spec']>, number[], string[]]>([
      ['a number', rolling(2), [], ['db-4', 'db-3']],
      ['a share, rounded down', rolling('50%'), [], ['db-4', 'db-3']],
      ['at least one', rolling('10%'), [], ['db-4']],
      ['down to the partition', rolling(3, 3), [], ['db-4', 'db-3']],
      ['one without a limit', { updateStrategy: { type: 'RollingUpdate' } }, [], ['db-4']],
      ['Parallel: beside what is unavailable', { ...rolling(2), ...parallel }, [0], ['db-0', 'db-4']],
      ['Parallel: what is unavailable in any case', { ...rolling(1), ...parallel }, [0, 2], ['db-2', 'db-0']],
    ])('%s', (_what, spec, unready, names) => {
      expect(start(spec, unready)).toEqual(names);
    });
  });

  it('leaves Pods alone with OnDelete', () => {
    const set = statefulSet({ updateStrategy: { type: 'OnDelete' } });
    const old = revisionOf(statefulSet({}, 'i:0'), 1);
    const model = new Model(set, old, revisionOf(set, 2));
    model.pods = [0, 1, 2].map((ordinal) =>
      pod(`db-${ordinal}`, { labels: draftPod(set, old, ordinal).metadata.labels ?? {} }),
    );
    expect(model.step()).toBe(false);
  });
});

describe('draftPod', () => {
  it('has the prefix of names of any template, and its claims before the other volumes', () => {
    const set = statefulSet({
      template: {
        metadata: { labels: { app: 'db' } },
        spec: { containers: [{ name: 'main' }], volumes: [{ name: 'tmp' }, { name: 'data' }] },
      },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {}, status: {} }],
    });
    const { metadata, spec } = draftPod(set, revisionOf(set, 1), 2);
    expect(metadata).toMatchObject({ name: 'db-2', generateName: 'db-' });
    expect(spec?.volumes).toEqual([
      { name: 'data', persistentVolumeClaim: { claimName: 'data-db-2' } },
      { name: 'tmp' },
    ]);
  });

  it.each([
    ['db-0', true],
    ['db-07', true],
    ['db', false],
    ['db-x', false],
    ['db-a-1', false],
  ])('takes %s for a Pod of the set db: %s', (name, is) => {
    expect(isMember(statefulSet(), pod(name))).toBe(is);
  });
});

describe('the claims of a set', () => {
  const owned = (whenDeleted: string, whenScaled: string, replicas = 1) =>
    statefulSet({
      replicas,
      persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {}, status: {} }],
    });

  // The table of stateful_set_utils.go `updateClaimOwnerRefForSetAndPod`.
  it.each([
    ['Retain', 'Retain', [], []],
    ['Delete', 'Retain', ['StatefulSet'], ['StatefulSet']],
    ['Retain', 'Delete', [], ['Pod']],
    ['Delete', 'Delete', ['StatefulSet'], ['Pod']],
  ])('whenDeleted %s, whenScaled %s: of %j, beyond the replicas of %j', (deleted, scaled, inside, beyond) => {
    const before = { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'x' }] };
    const set = owned(deleted, scaled);
    for (const [name, kinds] of [
      ['db-0', inside],
      ['db-1', beyond],
    ] as const) {
      const owners = claimOwners(set, pod(name), before) ?? before.ownerReferences;
      expect(owners.map(({ kind }) => kind)).toEqual(['X', ...kinds]);
      expect(claimOwners(set, pod(name), { ownerReferences: owners })).toBeUndefined();
      // And back, once the policy says so.
      const kept = claimOwners(owned('Retain', 'Retain'), pod(name), { ownerReferences: owners });
      expect((kept ?? owners).map(({ kind }) => kind)).toEqual(['X']);
    }
  });

  it('are made with the owner that they keep', () => {
    const [claim] = draftClaims(owned('Delete', 'Retain'), 3);
    expect(claim?.metadata).toMatchObject({
      ...{ name: 'data-db-3', labels: { app: 'db' } },
      ownerReferences: [{ kind: 'StatefulSet', name: 'db', uid: 'u', controller: true }],
    });
    expect(draftClaims(owned('Retain', 'Delete'), 3)[0]?.metadata).not.toHaveProperty('ownerReferences');
  });

  it('stay as they are where another controls them', () => {
    const other = [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'x', controller: true }];
    expect(claimOwners(owned('Delete', 'Delete'), pod('db-0'), { ownerReferences: other })).toBeUndefined();
  });

  it('are waited for while they go with a Pod that is gone', () => {
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'db-1', uid: 'gone' };
    const claim = { metadata: { ownerReferences: [owner] } };
    expect([isStale(statefulSet(), 1, claim), isStale(statefulSet(), 0, claim)]).toEqual([true, false]);
  });
});

describe('planStatefulSetStatus', () => {
  it('counts Pods that finished until they are gone', () => {
    const set = statefulSet({ replicas: 1 });
    const update = revisionOf(set, 1);
    const pods = [pod('db-0', { phase: 'Failed', labels: draftPod(set, update, 0).metadata.labels ?? {} })];
    expect(planStatefulSetStatus({ set, pods, current: update, update, now })).toMatchObject({
      replicas: 1,
      updatedReplicas: 1,
      availableReplicas: 0,
    });
  });

  it('keeps the conditions of others', () => {
    const conditions = [{ type: 'example.com/Mine', status: 'True' }];
    const set = { ...statefulSet(), status: { conditions } };
    const update = revisionOf(set, 1);
    expect(planStatefulSetStatus({ set, pods: [], current: update, update, now })).toMatchObject({
      conditions,
    });
  });

  it.each(['RollingUpdate', 'OnDelete'])(
    'moves currentRevision on when the last Pod is updated: %s',
    (type) => {
      const set = statefulSet({ replicas: 2, updateStrategy: { type } });
      const current = revisionOf(statefulSet({}, 'i:0'), 1);
      const update = revisionOf(set, 2);
      const labelled = (revision: ControllerRevision, ordinal: number): Pod =>
        pod(`db-${ordinal}`, { labels: draftPod(set, revision, ordinal).metadata.labels ?? {} });
      const half = { set, pods: [labelled(current, 0), labelled(update, 1)], current, update, now };
      expect(planStatefulSetStatus(half)).toEqual({
        observedGeneration: 1,
        replicas: 2,
        readyReplicas: 2,
        currentReplicas: 1,
        updatedReplicas: 1,
        currentRevision: current.metadata.name,
        updateRevision: update.metadata.name,
        collisionCount: 0,
        availableReplicas: 2,
      });
      const whole = { ...half, pods: [labelled(update, 0), labelled(update, 1)] };
      expect(planStatefulSetStatus(whole)).toMatchObject({
        currentReplicas: 2,
        updatedReplicas: 2,
        currentRevision: update.metadata.name,
      });
    },
  );
});
