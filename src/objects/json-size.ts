/**
 * Counts the values of a JSON text: commas and opening brackets outside of strings.
 *
 * @param limit where counting ends.
 * @returns the count, or more than `limit`.
 */
export function countJsonValues(text: string, limit: number): number {
  let count = 0;
  for (let at = 0; at < text.length && count <= limit; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === comma || code === bracket || code === brace) count++;
  }
  return count;
}

const [quote, comma, bracket, brace, backslash] = [0x22, 0x2c, 0x5b, 0x7b, 0x5c];

/** The index of the quote that ends a string; the length of the text without one. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at;
}
