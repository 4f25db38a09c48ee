/**
 * Parses JSONPath as client-go does (`util/jsonpath/parser.go`): the text between the braces of a template. Unlike
 * elsewhere, keys in brackets have single quotes and dots separate them; `$` and `@` are ignored.
 */
import { pushAll } from '../../objects/lists.ts';

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
export function parsePath(text: string, nesting = 0): PathNode[] | undefined {
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
