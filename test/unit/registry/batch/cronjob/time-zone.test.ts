import { expect, test } from 'vitest';
import { validateTimeZone } from '../../../../../src/registry/batch/cronjob.ts';

const faults = (timeZone: string | undefined): string[] =>
  validateTimeZone(timeZone, 'spec.timeZone').map(({ body }) => body);

test.each([undefined, 'UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'US/Pacific', 'Etc/GMT+4'])(
  '%s is a time zone',
  (timeZone) => {
    expect(faults(timeZone)).toEqual([]);
  },
);

test.each(['bad-time-zone', 'Amerrica/New_York', '/UTC', 'Europe//Berlin', '../UTC', '-a', '+01:00', 'a b'])(
  '%s is none',
  (timeZone) => {
    expect(faults(timeZone)).toEqual([
      `Invalid value: ${JSON.stringify(timeZone)}: unknown time zone ${timeZone}`,
    ]);
  },
);

test('an empty one and that of the machine have words of their own', () => {
  expect(faults('')).toEqual(['Invalid value: "": timeZone must be nil or non-empty string']);
  const explicit = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
  expect(faults('Local')).toEqual([`Invalid value: "Local": ${explicit}`]);
  expect(faults('local')).toEqual([
    `Invalid value: "local": ${explicit}`,
    'Invalid value: "local": unknown time zone local',
  ]);
});
