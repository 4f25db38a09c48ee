/**
 * Counts what in a JSON text a value follows: commas and opening brackets outside of strings. An object of two members
 * has two, with its own in the list that it is in.
 *
 * @param limit where counting ends.
 * @returns the count; more than `limit` when there are more.
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

/** Where the quote is that ends a string; the end of the text where none does. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at;
}
