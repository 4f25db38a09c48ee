/** Evaluates the JSONPath of columns in CustomResourceDefinitions (client-go `util/jsonpath/jsonpath.go`). */
import { isRecord } from '../../objects/json.ts';
import { parsePath, type PathNode } from './json-path-parser.ts';

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
