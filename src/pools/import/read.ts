import { isRecord } from '../../objects/json.ts';
import type { KubeObject, LabelSelector } from '../../objects/meta.ts';
import type { AddressPoolSpec } from '../../objects/types/servicenet.ts';
import {
  importedAddresses,
  noteOthers,
  objectsAt,
  readSelector,
  asPools,
  type ForeignPool,
  namespacesNamed,
  type Imported,
  keepingAssigned,
} from './imported.ts';
import { isNotFound } from '../../client/errors.ts';
import { listIfServed, ResourceClient } from '../../client/resource-client.ts';
import { resourceName, services, type ResourceType, addressPools } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { importKubeVip, runsKubeVip } from './kube-vip.ts';
import { importMetalLB, importMetalLBConfig } from './metallb.ts';
import type { MetalLBAnnouncing } from './metallb-announce.ts';

/** Labels for the namespace and the name of a Service in Cilium's selectors. */
const pseudoNamespace = 'io.kubernetes.service.namespace';
const pseudoName = 'io.kubernetes.service.name';

const known = ['blocks', 'cidrs', 'disabled', 'allowFirstLastIPs', 'serviceSelector'];

/** Cilium's CiliumLoadBalancerIPPools (`cilium.io/v2`, `v2alpha1`) as AddressPools. */
export function importCilium(objects: readonly KubeObject[]): Imported {
  const notes: string[] = [];
  const pools = objects.map((object) => poolOf(object, notes));
  return { pools: asPools(pools, notes), peers: [], notes };
}

function poolOf(object: KubeObject, notes: string[]): ForeignPool {
  const name = object.metadata.name ?? '';
  const value: unknown = Reflect.get(object, 'spec');
  const spec = isRecord(value) ? value : {};
  const blocks = objectsAt(spec['blocks'] ?? spec['cidrs']).flatMap((block) => blockText(block));
  const addresses = importedAddresses(name, blocks, notes);
  noteOthers(name, spec, known, notes);
  if (spec['disabled'] === true)
    notes.push(`${name}: was disabled; it became a pool that assigns only on request`);
  const pool: AddressPoolSpec = {
    addresses,
    ...(spec['disabled'] === true ? { autoAssign: false } : {}),
    ...(spec['allowFirstLastIPs'] === 'No' ? { avoidFirstLast: true } : {}),
    ...selectorsOf(name, spec['serviceSelector'], notes),
  };
  return { name, spec: pool };
}

function blockText({ cidr, start, stop }: Record<string, unknown>): string[] {
  if (typeof cidr === 'string') return [cidr];
  if (typeof start !== 'string') return [];
  return [`${start}-${typeof stop === 'string' && stop !== '' ? stop : start}`];
}

function selectorsOf(
  name: string,
  value: unknown,
  notes: string[],
): Pick<AddressPoolSpec, 'namespaceSelector' | 'serviceSelector'> {
  if (value === undefined || value === null) return {};
  const selector = readSelector(value);
  const labels = new Map(Object.entries(selector.matchLabels ?? {}));
  const namespace = labels.get(pseudoNamespace);
  labels.delete(pseudoNamespace);
  const namespaces = (selector.matchExpressions ?? []).filter(
    ({ key, operator }) => key === pseudoNamespace && operator === 'In',
  );
  const rest = (selector.matchExpressions ?? []).filter((expression) => !namespaces.includes(expression));
  if (labels.has(pseudoName) || rest.some(({ key }) => key === pseudoName || key === pseudoNamespace)) {
    notes.push(`${name}: selects Services by name; use spec.reservations, or label those Services`);
  }
  const named = [
    ...(namespace === undefined ? [] : [[namespace]]),
    ...namespaces.map(({ values }) => values ?? []),
  ];
  const [first, ...others] = named;
  const names = first?.filter((one) => others.every((list) => list.includes(one)));
  const serviceSelector: LabelSelector = {
    ...(labels.size === 0 ? {} : { matchLabels: Object.fromEntries(labels) }),
    ...(rest.length === 0 ? {} : { matchExpressions: rest }),
  };
  return {
    ...(names === undefined ? {} : { namespaceSelector: namespacesNamed(names) }),
    ...(Object.keys(serviceSelector).length === 0 ? {} : { serviceSelector }),
  };
}

const foreign = (group: string, version: string, plural: string, kind: string): ResourceType => ({
  group,
  version,
  plural,
  kind,
  namespaced: group === '' || group === 'metallb.io' || group === 'apps',
  isObject: (_object): _object is KubeObject => true,
});

const metalLB = foreign('metallb.io', 'v1beta1', 'ipaddresspools', 'IPAddressPool');
const cilium = ['v2', 'v2alpha1'].map((version) =>
  foreign('cilium.io', version, 'ciliumloadbalancerippools', 'CiliumLoadBalancerIPPool'),
);
const configMaps = foreign('', 'v1', 'configmaps', 'ConfigMap');

/** The kinds that configure MetalLB's announcements. */
const metalLBAnnouncing = {
  l2Advertisements: foreign('metallb.io', 'v1beta1', 'l2advertisements', 'L2Advertisement'),
  bgpAdvertisements: foreign('metallb.io', 'v1beta1', 'bgpadvertisements', 'BGPAdvertisement'),
  bgpPeers: foreign('metallb.io', 'v1beta2', 'bgppeers', 'BGPPeer'),
  communities: foreign('metallb.io', 'v1beta1', 'communities', 'Community'),
} as const;
const daemonSets = foreign('apps', 'v1', 'daemonsets', 'DaemonSet');

/** Kinds that configure announcing, and have no counterpart here. They are counted. */
const announcingKinds = {
  metallb: [foreign('metallb.io', 'v1beta1', 'bfdprofiles', 'BFDProfile')],
  cilium: [
    foreign('cilium.io', 'v2alpha1', 'ciliuml2announcementpolicies', 'CiliumL2AnnouncementPolicy'),
    foreign('cilium.io', 'v2alpha1', 'ciliumbgpadvertisements', 'CiliumBGPAdvertisement'),
    foreign('cilium.io', 'v2alpha1', 'ciliumbgppeeringpolicies', 'CiliumBGPPeeringPolicy'),
  ],
  'kube-vip': [],
} as const;

type Source = keyof typeof announcingKinds;

/** Default ConfigMaps of kube-vip's cloud provider, and of MetalLB before 0.13. */
const defaultConfigMaps = {
  metallb: 'metallb-system/config',
  'kube-vip': 'kube-system/kubevip',
} as const;

/**
 * Reads another load balancer's pools from a cluster, and adds pools for other addresses of Services.
 *
 * @param configMap `namespace/name` of the ConfigMap of kube-vip, or of MetalLB before 0.13; default {@link defaultConfigMaps}.
 * @throws {Error} when the cluster has no such pools, and what a request throws.
 */
export async function readImport(
  transport: Transport,
  source: Source,
  configMap: string | undefined,
): Promise<Imported> {
  const { pools, peers, notes } = await readSource(transport, source, configMap);
  const imported = { pools, peers, notes: [...notes, ...(await announcingNotes(transport, source))] };
  const present = (await listIfServed(transport, addressPools)) ?? [];
  return keepingAssigned(imported, (await listIfServed(transport, services)) ?? [], present);
}

async function readSource(
  transport: Transport,
  source: Source,
  configMap: string | undefined,
): Promise<Imported> {
  if (source === 'cilium') return importCilium(await firstServed(transport, cilium));
  if (source === 'kube-vip')
    return importKubeVip(
      await readConfigMap(transport, configMap ?? defaultConfigMaps[source]),
      (await listIfServed(transport, daemonSets))?.find(runsKubeVip),
    );
  if (configMap !== undefined) return importMetalLBConfig(await readConfigMap(transport, configMap));
  const pools = await listIfServed(transport, metalLB);
  if (pools !== undefined && pools.length > 0) return importMetalLB(pools, await readAnnouncing(transport));
  // After an upgrade to 0.13 the cluster has both the new kind and the ConfigMap, which MetalLB ignores.
  const old = await readIfThere(transport, defaultConfigMaps[source]);
  if (old !== undefined) return importMetalLBConfig(old);
  throw new Error(
    `the cluster has no ${resourceName(metalLB)}, and no ConfigMap ${defaultConfigMaps[source]}`,
  );
}

async function readAnnouncing(transport: Transport): Promise<MetalLBAnnouncing> {
  const list = async (resource: ResourceType): Promise<readonly KubeObject[]> =>
    (await listIfServed(transport, resource)) ?? [];
  return {
    l2Advertisements: await list(metalLBAnnouncing.l2Advertisements),
    bgpAdvertisements: await list(metalLBAnnouncing.bgpAdvertisements),
    bgpPeers: await list(metalLBAnnouncing.bgpPeers),
    communities: await list(metalLBAnnouncing.communities),
  };
}

async function readConfigMap(transport: Transport, configMap: string): Promise<KubeObject> {
  const found = await readIfThere(transport, configMap);
  if (found === undefined) throw new Error(`the cluster has no ConfigMap ${configMap}`);
  return found;
}

async function readIfThere(transport: Transport, configMap: string): Promise<KubeObject | undefined> {
  const [namespace = '', name = ''] = configMap.split('/');
  try {
    return await new ResourceClient(transport, configMaps).get(namespace, name);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function announcingNotes(transport: Transport, source: Source): Promise<string[]> {
  const notes: string[] = [];
  for (const resource of announcingKinds[source]) {
    const count = (await listIfServed(transport, resource))?.length ?? 0;
    if (count > 0) notes.push(`${count} ${resourceName(resource)} not imported: they have no counterpart`);
  }
  return notes;
}

async function firstServed(
  transport: Transport,
  resources: readonly ResourceType[],
): Promise<readonly KubeObject[]> {
  for (const resource of resources) {
    const objects = await listIfServed(transport, resource);
    if (objects !== undefined) return objects;
  }
  const [resource] = resources;
  throw new Error(`the cluster has no ${resource === undefined ? 'pools' : resourceName(resource)}`);
}
