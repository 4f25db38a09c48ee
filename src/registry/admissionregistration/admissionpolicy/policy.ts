import type { KubeObject, LabelSelector } from '../../../objects/meta.ts';
import type { MatchCondition } from '../expressions/evaluate-conditions.ts';
import type { WebhookRule } from '../webhookconfiguration/webhook.ts';

/** Admissionregistration/v1 ValidatingAdmissionPolicy. */
export interface ValidatingAdmissionPolicy extends KubeObject {
  spec?: PolicySpec;
}

/** The fields that policies of both kinds have. */
export interface CommonPolicySpec {
  paramKind?: { apiVersion?: string; kind?: string };
  matchConstraints?: MatchResources;
  variables?: { name?: string; expression?: string }[] | null;
  matchConditions?: MatchCondition[] | null;
  failurePolicy?: string;
}

export interface PolicySpec extends CommonPolicySpec {
  validations?: Validation[] | null;
  auditAnnotations?: { key?: string; valueExpression?: string }[] | null;
}

/** Admissionregistration/v1 MutatingAdmissionPolicy. */
export interface MutatingAdmissionPolicy extends KubeObject {
  spec?: MutatingPolicySpec;
}

export interface MutatingPolicySpec extends CommonPolicySpec {
  mutations?: Mutation[] | null;
  reinvocationPolicy?: string;
}

/** One change: an expression that makes an apply configuration or a JSON patch. */
export interface Mutation {
  patchType?: string;
  applyConfiguration?: { expression?: string };
  jsonPatch?: { expression?: string };
}

/** One validation; when it is false the write is refused. */
export interface Validation {
  expression?: string;
  message?: string;
  messageExpression?: string;
  reason?: string;
}

/** The requests that are matched. */
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

/** Admissionregistration/v1 ValidatingAdmissionPolicyBinding, and MutatingAdmissionPolicyBinding without the actions. */
export interface PolicyBinding extends KubeObject {
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
