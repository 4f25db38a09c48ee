const letter = /\p{L}/u;
const digit = /\p{Nd}/u;

/**
 * The order of keys in yaml.v2 (`sorter.go`): other characters before letters, numbers in texts by their size. It is no
 * order of all texts, but what Go's sort makes of it is what this makes of it for keys that do not contradict themselves.
 */
export function compareKeys(a: string, b: string): number {
  if (a === b) return 0;
  return isLess(Array.from(a), Array.from(b)) ? -1 : 1;
}

function isLess(a: readonly string[], b: readonly string[]): boolean {
  const at = a.findIndex((character, i) => character !== b[i]);
  const left = a[at];
  const right = b[at];
  if (left === undefined || right === undefined) return a.length < b.length;
  const letters = [letter.test(left), letter.test(right)];
  if (letters[0] === true && letters[1] === true) return codeOf(left) < codeOf(right);
  if (letters.includes(true)) return letters[1] === true;
  const started = (left === '0' || right === '0') && hasNumberBefore(a, at) ? 1 : 0;
  const leftNumber = numberAt(a, at, started);
  const rightNumber = numberAt(b, at, started);
  if (leftNumber.value !== rightNumber.value) return leftNumber.value < rightNumber.value;
  if (leftNumber.end !== rightNumber.end) return leftNumber.end < rightNumber.end;
  return codeOf(left) < codeOf(right);
}

function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

/** Whether a zero continues a number. */
function hasNumberBefore(text: readonly string[], at: number): boolean {
  for (let i = at - 1; i >= 0 && digit.test(text[i] ?? ''); i--) if (text[i] !== '0') return true;
  return false;
}

function numberAt(text: readonly string[], at: number, started: number): { value: bigint; end: number } {
  let value = BigInt(started);
  let end = at;
  for (; digit.test(text[end] ?? ''); end++) {
    value = BigInt.asIntN(64, value * 10n + BigInt(codeOf(text[end] ?? '') - 0x30));
  }
  return { value, end };
}
