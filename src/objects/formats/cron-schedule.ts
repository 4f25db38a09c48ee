/** Cron schedules of five fields and their `@` forms (robfig/cron v3 ParseStandard, whose error texts these are). */
interface FieldBounds {
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const minutes: FieldBounds = { min: 0, max: 59, names: [] };
const hours: FieldBounds = { min: 0, max: 23, names: [] };
const daysOfMonth: FieldBounds = { min: 1, max: 31, names: [] };
const monthsOfYear: FieldBounds = { min: 1, max: 12, names: months };
const daysOfWeek: FieldBounds = { min: 0, max: 6, names: days };

/** The `@` forms as five fields. */
const descriptors: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);
const duration = /^[+-]?(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$/;
/** Milliseconds. */
const units: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** The times of a schedule. */
export interface CronSchedule {
  /**
   * The first time after another one; both in milliseconds since 1970.
   *
   * @param timeZone of IANA. What a change to summer time skips is left out; what one back repeats comes twice.
   * @returns undefined when there is none within five years (30 February).
   */
  next(after: number, timeZone: string): number | undefined;
}

/** Why a schedule cannot be read. */
export class CronScheduleError extends Error {}

/** Reads a schedule. `TZ=` and `CRON_TZ=` before it count more than the zone that a caller gives. @throws {CronScheduleError} */
export function parseCronSchedule(text: string): CronSchedule {
  const [prefix = '', zone] = /^(?:TZ|CRON_TZ)=(\S+) +/.exec(text) ?? [];
  const schedule = text.slice(prefix.length).trim();
  if (schedule.startsWith('@every ')) return everySchedule(schedule);
  const descriptor = descriptors.get(schedule);
  if (descriptor === undefined && schedule.startsWith('@')) {
    throw new CronScheduleError(`unrecognized descriptor: ${schedule}`);
  }
  const fields = (descriptor ?? schedule).split(/\s+/).filter((field) => field !== '');
  if (fields.length !== 5) {
    throw new CronScheduleError(`expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`);
  }
  const [minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = ''] = fields;
  const times: Times = {
    minute: parseField(minute, minutes),
    hour: parseField(hour, hours),
    dayOfMonth: parseField(dayOfMonth, daysOfMonth),
    month: parseField(month, monthsOfYear),
    dayOfWeek: parseField(dayOfWeek, daysOfWeek),
  };
  return { next: (after, timeZone) => nextTime(times, after, zone ?? timeZone) };
}

/** The error of a schedule; "" when it is valid. */
export function scheduleFault(text: string): string {
  try {
    parseCronSchedule(text);
    return '';
  } catch (error) {
    if (error instanceof CronScheduleError) return error.message;
    throw error;
  }
}

/** `@every`: an interval after the last time, in whole seconds, at least one. */
function everySchedule(schedule: string): CronSchedule {
  const text = schedule.slice('@every '.length);
  if (!duration.test(text)) {
    const why = `time: invalid duration ${JSON.stringify(text)}`;
    throw new CronScheduleError(`failed to parse duration ${schedule}: ${why}`);
  }
  let length = 0;
  for (const [, number, unit = ''] of text.matchAll(/([\d.]+)(\D+)/g)) {
    length += Number(number) * (units.get(unit) ?? 0);
  }
  const seconds = text.startsWith('-') ? 1 : Math.max(1, Math.floor(length / 1000));
  return { next: (after) => (Math.floor(after / 1000) + seconds) * 1000 };
}

/** The values of a field; `any` for a star, which leaves the choice of the day to the other field of days. */
interface Field {
  readonly values: ReadonlySet<number>;
  readonly any: boolean;
}

interface Times {
  readonly minute: Field;
  readonly hour: Field;
  readonly dayOfMonth: Field;
  readonly month: Field;
  readonly dayOfWeek: Field;
}

/** A list of values, ranges and steps. @throws {CronScheduleError} */
function parseField(field: string, bound: FieldBounds): Field {
  const values = new Set<number>();
  let any = false;
  for (const part of field.split(',')) {
    if (part === '') continue;
    const { start, end, step, star } = parseRange(part, bound);
    for (let value = start; value <= end; value += step) values.add(value);
    if (star && step === 1) any = true;
  }
  return { values, any };
}

interface Range {
  readonly start: number;
  readonly end: number;
  readonly step: number;
  readonly star: boolean;
}

function parseRange(part: string, { min, max, names }: FieldBounds): Range {
  const [range = '', stepText, ...moreSteps] = part.split('/');
  const [first = '', last, ...moreDashes] = range.split('-');
  if (moreDashes.length > 0) throw new CronScheduleError(`too many hyphens: ${part}`);
  if (moreSteps.length > 0) throw new CronScheduleError(`too many slashes: ${part}`);
  const star = first === '*' || first === '?';
  const start = star ? min : numberOf(first, names);
  const to = star || last === undefined ? start : numberOf(last, names);
  const end = star || (last === undefined && stepText !== undefined) ? max : to;
  const step = stepText === undefined ? 1 : numberOf(stepText, []);
  if (start < min)
    throw new CronScheduleError(`beginning of range (${start}) below minimum (${min}): ${part}`);
  if (end > max) throw new CronScheduleError(`end of range (${end}) above maximum (${max}): ${part}`);
  if (start > end)
    throw new CronScheduleError(`beginning of range (${start}) beyond end of range (${end}): ${part}`);
  if (step === 0) throw new CronScheduleError(`step of range should be a positive number: ${part}`);
  return { start, end, step, star };
}

/** @throws {CronScheduleError} */
function numberOf(text: string, names: readonly string[]): number {
  const index = names.indexOf(text.toLowerCase());
  if (index !== -1) return names === months ? index + 1 : index;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const quoted = JSON.stringify(text);
  throw new CronScheduleError(
    `failed to parse int from ${text}: strconv.Atoi: parsing ${quoted}: invalid syntax`,
  );
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

function nextTime(times: Times, after: number, timeZone: string): number | undefined {
  const zone = zoneFormat(timeZone);
  const end = after + 5 * 366 * dayMs;
  let time = Math.floor(after / minuteMs) * minuteMs + minuteMs;
  while (time < end) {
    // What a wall clock shows, as if it were UTC.
    const wall = new Date(time + offsetAt(zone, time));
    const [year, month, day] = [wall.getUTCFullYear(), wall.getUTCMonth(), wall.getUTCDate()];
    if (!times.month.values.has(month + 1)) time = instantOf(zone, Date.UTC(year, month + 1), time);
    else if (!matchesDay(times, wall)) time = instantOf(zone, Date.UTC(year, month, day + 1), time);
    else if (!times.hour.values.has(wall.getUTCHours())) time += (60 - wall.getUTCMinutes()) * minuteMs;
    else if (!times.minute.values.has(wall.getUTCMinutes())) time += minuteMs;
    else return time;
  }
  return undefined;
}

function matchesDay({ dayOfMonth, dayOfWeek }: Times, date: Date): boolean {
  const inMonth = dayOfMonth.values.has(date.getUTCDate());
  const inWeek = dayOfWeek.values.has(date.getUTCDay());
  return dayOfMonth.any || dayOfWeek.any ? inMonth && inWeek : inMonth || inWeek;
}

/** When a wall clock shows a time, or about then where it skips it; later than `after`. */
function instantOf(zone: Intl.DateTimeFormat, wall: number, after: number): number {
  const near = wall - offsetAt(zone, wall);
  return Math.max(wall - offsetAt(zone, near), after + minuteMs);
}

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
}

/** Milliseconds by which the wall clock of a zone is ahead of UTC. */
function offsetAt(zone: Intl.DateTimeFormat, instant: number): number {
  const part = new Map(zone.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
  const get = (type: Intl.DateTimeFormatPartTypes): number => part.get(type) ?? 0;
  const wall = Date.UTC(get('year'), get('month') - 1, get('day'), get('hour'), get('minute'), get('second'));
  return wall - Math.floor(instant / 1000) * 1000;
}
