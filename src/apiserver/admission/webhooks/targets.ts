import { textAt } from '../../../objects/read.ts';
import { createEndpointResolver } from '../../proxy/endpoint-resolver.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { objectKey } from '../../storage/storage.ts';
import type { ServiceResolver } from './client.ts';

/**
 * Where webhooks behind Services are: at one of the Service's endpoints, or at the name of an ExternalName
 * (`aggregator` service resolvers). Endpoints without a Pod count too: a webhook under development runs outside of
 * the cluster, and only administrators configure webhooks.
 */
export function webhookTargets(core: ServerCore): ServiceResolver {
  const get = (group: string, plural: string, namespace: string, name: string) =>
    core.storage.get(objectKey(group, plural, namespace, name))?.object;
  const endpoints = createEndpointResolver({ get, random: () => core.random(), addressesWithoutPods: true });
  return (namespace, name, port) => {
    const service = get('', 'services', namespace, name);
    if (service === undefined) throw new Error(`service ${JSON.stringify(name)} not found`);
    if (textAt(service, 'spec', 'type') === 'ExternalName') {
      return { host: textAt(service, 'spec', 'externalName'), port };
    }
    const target = endpoints.service(namespace, `https:${name}:${port}`);
    return { host: target.host, port: target.port };
  };
}
