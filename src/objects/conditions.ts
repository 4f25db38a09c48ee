/** Conditions in the status of objects (meta/v1 Condition and the older forms of it). */
import { formatTime } from './time.ts';

interface TypedCondition {
  readonly type: string;
}

/** The members of all forms of conditions. */
interface TimedCondition extends TypedCondition {
  readonly status: string;
  readonly lastTransitionTime?: string | null;
}

/** The condition of a type. */
export function conditionOf<T extends TypedCondition>(
  conditions: readonly T[] | undefined,
  type: string,
): T | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * The `lastTransitionTime` of a condition (RFC 3339): that of the present condition of the type while the status is the
 * same, else `now`.
 *
 * @param now milliseconds since 1970.
 */
export function transitionTime(
  present: readonly TimedCondition[] | undefined,
  { type, status }: TimedCondition,
  now: number,
): string {
  const before = conditionOf(present, type);
  return (before?.status === status ? before.lastTransitionTime : undefined) ?? formatTime(now);
}

/** Replaces the condition of the same type at its index, or appends the condition. */
export function replacedCondition<T extends TypedCondition>(conditions: readonly T[], condition: T): T[] {
  const at = conditions.findIndex(({ type }) => type === condition.type);
  return at < 0 ? [...conditions, condition] : conditions.with(at, condition);
}
