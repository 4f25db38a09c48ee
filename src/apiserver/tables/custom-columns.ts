import { pushAll } from '../../objects/lists.ts';
import { isRecord } from '../../objects/json.ts';
import { goJson } from '../../objects/formats/go-text.ts';
import { timeSince, type TableConverter, ageOf, column, nameColumn, nameOf } from './table.ts';
import type { CustomResourceColumnDefinition } from '../../objects/types/apiextensions.generated.ts';

/**
 * - Parses JSONPath as client-go does (`util/jsonpath/parser.go`): the text between the braces of a template. Unlike
 *   elsewhere, keys in brackets have single quotes and dots separate them; `$` and `@` are ignored.
 * - Evaluates the JSONPath of columns in CustomResourceDefinitions (client-go `util/jsonpath/jsonpath.go`).
 */

/** A bound of a slice; undefined where none is given. `derived` for the index after that of `[index]`. */
export interface SliceEnd {
  readonly value: number | undefined;
  readonly derived?: boolean;
}

/** A step of a path, which is applied to the values that the steps before it found. */
export type PathNode =
  | { readonly type: 'field'; readonly name: string }
  | { readonly type: 'wildcard' }
  | { readonly type: 'recursive' }
  | { readonly type: 'slice'; readonly start: SliceEnd; readonly end: SliceEnd; readonly step: SliceEnd }
  | { readonly type: 'union'; readonly paths: readonly (readonly PathNode[])[] }
  /** A keyword of templates, such as `range`, which columns do not have. */
  | { readonly type: 'keyword' }
  | { readonly type: 'literal'; readonly value: string | number | boolean }
  | {
      readonly type: 'filter';
      readonly left: readonly PathNode[];
      /** `exists` for a filter without a comparison. */
      readonly operator: string;
      readonly right: readonly PathNode[];
    };

/** The depth of nested filters and unions. */
const maxNesting = 16;

const spaces = /[ @$]/y;
const number = /[+-]?[\d.]*/y;
/** Up to a character that ends a name, unless a backslash precedes it. */
const fieldName = /(?:\\[^]|[^\\ \t\r\n.,[\]$@{}])*/y;
const dictKey = /^'([^']*)'$/;
const slice = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/;
const comparison = /^([^!<>=]+)([!<>=]+)([^]+)$/;

/** The steps of a path; undefined for an invalid one. */
function parsePath(text: string, nesting = 0): PathNode[] | undefined {
  if (nesting > maxNesting) return undefined;
  const nodes: PathNode[] = [];
  let at = 0;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const [found = ''] = pattern.exec(text) ?? [];
    at += found.length;
    return found;
  };
  const field = (): void => {
    const name = take(fieldName);
    nodes.push(name === '*' ? { type: 'wildcard' } : { type: 'field', name: name.replaceAll('\\', '') });
  };
  while (at < text.length) {
    const character = text[at] ?? '';
    if (text.startsWith('[?(', at)) {
      const end = endOfFilter(text, at + 3);
      const filter = end === undefined ? undefined : parseFilter(text.slice(at + 3, end), nesting);
      if (end === undefined || filter === undefined) return undefined;
      nodes.push(filter);
      at = end + 2;
    } else if (text.startsWith('..', at)) {
      if (nodes.at(-1)?.type === 'recursive') return undefined;
      nodes.push({ type: 'recursive' });
      at += 2;
      if (/[\p{L}\p{Nd}_]/u.test(text.slice(at, at + 1))) field();
    } else if (character === '[') {
      const end = text.indexOf(']', at);
      const inner = end < 0 ? undefined : parseBracket(text.slice(at + 1, end), nesting);
      if (inner === undefined) return undefined;
      pushAll(nodes, inner);
      at = end + 1;
    } else if (character === '.') {
      at++;
      field();
    } else if (character === '"' || character === "'") {
      const end = endOfQuote(text, at);
      if (end === undefined) return undefined;
      nodes.push({ type: 'literal', value: text.slice(at + 1, end).replaceAll(/\\([^])/g, '$1') });
      at = end + 1;
    } else if (/[+\-\d]/.test(character)) {
      const value = Number(take(number));
      if (Number.isNaN(value)) return undefined;
      nodes.push({ type: 'literal', value });
    } else if (/[\p{L}_]/u.test(character)) {
      const word = take(fieldName);
      const isBoolean = word === 'true' || word === 'false';
      nodes.push(isBoolean ? { type: 'literal', value: word === 'true' } : { type: 'keyword' });
    } else if (take(spaces) === '') {
      return undefined;
    }
  }
  return nodes;
}

/** The position of the `)` before the `]` that ends a filter, outside of a quoted string. */
function endOfFilter(text: string, start: number): number | undefined {
  let quote = '';
  let closed = true;
  for (let i = start; i < text.length; i++) {
    const character = text[i] ?? '';
    if (character === '"' || character === "'") {
      if (quote === '') {
        quote = character;
        closed = false;
      } else if (character === quote && text[i - 1] !== '\\') {
        closed = true;
      }
    } else if (character === ')' && closed) {
      return text[i + 1] === ']' ? i : undefined;
    }
  }
  return undefined;
}

function endOfQuote(text: string, start: number): number | undefined {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === text[start] && text[i - 1] !== '\\') return i;
  }
  return undefined;
}

function parseFilter(text: string, nesting: number): PathNode | undefined {
  const [, before = text, operator = 'exists', behind = ''] = comparison.exec(text) ?? [];
  const left = parsePath(before, nesting + 1);
  const right = parsePath(behind, nesting + 1);
  return left === undefined || right === undefined ? undefined : { type: 'filter', left, operator, right };
}

function parseBracket(text: string, nesting: number): PathNode[] | undefined {
  const parts = text.split(',');
  if (parts.length > 1) {
    const paths = parts.map((part) => parsePath(`[${part.trim()}]`, nesting + 1));
    return paths.every((path) => path !== undefined) ? [{ type: 'union', paths }] : undefined;
  }
  const [, key] = dictKey.exec(text) ?? [];
  if (key !== undefined) return parsePath(`.${key}`, nesting + 1);
  const found = slice.exec(text === '*' ? ':' : text);
  if (found === null) return undefined;
  const [, start = '', end, step] = found;
  const first = start === '' ? undefined : Number(start);
  if (Number.isNaN(first)) return undefined;
  return [
    {
      type: 'slice',
      start: { value: first },
      end: end === undefined ? { value: (first ?? 0) + 1, derived: true } : sliceEnd(end),
      step: step === undefined ? { value: undefined } : sliceEnd(step),
    },
  ];
}

function sliceEnd(text: string): SliceEnd {
  return { value: text === ':' ? undefined : Number(text.slice(1)) };
}

/** Finds the values in an object, in order; none where a step does not apply to a value. */
export type JsonPath = (value: unknown) => unknown[];

/** Limits of a path's length and of the values that it finds. */
const maxLength = 1024;
const maxFound = 10_000;

/** Parses a path such as `.spec.ports[?(@.name=="http")].port`; undefined where client-go would refuse it. */
export function parseJsonPath(text: string): JsonPath | undefined {
  const path = text.length > maxLength ? undefined : parsePath(text);
  if (path === undefined) return undefined;
  return (value) => {
    try {
      return find(path, [value]);
    } catch (error) {
      if (error instanceof JsonPathError) return [];
      throw error;
    }
  };
}

/** A step does not apply to a value: the path finds nothing. */
class JsonPathError extends Error {
  override readonly name = 'JsonPathError';
}

function find(path: readonly PathNode[], start: readonly unknown[]): unknown[] {
  let found = [...start];
  for (const node of path) {
    found = take(node, found);
    if (found.length > maxFound) throw new JsonPathError();
  }
  return found;
}

function take(node: PathNode, input: readonly unknown[]): unknown[] {
  switch (node.type) {
    case 'field':
      return input.flatMap((value) =>
        isRecord(value) && Object.hasOwn(value, node.name) ? [value[node.name]] : [],
      );
    case 'wildcard':
      return input.flatMap(childrenOf);
    case 'recursive':
      return input.flatMap((value) => [...withDescendants(value, [])]);
    case 'slice':
      return input.flatMap((value) => sliceOf(node, value));
    case 'union':
      return node.paths.flatMap((path) => find(path, input));
    case 'literal':
      // client-go returns a string once, whatever the input.
      return typeof node.value === 'string' ? [node.value] : input.map(() => node.value);
    case 'keyword':
      throw new JsonPathError();
    case 'filter':
      return input.flatMap((value) => {
        if (!Array.isArray(value)) throw new JsonPathError();
        const list: readonly unknown[] = value;
        return list.filter((item) => passes(node, item));
      });
  }
}

function childrenOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return isRecord(value) ? Object.values(value) : [];
}

/** The value and its descendants, without scalars and empty values. */
function withDescendants(value: unknown, found: unknown[]): unknown[] {
  const children = childrenOf(value);
  if (children.length === 0) return found;
  if (found.push(value) > maxFound) throw new JsonPathError();
  for (const child of children) withDescendants(child, found);
  return found;
}

function sliceOf({ start, end, step }: Extract<PathNode, { type: 'slice' }>, value: unknown): unknown[] {
  if (value === null) return [];
  if (!Array.isArray(value)) throw new JsonPathError();
  const list: readonly unknown[] = value;
  const { length } = list;
  const from = (start.value ?? 0) < 0 ? (start.value ?? 0) + length : (start.value ?? 0);
  let to = end.value ?? length;
  if (to < 0 || (to === 0 && end.derived === true)) to += length;
  if (from === to) return [];
  if (from < 0 || from >= length || to > length || to < from) throw new JsonPathError();
  const stride = step.value ?? 1;
  if (stride <= 0) throw new JsonPathError();
  return list.slice(from, to).filter((_item, i) => i % stride === 0);
}

function passes({ left, operator, right }: Extract<PathNode, { type: 'filter' }>, item: unknown): boolean {
  if (operator === 'exists') {
    try {
      return find(left, [item]).length > 0;
    } catch (error) {
      // Values found before a step failed are returned.
      if (error instanceof JsonPathError) return true;
      throw error;
    }
  }
  const lefts = find(left, [item]);
  if (lefts.length === 0) return false;
  const rights = lefts.length > 1 ? [] : find(right, [item]);
  if (lefts.length > 1 || rights.length > 1) throw new JsonPathError();
  return rights.length > 0 && compare(lefts[0], operator, rights[0]);
}

/** Compares scalars of one type; only strings and numbers have an order. @throws {JsonPathError} */
function compare(left: unknown, operator: string, right: unknown): boolean {
  if (kindOf(left) !== kindOf(right)) throw new JsonPathError();
  if (operator === '==') return left === right;
  if (operator === '!=') return left !== right;
  const order = orderOf(left, right);
  switch (operator) {
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
    default:
      throw new JsonPathError();
  }
}

function kindOf(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'float';
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value;
  throw new JsonPathError();
}

function orderOf(left: unknown, right: unknown): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (typeof left === 'string' && typeof right === 'string')
    return Buffer.compare(Buffer.from(left), Buffer.from(right));
  throw new JsonPathError();
}

const defaultTable: TableConverter = {
  columns: [nameColumn, column('Age', 'When the object was created.', { type: 'date' })],
  cells: (object, now) => [nameOf(object), ageOf(object, now)],
};

/**
 * The table of a custom resource (apiextensions-apiserver `pkg/registry/customresource/tableconvertor`): the name and
 * the columns of the definition, or name and age without any. A value that is missing or of another type is null.
 */
export function customTableConverter(columns: readonly CustomResourceColumnDefinition[]): TableConverter {
  if (columns.length === 0) return defaultTable;
  const paths: { find: JsonPath; type: string }[] = [];
  for (const { jsonPath, type } of columns) {
    const find = parseJsonPath(jsonPath);
    // An invalid path ends the table.
    if (find === undefined) break;
    paths.push({ find, type });
  }
  return {
    columns: [
      nameColumn,
      ...columns
        .slice(0, paths.length)
        .map(({ name, type, format = '', description = '', priority = 0, jsonPath }) => ({
          name,
          type,
          format,
          description:
            description === ''
              ? `Custom resource definition column (in JSONPath format): ${jsonPath}`
              : description,
          priority,
        })),
    ],
    cells: (object, now) => [
      nameOf(object),
      ...paths.map(({ find, type }) => cell(find(object)[0], type, now)),
    ],
  };
}

/** The format that Go's `time.RFC3339` parses. */
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

function cell(value: unknown, type: string, now: number): unknown {
  if (value === undefined) return null;
  // client-go prints a null value so.
  if (value === null) return type === 'string' ? '<no value>' : null;
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      if (typeof value !== 'string') return null;
      if (value === '' || value === 'null') return '<unknown>';
      return rfc3339.test(value) && !Number.isNaN(Date.parse(value)) ? timeSince(value, now) : '<invalid>';
    default:
      return typeof value === 'string' ? value : goJson(value);
  }
}
