import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import type { CreateNodeOptions, ScalarTag, SchemaOptions, Tags, ToStringOptions } from 'yaml';
import { canonicalBase64 } from '../decode-leaf.ts';
import { RawNumber, YamlSyntaxError } from '../json.ts';
import { isRecord } from '../../../objects/json.ts';

/** The value of a YAML scalar by yaml.v2 (`resolve.go`) and by encoding/json, which writes it as JSON. */

const require = createRequire(import.meta.url);

/**
 * The YAML library, loaded with the first YAML: it takes 10 MiB, and most clients send JSON only. Synchronous,
 * since decoders are; Node caches the module.
 */
export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}

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
  try {
    return Buffer.from(canonicalBase64(text), 'base64').toString('utf8');
  } catch {
    throw new YamlSyntaxError('yaml: !!binary value contains invalid base64 data');
  }
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
function isText(text: string): boolean {
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

/** Values that are written in one go, which takes about 5 µs each. */
const maxAtOnce = 2_000;
/** Levels that are written in one go: the library's time goes by their square. */
const maxLevelsAtOnce = 50;
/** Columns. What is deeper stays in one line, as JSON, which is YAML: the text would grow by the square of its depth. */
const maxIndent = 100;

/**
 * A JSON value as YAML: sorted by keys, with lists at the depth of their key, as sigs.k8s.io/yaml has it. Readers of
 * YAML 1.1, of 1.2 and go-yaml, which is between them, read the same value.
 */
export function writeYaml(value: unknown): string {
  return [...yamlParts(value)].join('');
}

/** The text of {@link writeYaml} in parts, each of which takes some 10 ms at most: others get a turn between them. */
export function yamlParts(value: unknown): Generator<string> {
  return partsOf(value, '');
}

function* partsOf(value: unknown, indent: string): Generator<string> {
  if (weightOf(value) <= maxAtOnce) {
    yield textOf(value, indent);
    return;
  }
  if (indent.length >= maxIndent) {
    yield `${indent}${quoted(value)}\n`;
    return;
  }
  const isList = Array.isArray(value);
  const collect = (entries: readonly (readonly [string, unknown])[]): unknown =>
    isList ? entries.map(([, member]) => member) : Object.fromEntries(entries);
  let light: (readonly [string, unknown])[] = [];
  let weight = 0;
  for (const [key, member] of entriesOf(value)) {
    const own = weightOf(member);
    if (weight + own > maxAtOnce && light.length > 0) {
      yield textOf(collect(light), indent);
      light = [];
      weight = 0;
    }
    if (own > maxAtOnce) {
      // The head of a member: its key and colon.
      yield `${isList ? `${indent}-` : textOf({ [key]: 0 }, indent).slice(0, -' 0\n'.length)}\n`;
      yield* partsOf(member, `${indent}  `);
    } else {
      light.push([key, member]);
      weight += own;
    }
  }
  if (light.length > 0) yield textOf(collect(light), indent);
}

/** The items of a list, with keys that are of no use, or the members of a map, sorted. */
function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (Array.isArray(value)) return value.map((item: unknown) => ['', item] as const);
  return Object.entries(isRecord(value) ? value : {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The number of values, or one more than can be written in one go. */
function weightOf(value: unknown, level = 0): number {
  if (typeof value !== 'object' || value === null) return 1;
  if (level > maxLevelsAtOnce) return Infinity;
  let weight = 1;
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    weight += weightOf(member, level + 1);
    if (weight > maxAtOnce) break;
  }
  return weight;
}

const options: SchemaOptions & CreateNodeOptions & ToStringOptions = {
  compat: 'yaml-1.1',
  customTags: (tags) => tags.map(quotingMore),
  sortMapEntries: true,
  aliasDuplicateObjects: false,
  indentSeq: false,
  lineWidth: 0,
  doubleQuotedAsJSON: true,
};

function textOf(value: unknown, indent: string): string {
  const text = yaml().stringify(value, options);
  return indent === '' ? text : text.replace(/^(?=.)/gm, indent);
}

/** A tab cannot begin a block of go-yaml; the others are banned, or end lines in YAML 1.1. */
const unprintable = /[\t\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/;

/** Texts are quoted where go-yaml would read something else, too. */
function quotingMore(tag: Tags[number]): Tags[number] {
  if (!isTextTag(tag)) return tag;
  return {
    ...tag,
    stringify: (node, ...context) => {
      const { value } = node;
      const isSafe = typeof value !== 'string' || (isText(value) && !unprintable.test(value));
      return isSafe ? (tag.stringify?.(node, ...context) ?? '') : quoted(value);
    },
  };
}

function isTextTag(tag: Tags[number]): tag is ScalarTag {
  return typeof tag === 'object' && tag.collection === undefined && tag.tag === 'tag:yaml.org,2002:str';
}

/** A value in one line with double-quoted texts, in which YAML takes every escape of JSON. */
function quoted(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    new RegExp(unprintable, 'g'),
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
