/**
 * Orders two resourceVersions of one resource: negative, 0, positive. They are decimal numbers without leading zeros
 * (guaranteed by KEP-5504), compared as such without a limit of size. Texts that are no number sort first.
 */
export function compareResourceVersions(a: string, b: string): number {
  const left = isNumber(a) ? a : '';
  const right = isNumber(b) ? b : '';
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : left > right ? 1 : 0;
}

function isNumber(text: string): boolean {
  return /^(?:0|[1-9][0-9]*)$/.test(text);
}
