import { RE2JS } from 're2js';

/** How many are remembered, the oldest forgotten first. */
const maxCompiled = 2000;
const compiled = new Map<string, RE2JS>();

/**
 * A regular expression in Go's syntax, whose matches take time linear to the text and to its program.
 *
 * @throws {Error} for one that is none, with the text of Go's regexp.
 */
export function compileRe2(expression: string): RE2JS {
  let known = compiled.get(expression);
  if (known === undefined) {
    known = RE2JS.compile(expression);
    if (compiled.size >= maxCompiled) {
      const [oldest] = compiled.keys();
      if (oldest !== undefined) compiled.delete(oldest);
    }
    compiled.set(expression, known);
  }
  return known;
}
