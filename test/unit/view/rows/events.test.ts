import { expect, test } from 'vitest';
import { eventRow, newestWarning } from '../../../../src/view/rows/events.ts';

function event(name: string, members: object) {
  return { metadata: { namespace: 'shop', name, creationTimestamp: '2026-01-01T00:00:00Z' }, ...members };
}

test.each([
  [{}, '2026-01-01T00:00:00Z', 1],
  [{ eventTime: '2026-01-01T00:00:01.000000Z' }, '2026-01-01T00:00:01.000000Z', 1],
  [{ lastTimestamp: '2026-01-01T00:00:02Z', count: 4 }, '2026-01-01T00:00:02Z', 4],
  [
    { series: { count: 7, lastObservedTime: '2026-01-01T00:00:03.000000Z' }, eventTime: 'x' },
    '2026-01-01T00:00:03.000000Z',
    7,
  ],
])('the time and count of %j', (members, time, count) => {
  expect(eventRow(event('e', members))).toMatchObject({ time, count });
});

test('the newest Warning, of several of one time the first by name', () => {
  const at = (second: number, type: string, name: string) =>
    event(name, { type, reason: name, message: 'm', lastTimestamp: `2026-01-01T00:00:0${second}Z` });
  expect(newestWarning([])).toBeUndefined();
  expect(newestWarning([at(9, 'Normal', 'n')])).toBeUndefined();
  expect(newestWarning([at(1, 'Warning', 'a'), at(3, 'Warning', 'c'), at(3, 'Warning', 'b')])?.reason).toBe(
    'b',
  );
});
