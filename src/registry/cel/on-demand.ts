/**
 * What evaluates rules in CEL. It is loaded when the first definition or webhook with rules comes: few servers have any, and it
 * takes three megabytes.
 */
import type { fromJson } from './json-values.ts';
import type { CompileError, Program } from './program.ts';
import type { validateRuleExpressions } from '../customresourcedefinition/rule-expressions.ts';
import type { validateRules } from '../customresource/rules/validate-rules.ts';

interface RuleEngine {
  readonly validateRules: typeof validateRules;
  readonly validateRuleExpressions: typeof validateRuleExpressions;
  readonly Program: typeof Program;
  readonly CompileError: typeof CompileError;
  readonly fromJson: typeof fromJson;
}

let engine: RuleEngine | undefined;

/** Loads the engine; undefined when it is there already. */
export function loadRuleEngine(): Promise<void> | undefined {
  return engine === undefined ? load() : undefined;
}

async function load(): Promise<void> {
  const [values, expressions, programs, json] = await Promise.all([
    import('../customresource/rules/validate-rules.ts'),
    import('../customresourcedefinition/rule-expressions.ts'),
    import('./program.ts'),
    import('./json-values.ts'),
  ]);
  engine = { ...values, ...expressions, ...programs, ...json };
}

/** The engine. Who validates is asked to be `ready` first, which loads it. */
export function ruleEngine(): RuleEngine {
  if (engine === undefined) throw new Error('rules in CEL are asked before their engine is loaded');
  return engine;
}
