import type { KubeObject, LabelSelector } from '../../../objects/meta.ts';
import type { MatchCondition } from './match-conditions.ts';

/** Admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration and MutatingWebhookConfiguration. */
export interface WebhookConfiguration extends KubeObject {
  webhooks?: Webhook[];
}

export interface Webhook {
  name?: string;
  clientConfig?: {
    url?: string;
    service?: { namespace?: string; name?: string; path?: string; port?: number };
    /** PEM certificates in base64. */
    caBundle?: string;
  };
  rules?: WebhookRule[];
  failurePolicy?: string;
  matchPolicy?: string;
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  sideEffects?: string;
  timeoutSeconds?: number;
  admissionReviewVersions?: string[] | null;
  /** CEL expressions. */
  matchConditions?: MatchCondition[] | null;
  /** Mutating webhooks only. */
  reinvocationPolicy?: string;
}

export interface WebhookRule {
  operations?: string[];
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
  scope?: string;
}
