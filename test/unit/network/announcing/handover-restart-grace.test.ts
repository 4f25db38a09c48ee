import { expect, test } from 'vitest';
import { decodeReport, encodeReport } from '../../../../src/network/announcing/agent-report.ts';
import { RestartGrace, secondsLeft } from '../../../../src/network/announcing/handover.ts';

const kept = { addresses: ['192.0.2.1', '192.0.2.2'], seconds: 120 };

test('what an agent leaves is not taken before its time is over, which counts from when its Lease was seen', () => {
  const grace = new RestartGrace();
  grace.observe('a', '7', kept, 1000);
  // The same Lease again, as of a watch that begins anew.
  grace.observe('a', '7', kept, 50_000);
  expect(grace.addresses(1000)).toEqual(kept.addresses);
  expect(grace.addresses(1000 + 120_999)).toEqual(kept.addresses);
  expect(grace.addresses(1000 + 121_000)).toEqual([]);
  grace.observe('a', '8', kept, 200_000);
  expect(grace.addresses(300_000)).toEqual(kept.addresses);
});

test('what an agent leaves is free when it is back, and when its Lease is gone', () => {
  const grace = new RestartGrace();
  grace.observe('a', '7', kept, 0);
  grace.observe('b', '8', { addresses: ['192.0.2.3'], seconds: 10 }, 0);
  grace.observe('a', '9', undefined, 10);
  expect(grace.addresses(20)).toEqual(['192.0.2.3']);
});

test.each([0, 1, 20, 2300, 5000, 119_999, 130_000])(
  'the kernel ends before others may take it, with %i ms between the Lease and the end of the agent',
  (late) => {
    const saidFrom = 4000;
    const grace = new RestartGrace();
    // As early as others can see it: at the beginning of the write.
    grace.observe('a', '7', kept, saidFrom);
    const now = saidFrom + late;
    const seconds = secondsLeft(kept.seconds, saidFrom, now);
    // `ip` takes whole seconds; the kernel is up to a second late.
    expect(Number.isInteger(seconds)).toBe(true);
    const isGoneAt = seconds === 0 ? now : now + seconds * 1000 + 999;
    if (seconds > 0) expect(grace.addresses(isGoneAt)).toEqual(kept.addresses);
    expect(seconds === 0).toBe(late > 119_000);
  },
);

test('a report says what its agent leaves', () => {
  const report = { interfaces: [], sessions: [], refused: [], announced: [], voters: new Map(), kept };
  expect(decodeReport(encodeReport(report)).kept).toEqual(kept);
  expect(decodeReport('{"kept":{"addresses":["here",7,"192.0.2.9"],"seconds":"x"}}').kept).toEqual({
    addresses: ['192.0.2.9'],
    seconds: 0,
  });
  expect(decodeReport('{}').kept).toBeUndefined();
});
