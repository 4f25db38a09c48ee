/**
 * Says what is wrong with a YAML text in the words of yaml.v2 (libyaml's), which reach clients. The parser that we use
 * has codes of its own: this maps the mistakes that people make, and counts lines as yaml.v2 does.
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
      if (/quote/.test(error.message)) return scannerError(lastLine(text), 'found unexpected end of stream');
      return error.message.startsWith('Implicit')
        ? scannerError(line + 1, "could not find expected ':'")
        : openFlow(text);
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'BLOCK_IN_FLOW': {
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

/** A list or map in brackets that does not end, or that another bracket ends. */
function openFlow(text: string): string {
  const open: string[] = [];
  let before = '';
  let at = 0;
  // Quoted texts, comments and brackets; the rest only matters as what comes before.
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|'[^']*'|(?<!\S)#.*|\S/g)) {
    at = index;
    if (token.startsWith('#')) continue;
    if (token === '[' || token === '{') open.push(token === '[' ? ']' : '}');
    else if (token === ']' || token === '}') {
      if (open.at(-1) !== token) break;
      open.pop();
    }
    before = token;
    at = text.length;
  }
  const line = at < text.length ? lineAt(text, at) : lastLine(text) + 1;
  const problem =
    open.length === 0 || /^[[{,:]$/.test(before)
      ? 'did not find expected node content'
      : `did not find expected ',' or '${open.at(-1) ?? ''}'`;
  return parserError(line, problem);
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
