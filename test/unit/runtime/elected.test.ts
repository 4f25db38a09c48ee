import { describe, expect, it } from 'vitest';
import { whenAborted } from '../../../src/client/clock.ts';
import type { Runnable } from '../../../src/runtime/context.ts';
import { runTogether } from '../../../src/runtime/leadership.ts';

const patient = (reasons: unknown[]): Runnable => ({
  async run(signal) {
    await whenAborted(signal);
    reasons.push(signal.reason);
  },
});

describe('runTogether', () => {
  it('runs all until the signal aborts, and passes the reason on', async () => {
    const stop = new AbortController();
    const reasons: unknown[] = [];
    const ended = runTogether([patient(reasons), patient(reasons)], stop.signal);
    stop.abort('enough');
    await ended;
    expect(reasons).toEqual(['enough', 'enough']);
  });

  it('ends all when one fails, and says why', async () => {
    const reasons: unknown[] = [];
    const broken: Runnable = { run: () => Promise.reject(new Error('a bug')) };
    await expect(runTogether([patient(reasons), broken], new AbortController().signal)).rejects.toThrow(
      'a bug',
    );
    expect(reasons).toHaveLength(1);
  });

  it('ends at once on a signal that has aborted', async () => {
    await runTogether([patient([])], AbortSignal.abort());
    await runTogether([], AbortSignal.abort());
  });
});
