import { isRecord } from './json.ts';

/**
 * Freezes a tree of plain objects and lists. What is frozen already is taken to be frozen all the way down. Keeps its own
 * stack: a hostile peer can nest deeper than the call stack reaches.
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
