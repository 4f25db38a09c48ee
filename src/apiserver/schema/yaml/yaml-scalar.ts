/** The value of a YAML scalar by yaml.v2 (`resolve.go`) and by encoding/json, which writes it as JSON. */
import { RawNumber, YamlSyntaxError } from '../json/go-json.ts';

/** A scalar of the parser. */
export interface ScalarText {
  readonly text: string;
  /** As written, resolved: `tag:yaml.org,2002:str`; undefined when there is none. */
  readonly tag: string | undefined;
  readonly isPlain: boolean;
}

type Kind = 'str' | 'bool' | 'int' | 'float' | 'null';

interface Resolved {
  readonly kind: Kind;
  readonly value: string | number | boolean | null | RawNumber;
}

const words: ReadonlyMap<string, Resolved> = new Map<string, Resolved>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map(
    (word): [string, Resolved] => [word, { kind: 'bool', value: true }],
  ),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map(
    (word): [string, Resolved] => [word, { kind: 'bool', value: false }],
  ),
  ...['', '~', 'null', 'Null', 'NULL'].map((word): [string, Resolved] => [
    word,
    { kind: 'null', value: null },
  ]),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((word): [string, Resolved] => [
    word,
    { kind: 'float', value: Infinity },
  ]),
  ...['-.inf', '-.Inf', '-.INF'].map((word): [string, Resolved] => [
    word,
    { kind: 'float', value: -Infinity },
  ]),
  ...['.nan', '.NaN', '.NAN'].map((word): [string, Resolved] => [word, { kind: 'float', value: NaN }]),
]);

const prefix = 'tag:yaml.org,2002:';
const kinds: ReadonlySet<string> = new Set<Kind>(['str', 'bool', 'int', 'float', 'null']);
const integer = /^([-+]?)(0[xX][\da-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|[1-9]\d*|0)$/;
const float = /^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/;
/** With the prefix of a base; Go allows any number of leading zeros. */
const maxDigits = 100;
const maxInt64 = 2n ** 63n;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * The value of a scalar; not finite for `.inf` and `.nan`.
 *
 * @throws {YamlSyntaxError} when it does not match its tag.
 */
export function scalarValue({ text, tag, isPlain }: ScalarText): Resolved['value'] {
  if (tag === undefined || tag === '!') return isPlain ? resolve(text).value : text;
  const name = tag.startsWith(prefix) ? tag.slice(prefix.length) : '';
  if (name === 'binary') return decoded(text);
  // Tags that yaml.v2 does not know are ignored.
  if (!kinds.has(name) || name === 'str') return text;
  const { kind, value } = resolve(text);
  if (kind === name || (name === 'float' && kind === 'int')) return value;
  throw new YamlSyntaxError(`yaml: cannot decode !!${kind} \`${text}\` as a !!${name}`);
}

function decoded(text: string): string {
  const joined = text.replaceAll(/[\r\n]/g, '');
  if (!base64.test(joined)) throw new YamlSyntaxError('yaml: !!binary value contains invalid base64 data');
  return Buffer.from(joined, 'base64').toString('utf8');
}

function resolve(text: string): Resolved {
  const word = words.get(text);
  if (word !== undefined) return word;
  if (!/^[-+.\d]/.test(text)) return { kind: 'str', value: text };
  const plain = text.startsWith('.') ? text : text.replaceAll('_', '');
  const whole = text.startsWith('.') ? undefined : integerOf(plain);
  if (whole !== undefined) return { kind: 'int', value: whole };
  const value = float.test(plain) ? Number(plain) : NaN;
  return Number.isFinite(value) ? { kind: 'float', value } : { kind: 'str', value: text };
}

/** Whether a text without quotes is read as this text. */
export function isText(text: string): boolean {
  return resolve(text).kind === 'str';
}

/** Integers of Go's syntax that fit into 64 bits; those that a double cannot hold keep their digits. */
function integerOf(text: string): number | RawNumber | undefined {
  const [, sign = '', digits] = integer.exec(text) ?? [];
  // 64 binary digits are the most of a number that fits: BigInt takes the square of a text's length.
  if (digits === undefined || digits.length > maxDigits) return undefined;
  const size = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits);
  const most = sign === '-' ? maxInt64 : sign === '+' ? maxInt64 - 1n : 2n * maxInt64 - 1n;
  if (size > most) return undefined;
  const exact = sign === '-' ? -size : size;
  return Number.isSafeInteger(Number(exact)) ? Number(exact) : new RawNumber(String(exact));
}

/** JSON has no such numbers. @throws {YamlSyntaxError} with the words of encoding/json */
export function requireFinite(value: number): void {
  if (Number.isFinite(value)) return;
  const shown = Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  throw new YamlSyntaxError(`json: unsupported value: ${shown}`);
}
