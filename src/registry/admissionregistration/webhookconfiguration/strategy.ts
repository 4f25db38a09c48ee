import type { MutatingWebhook } from '../../../objects/types/admissionregistration.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import type { Strategy } from '../../generic/strategy.ts';
import { validateWebhooks } from './validation.ts';
import type { KubeObject } from '../../../objects/meta.ts';

/** Admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration and MutatingWebhookConfiguration. */
export interface WebhookConfiguration extends KubeObject {
  webhooks?: MutatingWebhook[];
}

/** The rules of ValidatingWebhookConfigurations (`apis/admissionregistration/v1/defaults.go`). */
export const validatingWebhookStrategy = strategyOf(false);

/** The rules of MutatingWebhookConfigurations. */
export const mutatingWebhookStrategy = strategyOf(true);

function strategyOf(mutating: boolean): Strategy<WebhookConfiguration> {
  const rules = genericStrategy<WebhookConfiguration>({
    namespaced: false,
    nameRule: nameIsDNSSubdomain,
    metadataRules: 'machinery',
    allowUnconditionalUpdate: false,
    generationChanges: (object, old) => !jsonEqual(object.webhooks ?? [], old.webhooks ?? []),
    repeatsCreate: 'instead',
    setDefaults({ webhooks = [] }) {
      for (const webhook of webhooks) setWebhookDefaults(webhook, mutating);
    },
    validateCreate: ({ webhooks = [] }) => validateWebhooks(webhooks, mutating),
  });
  return {
    ...rules,
  };
}

function setWebhookDefaults(webhook: MutatingWebhook, mutating: boolean): void {
  webhook.failurePolicy ??= 'Fail';
  webhook.matchPolicy ??= 'Equivalent';
  webhook.namespaceSelector ??= {};
  webhook.objectSelector ??= {};
  webhook.timeoutSeconds ??= 10;
  if (mutating) webhook.reinvocationPolicy ??= 'Never';
  if (webhook.clientConfig.service !== undefined) webhook.clientConfig.service.port ??= 443;
  for (const rule of webhook.rules ?? []) rule.scope ??= '*';
}
