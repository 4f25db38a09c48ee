/**
 * What evaluates rules in CEL. It is loaded when the first definition or webhook with rules comes: few servers have any, and it
 * takes three megabytes.
 */
import type { validateRules } from '../registry/apiextensions/customresource/rules/validate-rules.ts';
import type { validateRuleExpressions } from '../registry/apiextensions/customresourcedefinition/rule-expressions.ts';
import type { compilePolicy, judgePolicy } from '../registry/admissionregistration/admissionpolicy/judge.ts';
import type {
  compileMutations,
  mutationsMeant,
  patchOf,
} from '../registry/admissionregistration/admissionpolicy/mutate.ts';
import type {
  compileCondition,
  matchConditions,
} from '../registry/admissionregistration/webhookconfiguration/evaluate-conditions.ts';

interface RuleEngine {
  readonly validateRules: typeof validateRules;
  readonly validateRuleExpressions: typeof validateRuleExpressions;
  readonly compilePolicy: typeof compilePolicy;
  readonly judgePolicy: typeof judgePolicy;
  readonly compileMutations: typeof compileMutations;
  readonly mutationsMeant: typeof mutationsMeant;
  readonly patchOf: typeof patchOf;
  readonly compileCondition: typeof compileCondition;
  readonly matchConditions: typeof matchConditions;
}

let engine: RuleEngine | undefined;

/** Loads the engine; undefined when it is there already. */
export function loadRuleEngine(): Promise<void> | undefined {
  return engine === undefined ? load() : undefined;
}

async function load(): Promise<void> {
  const [values, expressions, judge, mutate, conditions] = await Promise.all([
    import('../registry/apiextensions/customresource/rules/validate-rules.ts'),
    import('../registry/apiextensions/customresourcedefinition/rule-expressions.ts'),
    import('../registry/admissionregistration/admissionpolicy/judge.ts'),
    import('../registry/admissionregistration/admissionpolicy/mutate.ts'),
    import('../registry/admissionregistration/webhookconfiguration/evaluate-conditions.ts'),
  ]);
  engine = { ...values, ...expressions, ...judge, ...mutate, ...conditions };
}

/** The engine. Who validates is asked to be `ready` first, which loads it. */
export function ruleEngine(): RuleEngine {
  if (engine === undefined) throw new Error('rules in CEL are asked before their engine is loaded');
  return engine;
}
