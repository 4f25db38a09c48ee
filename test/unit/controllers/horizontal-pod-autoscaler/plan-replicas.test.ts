import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type PodSample,
  proposeByAverage,
  proposeByUtilization,
  type ReplicaQuestion,
} from '../../../../src/controllers/horizontal-pod-autoscaler/plan-replicas.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import { formatTime } from '../../../../src/objects/formats/time.ts';

const now = Date.parse('2026-11-28T12:00:00Z');
const tolerance = { up: 0.1, down: 0.1 };

interface PodState {
  /** Thousandths of a CPU; undefined: no sample. */
  readonly used?: number;
  readonly requested?: number | null;
  readonly phase?: string;
  readonly ready?: boolean;
  readonly deleted?: boolean;
  /** Seconds ago. */
  readonly started?: number;
  readonly readyFor?: number;
}

function podOf(state: PodState, index: number): Pod {
  const { requested = 100, phase = 'Running', ready = true, deleted = false } = state;
  const { started = 3600, readyFor = 3500 } = state;
  const time = (seconds: number) => formatTime(now - seconds * 1000);
  return {
    metadata: { name: `p${index}`, ...(deleted && { deletionTimestamp: time(1) }) },
    spec: {
      containers: [
        { name: 'main', ...(requested !== null && { resources: { requests: { cpu: `${requested}m` } } }) },
      ],
    },
    status: {
      phase,
      startTime: time(started),
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: time(readyFor) }],
    },
  };
}

function questionOf(
  states: readonly PodState[],
  differences: Partial<ReplicaQuestion> = {},
): ReplicaQuestion {
  const samples = states.flatMap(({ used }, index): PodSample[] =>
    used === undefined
      ? []
      : [
          {
            ...{ pod: `p${index}`, atMs: now, windowMs: 15_000 },
            containers: [{ name: 'main', usage: { cpu: `${used}m` } }],
          },
        ],
  );
  return {
    resource: 'cpu',
    current: states.length,
    pods: states.map(podOf),
    samples,
    tolerance,
    nowMs: now,
    ...differences,
  };
}

const at = (used: number, more: PodState = {}): PodState => ({ used, ...more });

describe('the replicas for a target in percent', () => {
  it.for<[string, PodState[], number, number]>([
    ['twice the target doubles', [at(100), at(100)], 50, 4],
    ['half of the target halves', [at(25), at(25), at(25), at(25)], 50, 2],
    ['what is left over counts as one more', [at(60), at(50), at(70)], 50, 4],
    ['within the tolerance nothing changes', [at(54), at(54)], 50, 2],
    ['nor at its edge', [at(55)], 50, 1],
    ['and beyond it does', [at(56)], 50, 2],
    ['nothing used is nothing needed', [at(0), at(0)], 50, 0],
    ['requests are added up, not averaged', [at(100, { requested: 1000 }), at(100)], 50, 1],
  ])('%s', ([, states, target, replicas]) => {
    expect(proposeByUtilization(questionOf(states), target).replicas).toBe(replicas);
  });

  it('come with what is used', () => {
    expect(proposeByUtilization(questionOf([at(90), at(30)]), 50)).toEqual({
      ...{ replicas: 3, utilization: 60, averageMilli: 60n },
    });
  });

  it.for<[string, PodState[], number]>([
    // 200 of 100 percent: 3 Pods, one of which is taken to use nothing.
    ['a missing one uses nothing where more are needed', [at(100), at(100), {}], 4],
    // 20 % of 50 would be one Pod; a missing one uses all that it requests.
    ['and all that it requests where fewer would do', [at(10), at(10), at(10), {}], 3],
    ['it does not turn the direction', [at(40), {}], 2],
    ['one that is pending uses nothing where more are needed', [at(100), { phase: 'Pending' }], 2],
    ['and does not count where fewer would do', [at(10), at(10), { phase: 'Pending' }], 1],
    [
      'one that is deleted or has failed does not count',
      [at(100), at(900, { deleted: true }), at(900, { phase: 'Failed' })],
      2,
    ],
  ])('%s', ([, states, replicas]) => {
    expect(proposeByUtilization(questionOf(states), 50).replicas).toBe(replicas);
  });

  it.for<[string, PodState, boolean]>([
    ['ready for long', {}, true],
    ['started and ready for a window', { started: 60, readyFor: 16 }, true],
    ['started and ready for less', { started: 60, readyFor: 14 }, false],
    ['started and not ready', { started: 60, ready: false, readyFor: 50 }, false],
    ['not ready any more, after a long time', { started: 3600, ready: false, readyFor: 60 }, true],
    ['never ready', { started: 3600, ready: false, readyFor: 3590 }, false],
  ])('the CPU of a Pod that is %s counts: %s', ([, state, counts]) => {
    // With the loud Pod, two are needed more.
    const { averageMilli } = proposeByUtilization(questionOf([at(100), at(300, state)]), 50);
    expect(averageMilli).toBe(counts ? 200n : 100n);
  });

  it('look at one container, and at sidecars too', () => {
    const pod = podOf({}, 0);
    const requests = (cpu: string) => ({ requests: { cpu } });
    const two: Pod = {
      ...pod,
      spec: {
        containers: [
          { name: 'main', resources: requests('100m') },
          { name: 'log', resources: requests('900m') },
        ],
        initContainers: [
          { name: 'side', restartPolicy: 'Always', resources: requests('100m') },
          { name: 'once' },
        ],
      },
    };
    const usage = (name: string, cpu: string) => ({ name, usage: { cpu } });
    const containers = [usage('main', '100m'), usage('log', '90m'), usage('side', '30m')];
    const samples = [{ pod: 'p0', atMs: now, windowMs: 15_000, containers }];
    const question = questionOf([{}], { pods: [two], samples });
    expect(proposeByUtilization(question, 50)).toMatchObject({ utilization: 20 });
    expect(proposeByUtilization({ ...question, container: 'main' }, 50)).toMatchObject({ utilization: 100 });
    expect(() => proposeByUtilization({ ...question, container: 'other' }, 50)).toThrow(
      'unable to get metrics for resource cpu: container other not present in metrics for pod p0',
    );
  });

  it.for<[string, ReplicaQuestion]>([
    [
      'unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: gone',
      questionOf([at(1)], { samples: 'gone' }),
    ],
    [
      'unable to get metrics for resource cpu: no metrics returned from resource metrics API',
      questionOf([{}]),
    ],
    ['missing request for cpu in container main of Pod p0', questionOf([at(1, { requested: null })])],
    [
      'did not receive metrics for targeted pods (pods might be unready)',
      questionOf([at(1, { phase: 'Pending' })]),
    ],
    ['no pods returned by selector while calculating replica count', questionOf([at(1)], { pods: [] })],
  ])('fail: %s', ([words, question]) => {
    expect(() => proposeByUtilization(question, 50)).toThrow(words);
  });
});

describe('the replicas for an average', () => {
  it.for<[PodState[], bigint, number]>([
    [[at(200), at(100)], 100n, 3],
    [[at(20), at(30)], 100n, 1],
    [[at(105), at(105)], 100n, 2],
    [[at(200), {}], 100n, 2],
    [[at(300), {}], 100n, 3],
    [[at(10), at(10), {}], 100n, 2],
  ])('%j of %d: %i', ([states, target, replicas]) => {
    expect(proposeByAverage(questionOf(states), target).replicas).toBe(replicas);
  });

  it('need no requests', () => {
    expect(proposeByAverage(questionOf([at(70, { requested: null })]), 100n)).toEqual({
      ...{ replicas: 1, averageMilli: 70n },
    });
  });
});

describe('any Pods', () => {
  const state = fc.record(
    {
      used: fc.integer({ min: 0, max: 1000 }),
      phase: fc.constantFrom('Running', 'Running', 'Pending', 'Failed'),
      ready: fc.boolean(),
      deleted: fc.boolean(),
    },
    { requiredKeys: [] },
  );
  const proposals = (states: readonly PodState[], target: number): number | undefined => {
    try {
      return proposeByUtilization(questionOf(states), target).replicas;
    } catch {
      return undefined;
    }
  };

  it('that all are known and ready get between what is needed and one more, or what they are', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 100 }),
        (uses, target) => {
          const replicas =
            proposals(
              uses.map((used) => at(used)),
              target,
            ) ?? -1;
          const needed = uses.reduce((sum, used) => sum + used, 0) / target;
          // Percents are whole: each Pod may be taken for up to one percent less.
          const inRange = replicas > needed - uses.length / target - 1e-9 && replicas < needed + 1;
          expect(replicas === uses.length || inRange).toBe(true);
        },
      ),
    );
  });

  it('get no more where what is known is below the target', () => {
    fc.assert(
      fc.property(
        fc.array(state, { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 200 }),
        (states, target) => {
          const question = questionOf(states);
          const replicas = proposals(states, target);
          if (replicas === undefined) return;
          const { utilization = 0 } = proposeByUtilization(question, target);
          if (utilization < target) expect(replicas).toBeLessThanOrEqual(states.length);
          expect(replicas).toBeGreaterThanOrEqual(0);
        },
      ),
    );
  });
});
