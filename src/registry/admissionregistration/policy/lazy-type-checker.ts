import type {
  ExpressionWarning,
  ValidatingAdmissionPolicy,
} from '../../../objects/types/admissionregistration.generated.ts';
import { isRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';

import type { CheckedKind } from './type-check.ts';

/**
 * The type errors of a ValidatingAdmissionPolicy's expressions, see {@link checkPolicyTypes}. CEL is loaded on the
 * first call.
 */
export async function lazyTypeChecker(
  policy: KubeObject,
  kinds: readonly CheckedKind[],
  params: CheckedKind | undefined,
): Promise<readonly ExpressionWarning[]> {
  if (!isPolicy(policy)) return [];
  const { checkPolicyTypes } = await import('./type-check.ts');
  return checkPolicyTypes(policy.spec, kinds, params);
}

/** Stored specs always have this form. */
function isPolicy(object: KubeObject): object is ValidatingAdmissionPolicy {
  return isRecord(Reflect.get(object, 'spec'));
}
