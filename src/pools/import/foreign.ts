import { isRecord, isStringList, isStringMap } from '../../objects/json.ts';
import type { LabelSelector } from '../../objects/meta.ts';

/** The objects in a list of unknown things. */
export function objectsAt(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter((item) => isRecord(item)) : [];
}

/** True for a meta/v1 LabelSelector. */
function isLabelSelector(value: unknown): value is LabelSelector {
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

/**
 * The LabelSelectors in a list; one that cannot be read selects nothing, and a pool with it is not imported.
 */
export function selectorsAt(value: unknown): LabelSelector[] {
  return Array.isArray(value) ? value.map((item: unknown) => readSelector(item)) : [];
}

/** A LabelSelector as it came, or one that no server takes. */
export function readSelector(value: unknown): LabelSelector {
  if (!isLabelSelector(value))
    return { matchExpressions: [{ key: '', operator: 'a selector that cannot be read' }] };
  const { matchLabels, matchExpressions } = value;
  return {
    ...(matchLabels === undefined ? {} : { matchLabels }),
    ...(matchExpressions === undefined
      ? {}
      : {
          matchExpressions: matchExpressions.map(({ key, operator, values }) => ({
            key,
            operator,
            ...(values === undefined ? {} : { values }),
          })),
        }),
  };
}

/** Notes the fields of an object that mean nothing to us. */
export function noteOthers(
  name: string,
  object: Readonly<Record<string, unknown>>,
  known: readonly string[],
  notes: string[],
): void {
  const others = Object.keys(object).filter((field) => !known.includes(field));
  if (others.length > 0) notes.push(`${name}: ${others.join(', ')} not imported`);
}
