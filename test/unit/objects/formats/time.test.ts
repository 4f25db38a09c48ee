import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatMicroTime,
  formatTime,
  parseDuration,
  parseTime,
} from '../../../../src/objects/formats/time.ts';

describe('times', () => {
  it('writes seconds and microseconds', () => {
    const at = Date.UTC(2026, 0, 2, 3, 4, 5, 678) + 0.5;
    expect(formatTime(at)).toBe('2026-01-02T03:04:05Z');
    expect(formatMicroTime(at)).toBe('2026-01-02T03:04:05.678500Z');
  });

  it.each([
    ['2026-01-02T03:04:05Z', Date.UTC(2026, 0, 2, 3, 4, 5)],
    ['2026-01-02T03:04:05.25Z', Date.UTC(2026, 0, 2, 3, 4, 5, 250)],
    ['2026-01-02T03:04:05+01:30', Date.UTC(2026, 0, 2, 1, 34, 5)],
    ['2024-02-29T00:00:00-01:00', Date.UTC(2024, 1, 29, 1)],
    ['0001-01-01T00:00:00Z', -62135596800000],
    ['2026-02-29T00:00:00Z', undefined],
    ['2026-00-01T00:00:00Z', undefined],
    ['2026-01-01T24:00:00Z', undefined],
    ['2026-01-01T00:00:60Z', undefined],
    ['2026-01-01T00:00:00', undefined],
    ['2026-01-01 00:00:00Z', undefined],
    ['yesterday', undefined],
    ['', undefined],
  ])('reads %s', (text, expected) => {
    expect(parseTime(text)).toBe(expected);
  });

  it('reads back what it writes', () => {
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true }), (date) => {
        expect(parseTime(formatMicroTime(date.getTime()))).toBeCloseTo(date.getTime(), 3);
      }),
    );
  });
});

it.each([
  ['0', 0],
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1500],
  ['250ms', 250],
  ['', undefined],
  ['5', undefined],
  ['-5s', undefined],
  ['s', undefined],
  ['9'.repeat(40) + 's', undefined],
])('parseDuration(%j) is %j', (text, expected) => {
  expect(parseDuration(text)).toBe(expected);
});
