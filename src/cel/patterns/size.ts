/** A counted repetition, which multiplies its atom: re2js compiles `{2,5}` to 5 copies. */
const repetition = /\{(0|[1-9]\d{0,3})(,?)(0|[1-9]\d{0,3})?\}/y;
const postfix = new Set('*+?');
const namedClass = /\[:\^?\w{1,9}:\]/y;

/** The instructions of an empty pattern. */
const ends = 3;
/** Steps of both compilers, re2js's and ours, per instruction, and per Unicode class such as `\pL`. */
const perInstruction = 500;
const perUnicodeClass = 15_000;

/** The limit of steps to compile a pattern: 20,000 instructions, about 0.1 s. */
export const maxCompileSteps = 10_000_000;

/**
 * An upper bound of the steps to compile a pattern, estimated from its text: the short `.{0,1000}` has 2,000
 * instructions. Invalid patterns, which re2js refuses later, have a number too.
 */
export function compileSteps(pattern: string): number {
  /** Instructions of the open groups, outermost first, and of the atom that a repetition would multiply. */
  const open: number[] = [];
  let done = 0;
  let atom = 0;
  let classes = 0;
  let at = 0;
  while (at < pattern.length) {
    const repeated = repetitionAt(pattern, at);
    const character = pattern.charAt(at);
    if (repeated !== undefined) {
      const [least, most] = repeated.times;
      atom = (atom + 1) * Math.max(most === Infinity ? least : most, 1) + 1;
      at += repeated.length;
      continue;
    }
    if (postfix.has(character)) {
      atom += 1;
      at += 1;
      continue;
    }
    done += atom;
    atom = 1;
    if (character === '(') {
      open.push(done);
      done = 0;
      atom = 2;
    } else if (character === ')') {
      atom = done + 2;
      done = open.pop() ?? 0;
    } else if (character === '[') {
      const end = classEnd(pattern, at);
      classes += pattern.slice(at, end).split(/\\p/i).length - 1;
      at = end;
      continue;
    } else if (character === '\\') {
      const kind = pattern.charAt(at + 1);
      if (kind === 'p' || kind === 'P') classes += 1;
      // The braces of `\x{1000}` are not a repetition.
      at += pattern.startsWith('x{', at + 1) ? 3 : 2;
      continue;
    }
    at += 1;
  }
  const instructions = open.reduce((sum, before) => sum + before, done + atom) + ends;
  return instructions * perInstruction + classes * perUnicodeClass;
}

/** The counted repetition at an offset, such as `{2,5}`. `most` is Infinity for `{2,}`. */
export function repetitionAt(
  pattern: string,
  at: number,
): { readonly times: readonly [least: number, most: number]; readonly length: number } | undefined {
  repetition.lastIndex = at;
  const [text, least, comma, most] = repetition.exec(pattern) ?? [];
  if (text === undefined || (comma === '' && most !== undefined)) return undefined;
  const end = comma === '' ? Number(least) : Number(most ?? Infinity);
  return { times: [Number(least), end], length: text.length };
}

/** The offset after the character class that begins at an offset. */
export function classEnd(pattern: string, start: number): number {
  let at = start + 1;
  if (pattern.charAt(at) === '^') at += 1;
  if (pattern.charAt(at) === ']') at += 1;
  while (at < pattern.length && pattern.charAt(at) !== ']') {
    namedClass.lastIndex = at;
    const named = namedClass.exec(pattern);
    if (named !== null) at += named[0].length;
    else at += pattern.charAt(at) === '\\' ? 2 : 1;
  }
  return Math.min(at + 1, pattern.length);
}
