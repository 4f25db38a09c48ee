import { badRequest } from '../status.ts';

/**
 * The syntax of label keys and values (apimachinery `util/validation/validation.go`: IsQualifiedName,
 * IsValidLabelValue). Both answer the broken rules as texts, in kube-apiserver's words and order; none means valid.
 */
const nameText =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
  "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const valueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start " +
  "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for " +
  "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const maxNameBytes = 63;
const maxPrefixBytes = 253;

// Both expressions fail in linear time: one greedy class, then one character to give back.
const namePattern = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const dnsLabelPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

/** Rules that a qualified name (label key, annotation key, finalizer) breaks: `[prefix/]name`. */
function qualifiedNameErrors(text: string): string[] {
  const slash = text.indexOf('/');
  if (slash !== -1 && text.includes('/', slash + 1)) {
    return [
      `a valid label key ${nameText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const errors: string[] = [];
  const name = text.slice(slash + 1);
  if (slash !== -1) {
    const prefix = text.slice(0, slash);
    if (prefix === '') errors.push('prefix part must be non-empty');
    else {
      if (Buffer.byteLength(prefix) > maxPrefixBytes) {
        errors.push(`prefix part must be no more than ${maxPrefixBytes} bytes`);
      }
      if (!prefix.split('.').every((label) => dnsLabelPattern.test(label))) {
        errors.push(`prefix part ${subdomainText}`);
      }
    }
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (Buffer.byteLength(name) > maxNameBytes) {
    errors.push(`name part must be no more than ${maxNameBytes} bytes`);
  }
  if (!namePattern.test(name)) errors.push(`name part ${nameText}`);
  return errors;
}

/** Rules that a label value breaks. */
function labelValueErrors(text: string): string[] {
  const errors: string[] = [];
  if (Buffer.byteLength(text) > maxNameBytes) errors.push(`must be no more than ${maxNameBytes} bytes`);
  if (text !== '' && !namePattern.test(text)) errors.push(valueText);
  return errors;
}

/** How a requirement relates a label to its values (apimachinery `selection/operator.go`). */
export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

/** One term of a label selector; a selector is a list of terms that must all hold. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Distinct, sorted; empty for `exists` and `!`. */
  readonly values: readonly string[];
}

/** The labels of an object, as `metadata.labels` carries them. */
export type Labels = Readonly<Record<string, string>>;

/** True when the labels meet one requirement (`Requirement.Matches`). */
export function requirementHolds({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return value !== undefined && values.includes(value);
    case '!=':
    case 'notin':
      return value === undefined || !values.includes(value);
    case 'exists':
      return value !== undefined;
    case '!':
      return value === undefined;
    case 'gt':
    case 'lt': {
      const have = value === undefined ? undefined : parseInt64(value);
      const want = values.length === 1 ? parseInt64(values[0] ?? '') : undefined;
      if (have === undefined || want === undefined) return false;
      return operator === 'gt' ? have > want : have < want;
    }
  }
}

/** Go's `strconv.ParseInt(text, 10, 64)`: undefined where that fails. */
function parseInt64(text: string): bigint | undefined {
  if (text.length > 64 || !/^[+-]?[0-9]+$/.test(text)) return undefined;
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/**
 * Checks a requirement as `labels.NewRequirement` does.
 *
 * @throws {StatusError} 400 that names every broken rule.
 */
export function newRequirement(
  key: string,
  operator: LabelOperator,
  given: readonly string[],
): LabelRequirement {
  const values = [...new Set(given)].sort();
  const errors: string[] = [];
  const add = (path: string, value: unknown, detail: string): void => {
    errors.push(`${path}: Invalid value: ${JSON.stringify(value)}: ${detail}`);
  };
  const keyErrors = qualifiedNameErrors(key);
  if (keyErrors.length > 0) add('key', key, keyErrors.join('; '));
  if (operator === 'in' || operator === 'notin') {
    if (values.length === 0) add('values', values, "for 'in', 'notin' operators, values set can't be empty");
  } else if (operator === 'exists' || operator === '!') {
    if (values.length > 0) add('values', values, 'values set must be empty for exists and does not exist');
  } else if (operator === 'gt' || operator === 'lt') {
    values.forEach((value, i) => {
      if (parseInt64(value) !== undefined) return;
      add(`values[${i}]`, value, "for 'Gt', 'Lt' operators, the value must be an integer");
    });
  }
  values.forEach((value, i) => {
    const found = labelValueErrors(value);
    if (found.length > 0) add(`values[${i}][${key}]`, value, found.join('; '));
  });
  if (errors.length > 0) throw badRequest(aggregate(errors));
  return { key, operator, values };
}

/** One error as it is, several in brackets without repeats (apimachinery `util/errors` Aggregate). */
function aggregate(errors: readonly string[]): string {
  const texts = [...new Set(errors)];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}

type TokenKind =
  'end' | 'identifier' | ')' | ',' | '!' | '==' | '=' | '>' | 'in' | '<' | '!=' | 'notin' | '(';

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

/** Operators and words that are tokens of their own kind. */
const ownKinds: ReadonlyMap<string, TokenKind> = new Map(
  (['!=', '==', ')', ',', '!', '=', '>', '<', '(', 'in', 'notin'] as const).map((kind) => [kind, kind]),
);
const endToken: Token = { kind: 'end', text: '' };
const wantedOperators = 'in, notin, =, ==, !=, gt, lt';

/** An operator, the longer ones first, or a word. Like kube-apiserver's lexer, a NUL ends a word and, on its own, the text. */
const pattern = /[ \t\r\n]*(?:(!=|==|[),!=><(])|([^\0=!(),>< \t\r\n]+)\0?)/y;

/** Words and operators of a selector: a watch keeps what it parsed, and a URL of 1 MB would have half a million. */
const maxTokens = 20_000;

/** Splits the text into tokens. @throws {StatusError} 400 for too many. */
export function scan(text: string): Token[] {
  const tokens: Token[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const found = match[1] ?? match[2] ?? '';
    if (tokens.length === maxTokens)
      throw badRequest(`the label selector has more than ${maxTokens} words and operators`);
    tokens.push({ kind: ownKinds.get(found) ?? 'identifier', text: found });
  }
  tokens.push(endToken);
  return tokens;
}

/** Inside values and keys, `in` and `notin` are ordinary words. */
const asWord = (token: Token): TokenKind =>
  token.kind === 'in' || token.kind === 'notin' ? 'identifier' : token.kind;

/** Reads tokens from left to right, as apimachinery's Parser does, so that the first error is the same. */
export class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  /** @throws {StatusError} 400 with kube-apiserver's text. */
  selector(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      const first = this.#peek();
      const kind = asWord(first);
      if (kind === 'end') return requirements;
      if (kind !== 'identifier' && kind !== '!') {
        throw badRequest(`found '${first.text}', expected: !, identifier, or 'end of string'`);
      }
      requirements.push(this.#requirement());
      const separator = this.#next();
      if (separator.kind === 'end') return requirements;
      if (separator.kind !== ',') {
        throw badRequest(`found '${separator.text}', expected: ',' or 'end of string'`);
      }
      const following = asWord(this.#peek());
      if (following !== 'identifier' && following !== '!') {
        throw badRequest(`found '${this.#peek().text}', expected: identifier after ','`);
      }
    }
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? endToken;
  }

  #next(): Token {
    const token = this.#peek();
    this.#at++;
    return token;
  }

  #requirement(): LabelRequirement {
    let token = this.#next();
    const negated = token.kind === '!';
    if (negated) token = this.#next();
    if (asWord(token) !== 'identifier') throw unparsable(`found '${token.text}', expected: identifier`);
    const key = token.text;
    const keyErrors = qualifiedNameErrors(key);
    if (keyErrors.length > 0) {
      // "<nil>" is Go's print of a nil field path.
      throw unparsable(`<nil>: Invalid value: ${JSON.stringify(key)}: ${keyErrors.join('; ')}`);
    }
    if (negated) return checked(key, '!', []);
    if (this.#peek().kind === 'end' || this.#peek().kind === ',') return checked(key, 'exists', []);
    const operator = this.#operator();
    const values = operator === 'in' || operator === 'notin' ? this.#valueSet() : [this.#exactValue()];
    return checked(key, operator, values);
  }

  #operator(): LabelOperator {
    const { kind, text } = this.#next();
    switch (kind) {
      case 'in':
      case 'notin':
      case '=':
      case '==':
      case '!=':
        return kind;
      case '>':
        return 'gt';
      case '<':
        return 'lt';
      default:
        throw unparsable(`found '${text}', expected: ${wantedOperators}`);
    }
  }

  #exactValue(): string {
    const kind = asWord(this.#peek());
    if (kind === 'end' || kind === ',') return '';
    const { text } = this.#next();
    if (kind !== 'identifier') throw unparsable(`found '${text}', expected: identifier`);
    return text;
  }

  #valueSet(): string[] {
    const open = this.#next();
    if (open.kind !== '(') throw unparsable(`found '${open.text}' expected: '('`);
    const first = this.#peek();
    const kind = asWord(first);
    if (kind === ')') {
      this.#next();
      return [''];
    }
    if (kind !== 'identifier' && kind !== ',') {
      throw unparsable(`found '${first.text}', expected: ',', ')' or identifier`);
    }
    const values = this.#valueList();
    if (this.#next().kind !== ')') throw unparsable(`found '${first.text}', expected: ')'`);
    return values;
  }

  /** Values up to the closing parenthesis; an empty place between commas is the empty value. */
  #valueList(): string[] {
    const values: string[] = [];
    for (;;) {
      const token = this.#next();
      const kind = asWord(token);
      if (kind === 'identifier') {
        values.push(token.text);
        const after = this.#peek();
        if (after.kind === ')') return values;
        if (after.kind !== ',') throw unparsable(`found '${after.text}', expected: ',' or ')'`);
      } else if (kind === ',') {
        if (values.length === 0) values.push('');
        if (this.#peek().kind === ')') return [...values, ''];
        if (this.#peek().kind === ',') {
          this.#next();
          values.push('');
        }
      } else {
        throw unparsable(`found '${token.text}', expected: ',', or identifier`);
      }
    }
  }
}

function unparsable(why: string): Error {
  return badRequest(`unable to parse requirement: ${why}`);
}

function checked(key: string, operator: LabelOperator, values: readonly string[]): LabelRequirement {
  try {
    return newRequirement(key, operator, values);
  } catch (error) {
    throw error instanceof Error ? unparsable(error.message) : error;
  }
}
