import { describe, expect, it } from 'vitest';
import { parseCronSchedule } from '../../../../src/objects/formats/cron-schedule.ts';

/** The next times of a schedule, in UTC to the minute. */
function times(schedule: string, after: string, count: number, timeZone = 'UTC'): string[] {
  const parsed = parseCronSchedule(schedule);
  const found: string[] = [];
  let time: number | undefined = Date.parse(after);
  for (let i = 0; i < count && time !== undefined; i++) {
    time = parsed.next(time, timeZone);
    found.push(time === undefined ? 'never' : new Date(time).toISOString().replace(':00.000Z', ''));
  }
  return found;
}

describe('parseCronSchedule', () => {
  it.each([
    ['*/15 * * * *', '2026-07-09T14:45:00Z', ['2026-07-09T15:00', '2026-07-09T15:15']],
    ['0 0 1 1 *', '2026-07-09T14:45:00Z', ['2027-01-01T00:00', '2028-01-01T00:00']],
    ['30 8 * * mon-fri', '2026-11-20T09:00:00Z', ['2026-11-23T08:30', '2026-11-24T08:30']],
    ['5/20 3 * feb ?', '2026-01-31T00:00:00Z', ['2026-02-01T03:05', '2026-02-01T03:25', '2026-02-01T03:45']],
    // Both fields of days: one of them is enough.
    ['0 0 13 * 5', '2026-11-01T00:00:00Z', ['2026-11-06T00:00', '2026-11-13T00:00', '2026-11-20T00:00']],
    ['0 0 29 2 *', '2026-01-01T00:00:00Z', ['2028-02-29T00:00']],
    ['0 0 30 2 *', '2026-01-01T00:00:00Z', ['never']],
    ['@hourly', '2026-07-09T14:45:30Z', ['2026-07-09T15:00', '2026-07-09T16:00']],
    ['@weekly', '2026-07-09T14:45:30Z', ['2026-07-12T00:00']],
    ['@every 1h30m', '2026-07-09T14:45:00Z', ['2026-07-09T16:15', '2026-07-09T17:45']],
    ['@every 1ms', '2026-07-09T14:45:59Z', ['2026-07-09T14:46']],
  ])('%s', (schedule, after, expected) => {
    expect(times(schedule, after, expected.length)).toEqual(expected);
  });

  it.each([
    ['0 9 * * *', 'Asia/Kolkata', '2026-07-09T00:00:00Z', ['2026-07-09T03:30']],
    // 29 March 2026 has no 02:30 in Berlin.
    ['30 2 * * *', 'Europe/Berlin', '2026-03-27T12:00:00Z', ['2026-03-28T01:30', '2026-03-30T00:30']],
    // 25 October 2026 has 02:30 twice.
    ['30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', ['2026-10-25T00:30', '2026-10-25T01:30']],
    ['0 * * * *', 'Europe/Berlin', '2026-10-24T23:30:00Z', ['2026-10-25T00:00', '2026-10-25T01:00']],
    // Midnight of 8 March 2026 is skipped.
    ['0 1 * * *', 'America/Havana', '2026-03-07T12:00:00Z', ['2026-03-08T05:00', '2026-03-09T05:00']],
  ])('%s in %s', (schedule, timeZone, after, expected) => {
    expect(times(schedule, after, expected.length, timeZone)).toEqual(expected);
  });

  it('counts a zone of its own more', () => {
    expect(times('CRON_TZ=Asia/Tokyo 0 9 * * *', '2026-07-09T12:00:00Z', 1)).toEqual(['2026-07-10T00:00']);
  });
});
