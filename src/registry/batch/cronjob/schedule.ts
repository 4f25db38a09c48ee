/** Cron schedules of five fields and their `@` forms (robfig/cron v3 ParseStandard, whose error texts these are). */

interface FieldBounds {
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const bounds: readonly FieldBounds[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: months },
  { min: 0, max: 6, names: days },
];
const descriptors = new Set([
  '@yearly',
  '@annually',
  '@monthly',
  '@weekly',
  '@daily',
  '@midnight',
  '@hourly',
]);
const duration = /^[+-]?(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$/;

/** The error of a schedule; "" when it is valid. */
export function scheduleFault(text: string): string {
  const schedule = text.replace(/^(?:TZ|CRON_TZ)=\S+ +/, '').trim();
  if (schedule.startsWith('@')) return descriptorFault(schedule);
  const fields = schedule.split(/\s+/).filter((field) => field !== '');
  if (fields.length !== bounds.length) {
    return `expected exactly ${bounds.length} fields, found ${fields.length}: [${fields.join(' ')}]`;
  }
  for (const [i, field] of fields.entries()) {
    const bound = bounds[i];
    const fault = bound === undefined ? '' : fieldFault(field, bound);
    if (fault !== '') return fault;
  }
  return '';
}

function descriptorFault(schedule: string): string {
  if (descriptors.has(schedule)) return '';
  if (!schedule.startsWith('@every ')) return `unrecognized descriptor: ${schedule}`;
  const text = schedule.slice('@every '.length);
  if (duration.test(text)) return '';
  return `failed to parse duration ${schedule}: time: invalid duration ${JSON.stringify(text)}`;
}

/** A list of values, ranges and steps. */
function fieldFault(field: string, bound: FieldBounds): string {
  for (const part of field.split(',')) {
    const fault = part === '' ? '' : rangeFault(part, bound);
    if (fault !== '') return fault;
  }
  return '';
}

function rangeFault(part: string, { min, max, names }: FieldBounds): string {
  const [range = '', step, ...moreSteps] = part.split('/');
  const [first = '', last, ...moreDashes] = range.split('-');
  if (moreDashes.length > 0) return `too many hyphens: ${part}`;
  if (moreSteps.length > 0) return `too many slashes: ${part}`;
  let start = min;
  let end = max;
  if (first !== '*' && first !== '?') {
    const from = numberOf(first, names);
    const to = last === undefined ? from : numberOf(last, names);
    const bad = from === undefined ? first : last;
    if (from === undefined || to === undefined) {
      return `failed to parse int from ${bad ?? ''}: strconv.Atoi: parsing ${JSON.stringify(bad ?? '')}: invalid syntax`;
    }
    start = from;
    end = last === undefined && step !== undefined ? max : to;
  }
  const by = step === undefined ? 1 : numberOf(step, []);
  if (by === undefined) {
    return `failed to parse int from ${step ?? ''}: strconv.Atoi: parsing ${JSON.stringify(step ?? '')}: invalid syntax`;
  }
  if (start < min) return `beginning of range (${start}) below minimum (${min}): ${part}`;
  if (end > max) return `end of range (${end}) above maximum (${max}): ${part}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${part}`;
  return by === 0 ? `step of range should be a positive number: ${part}` : '';
}

function numberOf(text: string, names: readonly string[]): number | undefined {
  const index = names.indexOf(text.toLowerCase());
  if (index !== -1) return names === months ? index + 1 : index;
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
