import type { CreateNodeOptions, ScalarTag, SchemaOptions, Tags, ToStringOptions } from 'yaml';
import { isRecord } from '../../../objects/json.ts';
import { yaml } from './library.ts';
import { isText } from './yaml-scalar.ts';

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
