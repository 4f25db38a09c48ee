/** Guards for values of unknown shape, for data that enters the process. */

/** A JSON object with unknown members. */
export type JsonRecord = Record<string, unknown>;

/** True for a plain JSON object: not null, not a list. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads a text as a JSON object; undefined for any other text. */
export function parseRecord(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** True for a list whose items are all strings. */
export function isStringList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** True for an object whose values are all strings (labels, annotations, selectors). */
export function isStringMap(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((item) => typeof item === 'string');
}

/**
 * Deep equality of two JSON values. Members that are `undefined` count as absent; the order of members does
 * not matter, the order of list items does.
 */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!jsonEqual(a[i], b[i])) return false;
    return true;
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  let present = 0;
  for (const key of Object.keys(a)) {
    if (a[key] === undefined) continue;
    present++;
    if (!Object.hasOwn(b, key) || !jsonEqual(a[key], b[key])) return false;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) present--;
  return present === 0;
}

/**
 * Counts the values of a JSON text: commas and opening brackets outside of strings.
 *
 * @param limit where counting ends.
 * @returns the count, or more than `limit`.
 */
export function countJsonValues(text: string, limit: number): number {
  let count = 0;
  for (let at = 0; at < text.length && count <= limit; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === comma || code === bracket || code === brace) count++;
  }
  return count;
}

const [quote, comma, bracket, brace, backslash] = [0x22, 0x2c, 0x5b, 0x7b, 0x5c];

/** The index of the quote that ends a string; the length of the text without one. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at;
}

/**
 * Freezes a tree of plain objects and lists. A frozen part is taken to be frozen all the way down. Iterative: input may
 * be nested deeper than the call stack allows.
 */
export function deepFreeze(root: object): void {
  const waiting: object[] = [root];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (Array.isArray(node)) {
      for (const item of node) note(item, waiting);
    } else if (isRecord(node)) {
      for (const name in node) note(node[name], waiting);
    }
    Object.freeze(node);
  }
}

function note(value: unknown, waiting: object[]): void {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) waiting.push(value);
}

/**
 * Reads members of objects whose shape is not checked here. Stored objects are valid, but custom resources and kinds
 * that are served by their schema only may lack any field.
 */

/** The value at a path of member names; undefined where there is none. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const name of path) {
    if (!isRecord(current) || !Object.hasOwn(current, name)) return undefined;
    current = current[name];
  }
  return current;
}

/** The string at a path, "" where there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** The number at a path, 0 where there is none. */
export function numberAt(value: unknown, ...path: readonly string[]): number {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : 0;
}

/** A string or a number (IntOrString, Quantity) at a path as text, undefined where there is neither. */
export function scalarAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = at(value, ...path);
  return typeof found === 'string' || typeof found === 'number' ? String(found) : undefined;
}

/** The list at a path, empty where there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The strings of the list at `path`; others are left out. */
export function textsAt(value: unknown, ...path: readonly string[]): readonly string[] {
  return listAt(value, ...path).filter((text) => typeof text === 'string');
}

/** The object at a path, empty where there is none. */
export function recordAt(value: unknown, ...path: readonly string[]): JsonRecord {
  const found = at(value, ...path);
  return isRecord(found) ? found : {};
}

/** The status of a condition of a type, undefined where there is no such condition. */
export function conditionStatus(conditions: readonly unknown[], type: string): string | undefined {
  const condition = conditions.find((candidate) => isRecord(candidate) && candidate['type'] === type);
  return condition === undefined ? undefined : textAt(condition, 'status');
}
