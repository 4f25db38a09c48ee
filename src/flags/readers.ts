import { parseStrictAddress, type ParsedCidr, parseCidr } from '../objects/address.ts';
import { isDNS1123Subdomain } from '../objects/names.ts';
import { splitList } from '../objects/lists.ts';

/** A flag or option that cannot be used; the message names it and what it takes. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** A value that a flag or option does not take. The message says what it takes; {@link readValue} adds the name. */
export class WrongValue extends Error {
  override readonly name = 'WrongValue';
}

/** Validates and converts a value; throws {@link WrongValue}. Plain functions: zod would take 14 MiB of `up`. */
export type FlagReader<T> = (value: unknown) => T;

/** A flag of a command: how it is written, what it is for, and what it takes. */
export interface Flag<T> {
  /** As commander writes it: `--lameduck <duration>`, `-o, --output <format>`. Without `<…>` it is a switch. */
  readonly flag: string;
  readonly about: string;
  /** Begins a group of the help, of this flag and those that follow. */
  readonly heading?: string;
  /** As on the command line; of a switch, a boolean. Absent: a flag that is not given reads as undefined. */
  readonly default?: string | boolean;
  /** Of a switch that is on by default: what its form `--no-…` is for. */
  readonly negated?: string;
  /** For the help; {@link oneOf} sets it. */
  readonly choices?: readonly string[];
  /** A list with commas that may be given in parts: a second one adds to the first (pflag's StringSlice). */
  readonly isList?: true;
  /** @throws {WrongValue} with what it takes, without the flag's name. */
  readonly read: FlagReader<T>;
}

/** Flags that stand together and are one value of the configuration. */
export interface FlagGroup<T> {
  readonly flags: Table;
  /** @throws {ConfigError} for a wrong flag, and for flags that contradict each other. */
  readonly combine: (given: Given) => T;
}

/** The flags of a command by the names of their values, in the order of the help. */
export type Table = Readonly<Record<string, Flag<unknown> | FlagGroup<unknown>>>;

/** The values of the flags of a table. */
export type Values<F extends Table> = {
  readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : F[K] extends FlagGroup<infer T> ? T : never;
};

/** Flags as commander gives them: by their names in camel case. */
export type Given = Readonly<Record<string, unknown>>;

/** Reads one value. @param name begins the message. @throws {ConfigError} naming the value and what it takes. */
export function readValue<V, T>(name: string, reader: (value: V) => T, value: V): T {
  try {
    return reader(value);
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    throw new ConfigError(`${name}: ${error.message}`);
  }
}

/** Reads all flags of a table. Frozen. @throws {ConfigError} naming the first wrong flag and what it takes. */
export function readFlags<F extends Table>(table: F, given: Given): Values<F> {
  const entries = Object.entries(table).map(([key, entry]) => [key, readEntry(entry, given)] as const);
  const values: unknown = Object.freeze(Object.fromEntries(entries));
  if (!isComplete(table, values)) throw new Error('every flag of a table has a value');
  return values;
}

function readEntry(entry: Flag<unknown> | FlagGroup<unknown>, given: Given): unknown {
  if ('flags' in entry) return entry.combine(given);
  const name = longName(entry.flag);
  return readValue(name, entry.read, given[camelCase(name.replace(/^--(?:no-)?/, ''))]);
}

/** The compiler alone knows the types of the values: each is what its reader returned. */
function isComplete<F extends Table>(table: F, values: unknown): values is Values<F> {
  return (
    typeof values === 'object' &&
    values !== null &&
    Object.keys(table).every((key) => Object.hasOwn(values, key))
  );
}

/** `--output` of `-o, --output <format>`. */
export function longName(flag: string): string {
  return /--[a-z0-9-]+/.exec(flag)?.[0] ?? flag;
}

function camelCase(name: string): string {
  return name.replace(/-[a-z0-9]/g, (part) => part.slice(1).toUpperCase());
}

/** Flags that are one value. @param combine checks the rules between them; throws {@link ConfigError}. */
export function group<F extends Table, T>(flags: F, combine: (values: Values<F>) => T): FlagGroup<T> {
  return { flags, combine: (given) => combine(readFlags(flags, given)) };
}

/** Any text, the empty one too. */
export function text(value: unknown): string {
  if (typeof value !== 'string') throw new WrongValue('needs a value');
  return value;
}

/** A text of one character at least. */
export function nonEmpty(value: unknown): string {
  const given = text(value);
  if (given === '') throw new WrongValue('needs a value');
  return given;
}

/** Undefined for a flag that is not given. */
export function optional<T>(reader: FlagReader<T>): FlagReader<T | undefined> {
  return (value) => (value === undefined ? undefined : reader(value));
}

/** One of these values: the reader, and the choices for the help. */
export function oneOf<const T extends readonly string[]>(
  ...words: T
): { readonly choices: T; readonly read: FlagReader<T[number]> } {
  const read = (value: unknown): T[number] => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw new WrongValue(`must be one of ${words.join(', ')}`);
    return found;
  };
  return { choices: words, read };
}

/** A whole number, both ends included. */
export function wholeNumber(least: number, most: number): FlagReader<number> {
  return (value) => {
    const given = text(value);
    const number = /^\d{1,9}$/.test(given) ? Number(given) : NaN;
    if (number >= least && number <= most) return number;
    throw new WrongValue(`must be a whole number from ${least} to ${most}`);
  };
}

/** A flag without a value; of a function, true or false. */
export function boolean(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new WrongValue('must be true or false');
  return value;
}

/** A flag `--no-…` without a counterpart: true unless it is given. */
export function unlessNegated(value: unknown): boolean {
  return value !== false;
}

/** A flag that may be repeated; none by default. */
export function texts(value: unknown): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new WrongValue('needs a list');
  return value.map(text);
}

/** An IP address. */
export function address(value: unknown): string {
  const given = text(value);
  if (parseStrictAddress(given) === undefined) throw new WrongValue('must be an IP address');
  return given;
}

/** Addresses to listen on, each once. */
export function addresses(value: unknown): readonly string[] {
  return [...new Set(nonEmptyList(value).map(address))];
}

/** A list with commas: `*,-name`. */
export function list(value: unknown): readonly string[] {
  return splitList(text(value));
}

/** An IP address or a DNS name. */
function isHost(host: string): boolean {
  return parseStrictAddress(host) !== undefined || isDNS1123Subdomain(host).length === 0;
}

/** A list of names and IP addresses under which clients may ask for a server. */
export function hosts(value: unknown): readonly string[] {
  const given = list(value);
  const wrong = given.find((host) => !isHost(host));
  if (wrong !== undefined) throw new WrongValue(`"${wrong}" is neither an IP address nor a DNS name`);
  return given;
}

/** As {@link list}, with one item at least. */
export function nonEmptyList(value: unknown): readonly string[] {
  const items = list(value);
  if (items.length === 0) throw new WrongValue('needs at least one item');
  return items;
}

const millisecondsOf = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** A duration as Go writes it, in one unit: `15s`, `500ms`, `2m`. The value is in milliseconds. */
export function duration(value: unknown): number {
  const [, number = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text(value)) ?? [];
  const factor = millisecondsOf.get(unit);
  if (factor === undefined) throw new WrongValue('must be a duration such as 15s or 500ms');
  return Number(number) * factor;
}

/** A duration without a fraction of a second. The value is in seconds. */
export function wholeSeconds(value: unknown): number {
  const milliseconds = duration(value);
  if (milliseconds % 1000 === 0) return milliseconds / 1000;
  throw new WrongValue('must be whole seconds');
}

/** Where a server listens. */
export interface BindAddress {
  /** Empty: all interfaces. */
  readonly host: string;
  readonly port: number;
}

/** Where a server listens: `host:port`, `:port` for all interfaces, `[::1]:port`; undefined for `0`, nowhere. */
export function bindAddress(value: unknown): BindAddress | undefined {
  const given = text(value);
  if (given === '0' || given === '') return undefined;
  const colon = given.lastIndexOf(':');
  const port = given.slice(colon + 1);
  const host = given.slice(0, Math.max(colon, 0)).replace(/^\[(.*)\]$/, '$1');
  const isPort = colon >= 0 && /^\d{1,5}$/.test(port) && Number(port) <= 65535;
  if (isPort && (host === '' || isHost(host))) return { host, port: Number(port) };
  throw new WrongValue('must be an address such as 127.0.0.1:8080 or :8080, or 0 for none');
}

/** A URL of an API server. */
export function serverUrl(value: unknown): string {
  const given = text(value);
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return given;
  throw new WrongValue('must be a URL such as https://10.0.0.1:6443');
}

/** One of the CIDRs of a list. */
export function cidr(value: string): ParsedCidr {
  const parsed = parseCidr(value);
  if (parsed === undefined) throw new WrongValue(`"${value}" is not a CIDR`);
  return parsed;
}
