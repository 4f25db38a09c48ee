/**
 * The part of JSONPath that CustomResourceDefinitions may use for columns, selectable fields and scale paths
 * (client-go `util/jsonpath`): members, quoted members, indexes, wildcards, and filters that compare one member with
 * a literal.
 */
import { isRecord } from '../../objects/json.ts';

type Step =
  | { readonly type: 'member'; readonly name: string }
  | { readonly type: 'index'; readonly index: number }
  | { readonly type: 'all' }
  | {
      readonly type: 'filter';
      readonly path: readonly Step[];
      readonly equal: boolean;
      readonly value: unknown;
    };

/** Finds values in an object, in order. */
export type JsonPath = (value: unknown) => unknown[];

/** Longer paths are not worth reading. */
const maxLength = 1024;

/** Reads a path such as `.spec.ports[?(@.name=="http")].port`; undefined when it is not one that is understood. */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (text.length > maxLength) return undefined;
  const steps = parseSteps(text);
  return steps === undefined ? undefined : (value) => find(steps, value);
}

function parseSteps(text: string): Step[] | undefined {
  const steps: Step[] = [];
  let position = text.startsWith('$') ? 1 : 0;
  while (position < text.length) {
    const character = text[position];
    if (character === '.') {
      const { name, end } = readMember(text, position + 1);
      if (name === '') return undefined;
      steps.push(name === '*' ? { type: 'all' } : { type: 'member', name });
      position = end;
    } else if (character === '[') {
      const end = closingBracket(text, position);
      if (end === -1) return undefined;
      const step = parseBracket(text.slice(position + 1, end).trim());
      if (step === undefined) return undefined;
      steps.push(step);
      position = end + 1;
    } else {
      return undefined;
    }
  }
  return steps;
}

/** A member name up to the next `.` or `[`; a backslash takes the next character as it is. */
function readMember(text: string, start: number): { name: string; end: number } {
  let name = '';
  let end = start;
  for (; end < text.length && text[end] !== '.' && text[end] !== '['; end++) {
    if (text[end] === '\\' && end + 1 < text.length) end++;
    name += text[end] ?? '';
  }
  return { name, end };
}

/** The position of the `]` that closes the `[` at a position, quotes respected; -1 when there is none. */
function closingBracket(text: string, start: number): number {
  let quote = '';
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    const character = text[i] ?? '';
    if (quote !== '') {
      if (character === '\\') i++;
      else if (character === quote) quote = '';
    } else if (character === '"' || character === "'") {
      quote = character;
    } else if (character === '[') {
      depth++;
    } else if (character === ']' && --depth === 0) {
      return i;
    }
  }
  return -1;
}

function parseBracket(content: string): Step | undefined {
  if (content === '*') return { type: 'all' };
  if (/^-?\d{1,9}$/.test(content)) return { type: 'index', index: Number(content) };
  const quoted = unquote(content);
  if (quoted !== undefined) return { type: 'member', name: quoted };
  if (!content.startsWith('?(') || !content.endsWith(')')) return undefined;
  return parseFilter(content.slice(2, -1));
}

function parseFilter(expression: string): Step | undefined {
  const operator = /==|!=/.exec(expression);
  if (operator === null) return undefined;
  const left = expression.slice(0, operator.index).trim();
  const right = expression.slice(operator.index + 2).trim();
  // a filter inside a filter is not understood: that bounds the recursion
  if (!left.startsWith('@') || left.includes('?')) return undefined;
  const path = parseSteps(left.slice(1));
  const value = literal(right);
  if (path === undefined || value === undefined) return undefined;
  return { type: 'filter', path, equal: operator[0] === '==', value };
}

function literal(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  if (/^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text);
  return unquote(text);
}

function unquote(text: string): string | undefined {
  const quote = text[0];
  if ((quote !== '"' && quote !== "'") || text.length < 2 || !text.endsWith(quote)) return undefined;
  return text.slice(1, -1).replaceAll(/\\(.)/g, '$1');
}

function find(steps: readonly Step[], value: unknown): unknown[] {
  let found = [value];
  for (const step of steps) found = found.flatMap((current) => take(step, current));
  return found;
}

function take(step: Step, value: unknown): unknown[] {
  switch (step.type) {
    case 'member':
      return isRecord(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
    case 'index': {
      if (!Array.isArray(value)) return [];
      const index = step.index < 0 ? value.length + step.index : step.index;
      return index >= 0 && index < value.length ? [value[index]] : [];
    }
    case 'all':
      return childrenOf(value);
    case 'filter':
      return childrenOf(value).filter((child) => {
        const [compared] = find(step.path, child);
        return compared !== undefined && (compared === step.value) === step.equal;
      });
  }
}

function childrenOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return isRecord(value) ? Object.values(value) : [];
}
