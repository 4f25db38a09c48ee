import fc from 'fast-check';
import { expect, test } from 'vitest';
import { humanDuration, timeSince } from '../../../../src/apiserver/tables/table.ts';

const s = 1000;
const m = 60 * s;
const h = 60 * m;
const d = 24 * h;

test.each([
  [-2 * s, '<invalid>'],
  [-1 * s, '0s'],
  [0, '0s'],
  [999, '0s'],
  [90 * s, '90s'],
  [119 * s, '119s'],
  [120 * s, '2m'],
  [185 * s, '3m5s'],
  [10 * m, '10m'],
  [45 * m, '45m'],
  [179 * m, '179m'],
  [3 * h, '3h'],
  [3 * h + 5 * m, '3h5m'],
  [8 * h + 59 * m, '8h'],
  [30 * h, '30h'],
  [48 * h, '2d'],
  [3 * d + 4 * h, '3d4h'],
  [8 * d + 5 * h, '8d'],
  [200 * d, '200d'],
  [729 * d, '729d'],
  [730 * d, '2y'],
  [3 * 365 * d + 10 * d, '3y10d'],
  [8 * 365 * d + 10 * d, '8y'],
])('%d ms are %s', (ms, text) => {
  expect(humanDuration(ms)).toBe(text);
});

test('a longer time never reads as a shorter one', () => {
  const units = new Map([
    ['s', s],
    ['m', m],
    ['h', h],
    ['d', d],
    ['y', 365 * d],
  ]);
  const read = (text: string): number =>
    [...text.matchAll(/(\d+)([smhdy])/g)].reduce(
      (sum, [, n, unit]) => sum + Number(n) * (units.get(unit ?? '') ?? NaN),
      0,
    );
  const ms = fc.integer({ min: 0, max: 20 * 365 * d });
  fc.assert(
    fc.property(ms, ms, (a, b) => {
      const [short, long] = [read(humanDuration(Math.min(a, b))), read(humanDuration(Math.max(a, b)))];
      expect(short).toBeLessThanOrEqual(long);
      expect(long).toBeLessThanOrEqual(Math.max(a, b));
    }),
  );
});

test('times that are none are unknown', () => {
  const now = Date.parse('2026-01-01T00:00:30Z');
  expect(timeSince('2026-01-01T00:00:00Z', now)).toBe('30s');
  for (const nothing of [undefined, null, '', 'yesterday', 5])
    expect(timeSince(nothing, now)).toBe('<unknown>');
});
