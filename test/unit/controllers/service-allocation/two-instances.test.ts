import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { specValues, viewOf } from '../../../../src/controllers/service-allocation/plan-view.ts';
import {
  lacksHealthCheckPort,
  missingNodePorts,
} from '../../../../src/controllers/service-allocation/plan-needs.ts';
import type { ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import { ClusterModel, InstanceModel } from './cluster-model.ts';
import { runs } from '../../../support/runs.ts';

const names = ['a', 'b', 'c', 'd'];
const clusterIP: ServiceSpec = { type: 'ClusterIP', ports: [{ port: 80 }] };
const nodePort: ServiceSpec = { type: 'NodePort', ports: [{ port: 80 }, { port: 443 }] };
const local: ServiceSpec = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: [{ port: 80 }] };
const explicit: ServiceSpec = {
  type: 'NodePort',
  clusterIP: '10.0.0.5',
  ports: [{ port: 80, nodePort: 30_003 }],
};
const specs = [clusterIP, nodePort, local, explicit];

const name = fc.constantFrom(...names);
const instance = fc.nat({ max: 1 });
/** Steps of a history: the network delivers patches in any order, repeatedly or never. */
const happening = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('create' as const), name, spec: fc.constantFrom(...specs) }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('delete' as const), name }) },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constant('retype' as const),
      name,
      type: fc.constantFrom('ClusterIP', 'NodePort'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('touch' as const), name }) },
  { weight: 12, arbitrary: fc.record({ what: fc.constant('reconcile' as const), name, instance }) },
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant('advance' as const),
      instance,
      count: fc.integer({ min: 1, max: 12 }),
    }),
  },
  { weight: 9, arbitrary: fc.record({ what: fc.constant('deliver' as const), back: fc.nat({ max: 3 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant('restart' as const), instance, behind: fc.nat({ max: 8 }) }),
  },
);

/** Chooses from few values, so that the two instances often choose the same. */
function unluckyRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 30 === 0 ? 0.5 : 0;
  };
}

function play(
  cluster: ClusterModel,
  instances: readonly InstanceModel[],
  step: typeof happening extends fc.Arbitrary<infer T> ? T : never,
): void {
  switch (step.what) {
    case 'create':
      cluster.create(step.name, structuredClone(step.spec));
      return;
    case 'delete':
      cluster.delete(step.name);
      return;
    case 'retype':
      cluster.change(step.name, { spec: { type: step.type } });
      return;
    case 'touch':
      cluster.change(step.name, { metadata: { labels: { touched: String(cluster.history.length) } } });
      return;
    case 'reconcile':
      instances[step.instance]?.reconcile(step.name);
      return;
    case 'advance':
      instances[step.instance]?.advance(step.count);
      return;
    case 'deliver':
      cluster.deliver(cluster.network.length - 1 - step.back);
      return;
    case 'restart':
      instances[step.instance]?.restart(step.behind);
  }
}

describe('two instances at one time', () => {
  it('never allocate a value to two Services, and terminate', () => {
    // Without a size fast-check prefers short lists, in which conflicts are rare.
    const happenings = fc.array(happening, { minLength: 40, maxLength: 250, size: 'max' });
    fc.assert(
      fc.property(happenings, fc.integer(), (steps, seed) => {
        const cluster = new ClusterModel();
        const instances = [
          new InstanceModel(cluster, unluckyRandom(seed)),
          new InstanceModel(cluster, unluckyRandom(seed + 1)),
        ];
        for (const step of steps) {
          play(cluster, instances, step);
          for (const [value, keys] of cluster.allocated) {
            expect([...keys].length, `${value} is allocated to ${[...keys].join(' and ')}`).toBeLessThan(2);
          }
        }
        settle(cluster, instances);
      }),
      { numRuns: runs(150, 600) },
    );
  });

  /** From any state, an instance with a current cache allocates all values that Services request. */
  function settle(cluster: ClusterModel, instances: readonly InstanceModel[]): void {
    const [leader] = instances;
    for (let round = 0; round < 20; round++) {
      for (const each of names) {
        leader?.advance(cluster.history.length);
        leader?.reconcile(each);
        cluster.deliver(cluster.network.length - 1);
      }
    }
    leader?.advance(cluster.history.length);
    const views = [...cluster.services.values()].map(viewOf);
    const used = new Set(
      views.flatMap((view) => [...specValues(view)].filter((value) => /^\d+$/.test(value))),
    );
    for (const view of views) {
      const plan = leader?.reconcile(view.key.slice('default/'.length));
      expect(view.claim).toBeUndefined();
      expect(plan?.step.do).toBe('nothing');
      const missing = missingNodePorts(view) + (lacksHealthCheckPort(view) ? 1 : 0);
      if (missing === 0) expect(view.clusterIPs).toHaveLength(1);
      else expect(used.size + missing, 'waits only for what is not there').toBeGreaterThan(6);
    }
  }
});
