import { RE2JS } from 're2js';

/**
 * Patterns of schemas, in Go's syntax and in time linear to the text: a definition's pattern must not let a client
 * stop the server (RE2, as kube-apiserver uses it). Compiled ones are remembered, the oldest forgotten first.
 */
const compiled = new Map<string, RE2JS>();
const maxCompiled = 500;

/** True when some part of the text matches. @throws {Error} for a pattern that is none. */
export function matchesPattern(pattern: string, text: string): boolean {
  return compile(pattern).test(text);
}

/** Why a pattern cannot be compiled, in the words of Go's regexp; undefined when it can. */
export function patternFault(pattern: string): string | undefined {
  try {
    compile(pattern);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function compile(pattern: string): RE2JS {
  let known = compiled.get(pattern);
  if (known === undefined) {
    known = RE2JS.compile(pattern);
    if (compiled.size >= maxCompiled) {
      const [oldest] = compiled.keys();
      if (oldest !== undefined) compiled.delete(oldest);
    }
    compiled.set(pattern, known);
  }
  return known;
}
