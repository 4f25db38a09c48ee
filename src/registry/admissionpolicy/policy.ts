import type { KubeObject, LabelSelector } from '../../objects/meta.ts';
import type { MatchCondition } from '../webhookconfiguration/match-conditions.ts';
import type { WebhookRule } from '../webhookconfiguration/webhook.ts';

/** Admissionregistration/v1 ValidatingAdmissionPolicy. */
export interface ValidatingAdmissionPolicy extends KubeObject {
  spec?: PolicySpec;
}

export interface PolicySpec {
  paramKind?: { apiVersion?: string; kind?: string };
  matchConstraints?: MatchResources;
  validations?: Validation[] | null;
  variables?: { name?: string; expression?: string }[] | null;
  matchConditions?: MatchCondition[] | null;
  auditAnnotations?: object[] | null;
  failurePolicy?: string;
}

/** One rule: what does not hold is refused. */
export interface Validation {
  expression?: string;
  message?: string;
  messageExpression?: string;
  reason?: string;
}

/** Which requests are meant. */
export interface MatchResources {
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  resourceRules?: NamedRule[] | null;
  excludeResourceRules?: NamedRule[] | null;
  matchPolicy?: string;
}

export interface NamedRule extends WebhookRule {
  resourceNames?: string[] | null;
}

/** Admissionregistration/v1 ValidatingAdmissionPolicyBinding. */
export interface ValidatingAdmissionPolicyBinding extends KubeObject {
  spec?: {
    policyName?: string;
    paramRef?: ParamRef;
    matchResources?: MatchResources;
    validationActions?: string[] | null;
  };
}

export interface ParamRef {
  name?: string;
  namespace?: string;
  selector?: LabelSelector;
  parameterNotFoundAction?: string;
}
