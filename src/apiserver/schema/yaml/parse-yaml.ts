import type { Alias, Document, Node, Pair, Scalar, CST, LineCounter, ParsedNode } from 'yaml';
import { yaml, requireFinite, scalarValue } from './write-yaml.ts';
import { RawNumber, YamlSyntaxError } from '../json.ts';
import { setMember } from '../schema.ts';
import { ValueCounter } from '../decode-walk.ts';
import { goQuote } from '../../../objects/formats/go-text.ts';
import { isRecord } from '../../../objects/json.ts';
import { tooLarge } from '../../../objects/status.ts';
import { kubernetesYaml } from '../../../objects/formats/yaml.ts';
import { yamlProblem } from './yaml-problem.ts';

/**
 * - The JSON value of a YAML document, its aliases within limits.
 * - YAML as sigs.k8s.io/yaml reads it: YAML 1.1 without timestamps, converted to JSON, with the error texts of
 *   yaml.v2 that reach clients inside 400 answers.
 */

/** Deeper texts are refused. */
const maxDepth = 1000;
/** The share of a document that may be read through aliases, by the amount read in all (yaml.v2 `decode.go`). */
const aliasing = { few: 400_000, many: 4_000_000, ofFew: 0.99, ofMany: 0.1 };
/** Characters that aliases may repeat: as many as a request may have. No object that is stored has more. */
const maxRepeated = 3 * 1024 * 1024;

/**
 * The JSON value of a YAML document. Aliases are found in one pass and counted as yaml.v2 counts them, so that the work
 * is bounded by the length of the text.
 *
 * @throws {YamlSyntaxError} for an alias of nothing or of what it is in, too many of them, and merges of no maps.
 * @throws {StatusError} 413 for too many values.
 */
export function valueOf(document: Document.Parsed): { value: unknown; hasRawNumbers: boolean } {
  const reader = new Reader(targetsOf(document));
  const value = reader.read(document.contents, 0);
  return { value, hasRawNumbers: reader.hasRawNumbers };
}

/** The target of each alias: the last node before it that has its anchor. */
function targetsOf(document: Document.Parsed): ReadonlyMap<Alias, Node> {
  const { isAlias, visit } = yaml();
  const anchored = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Node: (_position, node) => {
      if (isAlias(node)) {
        const target = anchored.get(node.source);
        if (target === undefined)
          throw new YamlSyntaxError(`yaml: unknown anchor '${node.source}' referenced`);
        targets.set(node, target);
      } else if (node.anchor !== undefined) {
        anchored.set(node.anchor, node);
      }
    },
  });
  return targets;
}

class Reader {
  readonly #yaml = yaml();
  readonly #targets: ReadonlyMap<Alias, Node>;
  /** The aliases that are being read. */
  readonly #within = new Set<Node>();
  readonly #values = new ValueCounter();
  #read = 0;
  #readByAlias = 0;
  #repeated = 0;
  /** Integers that a double cannot hold were read. */
  hasRawNumbers = false;

  constructor(targets: ReadonlyMap<Alias, Node>) {
    this.#targets = targets;
  }

  read(node: unknown, depth: number): unknown {
    const { isAlias, isMap, isScalar, isSeq } = this.#yaml;
    this.#count();
    if (depth > maxDepth) throw new YamlSyntaxError('yaml: exceeded max depth');
    if (isAlias(node)) return this.#through(node, (target) => this.read(target, depth + 1));
    if (isScalar(node)) {
      const value = this.#scalar(node);
      if (typeof value === 'number') requireFinite(value);
      return value;
    }
    if (isSeq(node)) return node.items.map((item) => this.read(item, depth + 1));
    const object: Record<string, unknown> = {};
    if (!isMap(node)) return null;
    this.#readMap(node.items, object, depth);
    return object;
  }

  #scalar({ source = '', tag, type }: Scalar): unknown {
    const value = scalarValue({ text: source, tag, isPlain: type === undefined || type === 'PLAIN' });
    if (value instanceof RawNumber) this.hasRawNumbers = true;
    if (typeof value === 'string' && this.#within.size > 0) this.#repeated += value.length;
    if (this.#repeated > maxRepeated) throw excessive();
    return value;
  }

  #readMap(pairs: readonly Pair[], object: Record<string, unknown>, depth: number): void {
    for (const { key, value } of pairs) {
      if (this.#yaml.isScalar(key) && typeof key.value === 'symbol') this.#merge(value, object, depth + 1);
      else {
        const member = this.read(value, depth + 1);
        setMember(
          object,
          keyText(this.#key(key, depth + 1), () => member),
          member,
        );
      }
    }
  }

  /** A number that is not finite can be a name. */
  #key(node: unknown, depth: number): unknown {
    if (!this.#yaml.isScalar(node)) return this.read(node, depth);
    this.#count();
    return this.#scalar(node);
  }

  /** `<<`: the members of a map or of a list of maps, of which the first counts. */
  #merge(node: unknown, object: Record<string, unknown>, depth: number, isOfList = false): void {
    const { isAlias, isMap, isSeq } = this.#yaml;
    this.#count();
    if (depth > maxDepth) throw new YamlSyntaxError('yaml: exceeded max depth');
    if (isMap(node)) this.#readMap(node.items, object, depth);
    else if (isAlias(node) && isMap(this.#targets.get(node)))
      this.#through(node, (target) => this.#merge(target, object, depth + 1));
    else if (isSeq(node) && !isOfList)
      for (const item of node.items.toReversed()) this.#merge(item, object, depth + 1, true);
    else throw new YamlSyntaxError('yaml: map merge requires map or sequence of maps as the value');
  }

  #through<T>(alias: Alias, read: (target: Node | undefined) => T): T {
    if (this.#within.has(alias))
      throw new YamlSyntaxError(`yaml: anchor '${alias.source}' value contains itself`);
    this.#within.add(alias);
    const value = read(this.#targets.get(alias));
    this.#within.delete(alias);
    return value;
  }

  #count(): void {
    this.#values.count();
    this.#read++;
    if (this.#within.size > 0) this.#readByAlias++;
    if (this.#readByAlias <= 100 || this.#read <= 1000) return;
    const { few, many, ofFew, ofMany } = aliasing;
    const share = Math.min(1, Math.max(0, (this.#read - few) / (many - few)));
    if (this.#readByAlias / this.#read > ofFew - (ofFew - ofMany) * share) throw excessive();
  }
}

function excessive(): YamlSyntaxError {
  return new YamlSyntaxError('yaml: document contains excessive aliasing');
}

/**
 * The name of a member.
 *
 * @param value of the member, for the text of the error.
 * @throws {YamlSyntaxError} for null, lists and maps, which are no names.
 */
function keyText(key: unknown, value: () => unknown): string {
  if (typeof key === 'string') return key;
  if (typeof key === 'boolean') return String(key);
  if (key instanceof RawNumber) return key.literal;
  if (typeof key === 'number') {
    if (Number.isNaN(key)) return '.nan';
    return Number.isFinite(key) ? String(key) : key > 0 ? '.inf' : '-.inf';
  }
  if (key === null || key === undefined) {
    const shown = goSyntax(value(), '<nil>');
    throw new YamlSyntaxError(`unsupported map key of type: %!s(<nil>), key: <nil>, value: ${shown}`);
  }
  throw new YamlSyntaxError(`yaml: invalid map key: ${goSyntax(key, '<nil>')}`);
}

/** As Go's `%#v` shows what yaml.v2 makes of a document. */
function goSyntax(value: unknown, none = 'interface {}(nil)'): string {
  if (value === null || value === undefined) return none;
  if (typeof value === 'string') return goQuote(value);
  if (value instanceof RawNumber) return value.literal;
  if (Array.isArray(value)) return `[]interface {}{${value.map((each) => goSyntax(each)).join(', ')}}`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${goQuote(key)}:${goSyntax(member)}`);
  return `map[interface {}]interface {}{${members.join(', ')}}`;
}

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
