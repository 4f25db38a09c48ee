import { parseStrictAddress, type ParsedCidr, parseCidr } from '../objects/address.ts';
import { isDNS1123Subdomain } from '../objects/names.ts';
import { splitList } from '../objects/lists.ts';

/** A flag or option that cannot be used; the message names it and what it takes. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** A value that a flag or option does not take. The message says what it takes; the reader of flags adds the name. */
export class WrongValue extends Error {
  override readonly name = 'WrongValue';
}

/** Reads a value; throws {@link WrongValue}. Plain functions: zod would take 14 MiB of `up`. */
export type FlagReader<T> = (value: unknown) => T;

/** The flags of a command as commander gives them, or the options of a function. */
export class Flags {
  readonly #options: Readonly<Record<string, unknown>>;
  readonly #spell: (name: string) => string;

  /** @param spell how an error names an option; default as a flag: `--cluster-cidr` for `clusterCidr`. */
  constructor(options: Readonly<Record<string, unknown>>, spell: (name: string) => string = flagOf) {
    this.#options = options;
    this.#spell = spell;
  }

  /** One option's value. @param name in camel case. @throws {ConfigError} naming the option and what it takes. */
  read<T>(name: string, reader: FlagReader<T>): T {
    try {
      return reader(this.#options[name]);
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
      throw new ConfigError(`${this.#spell(name)}: ${error.message}`);
    }
  }
}

function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Any text, the empty one too. */
export function text(value: unknown): string {
  if (typeof value !== 'string') throw new WrongValue('needs a value');
  return value;
}

/** A text of at least `least` characters, 1 by default. */
export function textOf(least = 1): FlagReader<string> {
  return (value) => {
    const given = text(value);
    if (given.length >= least) return given;
    throw new WrongValue(least === 1 ? 'needs a value' : `must have at least ${least} characters`);
  };
}

/** Undefined for a flag that is not given. */
export function optional<T>(reader: FlagReader<T>): FlagReader<T | undefined> {
  return (value) => (value === undefined ? undefined : reader(value));
}

/** One of these values. */
export function oneOf<const T extends string>(words: readonly T[]): FlagReader<T> {
  return (value) => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw new WrongValue(`must be one of ${words.join(', ')}`);
    return found;
  };
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
export function yesOrNo(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new WrongValue('must be true or false');
  return value;
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

/** As `list`, with one item at least. */
export function someList(value: unknown): readonly string[] {
  const items = list(value);
  if (items.length === 0) throw new WrongValue('needs at least one item');
  return items;
}

const units = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** A duration as Go writes it, in one unit: `15s`, `500ms`, `2m`. The value is in milliseconds. */
export function duration(value: unknown): number {
  const [, number = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text(value)) ?? [];
  const factor = units.get(unit);
  if (factor === undefined) throw new WrongValue('must be a duration such as 15s or 500ms');
  return Number(number) * factor;
}

/** Where a server listens: `host:port`, `:port` for all interfaces, `[::1]:port`; `0` for nowhere. */
export function bindAddress(value: unknown): { readonly host: string; readonly port: number } | undefined {
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

/** A CIDR among the values of a flag. @throws {ConfigError} naming the flag. */
export function cidrOf(flag: string, value: string): ParsedCidr {
  const cidr = parseCidr(value);
  if (cidr === undefined) throw new ConfigError(`${flag}: "${value}" is not a CIDR`);
  return cidr;
}
