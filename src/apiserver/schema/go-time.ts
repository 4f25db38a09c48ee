/** RFC 3339 times as Go's time.Parse reads them, its error texts included. */

/** A text that is no time, or a value out of range; the message is Go's. */
class TimeSyntaxError extends Error {
  override readonly name = 'TimeSyntaxError';
}

const secondsLayout = '2006-01-02T15:04:05Z07:00';
const microLayout = '2006-01-02T15:04:05.000000Z07:00';

/** Date and time up to the minutes: layout element, digits, and the range with its name. */
const elements = [
  { layout: '2006', digits: 4, min: 0, max: 9999, name: 'year', before: '' },
  { layout: '01', digits: 2, min: 1, max: 12, name: 'month', before: '-' },
  { layout: '02', digits: 2, min: 1, max: 31, name: 'day', before: '-' },
  { layout: '15', digits: 2, min: 0, max: 23, name: 'hour', before: 'T' },
  { layout: '04', digits: 2, min: 0, max: 59, name: 'minute', before: ':' },
  { layout: '05', digits: 2, min: 0, max: 59, name: 'second', before: ':' },
] as const;

/**
 * A metav1.Time: UTC, whole seconds (`2024-01-02T03:04:05Z`); undefined for Go's zero time, which is encoded as null.
 * @throws {TimeSyntaxError}
 */
export function canonicalTime(text: string): string | undefined {
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) && isCanonical(text)) return nonZero(text);
  const { milliseconds } = parse(text, secondsLayout, false);
  return nonZero(`${new Date(milliseconds).toISOString().slice(0, 19)}Z`);
}

/** A metav1.MicroTime: UTC with six digits behind the point. @throws {TimeSyntaxError} */
export function canonicalMicroTime(text: string): string | undefined {
  const { milliseconds, fraction } = parse(text, microLayout, true);
  return nonZero(`${new Date(milliseconds).toISOString().slice(0, 19)}.${fraction}Z`);
}

function isCanonical(text: string): boolean {
  const milliseconds = Date.parse(text);
  return !Number.isNaN(milliseconds) && new Date(milliseconds).toISOString().startsWith(text.slice(0, 19));
}

function nonZero(text: string): string | undefined {
  return text.startsWith('0001-01-01T00:00:00') ? undefined : text;
}

function parse(text: string, layout: string, micro: boolean): { milliseconds: number; fraction: string } {
  let rest = text;
  const fail = (element: string): TimeSyntaxError =>
    new TimeSyntaxError(
      `parsing time ${JSON.stringify(text)} as "${layout}": cannot parse ${JSON.stringify(rest)} as "${element}"`,
    );
  const range = (what: string): TimeSyntaxError =>
    new TimeSyntaxError(`parsing time ${JSON.stringify(text)}: ${what} out of range`);
  const numbers: number[] = [];
  for (const element of elements) {
    if (!rest.startsWith(element.before)) throw fail(element.before);
    rest = rest.slice(element.before.length);
    const digits = rest.slice(0, element.digits);
    // Go reads one or two digits for the hour, exactly two for the others.
    const found = /^\d+$/.test(digits) && digits.length === element.digits ? digits : '';
    const short = element.name === 'hour' && found === '' ? (/^\d/.exec(rest)?.[0] ?? '') : found;
    if (short === '') throw fail(element.layout);
    const value = Number(short);
    // Go checks the day of a month only when all is read.
    if (element.name === 'day' ? false : value < element.min || value > element.max)
      throw range(element.name);
    numbers.push(value);
    rest = rest.slice(short.length);
  }
  let fraction = '000000';
  if (micro) {
    const match = /^[.,](\d{6})/.exec(rest);
    if (match?.[1] === undefined) throw fail('.000000');
    fraction = match[1];
    rest = rest.slice(7);
  } else {
    rest = rest.replace(/^[.,]\d+/, '');
  }
  let offsetMinutes = 0;
  if (rest.startsWith('Z')) {
    rest = rest.slice(1);
  } else {
    const zone = /^([+-])(\d\d):(\d\d)/.exec(rest);
    if (zone === null) throw fail('Z07:00');
    const hours = Number(zone[2]);
    const minutes = Number(zone[3]);
    if (hours > 24) throw range('time zone offset hour');
    if (minutes > 60) throw range('time zone offset minute');
    offsetMinutes = (hours * 60 + minutes) * (zone[1] === '-' ? -1 : 1);
    rest = rest.slice(6);
  }
  if (rest !== '') {
    throw new TimeSyntaxError(`parsing time ${JSON.stringify(text)}: extra text: ${JSON.stringify(rest)}`);
  }
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = numbers;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (day < 1 || date.getUTCMonth() !== month - 1) throw range('day');
  date.setUTCHours(hour, minute - offsetMinutes, second);
  return { milliseconds: date.getTime(), fraction };
}
