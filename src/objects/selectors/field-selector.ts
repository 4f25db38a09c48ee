import { badRequest } from '../status.ts';

/** One term of a field selector; all terms must hold. */
export interface FieldRequirement {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/**
 * Parses the text of a `fieldSelector` parameter such as `metadata.name=a,status.phase!=Running` (apimachinery
 * `fields/selector.go`). In values, `\`, `,` and `=` are written with a backslash before them. The caller checks which
 * fields a resource supports. Terms are sorted by their text, so that an error about an unknown field names the same
 * field as kube-apiserver's.
 *
 * @throws {StatusError} 400 with kube-apiserver's text.
 */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return splitTerms(text)
    .sort()
    .filter((term) => term !== '')
    .map((term) => parseTerm(text, term));
}

/** True when every requirement holds. A field that is absent has the value "". */
export function matchesFields(
  requirements: readonly FieldRequirement[],
  fields: Readonly<Record<string, string>>,
): boolean {
  return requirements.every(({ field, operator, value }) => {
    const have = Object.hasOwn(fields, field) ? (fields[field] ?? '') : '';
    return (have === value) === (operator === '=');
  });
}

/** Writes a value so that {@link parseFieldSelector} reads it back (`fields.EscapeValue`). */
export function escapeFieldValue(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&');
}

/** Terms of a selector: a watch keeps what it parsed. */
const maxTerms = 10_000;

/** Splits at commas that have no backslash before them; backslashes stay. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  terms.push(text.slice(start));
  if (terms.length > maxTerms) throw badRequest(`the field selector has more than ${maxTerms} terms`);
  return terms;
}

/** The first operator splits the term: field names cannot be escaped. */
function parseTerm(selector: string, term: string): FieldRequirement {
  const equals = term.indexOf('=');
  if (equals === -1) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
  if (equals > 0 && term[equals - 1] === '!') {
    return { field: term.slice(0, equals - 1), operator: '!=', value: unescape(term.slice(equals + 1)) };
  }
  const valueAt = term[equals + 1] === '=' ? equals + 2 : equals + 1;
  return { field: term.slice(0, equals), operator: '=', value: unescape(term.slice(valueAt)) };
}

function unescape(text: string): string {
  let value = '';
  const runes = text[Symbol.iterator]();
  for (let rune = runes.next(); rune.done !== true; rune = runes.next()) {
    const character = rune.value;
    if (character === '\\') {
      const escaped = runes.next();
      const next = escaped.done === true ? '' : escaped.value;
      if (next !== '\\' && next !== ',' && next !== '=') {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${next}`);
      }
      value += next;
    } else if (character === ',' || character === '=') {
      // Go prints the character as a number, because a rune is one.
      throw badRequest(`invalid field selector: unescaped character in value: ${character.charCodeAt(0)}`);
    } else value += character;
  }
  return value;
}
