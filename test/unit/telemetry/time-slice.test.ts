import { expect, it } from 'vitest';
import { TimeSlice, turnForLongWork } from '../../../src/telemetry/time-slice.ts';

/** Works without a pause for more than half of a slice. */
function work(): void {
  const end = performance.now() + 11;
  while (performance.now() < end);
}

/** The most pieces of work that were done between two turns of the event loop. @param begin starts all of the work. */
async function mostInATurn(begin: (worked: () => void) => Promise<unknown>): Promise<number> {
  let [inTurn, most, isOver] = [0, 0, false];
  const turn = (): void => {
    most = Math.max(most, inTurn);
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await begin(() => {
    work();
    inTurn++;
  });
  isOver = true;
  return Math.max(most, inTurn);
}

it('many works in slices have one slice in a turn together', async () => {
  const sliced = async (worked: () => void): Promise<void> => {
    const slice = new TimeSlice();
    for (let n = 0; n < 4; n++) {
      worked();
      if (slice.isOver) await slice.yield();
    }
  };
  const most = await mostInATurn(async (worked) => {
    // Requests that come in one turn, each in a callback of its own: the first piece waits for a turn that has time.
    const one = async (): Promise<void> => {
      await new Promise(setImmediate);
      await turnForLongWork();
      await sliced(worked);
    };
    await Promise.all(Array.from({ length: 10 }, one));
  });
  // Two fill a slice; without a common turn there were 20.
  expect(most).toBeLessThanOrEqual(5);
});

it('short work does not wait behind long work', async () => {
  const order: string[] = [];
  const long = async (): Promise<void> => {
    const slice = new TimeSlice();
    for (let n = 0; n < 6; n++) {
      work();
      if (slice.isOver) await slice.yield();
    }
    order.push('long');
  };
  const all = [long(), long()];
  await new Promise(setImmediate);
  const slice = new TimeSlice();
  if (slice.isOver) await slice.yield();
  order.push('short');
  await Promise.all(all);
  expect(order).toEqual(['short', 'long', 'long']);
});
