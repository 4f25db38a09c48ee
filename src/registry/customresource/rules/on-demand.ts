/**
 * What evaluates rules in CEL. It is loaded when the first definition with rules comes: few servers have any, and it
 * takes three megabytes.
 */
import type { validateRuleExpressions } from '../../customresourcedefinition/rule-expressions.ts';
import type { validateRules } from './validate-rules.ts';

interface RuleEngine {
  readonly validateRules: typeof validateRules;
  readonly validateRuleExpressions: typeof validateRuleExpressions;
}

let engine: RuleEngine | undefined;

/** Loads the engine; undefined when it is there already. */
export function loadRuleEngine(): Promise<void> | undefined {
  return engine === undefined ? load() : undefined;
}

async function load(): Promise<void> {
  const [values, expressions] = await Promise.all([
    import('./validate-rules.ts'),
    import('../../customresourcedefinition/rule-expressions.ts'),
  ]);
  engine = { ...values, ...expressions };
}

/** The engine. Who validates is asked to be `ready` first, which loads it. */
export function ruleEngine(): RuleEngine {
  if (engine === undefined) throw new Error('rules in CEL are asked before their engine is loaded');
  return engine;
}
