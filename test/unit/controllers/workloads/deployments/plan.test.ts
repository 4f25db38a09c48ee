import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planDeployment } from '../../../../../src/controllers/workloads/deployments/plan.ts';
import {
  maxSurge,
  maxUnavailable,
} from '../../../../../src/controllers/workloads/deployments/plan-status.ts';
import { revisionOf } from '../../../../../src/controllers/workloads/deployments/plan-status.ts';
import type { Deployment, ReplicaSet } from '../../../../../src/objects/types/apps.generated.ts';
import { deployment, now, settled } from '../samples.ts';
import { runs } from '../../../../support/runs.ts';

/** A cluster with one Deployment: what its plans write is there at once, Pods become available on request. */
class Model {
  deployment: Deployment;
  replicaSets: ReplicaSet[] = [];
  #time = now;
  #made = 0;

  constructor(object: Deployment) {
    this.deployment = object;
  }

  /** Plans and writes once; false when there was nothing to write. */
  step(oldPodsRun = false): boolean {
    this.#time += 1000;
    const plan = planDeployment(this.deployment, this.replicaSets, () => oldPodsRun, this.#time);
    if (plan.create !== undefined) {
      this.#made++;
      const { metadata, spec = {} } = plan.create;
      const creationTimestamp = new Date(this.#time).toISOString();
      this.replicaSets.push({
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: { ...metadata, uid: `rs-${this.#made}`, creationTimestamp, generation: 1 },
        spec,
        status: { replicas: 0, terminatingReplicas: 0, observedGeneration: 1 },
      });
    }
    for (const { replicaSet, replicas, annotations, minReadySeconds } of plan.change) {
      const at = this.replicaSets.indexOf(replicaSet);
      const metadata = { ...replicaSet.metadata, annotations: { ...annotations } };
      // Pods that are no longer wanted are gone at once, those that are wanted come later.
      const available = Math.min(replicaSet.status.availableReplicas ?? 0, replicas);
      this.replicaSets[at] = {
        ...replicaSet,
        metadata,
        spec: { ...replicaSet.spec, replicas, minReadySeconds },
        status: { ...replicaSet.status, replicas, readyReplicas: available, availableReplicas: available },
      };
    }
    this.replicaSets = this.replicaSets.filter((replicaSet) => !plan.remove.includes(replicaSet));
    const changed =
      plan.create !== undefined ||
      plan.change.length > 0 ||
      plan.remove.length > 0 ||
      plan.revision !== undefined;
    const { annotations } = this.deployment.metadata;
    const revision = plan.revision ?? annotations?.['deployment.kubernetes.io/revision'];
    this.deployment = {
      ...this.deployment,
      metadata: {
        ...this.deployment.metadata,
        annotations: {
          ...annotations,
          ...(revision === undefined ? {} : { 'deployment.kubernetes.io/revision': revision }),
        },
      },
      status: plan.status,
    };
    return changed;
  }

  /** All Pods become available, then steps until nothing is left to do. */
  settle(): void {
    for (let i = 0; i < 200; i++) {
      const changed = this.step();
      this.replicaSets = this.replicaSets.map(settled);
      if (!changed && !this.step()) return;
    }
    throw new Error('the rollout does not end');
  }

  setImage(image: string): void {
    this.deployment = {
      ...this.deployment,
      metadata: { ...this.deployment.metadata, generation: (this.deployment.metadata.generation ?? 0) + 1 },
      spec: { ...this.deployment.spec, template: deployment({}, image).spec.template },
    };
  }

  /** One more Pod of the newest ReplicaSet that lacks one becomes available; false when none lacks any. */
  progress(): boolean {
    const at = this.replicaSets.findLastIndex(
      ({ spec, status }) => (status.availableReplicas ?? 0) < (spec.replicas ?? 0),
    );
    const found = this.replicaSets[at];
    if (found === undefined) return false;
    const available = (found.status.availableReplicas ?? 0) + 1;
    const replicas = found.spec.replicas ?? 0;
    this.replicaSets[at] = {
      ...found,
      status: { ...found.status, replicas, readyReplicas: available, availableReplicas: available },
    };
    return true;
  }

  get total(): number {
    return this.replicaSets.reduce((sum, { spec }) => sum + (spec.replicas ?? 0), 0);
  }

  get available(): number {
    return this.replicaSets.reduce((sum, { status }) => sum + (status.availableReplicas ?? 0), 0);
  }

  condition(type: string): string | undefined {
    return this.deployment.status.conditions?.find((condition) => condition.type === type)?.reason;
  }
}

const percentOrCount = fc.oneof(
  fc.integer({ min: 0, max: 5 }),
  fc.integer({ min: 0, max: 100 }).map((percent) => `${percent}%`),
);

describe('planDeployment', () => {
  it('never leaves the bounds of a rolling update, and always ends', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        percentOrCount,
        percentOrCount,
        (replicas, surge, unavailable) => {
          const model = new Model(
            deployment({
              replicas,
              strategy: {
                type: 'RollingUpdate',
                rollingUpdate: { maxSurge: surge, maxUnavailable: unavailable },
              },
            }),
          );
          model.settle();
          model.setImage('i:2');
          const most = replicas + maxSurge(model.deployment);
          const fewest = replicas - maxUnavailable(model.deployment);
          for (let i = 0; ; i++) {
            expect(i).toBeLessThan(500);
            const changed = model.step();
            expect(model.total).toBeLessThanOrEqual(most);
            expect(model.available).toBeGreaterThanOrEqual(fewest);
            if (!model.progress() && !changed) break;
          }
          expect(model.condition('Progressing')).toBe('NewReplicaSetAvailable');
          expect(model.replicaSets.map(({ spec }) => spec.replicas)).toEqual([0, replicas]);
        },
      ),
      { numRuns: runs(80, 200) },
    );
  });

  it('numbers revisions, and gives an old template a new number', () => {
    const model = new Model(deployment());
    model.settle();
    model.setImage('i:2');
    model.settle();
    expect(model.replicaSets.map(revisionOf)).toEqual([1n, 2n]);
    model.setImage('i:1');
    model.settle();
    expect(model.replicaSets.map(revisionOf)).toEqual([3n, 2n]);
    expect(revisionOf(model.deployment)).toBe(3n);
    expect(model.replicaSets[0]?.metadata.annotations?.['deployment.kubernetes.io/revision-history']).toBe(
      '1',
    );
  });

  it('gives names that depend on the template alone', () => {
    const names = ['i:1', 'i:2', 'i:1'].map((image) => {
      const model = new Model(deployment({}, image));
      model.step();
      return model.replicaSets[0]?.metadata.name;
    });
    expect(names[0]).toBe(names[2]);
    expect(names[0]).not.toBe(names[1]);
    expect(names[0]).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{5,10}$/);
  });

  it('keeps as many old ReplicaSets as the history may have', () => {
    const model = new Model(deployment({ revisionHistoryLimit: 2 }));
    for (let i = 1; i <= 6; i++) {
      model.setImage(`i:${i}`);
      model.settle();
    }
    expect(model.replicaSets.map(revisionOf)).toEqual([4n, 5n, 6n]);
  });

  it('scales a rollout in proportion', () => {
    const model = new Model(
      deployment({
        replicas: 10,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } },
      }),
    );
    model.settle();
    model.setImage('i:2');
    model.step();
    model.step();
    expect(model.replicaSets.map(({ spec }) => spec.replicas)).toEqual([8, 3]);
    // The new one got the room of the old one, as in the Deployment documentation's example.
    for (let i = 0; i < 3; i++) model.step();
    expect(model.replicaSets.map(({ spec }) => spec.replicas)).toEqual([8, 5]);
    model.deployment = { ...model.deployment, spec: { ...model.deployment.spec, replicas: 15 } };
    model.step();
    expect(model.replicaSets.map(({ spec }) => spec.replicas)).toEqual([11, 7]);
  });

  it('waits with Recreate until the last old Pod is gone', () => {
    const model = new Model(deployment({ strategy: { type: 'Recreate' } }));
    model.settle();
    model.setImage('i:2');
    model.step();
    expect(model.replicaSets.map(({ spec }) => spec.replicas)).toEqual([0]);
    expect(model.step(true)).toBe(false);
    model.step();
    expect(model.replicaSets.map(({ spec }) => spec.replicas)).toEqual([0, 3]);
  });

  it('does not begin a rollout while it is paused', () => {
    const model = new Model(deployment());
    model.settle();
    model.deployment = { ...model.deployment, spec: { ...model.deployment.spec, paused: true } };
    model.setImage('i:2');
    model.settle();
    expect(model.replicaSets).toHaveLength(1);
    expect(model.condition('Progressing')).toBe('DeploymentPaused');
    model.deployment = { ...model.deployment, spec: { ...model.deployment.spec, paused: false } };
    model.settle();
    expect(model.replicaSets).toHaveLength(2);
  });

  it('says when a rollout takes longer than its deadline', () => {
    const model = new Model(deployment({ progressDeadlineSeconds: 3 }));
    for (let i = 0; i < 8; i++) model.step();
    expect(model.condition('Progressing')).toBe('ProgressDeadlineExceeded');
    expect(model.condition('Available')).toBe('MinimumReplicasUnavailable');
    model.settle();
    expect(model.condition('Progressing')).toBe('NewReplicaSetAvailable');
  });

  it('gives its newest ReplicaSet its minReadySeconds, and no other one', () => {
    const model = new Model(deployment());
    model.settle();
    model.setImage('i:2');
    model.settle();
    model.deployment = { ...model.deployment, spec: { ...model.deployment.spec, minReadySeconds: 7 } };
    expect(model.step()).toBe(true);
    expect(model.replicaSets.map(({ spec }) => spec.minReadySeconds ?? 0)).toEqual([0, 7]);
    expect(model.step()).toBe(false);
  });

  it('says nothing of progress where there is no deadline, and takes back what it said', () => {
    const endless = { progressDeadlineSeconds: 2 ** 31 - 1 };
    const model = new Model(deployment(endless));
    model.settle();
    expect(model.deployment.status.conditions?.map(({ type }) => type)).toEqual(['Available']);
    const timed = new Model(deployment());
    timed.settle();
    expect(timed.condition('Progressing')).toBe('NewReplicaSetAvailable');
    timed.deployment = { ...timed.deployment, spec: { ...timed.deployment.spec, ...endless } };
    timed.step();
    expect(timed.condition('Progressing')).toBeUndefined();
  });

  it('reports the failure of a ReplicaSet with its time, and keeps the condition while it is paused', () => {
    const model = new Model(deployment());
    model.step();
    const failure = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'no' };
    const since = '2025-12-31T12:00:00Z';
    const fail = (conditions: ReplicaSet['status']['conditions']): void => {
      model.replicaSets = model.replicaSets.map((replicaSet) => ({
        ...replicaSet,
        status: { ...replicaSet.status, conditions: conditions ?? [] },
      }));
      model.step();
    };
    fail([{ ...failure, lastTransitionTime: since }]);
    const expected = { ...failure, lastTransitionTime: since, lastUpdateTime: since };
    expect(model.deployment.status.conditions).toContainEqual(expected);
    model.deployment = { ...model.deployment, spec: { ...model.deployment.spec, paused: true } };
    fail([]);
    expect(model.deployment.status.conditions).toContainEqual(expected);
    model.deployment = { ...model.deployment, spec: { ...model.deployment.spec, paused: false } };
    fail([]);
    expect(model.condition('ReplicaFailure')).toBeUndefined();
  });

  it('keeps the last 2000 characters of the history of revisions', () => {
    const model = new Model(deployment());
    model.settle();
    model.setImage('i:2');
    model.settle();
    const [first] = model.replicaSets;
    const long = Array.from({ length: 400 }, (_, i) => String(1000 + i)).join(',');
    const history = 'deployment.kubernetes.io/revision-history';
    if (first !== undefined) first.metadata.annotations = { ...first.metadata.annotations, [history]: long };
    model.setImage('i:1');
    model.settle();
    // Each takes five characters with its comma; the new one takes two.
    expect(model.replicaSets[0]?.metadata.annotations?.[history]).toBe(`${long.slice(5)},1`);
  });

  it('changes nothing about what is as it should be', () => {
    const model = new Model(deployment());
    model.settle();
    const before = JSON.stringify([model.deployment, model.replicaSets]);
    expect(model.step()).toBe(false);
    expect(JSON.stringify([model.deployment, model.replicaSets])).toBe(before);
  });
});
