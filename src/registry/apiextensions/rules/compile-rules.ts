import type { JSONSchemaProps, ValidationRule } from '../../../objects/types/apiextensions.generated.ts';
import { valuesOf, itemSchemaOf } from '../schema/json-schema.ts';
import { resultOf } from '../../../objects/lists.ts';
import { CompileError, Program } from '../../../cel/program.ts';
import { type CelType, optionalType } from '../../../cel/types.ts';
import { maxErrorText } from '../../validation/field-errors.ts';
import { declType, isEmbedded } from './decl-type.ts';

/** Delimiters, quoted keys with the closing quote, and the text between. */
const token = /[.[\]]|'(?:[^'\\]|\\[\s\S])*'|'[\s\S]*|[^.[\]]+/g;
const escapes: ReadonlyMap<string, string> = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ["'", "'"],
  ['\\', '\\'],
]);

/** The target of a path, or the error. */
interface FieldPath {
  /** As errors name the field. */
  readonly field: string;
  /** The schema of the field; undefined where any value is allowed. */
  readonly schema: JSONSchemaProps | undefined;
  readonly fault?: string;
}

/**
 * Resolves a path such as `.spec.labels['a']` in a schema (apiextensions `schema/cel/validation.go` ValidFieldPath).
 *
 * @param brackets whether keys in brackets are allowed.
 */
export function readFieldPath(path: string, root: JSONSchemaProps, brackets = true): FieldPath {
  const tokens = path.match(token) ?? [];
  let schema: JSONSchemaProps | undefined = root;
  let field = '';
  const fail = (fault: string): FieldPath => ({ field: '', schema: undefined, fault });
  for (let at = 0; at < tokens.length; at++) {
    const opener = tokens[at];
    if (opener === '[' && !brackets) return fail('array notation is not allowed');
    if (opener !== '[' && opener !== '.') return fail(`expected [ or . but got: ${opener ?? ''}`);
    const next = tokens[++at];
    if (next === undefined) return fail('unexpected end of JSON path');
    let name: string | undefined = next;
    if (opener === '[') {
      if (!/^'[\s\S]*'$/.test(next)) return fail(`expected single quoted string but got ${next}`);
      name = unquoted(next);
      if (name === undefined) return fail('invalid string literal');
    }
    const here: JSONSchemaProps = schema ?? {};
    const { properties } = here;
    const declared = properties !== undefined;
    const known = declared ? Object.hasOwn(properties, name) : here.additionalProperties !== undefined;
    if (!known) return fail('does not refer to a valid field');
    schema = declared ? properties[name] : valuesOf(here);
    field += declared ? `${field === '' ? '' : '.'}${name}` : `[${name}]`;
    if (opener !== '[') continue;
    const end = tokens[++at];
    if (end === undefined) return fail('unexpected end of JSON path');
    if (end !== ']') return fail(`expected ] but got ${end}`);
  }
  return { field, schema };
}

function unquoted(text: string): string | undefined {
  const body = text.slice(1, -1);
  const letters = Array.from(body.matchAll(/\\(.)/gs), ([, letter = '']) => letter);
  if (letters.some((letter) => !escapes.has(letter))) return undefined;
  return body.replace(/\\(.)/gs, (_, letter: string) => escapes.get(letter) ?? '');
}

const rulesWithin = new WeakMap<JSONSchemaProps, boolean>();
/** Deeper schemas are refused. */
const maxDepth = 100;

/** True when the schema or a part of it has rules. */
export function hasRules(schema: JSONSchemaProps, depth = 0): boolean {
  if (depth > maxDepth) return false;
  const known = rulesWithin.get(schema);
  if (known !== undefined) return known;
  const parts = [itemSchemaOf(schema), valuesOf(schema), ...Object.values(schema.properties ?? {})];
  const own = (schema['x-kubernetes-validations'] ?? []).length > 0;
  const found = own || parts.some((part) => part !== undefined && hasRules(part, depth + 1));
  rulesWithin.set(schema, found);
  return found;
}

/** A compiled rule, or its error. */
export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Undefined when the rule does not compile. */
  readonly program: Program | undefined;
  /** The error of the rule. */
  readonly error: string | undefined;
  readonly message: Program | undefined;
  readonly messageError: string | undefined;
  /** True when the rule or its message reads `oldSelf`: a transition rule. */
  readonly usesOldSelf: boolean;
  /** The path of errors below the value; "" for the value itself. */
  readonly fieldPath: string;
}

const compiled = new WeakMap<JSONSchemaProps, readonly CompiledRule[]>();

/**
 * The rules of a schema, compiled once (apiextensions `apiserver/schema/cel/compilation.go`); undefined when the schema
 * has no type for expressions.
 */
export function compileRules(
  schema: JSONSchemaProps,
  resourceRoot: boolean,
): readonly CompiledRule[] | undefined {
  return resultOf(compiling(schema, resourceRoot));
}

/**
 * Compiles the rules of a whole schema, for {@link compileRules}, in steps: tens of thousands take half a second. Those
 * behind more errors than a response shows are left out.
 */
export function* compileAllRules(schema: JSONSchemaProps): Generator<undefined, void, undefined> {
  if (compiledWhole.has(schema)) return;
  yield* compileWithin(schema, true, { length: 0 });
  compiledWhole.add(schema);
}

const compiledWhole = new WeakSet<JSONSchemaProps>();

function* compileWithin(
  schema: JSONSchemaProps,
  root: boolean,
  errors: { length: number },
): Generator<undefined, void, undefined> {
  // False also for a schema that is nested too deeply.
  if (!hasRules(schema) || errors.length > maxErrorText) return;
  const properties = Object.values(schema.properties ?? {});
  for (const part of [valuesOf(schema), ...properties, itemSchemaOf(schema)]) {
    if (part !== undefined) yield* compileWithin(part, false, errors);
  }
  for (const { error, messageError } of (yield* compiling(schema, root || isEmbedded(schema))) ?? [])
    errors.length += (error?.length ?? 0) + (messageError?.length ?? 0);
}

function* compiling(
  schema: JSONSchemaProps,
  resourceRoot: boolean,
): Generator<undefined, readonly CompiledRule[] | undefined, undefined> {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const rules = schema['x-kubernetes-validations'] ?? [];
  if (rules.length === 0) return [];
  const self = declType(schema, resourceRoot);
  if (self === undefined) return undefined;
  const made: CompiledRule[] = [];
  for (const rule of rules) {
    made.push(compileRule(rule, schema, self));
    yield;
  }
  compiled.set(schema, made);
  return made;
}

function compileRule(rule: ValidationRule, schema: JSONSchemaProps, self: CelType): CompiledRule {
  const oldSelf = rule.optionalOldSelf === true ? optionalType(self) : self;
  const variables = new Map([
    ['self', self],
    ['oldSelf', oldSelf],
  ]);
  const main = compile(rule.rule, variables, 'bool');
  const { messageExpression = '' } = rule;
  const message =
    messageExpression === ''
      ? undefined
      : compile(messageExpression, variables, 'string', 'messageExpression ');
  const path = rule.fieldPath === undefined ? undefined : readFieldPath(rule.fieldPath, schema);
  return {
    rule,
    program: main.program,
    error: main.error,
    message: message?.program,
    messageError: message?.error,
    usesOldSelf: main.program?.reads('oldSelf') === true || message?.program?.reads('oldSelf') === true,
    fieldPath: path?.field ?? '',
  };
}

function compile(
  source: string,
  variables: ReadonlyMap<string, CelType>,
  wanted: 'bool' | 'string',
  what = '',
): { program?: Program; error?: string } {
  try {
    const program = new Program(source, variables);
    if (program.resultType === wanted) return { program };
    const error =
      wanted === 'bool'
        ? 'cel expression must evaluate to a bool'
        : 'messageExpression must evaluate to a string';
    return { error };
  } catch (error) {
    if (!(error instanceof CompileError)) throw error;
    return { error: what === '' ? error.fault : `${what}${error.stage} failed: ${error.message}` };
  }
}
