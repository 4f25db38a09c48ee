/**
 * Searches strings in linear time. `String.indexOf` takes time proportional to the product of both lengths for some
 * strings (`aaa…baaa…` in `aaa…`), and is used for short ones only.
 */
const smallProduct = 1_000_000;

function isSmall(text: string, part: string): boolean {
  return text.length * part.length <= smallProduct;
}

/** `text.indexOf(part, from)`. @param from in units of UTF-16. */
export function indexOfPart(text: string, part: string, from = 0): number {
  if (isSmall(text, part)) return text.indexOf(part, from);
  const [first] = starts(unitsOf(text, false), unitsOf(part, false), from, true);
  return first ?? -1;
}

/** `text.lastIndexOf(part, from)`. @param from in units of UTF-16. */
export function lastIndexOfPart(text: string, part: string, from = text.length): number {
  if (isSmall(text, part)) return text.lastIndexOf(part, from);
  // From the end: a part that begins at `from` or before ends before `from` plus its length.
  const behind = Math.max(text.length - part.length - from, 0);
  const [first] = starts(unitsOf(text, true), unitsOf(part, true), behind, true);
  return first === undefined ? -1 : text.length - first - part.length;
}

/** `text.split(part)`. @param part is not empty. */
export function splitAtPart(text: string, part: string): string[] {
  if (isSmall(text, part)) return text.split(part);
  const pieces: string[] = [];
  let at = 0;
  for (const start of starts(unitsOf(text, false), unitsOf(part, false), 0, false)) {
    pieces.push(text.slice(at, start));
    at = start + part.length;
  }
  return [...pieces, text.slice(at)];
}

function unitsOf(text: string, backwards: boolean): Uint16Array {
  const units = new Uint16Array(text.length);
  for (let at = 0; at < text.length; at++) units[at] = text.charCodeAt(at);
  return backwards ? units.reverse() : units;
}

/** The offsets of the parts that do not overlap (Knuth, Morris and Pratt). */
function starts(text: Uint16Array, part: Uint16Array, from: number, onlyFirst: boolean): number[] {
  const borders = bordersOf(part);
  const found: number[] = [];
  let matched = 0;
  for (let at = from; at < text.length; at++) {
    while (matched > 0 && part[matched] !== text[at]) matched = borders[matched] ?? 0;
    if (part[matched] === text[at]) matched += 1;
    if (matched < part.length) continue;
    found.push(at + 1 - part.length);
    if (onlyFirst) return found;
    matched = 0;
  }
  return found;
}

/** For each length of a prefix of the part: its longest proper prefix that is also a suffix of it. */
function bordersOf(part: Uint16Array): Uint32Array {
  const borders = new Uint32Array(part.length + 1);
  let length = 0;
  for (let at = 1; at < part.length; at++) {
    while (length > 0 && part[length] !== part[at]) length = borders[length] ?? 0;
    if (part[length] === part[at]) length += 1;
    borders[at + 1] = length;
  }
  return borders;
}
