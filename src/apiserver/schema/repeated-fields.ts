/** Repeated keys of values that are not decoded into a type: patches, custom resources. */
import { goQuote } from '../../objects/go-text.ts';
import { isRecord } from '../../objects/json.ts';
import { maxStrictErrors } from './decode-walk.ts';
import type { ParsedJson } from './json/go-json.ts';

/** Nesting below which repeated keys are not looked for. */
const maxDepth = 1_000;

/** `duplicate field "a.b"` for every key that an untyped value repeats, in document order. */
export function repeatedFields(parsed: ParsedJson): string[] {
  const found = new Set<string>();
  if (parsed.repeated !== undefined) collectRepeated(parsed, parsed.value, '', found, 0);
  return [...found].slice(0, maxStrictErrors);
}

function collectRepeated(
  parsed: ParsedJson,
  value: unknown,
  path: string,
  found: Set<string>,
  depth: number,
): void {
  if (depth > maxDepth) return;
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) collectRepeated(parsed, item, `${path}[${i}]`, found, depth + 1);
  } else if (isRecord(value)) {
    const seen = new Set<string>();
    for (const [key, member] of parsed.repeated?.get(value) ?? Object.entries(value)) {
      const inner = path === '' ? key : `${path}.${key}`;
      if (seen.has(key)) found.add(`duplicate field ${goQuote(inner)}`);
      seen.add(key);
      collectRepeated(parsed, member, inner, found, depth + 1);
    }
  }
}
