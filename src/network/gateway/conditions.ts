import type { PlannedCondition } from './plan.ts';

/** Why a condition is False. */
export interface Problem {
  readonly reason: string;
  readonly message: string;
}

/** A condition that is True; its reason is mostly its type. */
export function isTrue(type: string, message: string, reason = type): PlannedCondition {
  return { type, status: 'True', reason, message };
}

/** A condition that is False. */
export function isFalse(type: string, { reason, message }: Problem): PlannedCondition {
  return { type, status: 'False', reason, message };
}

/** True with the type as its reason, unless there is a problem. */
export function trueUnless(type: string, problem: Problem | undefined, message: string): PlannedCondition {
  return problem === undefined ? isTrue(type, message) : isFalse(type, problem);
}
