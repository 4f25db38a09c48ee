import {
  durationParam,
  type Library,
  member,
  type Overload,
  overload1,
  overload2,
  stringParam,
  timestampParam,
} from '../overload.ts';
import { intType } from '../types.ts';
import { EvaluationError } from '../values.ts';

/** The calendar date and time of day of a time. */
interface CalendarTime {
  readonly year: number;
  /** From 1. */
  readonly month: number;
  /** From 1. */
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

const nanosPerMilli = 1_000_000n;
const fixedOffset = /^([+-]?)(\d\d):(\d\d)$/;

function milliseconds(nanos: bigint): number {
  const rest = ((nanos % nanosPerMilli) + nanosPerMilli) % nanosPerMilli;
  return Number((nanos - rest) / nanosPerMilli);
}

function readUtc(time: number): CalendarTime {
  const date = new Date(time);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
  };
}

/** Converts a time to a zone, given by its IANA name or as an offset such as `-08:00`. @throws {EvaluationError} */
function readIn(time: number, zone: string): CalendarTime {
  const fixed = fixedOffset.exec(zone);
  if (fixed !== null) {
    const minutes = (Number(fixed[2]) * 60 + Number(fixed[3])) * (fixed[1] === '-' ? -1 : 1);
    return readUtc(time + minutes * 60_000);
  }
  if (zone === '' || zone === 'UTC') return readUtc(time);
  const parts = zoneFormat(zone).formatToParts(time);
  const read = (type: string) => Number(parts.find((found) => found.type === type)?.value);
  return {
    year: read('year'),
    month: read('month'),
    day: read('day'),
    hour: read('hour'),
    minute: read('minute'),
    second: read('second'),
  };
}

const zoneFormats = new Map<string, Intl.DateTimeFormat>();
const maxZoneFormats = 50;

/** @throws {EvaluationError} for an unknown zone. */
function zoneFormat(zone: string): Intl.DateTimeFormat {
  const known = zoneFormats.get(zone);
  if (known !== undefined) return known;
  const numeric = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  const clock = { hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const;
  try {
    const made = new Intl.DateTimeFormat('en-US', { timeZone: zone, ...numeric, ...clock });
    if (zoneFormats.size === maxZoneFormats) zoneFormats.clear();
    zoneFormats.set(zone, made);
    return made;
  } catch {
    throw new EvaluationError(`unknown time zone ${zone}`);
  }
}

/** Days since 1970. (`Date.UTC` takes the years 0 to 99 for 1900 to 1999.) */
function dayNumber({ year, month, day }: CalendarTime): number {
  return new Date(0).setUTCFullYear(year, month - 1, day) / 86_400_000;
}

/** A getter of timestamps, without and with a zone. The slow creation of a zone's formatter is charged. */
function getter(read: (reading: CalendarTime) => number): Overload[] {
  return [
    member(overload1(timestampParam, intType, ({ nanos }) => BigInt(read(readUtc(milliseconds(nanos)))))),
    member(
      overload2(timestampParam, stringParam, intType, ({ nanos }, zone, meter) => {
        meter.work(zoneCost);
        return BigInt(read(readIn(milliseconds(nanos), zone)));
      }),
    ),
  ];
}

const zoneCost = 500;
const millisOf = (nanos: bigint) => (nanos / nanosPerMilli) % 1000n;

function inUnits(nanosPerUnit: bigint): Overload {
  return member(overload1(durationParam, intType, ({ nanos }) => nanos / nanosPerUnit));
}

/** Parts of times and durations (cel-spec `doc/langdef.md`); months and days of the month count from 0, dates from 1. */
export const timeFunctions: Library = [
  ['getFullYear', getter(({ year }) => year)],
  ['getMonth', getter(({ month }) => month - 1)],
  ['getDate', getter(({ day }) => day)],
  ['getDayOfMonth', getter(({ day }) => day - 1)],
  ['getDayOfWeek', getter((reading) => (((dayNumber(reading) + 4) % 7) + 7) % 7)],
  ['getDayOfYear', getter((reading) => dayNumber(reading) - dayNumber({ ...reading, month: 1, day: 1 }))],
  ['getHours', [...getter(({ hour }) => hour), inUnits(3_600_000_000_000n)]],
  ['getMinutes', [...getter(({ minute }) => minute), inUnits(60_000_000_000n)]],
  ['getSeconds', [...getter(({ second }) => second), inUnits(1_000_000_000n)]],
  [
    'getMilliseconds',
    [
      member(overload1(timestampParam, intType, ({ nanos }) => (millisOf(nanos) + 1000n) % 1000n)),
      member(
        overload2(timestampParam, stringParam, intType, ({ nanos }) => (millisOf(nanos) + 1000n) % 1000n),
      ),
      inUnits(nanosPerMilli),
    ],
  ],
];
