import { describe, expect, it } from 'vitest';
import type { ProbeKind } from '../../../../../src/controllers/kubelet/plan-behaviour.ts';
import { ProbeWorker } from '../../../../../src/controllers/kubelet/probes/probes.ts';
import type { Probe } from '../../../../../src/objects/types/core.generated.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';

/** Asks for a while; what was asked and decided, with the second of each. */
async function probed(
  kind: ProbeKind,
  probe: Probe,
  seconds: number,
  answers: (second: number) => boolean | 'never',
  hasStarted: (second: number) => boolean = () => kind !== 'startup',
): Promise<{ asked: number[]; decided: [number, boolean][]; refused: string[] }> {
  const clock = new FakeClock();
  const second = (): number => clock.monotonic() / 1000;
  const asked: number[] = [];
  const decided: [number, boolean][] = [];
  const refused: string[] = [];
  const worker = new ProbeWorker({
    ...{ clock, kind, probe, startedAtMs: clock.monotonic() },
    ask: (signal) => {
      asked.push(second());
      const answer = answers(second());
      if (answer !== 'never') return Promise.resolve({ success: answer, output: `at ${second()}` });
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ success: false, output: 'late' }));
      });
    },
    hasStarted: () => hasStarted(second()),
    decided: (verdict) => void decided.push([second(), verdict]),
    refused: (output) => void refused.push(output),
  });
  for (let i = 0; i < seconds; i++) await clock.advance(1000);
  worker.stop();
  await clock.advance(60_000);
  return { asked, decided, refused };
}

describe('a probe', () => {
  it.each<[string, ProbeKind, Probe, number[], [number, boolean][]]>([
    ['is asked at once and every period', 'readiness', { periodSeconds: 3 }, [0, 3, 6, 9], [[0, true]]],
    [
      'waits for its delay, and for the next period',
      'readiness',
      { periodSeconds: 3, initialDelaySeconds: 4 },
      [6, 9],
      [[6, true]],
    ],
    [
      'counts successes',
      'readiness',
      { periodSeconds: 2, successThreshold: 3 },
      [0, 2, 4, 6, 8, 10],
      [[4, true]],
    ],
  ])('%s', async (_, kind, probe, asked, decided) => {
    const seen = await probed(kind, probe, 10, () => true);
    expect(seen.asked).toEqual(asked);
    expect(seen.decided).toEqual(decided);
  });

  it('counts failures in a row, and forgets them with a success', async () => {
    const isUp = (second: number): boolean => second < 2 || second === 4;
    const { decided, refused } = await probed('liveness', { periodSeconds: 1 }, 9, isUp);
    expect(decided).toEqual([
      [0, true],
      [7, false],
    ]);
    expect(refused.slice(0, 3)).toEqual(['at 2', 'at 3', 'at 5']);
  });

  it('that hangs fails after its timeout, and is not asked twice at once', async () => {
    const probe = { periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 1 };
    const { asked, decided } = await probed('liveness', probe, 14, () => 'never');
    expect(asked).toEqual([0, 6, 12]);
    expect(decided).toEqual([[5, false]]);
  });

  it('waits until the container has started; that of the start asks until then', async () => {
    const hasStarted = (second: number): boolean => second >= 4;
    const others = await probed('liveness', { periodSeconds: 2 }, 8, () => true, hasStarted);
    expect(others.asked).toEqual([4, 6, 8]);
    const start = await probed('startup', { periodSeconds: 2 }, 8, () => true, hasStarted);
    expect(start.asked).toEqual([0, 2]);
  });
});
