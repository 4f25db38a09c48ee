import type { Webhook } from '../../../registry/admissionregistration/webhookconfiguration/webhook.ts';
import type { WebhookClient, WebhookNetwork } from './client.ts';

/** A client that is made when it is first asked: until then its HTTP library need not be loaded. */
export function webhookClientOnDemand(webhook: Webhook, network: WebhookNetwork): WebhookClient {
  let made: Promise<WebhookClient> | undefined;
  const client = async (): Promise<WebhookClient> => {
    const { createWebhookClient } = await import('./client.ts');
    return createWebhookClient(webhook, network);
  };
  return {
    ask: async (body) => (await (made ??= client())).ask(body),
    close: async () => (await made)?.close(),
    destroy: async () => (await made)?.destroy(),
  };
}
