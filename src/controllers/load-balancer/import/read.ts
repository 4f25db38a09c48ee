import { isNotFound } from '../../../client/errors.ts';
import { ResourceClient } from '../../../client/resource-client.ts';
import { resourceName, services, type ResourceType } from '../../../client/resources.ts';
import type { Transport } from '../../../client/transport.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { listAll } from '../cluster-pools.ts';
import { addressPools } from '../resource.ts';
import { importCilium } from './cilium.ts';
import { keepingAssigned, type Imported } from './imported.ts';
import { importKubeVip } from './kube-vip.ts';
import { importMetalLB } from './metallb.ts';

const foreign = (group: string, version: string, plural: string, kind: string): ResourceType => ({
  group,
  version,
  plural,
  kind,
  namespaced: group === '' || group === 'metallb.io',
  isObject: (_object): _object is KubeObject => true,
});

const metalLB = [foreign('metallb.io', 'v1beta1', 'ipaddresspools', 'IPAddressPool')];
const cilium = ['v2', 'v2alpha1'].map((version) =>
  foreign('cilium.io', version, 'ciliumloadbalancerippools', 'CiliumLoadBalancerIPPool'),
);
const configMaps = foreign('', 'v1', 'configmaps', 'ConfigMap');

/**
 * Reads another load balancer's pools from a cluster, and adds what Services have outside of them.
 *
 * @param configMap `namespace/name` of kube-vip's ConfigMap.
 * @throws {Error} when the cluster has no such pools, and what a request throws.
 */
export async function readImport(
  transport: Transport,
  source: 'metallb' | 'cilium' | 'kube-vip',
  configMap: string,
): Promise<Imported> {
  const imported = await readSource(transport, source, configMap);
  const present = (await listAll(transport, addressPools)) ?? [];
  return keepingAssigned(imported, (await listAll(transport, services)) ?? [], present);
}

async function readSource(transport: Transport, source: string, configMap: string): Promise<Imported> {
  if (source === 'metallb') return importMetalLB(await firstServed(transport, metalLB));
  if (source === 'cilium') return importCilium(await firstServed(transport, cilium));
  const [namespace = '', name = ''] = configMap.split('/');
  try {
    return importKubeVip(await new ResourceClient(transport, configMaps).get(namespace, name));
  } catch (error) {
    if (isNotFound(error)) throw new Error(`the cluster has no ConfigMap ${configMap}`, { cause: error });
    throw error;
  }
}

async function firstServed(
  transport: Transport,
  resources: readonly ResourceType[],
): Promise<readonly KubeObject[]> {
  for (const resource of resources) {
    const objects = await listAll(transport, resource);
    if (objects !== undefined) return objects;
  }
  const [resource] = resources;
  throw new Error(`the cluster has no ${resource === undefined ? 'pools' : resourceName(resource)}`);
}
