import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { AddressPool } from '../../controllers/load-balancer/pool.ts';
import { namespacesNamed, poolObject, type Imported } from './imported.ts';

/**
 * The ConfigMap `kubevip` of kube-vip's cloud provider as AddressPools: `cidr-<namespace>`, `range-<namespace>`,
 * `cidr-global` and `range-global`, and `allow-share-<namespace>`.
 */
export function importKubeVip(configMap: KubeObject): Imported {
  const notes: string[] = [];
  const value: unknown = Reflect.get(configMap, 'data');
  const data = isRecord(value) ? value : {};
  const addresses = new Map<string, string[]>(); // namespace, or global -> its addresses
  const shared = new Set<string>();
  for (const [key, text] of Object.entries(data)) {
    const [, what, scope = ''] = /^(cidr|range|allow-share)-(.+)$/.exec(key) ?? [];
    if (what === undefined || typeof text !== 'string') notes.push(`${key}: has no counterpart`);
    else if (what === 'allow-share') {
      if (text.trim() === 'true') shared.add(scope);
    } else addresses.set(scope, [...(addresses.get(scope) ?? []), ...items(text, key, notes)]);
  }
  const pools = [...addresses].map(([scope, list]): AddressPool => {
    const isGlobal = scope === 'global';
    return poolObject(`kube-vip-${scope}`, {
      addresses: list,
      ...(isGlobal ? {} : { namespaceSelector: namespacesNamed([scope]) }),
      ...(shared.has(scope) ? { sharing: 'by-ports' } : {}),
    });
  });
  return { pools, notes };
}

function items(text: string, key: string, notes: string[]): string[] {
  const list = text.split(',').map((item) => item.trim());
  if (list.includes('0.0.0.0/32')) notes.push(`${key}: asks DHCP for addresses, which has no counterpart`);
  return list.filter((item) => item !== '' && item !== '0.0.0.0/32');
}
