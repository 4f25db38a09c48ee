import { expect, test } from 'vitest';
import { GratuitousArpSchedule } from '../../../../../src/node/announce/layer2/conflicts.ts';

/** When an interface with a new address is announced, by a process that looks at these times. */
function announcedAt(looks: readonly number[]): number[] {
  const times = new GratuitousArpSchedule();
  times.added('eth0', 0);
  return looks.filter((now) => {
    const isDue = times.isDue('eth0', now);
    if (isDue) times.announced('eth0', now);
    return isDue;
  });
}

test('new addresses are announced at once, after 0.3 s, after 1 s, and every 30 s from then on', () => {
  const looks = Array.from({ length: 700 }, (_, n) => n * 100);
  expect(announcedAt(looks)).toEqual([0, 300, 1000, 31_000, 61_000]);
});

test('times that passed unseen are one', () => {
  expect(announcedAt([0, 5000, 5100, 34_900, 35_000])).toEqual([0, 5000, 35_000]);
});

test('an interface of a former process is due at once', () => {
  expect(new GratuitousArpSchedule().isDue('eth0', 7)).toBe(true);
});

test('what is postponed comes 0.3 s later, and the times behind it as they were', () => {
  const times = new GratuitousArpSchedule();
  times.added('eth0', 0);
  times.postpone('eth0', 100);
  expect(times.isDue('eth0', 399)).toBe(false);
  expect(times.next(['eth0', 'eth1'])).toBe(400);
  times.announced('eth0', 400);
  expect(times.next(['eth0'])).toBe(1000);
});
