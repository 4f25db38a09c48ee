/**
 * YAML as sigs.k8s.io/yaml reads it: YAML 1.1 without timestamps, converted to JSON, with the error texts of
 * yaml.v2 that reach clients inside 400 answers.
 */
import type { CST, Document, LineCounter, ParsedNode } from 'yaml';

import { tooLarge } from '../../../objects/status-errors.ts';
import { kubernetesYaml } from '../../../objects/yaml.ts';
import { yaml } from './library.ts';
import { yamlProblem } from './yaml-problem.ts';
import { YamlSyntaxError } from '../json/go-json.ts';
import { valueOf } from './yaml-value.ts';

export interface ParsedYaml {
  /** Plain JSON, but for RawNumber. */
  readonly value: unknown;
  /** False: the value holds no RawNumber. */
  readonly hasRawNumbers: boolean;
  /** The strict error of repeated keys, all in one text; undefined when there are none. */
  readonly duplicates: string | undefined;
}

/** Tokens of a document: a line with `key: value` has six. Each takes 2 to 4 µs. */
const maxTokens = 30_000;
/** Lines of a text: a quoted or literal one is a single token. */
const maxLines = 200_000;

/**
 * Parses the first document of a YAML text. What follows it is not read.
 *
 * @throws {YamlSyntaxError}
 * @throws {StatusError} 413 when there is too much in it.
 */
export function parseYaml(bytes: Buffer): ParsedYaml {
  const { stackTraceLimit } = Error;
  // The library makes an error of each mistake in a text: 30,000 of them with their stacks take a second.
  Error.stackTraceLimit = 0;
  try {
    return parse(bytes.toString('utf8'));
  } catch (error) {
    // The YAML library recurses as deeply as the text nests.
    if (error instanceof RangeError) throw new YamlSyntaxError('yaml: exceeded max depth of 10000');
    throw error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

// The characters that YAML bans, read by code point: tab, line ends and text are fine, a byte order mark only leads.
const banned = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]|(?!^)\ufeff/u;

/** Blank lines and comments before a tab, which the library skips. */
const leadingTab = /^(?: *(?:#[^\n]*)?\n)* *\t/;

function parse(text: string): ParsedYaml {
  if (banned.test(text)) throw new YamlSyntaxError('yaml: control characters are not allowed');
  const { Composer, LineCounter } = yaml();
  const lines = new LineCounter();
  const composer = new Composer<ParsedNode>({
    ...kubernetesYaml,
    uniqueKeys: false,
    stringKeys: false,
  });
  // Ends at the first document; there always is one.
  const [document] = composer.compose(tokensOf(text, lines), true, text.length);
  if (document === undefined) return { value: null, hasRawNumbers: false, duplicates: undefined };
  const error = document.errors.find(({ code }) => code !== 'MULTIPLE_DOCS');
  if (error !== undefined) throw new YamlSyntaxError(`yaml: ${yamlProblem(error, text)}`);
  const { explicit, version } = document.directives.yaml;
  if (explicit === true && version !== '1.1') {
    throw new YamlSyntaxError('yaml: found incompatible YAML document');
  }
  const tab = leadingTab.exec(text);
  if (tab !== null) {
    const line = tab[0].split('\n').length;
    const where = line === 1 ? '' : `line ${line}: `;
    throw new YamlSyntaxError(`yaml: ${where}found character that cannot start any token`);
  }
  return { ...valueOf(document), duplicates: findDuplicates(document, lines) };
}

/** The tokens of a text, up to the limit. @throws {StatusError} 413 */
function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token> {
  const { Lexer, Parser } = yaml();
  const refuse = (limit: number, what: string) =>
    tooLarge(`Request entity too large: limit is ${limit} ${what} of YAML; JSON takes less time to read`);
  const parser = new Parser((offset) => {
    lines.addNewLine(offset);
    if (lines.lineStarts.length > maxLines) throw refuse(maxLines, 'lines');
  });
  lines.addNewLine(0);
  let count = 0;
  for (const source of new Lexer().lex(text)) {
    if (++count > maxTokens) throw refuse(maxTokens, 'tokens');
    yield* parser.next(source);
  }
  yield* parser.end();
}

function findDuplicates(document: Document.Parsed, lines: LineCounter): string | undefined {
  const { isMap, isScalar, visit } = yaml();
  const found: string[] = [];
  visit(document, {
    Map: (_position, map) => {
      if (!isMap<ParsedNode, ParsedNode | null>(map)) return;
      const seen = new Set<unknown>();
      for (const { key, value } of map.items) {
        if (!isScalar(key)) continue;
        const name: unknown = key.value;
        if (seen.has(name)) {
          const offset = (value ?? key).range[0];
          const shown = typeof name === 'string' ? JSON.stringify(name) : String(name);
          found.push(`line ${lines.linePos(offset).line}: key ${shown} already set in map`);
        }
        seen.add(name);
      }
    },
  });
  return found.length === 0 ? undefined : `yaml: unmarshal errors:\n  ${found.join('\n  ')}`;
}
