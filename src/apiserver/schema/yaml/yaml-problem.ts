/**
 * The error of a YAML text in the words of yaml.v2 (libyaml's), which reach clients. Maps the parser's own codes
 * for the usual mistakes, and counts lines as yaml.v2 does.
 */
import type { YAMLError } from 'yaml';

/** `line 3: did not find expected key`. */
export function yamlProblem(error: YAMLError, text: string): string {
  const at = error.pos[0];
  const line = lineAt(text, at);
  const here = text.charAt(at);
  switch (error.code) {
    case 'BAD_INDENT':
      return error.message.startsWith('Flow')
        ? openFlow(text)
        : parserError(line, 'did not find expected key');
    case 'MISSING_CHAR':
      if (/quote/.test(error.message)) return openQuote(text, at);
      return error.message.startsWith('Implicit')
        ? scannerError(line + 1, "could not find expected ':'")
        : openFlow(text);
    case 'BLOCK_IN_FLOW':
      return openFlow(text);
    case 'BLOCK_AS_IMPLICIT_KEY': {
      const colon = /:(\s|$)/.exec(text.slice(at))?.index ?? 0;
      return scannerError(lineAt(text, at + colon), 'mapping values are not allowed in this context');
    }
    case 'MULTILINE_IMPLICIT_KEY':
      if (here === '-') return parserError(line, 'did not find expected key');
      return text.slice(0, at).trim() === ''
        ? scannerError(line + 1, 'mapping values are not allowed in this context')
        : scannerError(line + 1, "could not find expected ':'");
    case 'UNEXPECTED_TOKEN':
      if (here === ']' || here === '}') return parserError(line, 'did not find expected node content');
      if (/[:?-] +$/.test(text.slice(0, at)) && /^-\s/.test(text.slice(at))) {
        return scannerError(line, 'block sequence entries are not allowed in this context');
      }
      return parserError(
        line,
        /(^|\n)- [^\n]*\n$/.test(text.slice(0, at))
          ? "did not find expected '-' indicator"
          : 'did not find expected key',
      );
    case 'TAB_AS_INDENT':
    case 'BAD_SCALAR_START':
      if (here === ',') return parserError(line, 'did not find expected node content');
      return scannerError(line, 'found character that cannot start any token');
    case 'BAD_DQ_ESCAPE':
      return scannerError(line, 'found unknown escape character');
    default:
      return parserError(line, 'did not find expected node content');
  }
}

/** A quoted text that ends nowhere, or at the quote that was to begin a later one. */
function openQuote(text: string, at: number): string {
  const end = text.indexOf('"', at);
  return /\w/.test(text.charAt(end + 1)) && end > 0
    ? parserError(lineAt(text, end), 'did not find expected key')
    : scannerError(lastLine(text), 'found unexpected end of stream');
}

/** An open bracket: its closing character, and the state of its present entry. */
interface Flow {
  readonly end: string;
  /** The entry has its colon. */
  keyed: boolean;
  /** Where the key or value begins. */
  from: number | undefined;
}

/**
 * A list or map in brackets that does not end, or that another bracket ends, or that runs into the `key: value` of a
 * later line.
 */
function openFlow(text: string): string {
  const open: Flow[] = [];
  let before = '';
  let at = 0;
  for (const { token, index } of tokensOf(text)) {
    at = index;
    if (token.startsWith('#')) continue;
    const flow = open.at(-1);
    if (token === '[' || token === '{') {
      open.push({ end: token === '[' ? ']' : '}', keyed: false, from: undefined });
    } else if (token === ']' || token === '}') {
      if (flow?.end !== token) break;
      open.pop();
    } else if (flow !== undefined && (token === ',' || (token === ':' && isIndicator(text, index, before)))) {
      if (token === ':' && (flow.keyed || text.slice(flow.from ?? index, index).includes('\n'))) break;
      flow.keyed = token === ':';
      flow.from = undefined;
    } else if (flow !== undefined) {
      flow.from ??= index;
    }
    before = token;
    at = text.length;
  }
  const line = at < text.length ? lineAt(text, at) : lastLine(text) + 1;
  const problem =
    open.length === 0 || /^[[{,:]$/.test(before)
      ? 'did not find expected node content'
      : `did not find expected ',' or '${open.at(-1)?.end ?? ''}'`;
  return parserError(line, problem);
}

/** Quoted texts, comments and single characters, in one pass over the text. */
function* tokensOf(text: string): Generator<{ readonly token: string; readonly index: number }> {
  /** A quote before this place has no end: the search from an earlier one found none up to here. */
  let unended = 0;
  let index = 0;
  while (index < text.length) {
    const first = text.charAt(index);
    let end = index + 1;
    if (first === '"' && index >= unended) {
      unended = endOfQuoted(text, index);
      if (text.charAt(unended) === '"') end = unended + 1;
    } else if (first === "'") {
      end = Math.max(text.indexOf("'", index + 1) + 1, end);
    } else if (first === '#' && !/\S/.test(text.charAt(index - 1))) {
      const newline = text.indexOf('\n', index);
      end = newline === -1 ? text.length : newline;
    }
    if (/\S/.test(first)) yield { token: text.slice(index, end), index };
    index = end;
  }
}

/** The position of the quote that ends a double-quoted text, or of what prevents it. */
function endOfQuoted(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charAt(at) !== '"') {
    if (text.charAt(at) !== '\\') at++;
    else if (/[^\n]/.test(text.charAt(at + 1))) at += 2;
    else return at;
  }
  return at;
}

/** Whether a colon sets a value: one inside of a plain text does not. */
function isIndicator(text: string, at: number, before: string): boolean {
  return /^["'\]}]/.test(before) || /^:(\s|$)/.test(text.slice(at, at + 2));
}

/** The parser counts lines from 0 and does not name the first. */
function parserError(line: number, problem: string): string {
  return line <= 1 ? problem : `line ${line - 1}: ${problem}`;
}

/** The scanner counts lines from 1, and does not name the first either. */
function scannerError(line: number, problem: string): string {
  return line <= 1 ? problem : `line ${line}: ${problem}`;
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

function lastLine(text: string): number {
  return text.replace(/\n$/, '').split('\n').length;
}
