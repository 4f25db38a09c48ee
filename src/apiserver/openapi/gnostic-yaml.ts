/**
 * JSON values as YAML, in the way that gnostic keeps what has no message of its own: written by go-yaml v3 with no style
 * asked for, indented by four. It differs from the YAML of answers, which is that of go-yaml v2 (`http/encoding.ts`).
 */
import { isRecord } from '../../objects/json.ts';

/** A JSON value as a YAML document, with a newline at the end. */
export function gnosticYaml(value: unknown): string {
  return `${isBlock(value) ? block(value, 0) : leaf(value, 4)}\n`;
}

/** Whether a value takes lines of its own. */
function isBlock(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

/** The lines of a collection, of which all but the first are indented. */
function block(collection: object, indent: number): string {
  const lines = Array.isArray(collection)
    ? collection.map(
        (item: unknown) => `- ${isBlock(item) ? block(item, indent + 2) : leaf(item, indent + 2)}`,
      )
    : Object.entries(collection).map(([name, value]) => `${scalar(name)}:${member(value, indent)}`);
  return lines.join(`\n${' '.repeat(indent)}`);
}

/** The value of a member, indented to the next four columns: a collection in a list is two columns in. */
function member(value: unknown, indent: number): string {
  const inner = indent - (indent % 4) + 4;
  return isBlock(value) ? `\n${' '.repeat(inner)}${block(value, inner)}` : ` ${leaf(value, inner)}`;
}

function leaf(value: unknown, indent: number): string {
  if (typeof value === 'string') return isLiteral(value) ? literal(value, indent) : scalar(value);
  if (isRecord(value)) return '{}';
  return JSON.stringify(value);
}

/** What go-yaml does not print bare or in blocks: controls, breaks other than newlines, what is beyond 16 bits. */
const special = /[^\n\t\u0020-\u007e\u00a0-\u2027\u202a-\ufefe\uff00-\ufffd]|[\ud800-\udfff]/;

/** Texts of several lines, save those whose blanks would be lost. */
function isLiteral(text: string): boolean {
  return text.includes('\n') && !/^[ \n]| (?:\n|$)/.test(text) && !special.test(text);
}

function literal(text: string, indent: number): string {
  const chomping = text.endsWith('\n\n') ? '+' : text.endsWith('\n') ? '' : '-';
  const lines = text.replace(/\n$/, '').split('\n');
  return `|${chomping}${lines.map((line) => `\n${line === '' ? '' : ' '.repeat(indent) + line}`).join('')}`;
}

/** Texts that would be read as null, a truth, a merge key, a number or a time. */
const otherTypes = [
  /^(?:|~|null|Null|NULL|true|True|TRUE|false|False|FALSE|<<|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  /^[-+]?(?:0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+)$/,
  /^[-+]?(?:\.\d+|\d[\d_]*(?:\.[\d_]*)?)(?:[eE][-+]?\d+)?$/,
  /^\d{4}-\d\d?-\d\d?(?:[Tt ]\d\d?:\d\d?:\d\d?(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)?)?$/,
];

/** Texts whose first characters, or a colon or hash within, mean something else. */
const indicators = /^(?:---|\.\.\.|[#,[\]{}&*!|>'"%@`]|[-?:](?:\s|$))|:(?:\s|$)|\s#/;

/** A text in one line: bare, in quotes where YAML would take it for something else, and so if it is another type. */
function scalar(text: string): string {
  if (otherTypes.some((type) => type.test(text)) || /[\n\t]/.test(text) || special.test(text)) {
    return doubleQuoted(text);
  }
  return indicators.test(text) || /^ | $/.test(text) ? `'${text.replaceAll("'", "''")}'` : text;
}

function doubleQuoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]|[\u{10000}-\u{10ffff}]/gu,
    (character) => {
      const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
      return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
    },
  );
}
