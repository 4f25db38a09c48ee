import { isRecord } from './json.ts';

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
