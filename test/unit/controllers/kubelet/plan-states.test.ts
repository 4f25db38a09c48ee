import { describe, expect, it } from 'vitest';
import { planPod } from '../../../../src/controllers/kubelet/plan.ts';
import type { PodEnding } from '../../../../src/controllers/kubelet/plan-course.ts';
import type { Observed } from '../../../../src/controllers/kubelet/plan-containers.ts';
import type { Container, Pod, PodSpec } from '../../../../src/objects/types/core.generated.ts';
import { node, now, pod } from '../workloads/samples.ts';

/** What a container's program does at each attempt: it runs, cannot be made, or exits so after so many seconds. */
type Attempt = 'runs' | 'cannot' | readonly [seconds: number, exitCode: number];

/** By container; the last attempt is that of all further ones. */
type Programs = Readonly<Record<string, readonly Attempt[]>>;

const host = {
  ...node('n1'),
  status: { addresses: [{ type: 'InternalIP', address: '172.18.0.2' }] },
};

/** What the kubelet says after so many seconds: the phase, then `name=state` of each container. */
function stateAfter(
  spec: PodSpec,
  programs: Programs,
  seconds: number,
  more: { ending?: PodEnding } = {},
): string {
  const observed = new Map<string, Observed>();
  const nothing = { ending: undefined, problem: undefined, started: undefined, ready: undefined };
  let current: Pod = { ...pod('p', { spec }), status: { phase: 'Pending' } };
  for (let at = now; at <= now + seconds * 1000; at += 500) {
    for (let settled = false; !settled;) {
      settled = true;
      const { status, running } = planPod({
        ...{
          pod: current,
          node: host,
          addresses: ['10.244.0.9'],
          observed,
          isPrepared: true,
          hasNetworks: true,
        },
        ...{ isStandIn: () => false, now: at },
        ...(more.ending !== undefined && at >= more.ending.sinceMs ? { ending: more.ending } : {}),
      });
      current = { ...current, status: { ...current.status, ...status } };
      if (status.phase === 'Succeeded' || status.phase === 'Failed') return shown(current);
      for (const { container, attempt, startedAt } of running) {
        const seen = observed.get(container.name);
        const isTried = seen?.attempt === attempt && (seen.problem?.until ?? Infinity) > at;
        if (isTried) continue;
        const problem =
          programOf(programs, container.name, attempt) === 'cannot'
            ? { reason: 'CreateContainerConfigError', message: 'secret "s" not found', until: at + 5000 }
            : undefined;
        observed.set(container.name, { attempt, ...nothing, startedAt, problem });
        settled = false;
      }
      for (const [name, seen] of observed) {
        const program = programOf(programs, name, seen.attempt);
        const { startedAt = at, ending } = seen;
        if (typeof program === 'string' || ending !== undefined || at < startedAt + program[0] * 1000)
          continue;
        observed.set(name, { ...seen, ending: { exitCode: program[1], startedAt, finishedAt: at } });
        settled = false;
      }
    }
  }
  return shown(current);
}

function programOf(programs: Programs, name: string, attempt: number): Attempt {
  const list = programs[name] ?? [];
  return list[Math.min(attempt, list.length - 1)] ?? 'runs';
}

function shown({ status }: Pod): string {
  const all = [
    ...(status.initContainerStatuses ?? []),
    ...(status.containerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ];
  const states = all.map(({ name, state = {}, restartCount }) => {
    const { waiting, terminated } = state;
    const word =
      waiting?.reason ??
      (terminated === undefined ? 'Running' : `${terminated.reason}:${terminated.exitCode}`);
    return `${name}=${word}${restartCount === 0 ? '' : `/${restartCount}`}`;
  });
  return [status.phase, ...states].join(' ');
}

const one = (restartPolicy: string, more: Partial<Container> = {}): PodSpec => ({
  restartPolicy,
  containers: [{ name: 'a', ...more }],
});
const two = (restartPolicy: string): PodSpec => ({
  restartPolicy,
  containers: [{ name: 'a' }, { name: 'b' }],
});
const init = (restartPolicy: string): PodSpec => ({
  ...one(restartPolicy),
  initContainers: [{ name: 'i' }, { name: 'j' }],
});
const sidecar = (restartPolicy: string): PodSpec => ({
  ...one(restartPolicy),
  initContainers: [{ name: 's', restartPolicy: 'Always' }, { name: 'i' }],
});
const restartOn = (...values: number[]): Partial<Container> => ({
  restartPolicy: 'Never',
  restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values } }],
});
const deleted = (seconds: number): PodEnding => ({ sinceMs: now + seconds * 1000, graceMs: 30_000 });

// The phases are those of TestPodPhaseWithRestart* (pkg/kubelet/kubelet_pods_test.go), the back-off that of
// kuberuntime_manager.go: at once, then 10, 20, 40, … seconds.
describe('what a kubelet says of containers', () => {
  it.each<[string, PodSpec, Programs, number, string]>([
    ['runs', one('Always'), {}, 5, 'Running a=Running'],
    ['fails once', one('Always'), { a: [[2, 1], 'runs'] }, 5, 'Running a=Running/1'],
    ['fails twice', one('Always'), { a: [[1, 1]] }, 5, 'Running a=CrashLoopBackOff/1'],
    ['fails three times', one('Always'), { a: [[1, 1]] }, 14, 'Running a=CrashLoopBackOff/2'],
    ['is back after ten seconds', one('Always'), { a: [[1, 1], [1, 1], 'runs'] }, 13, 'Running a=Running/2'],
    ['completes and starts again', one('Always'), { a: [[1, 0]] }, 5, 'Running a=CrashLoopBackOff/1'],
    ['completes, on failure', one('OnFailure'), { a: [[1, 0]] }, 5, 'Succeeded a=Completed:0'],
    [
      'fails, on failure',
      one('OnFailure'),
      {
        a: [
          [1, 1],
          [1, 0],
        ],
      },
      5,
      'Succeeded a=Completed:0/1',
    ],
    ['fails again, on failure', one('OnFailure'), { a: [[1, 2]] }, 5, 'Running a=CrashLoopBackOff/1'],
    ['completes for good', one('Never'), { a: [[1, 0]] }, 5, 'Succeeded a=Completed:0'],
    ['fails for good', one('Never'), { a: [[1, 3]] }, 5, 'Failed a=Error:3'],
    ['is killed', one('Never'), { a: [[1, 137]] }, 5, 'Failed a=Error:137'],
    ['cannot be made', one('Always'), { a: ['cannot'] }, 5, 'Pending a=CreateContainerConfigError'],
    ['cannot be made, never', one('Never'), { a: ['cannot'] }, 30, 'Pending a=CreateContainerConfigError'],
    ['of two both run', two('Always'), {}, 5, 'Running a=Running b=Running'],
    ['of two one fails', two('Always'), { b: [[1, 1]] }, 5, 'Running a=Running b=CrashLoopBackOff/1'],
    [
      'of two one cannot',
      two('Always'),
      { b: ['cannot'] },
      5,
      'Pending a=Running b=CreateContainerConfigError',
    ],
    ['of two one has completed', two('Never'), { a: [[1, 0]] }, 5, 'Running a=Completed:0 b=Running'],
    ['of two one has failed', two('Never'), { a: [[1, 1]] }, 5, 'Running a=Error:1 b=Running'],
    [
      'of two both have completed',
      two('Never'),
      { a: [[1, 0]], b: [[2, 0]] },
      5,
      'Succeeded a=Completed:0 b=Completed:0',
    ],
    [
      'of two one completes, one fails',
      two('Never'),
      { a: [[1, 0]], b: [[2, 1]] },
      5,
      'Failed a=Completed:0 b=Error:1',
    ],
    [
      'of two one fails and one is done, on failure',
      two('OnFailure'),
      { a: [[1, 0]], b: [[1, 1]] },
      5,
      'Running a=Completed:0 b=CrashLoopBackOff/1',
    ],
    ['prepares', init('Always'), { i: ['runs'] }, 5, 'Pending i=Running j=PodInitializing a=PodInitializing'],
    [
      'prepares the second',
      init('Always'),
      { i: [[1, 0]], j: ['runs'] },
      5,
      'Pending i=Completed:0 j=Running a=PodInitializing',
    ],
    [
      'is prepared',
      init('Always'),
      { i: [[1, 0]], j: [[1, 0]] },
      5,
      'Running i=Completed:0 j=Completed:0 a=Running',
    ],
    [
      'cannot prepare',
      init('Always'),
      { i: [[1, 1]] },
      5,
      'Pending i=CrashLoopBackOff/1 j=PodInitializing a=PodInitializing',
    ],
    [
      'cannot prepare, on failure',
      init('OnFailure'),
      { i: [[1, 1]] },
      5,
      'Pending i=CrashLoopBackOff/1 j=PodInitializing a=PodInitializing',
    ],
    [
      'cannot prepare, never',
      init('Never'),
      { i: [[1, 1]] },
      5,
      'Failed i=Error:1 j=PodInitializing a=PodInitializing',
    ],
    [
      'cannot prepare the second, never',
      init('Never'),
      { i: [[1, 0]], j: [[1, 2]] },
      5,
      'Failed i=Completed:0 j=Error:2 a=PodInitializing',
    ],
    [
      'prepares at the second try',
      init('OnFailure'),
      {
        i: [
          [1, 1],
          [1, 0],
        ],
        j: [[1, 0]],
      },
      5,
      'Running i=Completed:0/1 j=Completed:0 a=Running',
    ],
    [
      'cannot make an init container',
      init('Always'),
      { i: ['cannot'] },
      5,
      'Pending i=CreateContainerConfigError j=PodInitializing a=PodInitializing',
    ],
    [
      'fails after it was prepared',
      init('Always'),
      { i: [[1, 0]], j: [[1, 0]], a: [[1, 1]] },
      6,
      'Running i=Completed:0 j=Completed:0 a=CrashLoopBackOff/1',
    ],
    ['runs beside', sidecar('Always'), { i: [[1, 0]] }, 5, 'Running s=Running i=Completed:0 a=Running'],
    ['waits beside', sidecar('Always'), { i: ['runs'] }, 5, 'Pending s=Running i=Running a=PodInitializing'],
    [
      'what runs beside fails, and starts again',
      sidecar('Never'),
      { s: [[3, 1], 'runs'], i: [[1, 0]] },
      6,
      'Running s=Running/1 i=Completed:0 a=Running',
    ],
    [
      'what runs beside outlives the others',
      sidecar('Never'),
      { i: [[1, 0]], a: [[1, 0]] },
      5,
      'Running s=Running i=Completed:0 a=Completed:0',
    ],
    [
      'what runs beside ends after the others, and does not count',
      sidecar('Never'),
      { i: [[1, 0]], a: [[1, 0]], s: [[8, 143]] },
      12,
      'Succeeded s=Error:143 i=Completed:0 a=Completed:0',
    ],
    [
      'has a policy of its own',
      one('Always', { restartPolicy: 'Never' }),
      { a: [[1, 1]] },
      5,
      'Failed a=Error:1',
    ],
    ['restarts by a rule', one('Never', restartOn(42)), { a: [[1, 42], 'runs'] }, 5, 'Running a=Running/1'],
    [
      'does not restart by a rule for others',
      one('Never', restartOn(42)),
      { a: [[1, 41]] },
      5,
      'Failed a=Error:41',
    ],
    [
      'is debugged',
      { ...one('Always'), ephemeralContainers: [{ name: 'd' }] },
      {},
      5,
      'Running a=Running d=Running',
    ],
    [
      'was debugged',
      { ...one('Always'), ephemeralContainers: [{ name: 'd' }] },
      { d: [[1, 1]] },
      5,
      'Running a=Running d=Error:1',
    ],
  ])('that %s', (_, spec, programs, seconds, state) => {
    expect(stateAfter(spec, programs, seconds)).toBe(state);
  });

  it.each<[string, PodSpec, Programs, string]>([
    ['ends in time', one('Always'), { a: [[6, 0]] }, 'Succeeded a=Completed:0'],
    ['ends by a signal', one('Always'), { a: [[6, 143]] }, 'Failed a=Error:143'],
    ['goes on', one('Always'), {}, 'Running a=Running'],
    ['is in its back-off', one('Always'), { a: [[1, 1]] }, 'Failed a=Error:1/1'],
    ['prepares', init('Always'), { i: [[7, 143]] }, 'Failed i=Error:143 j=PodInitializing a=PodInitializing'],
  ])('that is deleted after five seconds, and %s', (_, spec, programs, state) => {
    expect(stateAfter(spec, programs, 10, { ending: deleted(5) })).toBe(state);
  });
});
