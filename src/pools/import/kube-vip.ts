import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { importedAddresses } from './foreign.ts';
import { kubeVipAnnouncing } from './kube-vip-announce.ts';
import { asPools, type ForeignPool, namespacesNamed, type Imported } from './imported.ts';
import { splitList } from '../../objects/lists.ts';

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
  const addresses = new Map<string, string[]>(); // namespace, or global -> its addresses
  const shared = new Set<string>();
  for (const [key, text] of Object.entries(data)) {
    const [, what, scope = ''] = /^(cidr|range|allow-share)-(.+)$/.exec(key) ?? [];
    if (what === undefined || typeof text !== 'string') notes.push(`${key}: has no counterpart`);
    else if (what === 'allow-share') {
      if (text.trim() === 'true') shared.add(scope);
    } else addresses.set(scope, [...(addresses.get(scope) ?? []), ...splitList(text)]);
  }
  const pools = [...addresses].map(([scope, list]): ForeignPool => {
    const isGlobal = scope === 'global';
    const name = `kube-vip-${scope}`;
    const spec = {
      addresses: importedAddresses(name, list, notes),
      ...(isGlobal ? {} : { namespaceSelector: namespacesNamed([scope]) }),
      ...(shared.has(scope) ? { sharing: 'by-ports' } : {}),
      ...(announcing === undefined ? {} : { announce: announcing.announce }),
    };
    return { name, spec };
  });
  return { pools: asPools(pools, notes), peers: announcing?.peers ?? [], notes };
}
