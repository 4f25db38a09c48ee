import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KubeletPlan, planPod } from '../../../../src/controllers/kubelet/plan.ts';
import type { PodEnding } from '../../../../src/controllers/kubelet/plan-course.ts';
import type { Observed } from '../../../../src/controllers/kubelet/plan-containers.ts';
import { PodAddresses } from '../../../../src/controllers/kubelet/pod-state.ts';
import type { Pod, PodStatus } from '../../../../src/objects/types/core.generated.ts';
import { node, now, pod } from '../workloads/samples.ts';

const host = {
  ...node('n1'),
  spec: { podCIDRs: ['10.244.0.0/24', 'fd00:10:244::/64'] },
  status: {
    addresses: [
      { type: 'InternalIP', address: '172.18.0.2' },
      { type: 'InternalIP', address: 'fd00::2' },
      { type: 'Hostname', address: 'n1' },
    ],
  },
};
const addresses = ['10.244.0.20', 'fd00:10:244::20'];

function bound(annotations: Record<string, string> = {}, spec: Pod['spec'] = {}): Pod {
  const made = pod('p', { annotations, spec });
  return { ...made, metadata: { ...made.metadata, generation: 1 }, status: { phase: 'Pending' } };
}

/** The plan of a Pod whose containers are all stand-ins. */
function plan(
  each: Pod,
  at = 0,
  {
    observed = new Map(),
    ending,
    hasNetworks = true,
  }: { observed?: Map<string, Observed>; ending?: PodEnding; hasNetworks?: boolean } = {},
): KubeletPlan {
  return planPod({
    ...{ pod: each, node: host, addresses, observed, ending },
    ...{ isPrepared: true, hasNetworks, isStandIn: () => true, now: now + at },
  });
}

/** The statuses over time: planned, stored, and planned again when the plan says so. */
function live(start: Pod, milliseconds: number): { at: number; status: PodStatus }[] {
  const seen: { at: number; status: PodStatus }[] = [];
  let current = start;
  const observed = new Map<string, Observed>();
  let at = 0;
  for (let i = 0; i < 50; i++) {
    const { status, next, running } = plan(current, at, { observed });
    for (const { container, attempt, startedAt } of running) {
      const nothing = { ending: undefined, problem: undefined, started: undefined, ready: undefined };
      observed.set(container.name, { attempt, startedAt, ...nothing });
    }
    seen.push({ at, status });
    current = { ...current, status: { ...current.status, ...status } };
    if (next === undefined || next - now > milliseconds) return seen;
    expect(next).toBeGreaterThan(now + at);
    at = next - now;
  }
  return seen;
}

function ready(status: PodStatus): string {
  return status.conditions?.find(({ type }) => type === 'Ready')?.status ?? '';
}

describe('planPod', () => {
  it('starts nothing before further networks are attached, and shows the addresses', () => {
    const init = [{ name: 'first', image: 'i' }];
    const { status, running } = plan(bound({}, { initContainers: init, containers: [] }), 0, {
      hasNetworks: false,
    });
    expect(running).toEqual([]);
    expect(status).toMatchObject({ phase: 'Pending', podIP: '10.244.0.20' });
    expect(status.initContainerStatuses?.[0]?.state).toEqual({ waiting: { reason: 'PodInitializing' } });
    expect(status.conditions?.find(({ type }) => type === 'PodReadyToStartContainers')?.status).toBe('False');
    const { status: main } = plan(bound(), 0, { hasNetworks: false });
    expect(main.containerStatuses?.[0]?.state).toEqual({ waiting: { reason: 'ContainerCreating' } });
  });

  it('runs a Pod at once, ready, with addresses of both families', () => {
    const [first, ...more] = live(bound(), 60_000);
    expect(more).toEqual([]);
    const time = '2026-01-01T00:00:00Z';
    const condition = (type: string): object => ({
      type,
      observedGeneration: 1,
      status: 'True',
      lastProbeTime: null,
      lastTransitionTime: time,
    });
    expect(first?.status).toEqual({
      observedGeneration: 1,
      phase: 'Running',
      conditions: [
        'PodReadyToStartContainers',
        'Initialized',
        'Ready',
        'ContainersReady',
        'PodScheduled',
      ].map(condition),
      hostIP: '172.18.0.2',
      hostIPs: [{ ip: '172.18.0.2' }, { ip: 'fd00::2' }],
      podIP: '10.244.0.20',
      podIPs: [{ ip: '10.244.0.20' }, { ip: 'fd00:10:244::20' }],
      startTime: time,
      containerStatuses: [
        {
          name: 'main',
          state: { running: { startedAt: time } },
          lastState: {},
          ready: true,
          restartCount: 0,
          image: 'i',
          imageID: 'simulated://i',
          containerID: 'simulated://uid-p/main/0',
          started: true,
          resources: {},
        },
      ],
    });
  });

  it('is ready after its delay, to the millisecond', () => {
    const seen = live(bound({ 'servicenet.dev/ready-after': '1500ms' }), 60_000);
    expect(seen.map(({ at, status }) => [at, ready(status)])).toEqual([
      [0, 'False'],
      [1500, 'True'],
    ]);
    expect(seen[0]?.status.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [main]',
    });
  });

  it('flaps', () => {
    const seen = live(
      bound({ 'servicenet.dev/ready-after': '1', 'servicenet.dev/readiness': 'flapping:2' }),
      8000,
    );
    expect(seen.map(({ at, status }) => [at, ready(status)])).toEqual([
      [0, 'False'],
      [1000, 'True'],
      [3000, 'False'],
      [5000, 'True'],
      [7000, 'False'],
    ]);
  });

  it('crashes, restarts at once, and then with a back-off that doubles', () => {
    const seen = live(bound({ 'servicenet.dev/fail-after': '2s' }), 60_000);
    const shown = seen.map(({ at, status }) => {
      const [container] = status.containerStatuses ?? [];
      return [at, container?.restartCount, container?.state?.waiting?.reason ?? 'running'];
    });
    expect(shown).toEqual([
      [0, 0, 'running'],
      [2000, 1, 'running'],
      [4000, 1, 'CrashLoopBackOff'],
      [14_000, 2, 'running'],
      [16_000, 2, 'CrashLoopBackOff'],
      [36_000, 3, 'running'],
      [38_000, 3, 'CrashLoopBackOff'],
    ]);
  });

  it.each([
    ['Never', { 'servicenet.dev/fail-after': '1s' }, 'Failed', 1],
    ['Never', { 'servicenet.dev/complete-after': '1s' }, 'Succeeded', 0],
    ['OnFailure', { 'servicenet.dev/complete-after': '1s' }, 'Succeeded', 0],
    ['Never', { 'servicenet.dev/complete-after': '2s', 'servicenet.dev/fail-after': '1s' }, 'Failed', 1],
  ])('ends with restartPolicy %s and %j', (restartPolicy, annotations, phase, exitCode) => {
    const last = live(bound(annotations, { restartPolicy, containers: [{ name: 'main' }] }), 60_000).at(-1);
    expect(last?.status).toMatchObject({
      phase,
      containerStatuses: [{ ready: false, state: { terminated: { exitCode } } }],
    });
    expect(ready(last?.status ?? {})).toBe('False');
  });

  it('waits for readiness gates, and keeps what others say', () => {
    const gated = bound({}, { readinessGates: [{ conditionType: 'example.com/lb' }], containers: [] });
    expect(ready(plan(gated).status)).toBe('False');
    const open = {
      ...gated,
      status: { ...gated.status, conditions: [{ type: 'example.com/lb', status: 'True' }] },
    };
    expect(ready(plan(open).status)).toBe('True');
    expect(plan(open).status.conditions?.[0]).toEqual({ type: 'example.com/lb', status: 'True' });
  });

  it('runs ephemeral containers from when it sees them, and never as ready', () => {
    const debugged = bound({}, { ephemeralContainers: [{ name: 'debugger', image: 'busybox' }] });
    const first = plan(debugged);
    const [status] = first.status.ephemeralContainerStatuses ?? [];
    expect(status).toMatchObject({ name: 'debugger', image: 'busybox', ready: false, restartCount: 0 });
    expect(status?.state).toEqual({ running: { startedAt: '2026-01-01T00:00:00Z' } });
    expect(ready(first.status)).toBe('True');
    const stored = { ...debugged, status: first.status };
    const later = plan(stored, 5000);
    expect(later.status.ephemeralContainerStatuses).toEqual(first.status.ephemeralContainerStatuses);
  });

  it('goes on where it was after a restart of the process', () => {
    const begun = live(bound({ 'servicenet.dev/ready-after': '10s' }), 0)[0]?.status ?? {};
    const again = plan({ ...bound({ 'servicenet.dev/ready-after': '10s' }), status: begun }, 4000);
    expect(again.next).toBe(now + 10_000);
    expect(again.status.containerStatuses).toEqual(begun.containerStatuses);
  });
});

describe('termination', () => {
  const running = (annotations: Record<string, string>): Pod => {
    const [begun] = live(bound(), 0);
    return { ...bound(annotations), status: { ...begun?.status } };
  };
  const ending = { sinceMs: now, graceMs: 30_000 };

  it('leaves what runs as it is, and follows its readiness', () => {
    expect(ready(plan(running({}), 500, { ending }).status)).toBe('True');
    const unready = plan(running({ 'servicenet.dev/readiness': 'false' }), 500, { ending });
    expect(unready.status).toMatchObject({
      phase: 'Running',
      containerStatuses: [{ ready: false, restartCount: 0, state: { running: {} } }],
    });
    expect(ready(unready.status)).toBe('False');
    expect(unready.next).toBe(now + 1000);
  });

  it.each([
    ['500ms', 30, 500, true],
    ['1h', 2, 2000, false],
    ['1h', 0, 0, false],
  ])('with stop-after %s and %i s of grace', (stopAfter, grace, milliseconds, inTime) => {
    const leaving = running({ 'servicenet.dev/stop-after': stopAfter });
    const end = { sinceMs: now, graceMs: grace * 1000 };
    if (milliseconds > 0) expect(plan(leaving, 0, { ending: end }).next).toBe(now + milliseconds);
    expect(plan(leaving, milliseconds, { ending: end }).status).toMatchObject({
      phase: inTime ? 'Succeeded' : 'Failed',
      containerStatuses: [{ state: { terminated: { exitCode: inTime ? 0 : 137 } } }],
    });
  });

  it('gives a stand-in with a preStop handler the time that this takes, within the grace period', () => {
    const handled = { name: 'main', image: 'i', lifecycle: { preStop: { sleep: { seconds: 20 } } } };
    const begun = bound({}, { containers: [handled] });
    const leaving = { ...begun, status: { ...begun.status, ...plan(begun).status } };
    const ending = { sinceMs: now, graceMs: 30_000 };
    expect(plan(leaving, 5000, { ending })).toMatchObject({
      next: now + 30_000,
      status: { phase: 'Running' },
    });
    const seen = { exitCode: 0, startedAt: now, finishedAt: now + 20_000 };
    const nothing = { problem: undefined, started: undefined, ready: undefined };
    const observed = new Map([['main', { attempt: 0, startedAt: now, ending: seen, ...nothing }]]);
    expect(plan(leaving, 20_000, { ending, observed }).status.phase).toBe('Succeeded');
  });

  it('ends a Pod whose containers never started at once', () => {
    const { status, next } = plan(bound(), 0, { ending });
    expect(next).toBeUndefined();
    expect(status).toMatchObject({ phase: 'Failed', containerStatuses: [{ state: { waiting: {} } }] });
  });
});

describe('PodAddresses', () => {
  it('never gives an address to two Pods, and gives it again when its Pod is gone', () => {
    const small = { ...host, spec: { podCIDRs: ['10.244.0.0/28', 'fd00:10:244::/64'] } };
    const steps = fc.array(fc.tuple(fc.boolean(), fc.nat(19)), { maxLength: 60 });
    fc.assert(
      fc.property(
        steps,
        fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
        (operations, numbers) => {
          const random = (): number => {
            const next: IteratorResult<number, unknown> = numbers.next();
            return typeof next.value === 'number' ? next.value : 0;
          };
          const book = new PodAddresses(random);
          const held = new Map<number, string[]>();
          for (const [take, which] of operations) {
            const each = bound();
            each.metadata.uid = `uid-${which}`;
            if (!take) {
              book.release(each);
              held.delete(which);
              continue;
            }
            // A /28 has fourteen usable addresses.
            if (held.size >= 14 && !held.has(which)) {
              expect(() => book.assign(each, small)).toThrow('range is full');
              continue;
            }
            const given = book.assign(each, small);
            expect(given).toHaveLength(2);
            expect(book.assign(each, small)).toEqual(given);
            held.set(which, given);
            const all = [...held.values()].flat();
            expect(new Set(all).size).toBe(all.length);
          }
        },
      ),
    );
  });

  it('takes stock of what Pods report', () => {
    const tiny = { ...host, spec: { podCIDRs: ['10.244.0.0/30'] } };
    const book = new PodAddresses(() => 0);
    const present = bound();
    present.status = { podIPs: [{ ip: '10.244.0.1' }] };
    book.observe(present, tiny);
    const other = bound();
    other.metadata.uid = 'other';
    expect(book.assign(other, tiny)).toEqual(['10.244.0.2']);
    expect(book.assign(present, tiny)).toEqual(['10.244.0.1']);
  });
});
