import type { KubeObject, LabelSelector } from '../../objects/meta.ts';
import { listAt, textAt, isRecord } from '../../objects/json.ts';
import type { AddressPoolAnnounce, AddressPoolSpec } from '../../objects/types/servicenet.ts';
import {
  objectsAt,
  importedAddresses,
  asPools,
  type ForeignPool,
  namespacesNamed,
  type Imported,
  asPeers,
  type ForeignPeer,
  type ImportedPeers,
  noteOthers,
  readSelector,
  keepingAssigned,
} from './imported.ts';
import { splitList } from '../../objects/lists.ts';
import { isNotFound } from '../../client/errors.ts';
import { listIfServed, ResourceClient } from '../../client/resource-client.ts';
import { resourceName, services, type ResourceType, addressPools } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { importMetalLB, importMetalLBConfig } from './metallb.ts';
import type { MetalLBAnnouncing } from './metallb-announce.ts';

/** How kube-vip announces: the environment and arguments of its DaemonSet. */

/**
 * Arguments with the same meaning as a variable of the environment (kube-vip `cmd/kube-vip.go`,
 * `pkg/kubevip/config_envvar.go`).
 */
const variableOf: Readonly<Record<string, string>> = {
  ...{ arp: 'vip_arp', bgp: 'bgp_enable', interface: 'vip_interface', localAS: 'bgp_as' },
  ...{ serviceInterface: 'vip_servicesinterface', peerAddress: 'bgp_peeraddress', peerAS: 'bgp_peeras' },
  ...{
    peerPass: 'bgp_peerpass',
    bgppeers: 'bgp_peers',
    bgpRouterID: 'bgp_routerid',
    sourceIP: 'bgp_sourceip',
  },
};

/** Variables that have no counterpart where they say something. */
const unsayable = ['bgp_sourceif', 'mpbgp_nexthop', 'vip_routingtable', 'vip_wireguard', 'enable_upnp'];

/** The announcements that the settings of kube-vip configure. */
function kubeVipAnnouncing(
  daemonSet: KubeObject,
  notes: string[],
): { readonly announce: AddressPoolAnnounce; readonly peers: ImportedPeers['peers'] } {
  const settings = settingsOf(daemonSet);
  const isOn = (name: string): boolean => settings.get(name) === 'true';
  for (const name of unsayable) {
    const value = settings.get(name) ?? '';
    if (value !== '' && value !== 'false') notes.push(`${name}: has no counterpart`);
  }
  const foreign = isOn('bgp_enable') ? foreignPeers(settings, notes) : [];
  const { peers } = asPeers(foreign, notes);
  if (isOn('bgp_enable') && peers.length === 0) notes.push('bgp_enable: has no peer that can be imported');
  const link = settings.get('vip_servicesinterface') || settings.get('vip_interface') || '';
  const isInterface = /^[^/:\s]{1,15}$/.test(link) && link !== 'lo';
  return {
    peers,
    announce: {
      ...(isOn('vip_arp') ? { layer2: isInterface ? { interfaces: [link] } : {} } : {}),
      ...(peers.length > 0 ? { bgp: {} } : {}),
    },
  };
}

/** Whether a workload runs kube-vip: by its image, without that of its cloud provider. */
export function runsKubeVip(object: KubeObject): boolean {
  return containersOf(object).some((container) =>
    /(^|\/)kube-vip(-iptables)?([:@]|$)/.test(textAt(container, 'image')),
  );
}

function containersOf({ metadata: _, ...rest }: KubeObject): readonly Record<string, unknown>[] {
  return objectsAt(listAt(rest, 'spec', 'template', 'spec', 'containers'));
}

/** By the names of the environment; arguments win, as in kube-vip. */
function settingsOf(object: KubeObject): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  for (const container of containersOf(object)) {
    for (const variable of objectsAt(container['env'])) {
      if (variable['valueFrom'] === undefined)
        settings.set(textAt(variable, 'name'), textAt(variable, 'value'));
    }
    const words = listAt(container, 'args').filter((word) => typeof word === 'string');
    words.forEach((word, index) => {
      const [, flag = '', value] = /^--?([A-Za-z]+)(?:=(.*))?$/.exec(word) ?? [];
      const name = variableOf[flag];
      const next = words[index + 1] ?? '';
      if (name !== undefined)
        settings.set(name, value ?? (next === '' || next.startsWith('-') ? 'true' : next));
    });
  }
  return settings;
}

function foreignPeers(settings: ReadonlyMap<string, string>, notes: string[]): readonly ForeignPeer[] {
  const text = (name: string): string => settings.get(name) ?? '';
  const listed = text('bgp_peers');
  const seconds = text('bgp_hold_time');
  const common = {
    myASN: Number(text('bgp_as') || '65000'),
    routerID: text('bgp_routerid'),
    sourceAddress: text('bgp_sourceip'),
    ...(seconds === '' ? {} : { holdTime: `${seconds}s` }),
  };
  // kube-vip ignores the single peer where there is a list.
  if (listed === '') {
    const peerAddress = text('bgp_peeraddress');
    if (peerAddress === '') return [];
    notePassword('peer-1', text('bgp_peerpass'), notes);
    return [{ ...common, name: 'peer-1', peerASN: Number(text('bgp_peeras')), peerAddress }];
  }
  return listed.split(',').map((entry, index) => {
    const name = `peer-${index + 1}`;
    // address:AS:password:multihop, an IPv6 address in brackets; newer ones have further parts behind.
    const [, peerAddress = '', as = '', password = ''] =
      /^\[?([^\]]*?)\]?:(\d+)(?::([^:]*))?(?::.*)?$/.exec(entry.trim()) ?? [];
    notePassword(name, password, notes);
    return { ...common, name, peerASN: Number(as), peerAddress };
  });
}

function notePassword(name: string, password: string, notes: string[]): void {
  if (password !== '')
    notes.push(
      `${name}: TCPMD5NotSupported: the password is not imported; see docs/bgp.md for what protects sessions`,
    );
}

/** Leaves out the first and the last address of each CIDR. */
const skipEndsKey = 'skip-end-ips-in-cidr';

/**
 * The ConfigMap `kubevip` of kube-vip's cloud provider as AddressPools: `cidr-<namespace>`, `range-<namespace>`,
 * `cidr-global` and `range-global`, and `allow-share-<namespace>`.
 *
 * @param daemonSet kube-vip's own, with the way it announces; undefined: the cluster has none, and pools have the
 *   default.
 */
export function importKubeVip(configMap: KubeObject, daemonSet?: KubeObject): Imported {
  const notes: string[] = [];
  const announcing = daemonSet === undefined ? undefined : kubeVipAnnouncing(daemonSet, notes);
  const value: unknown = Reflect.get(configMap, 'data');
  const data = isRecord(value) ? value : {};
  const lists = new Map<string, Map<string, string>>(); // `cidr` or `range` -> namespace, or global -> its text
  const shared = new Set<string>();
  for (const [key, text] of Object.entries(data)) {
    const [, what, scope = ''] = /^(cidr|range|allow-share)-(.+)$/.exec(key) ?? [];
    if (key === skipEndsKey && typeof text === 'string') continue;
    if (what === undefined || typeof text !== 'string') notes.push(`${key}: has no counterpart`);
    else if (what === 'allow-share') {
      if (text.trim() === 'true') shared.add(scope);
    } else lists.set(what, (lists.get(what) ?? new Map<string, string>()).set(scope, text));
  }
  const cidrs = lists.get('cidr') ?? new Map<string, string>();
  const pools: ForeignPool[] = [];
  const add = (scope: string, text: string, more: Partial<AddressPoolSpec>): void => {
    const name = `kube-vip-${scope}`;
    const spec = {
      addresses: importedAddresses(name, splitList(text), notes),
      ...more,
      ...(scope === 'global' ? {} : { namespaceSelector: namespacesNamed([scope]) }),
      ...(shared.has(scope) ? { sharing: 'by-ports' } : {}),
      ...(announcing === undefined ? {} : { announce: announcing.announce }),
    };
    pools.push({ name, spec });
  };
  const skipsEnds = data[skipEndsKey] === 'true';
  for (const [scope, text] of cidrs) add(scope, text, skipsEnds ? { avoidFirstLast: true } : {});
  // `discoverPool` looks for a CIDR of the namespace, the global one, a range of the namespace, and the global one.
  for (const [scope, text] of lists.get('range') ?? []) {
    const first = [scope, 'global'].find((each) => cidrs.has(each));
    if (first === undefined) add(scope, text, {});
    else notes.push(`range-${scope}: not imported: kube-vip never uses it, since there is cidr-${first}`);
  }
  const named = new Set(pools.map(({ name }) => name));
  for (const scope of shared) {
    if (!named.has(`kube-vip-${scope}`)) {
      notes.push(`allow-share-${scope}: has no counterpart where the namespace has no addresses of its own`);
    }
  }
  return { pools: asPools(pools, notes), peers: announcing?.peers ?? [], notes };
}

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
