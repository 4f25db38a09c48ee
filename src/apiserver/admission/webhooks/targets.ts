import type { KubeObject } from '../../../objects/meta.ts';
import { parseAddress } from '../../../objects/address.ts';
import { parseAddressRange } from '../../../allocation/address-range.ts';
import { listAt, textAt } from '../../../objects/read.ts';
import type { DialPod } from '../../proxy/dial-pod.ts';
import { createEndpointResolver } from '../../proxy/endpoint-resolver.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { listPrefix, objectKey } from '../../storage/storage.ts';
import type { WebhookNetwork } from './client.ts';

/**
 * The network to webhooks: a Service leads to one of its endpoints, or to the name of an ExternalName (kube-aggregator
 * `apiserver/resolvers.go`). Endpoints without a Pod count too: a webhook under development runs outside of the
 * cluster, and only administrators configure webhooks.
 */
export function webhookNetwork(
  core: ServerCore,
  dialPod: DialPod | undefined,
  lanCidrs: readonly string[],
): WebhookNetwork {
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
    isSimulated: (address) => isSimulated(address, list, lanCidrs),
    dialPod,
  };
}

/**
 * True for an address of the simulated network: of a Node, of a Node's Pod range, of a ServiceCIDR, or of the LAN. In
 * the machine's network the same address may be another host.
 *
 * @param list all objects of a cluster-scoped resource.
 */
function isSimulated(
  address: string,
  list: (group: string, plural: string) => readonly KubeObject[],
  lanCidrs: readonly string[],
): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  const inRange = (cidr: unknown): boolean => {
    const range = typeof cidr === 'string' ? parseAddressRange(cidr) : undefined;
    return range?.contains(parsed.family, parsed.value) ?? false;
  };
  const isAddress = (listed: unknown): boolean =>
    parseAddress(textAt(listed, 'address'))?.canonical === parsed.canonical;
  return (
    lanCidrs.some(inRange) ||
    list('networking.k8s.io', 'servicecidrs').some((cidr) => listAt(cidr, 'spec', 'cidrs').some(inRange)) ||
    list('', 'nodes').some(
      (node) =>
        listAt(node, 'spec', 'podCIDRs').some(inRange) || listAt(node, 'status', 'addresses').some(isAddress),
    )
  );
}
