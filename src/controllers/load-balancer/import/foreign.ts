import { isRecord, isStringList, isStringMap } from '../../../objects/json.ts';
import type { LabelSelector } from '../../../objects/meta.ts';

/** The objects in a list of unknown things. */
export function objectsAt(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter((item) => isRecord(item)) : [];
}

/** True for a meta/v1 LabelSelector. */
export function isLabelSelector(value: unknown): value is LabelSelector {
  if (!isRecord(value)) return false;
  const { matchLabels, matchExpressions } = value;
  if (matchLabels !== undefined && !isStringMap(matchLabels)) return false;
  if (matchExpressions === undefined) return true;
  return (
    Array.isArray(matchExpressions) &&
    matchExpressions.every(
      (item) =>
        isRecord(item) &&
        typeof item['key'] === 'string' &&
        typeof item['operator'] === 'string' &&
        (item['values'] === undefined || isStringList(item['values'])),
    )
  );
}
