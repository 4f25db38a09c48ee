import {
  Duration,
  EvaluationError,
  Timestamp,
  checkedInt,
  listItems,
  type MapValue,
  PlainList,
  typeName,
  type Value,
} from './values.ts';
import { isRecord, type JsonRecord } from '../objects/json.ts';

/** Times and durations in Go's formats, with nanoseconds. */

const nanosPerSecond = 1_000_000_000n;
const unitNanos: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1000n],
  ['µs', 1000n],
  ['μs', 1000n],
  ['ms', 1_000_000n],
  ['s', nanosPerSecond],
  ['m', 60n * nanosPerSecond],
  ['h', 3600n * nanosPerSecond],
]);
const part = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/y;
const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
/** Longer durations and times are refused. */
const maxText = 256;

/** A duration such as `1h30m` (Go's `time.ParseDuration`). @throws {EvaluationError} */
export function parseGoDuration(text: string): Duration {
  const fail = () => new EvaluationError(`time: invalid duration ${JSON.stringify(text)}`);
  const body = text.replace(/^[+-]/, '');
  if (body === '0') return new Duration(0n);
  if (body === '' || body.length > maxText) throw fail();
  let nanos = 0n;
  let at = 0;
  while (at < body.length) {
    part.lastIndex = at;
    const match = part.exec(body);
    const [all = '', whole = '', fraction = '', unit = ''] = match ?? [];
    if (match === null || (whole === '' && fraction === '')) throw fail();
    const scale = unitNanos.get(unit) ?? 0n;
    nanos += BigInt(whole === '' ? '0' : whole) * scale;
    if (fraction !== '') nanos += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
    at += all.length;
  }
  try {
    return new Duration(checkedInt(text.startsWith('-') ? -nanos : nanos));
  } catch {
    throw fail();
  }
}

/** An RFC 3339 time. @throws {EvaluationError} */
export function parseTimestamp(text: string): Timestamp {
  const match = text.length > maxText ? null : rfc3339.exec(text);
  const fail = () => new EvaluationError(`invalid timestamp: ${JSON.stringify(text.slice(0, maxText))}`);
  if (match === null) throw fail();
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const real = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!real || hour > 23 || minute > 59 || second > 59) throw fail();
  const offset = (Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0)) * (match[8] === '-' ? -1 : 1);
  date.setUTCHours(hour, minute - offset, second);
  const fraction = BigInt((match[7] ?? '').slice(0, 9).padEnd(9, '0'));
  return new Timestamp(BigInt(date.getTime()) * 1_000_000n + fraction, offset);
}

/** The start of the year 1 and the end of the year 9999, in seconds since 1970. */
const firstSecond = -62_135_596_800n;
const lastSecond = 253_402_300_799n;

/** Seconds since 1970, if within the range of times. @throws {EvaluationError} */
export function secondsOf(seconds: bigint): bigint {
  if (seconds < firstSecond || seconds > lastSecond) throw new EvaluationError('timestamp overflow');
  return seconds;
}

/** The time plus a duration, in the same zone. @throws {EvaluationError} */
export function later({ nanos, zone }: Timestamp, by: bigint): Timestamp {
  const sum = nanos + by;
  secondsOf((sum - (((sum % nanosPerSecond) + nanosPerSecond) % nanosPerSecond)) / nanosPerSecond);
  return new Timestamp(sum, zone);
}

/** A time as RFC 3339 with as many decimals as it needs. */
export function formatTimestamp({ nanos, zone }: Timestamp): string {
  const { milliseconds, rest } = split(nanos + BigInt(zone) * 60n * nanosPerSecond);
  const digits = rest.replace(/0{1,9}$/, '');
  return `${new Date(milliseconds).toISOString().slice(0, 19)}${digits === '' ? '' : `.${digits}`}${zoneText(zone)}`;
}

function zoneText(zone: number): string {
  if (zone === 0) return 'Z';
  const minutes = Math.abs(zone);
  const pair = (part: number) => String(Math.floor(part)).padStart(2, '0');
  return `${zone < 0 ? '-' : '+'}${pair(minutes / 60)}:${pair(minutes % 60)}`;
}

/** A duration in seconds, as cel-go prints it: `90s`, `1.5s`. */
export function formatDuration(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos;
  const digits = String(size % nanosPerSecond)
    .padStart(9, '0')
    .replace(/0{1,9}$/, '');
  return `${nanos < 0n ? '-' : ''}${size / nanosPerSecond}${digits === '' ? '' : `.${digits}`}s`;
}

/** The whole milliseconds of a time, rounded down, and the nanoseconds of its second as nine digits. */
function split(nanos: bigint): { milliseconds: number; rest: string } {
  const within = ((nanos % nanosPerSecond) + nanosPerSecond) % nanosPerSecond;
  const seconds = (nanos - within) / nanosPerSecond;
  return { milliseconds: Number(seconds) * 1000, rest: String(within).padStart(9, '0') };
}

/** A JSON value without a schema: whole numbers are ints, others doubles. Members of objects are converted on use. */
export function fromJson(data: unknown): Value {
  if (data === null || data === undefined) return null;
  if (typeof data === 'string' || typeof data === 'boolean') return data;
  if (typeof data === 'number') return Number.isInteger(data) ? BigInt(data) : data;
  if (Array.isArray(data)) return new PlainList(data.map(fromJson));
  return isRecord(data) ? new JsonMap(data) : null;
}

class JsonMap implements MapValue {
  readonly kind = 'map';
  readonly #data: JsonRecord;
  readonly #found = new Map<string, Value>();
  readonly #keys: readonly string[];

  constructor(data: JsonRecord) {
    this.#data = data;
    this.#keys = Object.keys(data).filter((key) => data[key] !== undefined);
  }

  get size(): number {
    return this.#keys.length;
  }

  find(key: Value): Value | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.#data, key)) return undefined;
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const data = this.#data[key];
    if (data === undefined) return undefined;
    const value = fromJson(data);
    this.#found.set(key, value);
    return value;
  }

  keys(): readonly Value[] {
    return this.#keys;
  }

  sameAs(): undefined {
    return undefined;
  }
}

/** A value as JSON. @throws {EvaluationError} for values that JSON cannot represent. */
export function toJson(value: Value): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  switch (value.kind) {
    case 'uint':
      return Number(value.value);
    case 'timestamp':
      return formatTimestamp(value);
    case 'duration':
      return formatDuration(value.nanos);
    case 'list':
      return listItems(value).map(toJson);
    case 'map':
      return Object.fromEntries(
        value.keys().map((key) => [String(toJson(key)), toJson(value.find(key) ?? null)]),
      );
    case 'optional':
      return value.value === undefined ? null : toJson(value.value);
    case 'type':
    case 'opaque':
      throw new EvaluationError(`a value of type ${typeName(value)} cannot be marshaled to JSON`);
  }
}
