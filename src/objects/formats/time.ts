/**
 * Times as Kubernetes writes them: metav1.Time is RFC 3339 in UTC with whole seconds, metav1.MicroTime with six
 * decimals. Numbers are milliseconds since 1970, as a clock gives them. Pure: "now" is always an argument.
 */

/** `2026-01-02T03:04:05Z`; a fraction is cut off, as Go's format does. */
export function formatTime(milliseconds: number): string {
  return `${iso(milliseconds).slice(0, 19)}Z`;
}

/** `2026-01-02T03:04:05.678000Z`. A fraction of a millisecond is kept to the microsecond. */
export function formatMicroTime(milliseconds: number): string {
  const micros = Math.floor((milliseconds - Math.floor(milliseconds)) * 1000);
  return `${iso(milliseconds).slice(0, 23)}${String(micros).padStart(3, '0')}Z`;
}

// Each alternative starts differently and no repetitions overlap: linear on any input.
const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/;

/**
 * Milliseconds of an RFC 3339 time, with a fraction below a millisecond where the text has one; undefined for
 * anything that Go's `time.Parse(time.RFC3339, text)` refuses (30 February, 24:00, a missing zone).
 */
export function parseTime(text: string): number | undefined {
  const match = rfc3339.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number);
  if (
    year === undefined ||
    month === undefined ||
    day === undefined ||
    hour === undefined ||
    minute === undefined ||
    second === undefined
  ) {
    return undefined;
  }
  if (month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  if (date.getUTCDate() !== day || date.getUTCMonth() !== month - 1) return undefined;
  const zoneHours = Number(match[9] ?? 0);
  const zoneMinutes = Number(match[10] ?? 0);
  if (zoneHours > 24 || zoneMinutes > 60) return undefined;
  const offset = (zoneHours * 60 + zoneMinutes) * 60_000 * (match[8] === '-' ? -1 : 1);
  const fraction = match[7] === undefined ? 0 : Number(`0.${match[7].slice(0, 9)}`) * 1000;
  return date.getTime() - offset + fraction;
}

function iso(milliseconds: number): string {
  return new Date(Math.floor(milliseconds)).toISOString();
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of a Go duration (`90s`, `1h30m`, `0`) without a sign, in hours to milliseconds; else undefined. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (text.length > 32 || !/^(?:\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h))+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, number, unit] of text.matchAll(/(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)/g)) {
    sum += Number(number) * (unitMs[unit ?? ''] ?? 0);
  }
  return sum;
}
