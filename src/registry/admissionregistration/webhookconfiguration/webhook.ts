import type { KubeObject, LabelSelector } from '../../../objects/meta.ts';
import type { WebhookClientConfig } from '../../validation/client-config.ts';
import type { MatchCondition } from '../expressions/evaluate-conditions.ts';

/** Admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration and MutatingWebhookConfiguration. */
export interface WebhookConfiguration extends KubeObject {
  webhooks?: Webhook[];
}

export interface Webhook {
  name?: string;
  clientConfig?: WebhookClientConfig;
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
