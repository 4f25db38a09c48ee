import type {
  CustomResourceDefinition,
  CustomResourceDefinitionCondition,
} from '../../../objects/types/apiextensions.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';

/** True for a decoded CustomResourceDefinition. */
export function isCustomResourceDefinition(object: KubeObject): object is CustomResourceDefinition {
  return object.kind === 'CustomResourceDefinition' && 'spec' in object && 'status' in object;
}

/** True when a condition of that type has status True. */
export function hasCondition(definition: CustomResourceDefinition, type: string): boolean {
  return (definition.status.conditions ?? []).some(
    (condition) => condition.type === type && condition.status === 'True',
  );
}

/** The conditions with `next` in the place of that type; the transition time stays while the status does. */
export function withCondition(
  conditions: readonly CustomResourceDefinitionCondition[] | null,
  next: CustomResourceDefinitionCondition,
): CustomResourceDefinitionCondition[] {
  const list = [...(conditions ?? [])];
  const at = list.findIndex(({ type }) => type === next.type);
  const before = list[at];
  if (before === undefined) return [...list, next];
  const kept = before.status === next.status ? before.lastTransitionTime : undefined;
  const time = kept ?? next.lastTransitionTime;
  list[at] = { ...next, ...(time === undefined ? {} : { lastTransitionTime: time }) };
  return list;
}
