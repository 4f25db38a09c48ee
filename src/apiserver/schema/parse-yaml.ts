/**
 * YAML as sigs.k8s.io/yaml reads it: YAML 1.1 without timestamps, converted to JSON, with the error texts of
 * yaml.v2 that reach clients inside 400 answers.
 */
import type { Document, LineCounter, ParsedNode } from 'yaml';

import { withoutDot, yaml } from '../yaml.ts';
import { yamlProblem } from './yaml-problem.ts';
import { YamlSyntaxError } from './yaml-syntax-error.ts';
import { valueOf } from './yaml-value.ts';

export interface ParsedYaml {
  /** Plain JSON, but for RawNumber. */
  readonly value: unknown;
  /** False: the value holds no RawNumber. */
  readonly hasRawNumbers: boolean;
  /** What a strict reader says of keys that are set twice, all in one text; undefined when there are none. */
  readonly duplicates: string | undefined;
}

/** Tags of YAML 1.1 that yaml.v2 does not turn into values of their own. */
const ignoredTags = new Set(
  ['timestamp', 'binary', 'omap', 'pairs', 'set', 'intTime', 'floatTime'].map((tag) => tag),
);

/** Parses the first document of a YAML text. @throws {YamlSyntaxError} */
export function parseYaml(bytes: Buffer): ParsedYaml {
  try {
    return parse(bytes.toString('utf8'));
  } catch (error) {
    // The YAML library recurses as deeply as the text nests.
    if (error instanceof RangeError) throw new YamlSyntaxError('yaml: exceeded max depth of 10000');
    throw error;
  }
}

// The characters that YAML bans, read by code point: tab, line ends and text are fine, a byte order mark only leads.
const banned = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]|(?!^)\ufeff/u;

/** Nothing but blank lines and comments before a tab, which the library skips. */
const leadingTab = /^(?: *(?:#[^\n]*)?\n)* *\t/;

function parse(text: string): ParsedYaml {
  if (banned.test(text)) throw new YamlSyntaxError('yaml: control characters are not allowed');
  const { LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  const document = parseDocument(text, {
    version: '1.1',
    merge: true,
    uniqueKeys: false,
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'silent',
    stringKeys: false,
    customTags: (tags) =>
      tags.filter((tag) => typeof tag === 'string' || !isIgnoredTag(tag.tag, tag.format)).map(withoutDot),
  });
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

function isIgnoredTag(tag: string, format: string | undefined): boolean {
  return format === 'TIME' || ignoredTags.has(tag.slice(tag.lastIndexOf(':') + 1));
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
