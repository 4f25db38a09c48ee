import { type Value, isBytes, isList, isMap } from '../values.ts';

/** cel-go's costs of operations (`common/cost.go`). */
export const units = {
  /** Reading a variable, or a member of one. */
  reference: 1,
  call: 1,
  list: 10,
  map: 30,
  struct: 40,
  perCharacter: 0.1,
  perPatternCharacter: 0.25,
} as const;

/** The number of code points of a text. */
export function characterCount(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    // The first half of a surrogate pair: both halves are one character.
    const code = text.charCodeAt(i);
    if (code >= 0xd800 && code < 0xdc00 && isLowHalf(text.charCodeAt(i + 1))) count--;
  }
  return count;
}

function isLowHalf(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}

/** The size of a value for its cost: characters, bytes, items or members; 1 for scalars. */
export function sizeOf(value: Value): number {
  if (typeof value === 'string') return characterCount(value);
  if (isBytes(value)) return value.length;
  if (isList(value) || isMap(value)) return value.size;
  const sized = typeof value === 'object' && value !== null && value.kind === 'opaque';
  return sized ? (value.size ?? 1) : 1;
}
