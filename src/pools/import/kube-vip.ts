import type { KubeObject } from '../../objects/meta.ts';
import { listAt, textAt, isRecord } from '../../objects/json.ts';
import type { AddressPoolAnnounce, AddressPoolSpec } from '../../objects/types/servicenet.ts';
import {
  objectsAt,
  importedAddresses,
  asPools,
  type ForeignPool,
  namespacesNamed,
  type Imported,
} from './imported.ts';
import { asPeers, type ForeignPeer, type ImportedPeers } from './peers.ts';
import { splitList } from '../../objects/lists.ts';

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
