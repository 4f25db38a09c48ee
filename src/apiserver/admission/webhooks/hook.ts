import type {
  MatchCondition,
  MutatingWebhook,
  RuleWithOperations,
} from '../../../objects/types/admissionregistration.generated.ts';
import { compileLabelSelector, type ParsedLabelSelector } from '../../../objects/labels/labels.ts';
import type { KubeObject } from '../../../objects/meta.ts';

import { isReviewVersion, type ReviewVersion } from './answer.ts';
import type { WebhookClient } from './client.ts';
import type { WebhookConfiguration } from '../../../registry/admissionregistration/webhookconfiguration/strategy.ts';

/** One webhook of a stored configuration, ready to be matched and called. */
export interface Hook {
  /** Unique among all webhooks of a kind: configuration, index and name. */
  readonly id: string;
  readonly name: string;
  readonly rules: readonly RuleWithOperations[];
  /** `failurePolicy: Ignore`: a webhook that cannot be called is skipped. */
  readonly ignoresFailures: boolean;
  /** `matchPolicy: Equivalent`: also called for other versions of the resources of its rules. */
  readonly matchesEquivalents: boolean;
  readonly namespaceSelector: ParsedLabelSelector;
  readonly objectSelector: ParsedLabelSelector;
  /** The webhook is called only where all hold. */
  readonly conditions: readonly MatchCondition[];
  readonly supportsDryRun: boolean;
  /** `reinvocationPolicy: IfNeeded`. */
  readonly reinvokes: boolean;
  /** The first of `admissionReviewVersions` that this server supports. */
  readonly reviewVersion: ReviewVersion;
  readonly client: WebhookClient;
}

/** Makes the client of a webhook. */
export type ClientFactory = (webhook: MutatingWebhook) => WebhookClient;

/** The webhooks of a configuration, in order. */
export function hooksOf(configuration: WebhookConfiguration, connect: ClientFactory): Hook[] {
  return (configuration.webhooks ?? []).map((webhook, index) => ({
    id: `${configuration.metadata.name ?? ''}/${index}/${webhook.name}`,
    name: webhook.name,
    rules: webhook.rules ?? [],
    ignoresFailures: webhook.failurePolicy === 'Ignore',
    matchesEquivalents: webhook.matchPolicy !== 'Exact',
    namespaceSelector: compileLabelSelector(webhook.namespaceSelector ?? {}),
    objectSelector: compileLabelSelector(webhook.objectSelector ?? {}),
    conditions: webhook.matchConditions ?? [],
    supportsDryRun: webhook.sideEffects === 'None' || webhook.sideEffects === 'NoneOnDryRun',
    reinvokes: webhook.reinvocationPolicy === 'IfNeeded',
    reviewVersion: webhook.admissionReviewVersions?.find(isReviewVersion) ?? 'v1',
    client: connect(webhook),
  }));
}

/** True for a configuration of either kind. */
export function isWebhookConfiguration(object: KubeObject): object is WebhookConfiguration {
  return object.kind === 'ValidatingWebhookConfiguration' || object.kind === 'MutatingWebhookConfiguration';
}
