import type { JSONSchemaProps, ValidationRule } from '../../../objects/types/apiextensions.generated.ts';
import { CompileError, Program } from '../../../cel/program.ts';
import { type CelType, optionalType } from '../../../cel/types.ts';

import { declType } from './decl-type.ts';
import { readFieldPath } from './field-path.ts';

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
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const rules = schema['x-kubernetes-validations'] ?? [];
  if (rules.length === 0) return [];
  const self = declType(schema, resourceRoot);
  if (self === undefined) return undefined;
  const made = rules.map((rule) => compileRule(rule, schema, self));
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
