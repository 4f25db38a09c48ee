import { textAt } from '../../../objects/read.ts';
import type { DialPod } from '../../proxy/dial-pod.ts';
import { createEndpointResolver } from '../../proxy/endpoint-resolver.ts';
import { isSimulated } from '../../proxy/simulated-addresses.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { listPrefix, objectKey } from '../../storage/storage.ts';
import type { WebhookNetwork } from './client.ts';

/**
 * Where webhooks behind Services are: at one of the Service's endpoints, or at the name of an ExternalName
 * (`aggregator` service resolvers). Endpoints without a Pod count too: a webhook under development runs outside of
 * the cluster, and only administrators configure webhooks.
 */
export function webhookNetwork(core: ServerCore, dialPod: DialPod | undefined): WebhookNetwork {
  const get = (group: string, plural: string, namespace: string, name: string) =>
    core.storage.get(objectKey(group, plural, namespace, name))?.object;
  const list = (group: string, plural: string) =>
    core.storage.list(listPrefix(group, plural)).items.map((item) => item.object);
  const endpoints = createEndpointResolver({ get, random: () => core.random(), addressesWithoutPods: true });
  return {
    resolve: (namespace, name, port) => {
      const service = get('', 'services', namespace, name);
      if (service === undefined) throw new Error(`service ${JSON.stringify(name)} not found`);
      if (textAt(service, 'spec', 'type') === 'ExternalName') {
        return { host: textAt(service, 'spec', 'externalName'), port, isPod: false };
      }
      return endpoints.service(namespace, `https:${name}:${port}`);
    },
    isSimulated: (address) => isSimulated(address, list),
    dialPod,
  };
}
