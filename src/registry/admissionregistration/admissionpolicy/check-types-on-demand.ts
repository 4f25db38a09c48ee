import { isRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { ValidatingAdmissionPolicy } from './policy.ts';
import type { CheckedKind, ExpressionWarning } from './type-check.ts';

/**
 * What is wrong with the expressions of a ValidatingAdmissionPolicy, as {@link checkPolicyTypes} says. The engine of CEL
 * is loaded with the first one.
 */
export async function checkTypesOnDemand(
  policy: KubeObject,
  kinds: readonly CheckedKind[],
  params: CheckedKind | undefined,
): Promise<readonly ExpressionWarning[]> {
  if (!isPolicy(policy) || policy.spec === undefined) return [];
  const { checkPolicyTypes } = await import('./type-check.ts');
  return checkPolicyTypes(policy.spec, kinds, params);
}

/** A server keeps no other form of a spec. */
function isPolicy(object: KubeObject): object is ValidatingAdmissionPolicy {
  return isRecord(Reflect.get(object, 'spec'));
}
