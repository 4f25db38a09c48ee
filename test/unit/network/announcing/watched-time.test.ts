import { expect, test } from 'vitest';
import { WatchedTime } from '../../../../src/network/announcing/watched-time.ts';

test('time passes while changes are seen, and stands when they stop', () => {
  const time = new WatchedTime(1000);
  expect([time.at(5000), time.isSeeing(5000)]).toEqual([0, false]);
  time.seen(5000);
  expect([5000, 5400, 6000, 60_000].map((now) => time.at(now))).toEqual([0, 400, 1000, 1000]);
  expect([6000, 6001].map((now) => time.isSeeing(now))).toEqual([true, false]);
  time.seen(60_000);
  expect(time.at(60_300)).toBe(1300);
});
