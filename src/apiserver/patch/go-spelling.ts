/** How Go's encoding/json spells strings. */

/** What Go escapes in strings and JavaScript does not. */
const escapedByGo = /[<>&\u2028\u2029]/g;

/**
 * The strings of a JSON text that Go would spell in another way: `<`, `>` and `&` bare, other characters escaped
 * that Go writes as they are.
 *
 * @param json is valid.
 */
export function misspeltStrings(json: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (let start = json.indexOf('"'); start >= 0;) {
    const end = endOfString(json, start);
    const literal = json.slice(start, end);
    const value: unknown = JSON.parse(literal);
    if (typeof value === 'string' && goLiteral(value) !== literal) found.add(value);
    start = json.indexOf('"', end);
  }
  return found;
}

function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

function goLiteral(value: string): string {
  return JSON.stringify(value).replaceAll(
    escapedByGo,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
