import { networkStatusAnnotation } from '../../../../src/network/attachments/network-status.ts';
import { networksAnnotation } from '../../../../src/network/attachments/attachments.ts';
import type {
  IPPool,
  NetworkAttachmentDefinition,
  OverlappingRangeIPReservation,
} from '../../../../src/objects/types/openshift.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';

/** A Pod of the namespace `shop` that runs, with the addresses of its interface `net1` in the network `shop/lan`. */
export function attachedPod(name: string, ips: readonly string[], status: object = {}): Pod {
  const own = { name: 'servicenet', interface: 'eth0', ips: ['10.244.0.5'], default: true, dns: {} };
  const lan = { name: 'shop/lan', interface: 'net1', ips, dns: {} };
  const annotations = {
    [networksAnnotation]: 'lan',
    [networkStatusAnnotation]: JSON.stringify([own, lan]),
  };
  return {
    metadata: { namespace: 'shop', name, uid: name, annotations },
    spec: { nodeName: 'n' },
    status: { phase: 'Running', podIPs: [{ ip: '10.244.0.5' }], ...status },
  };
}

/** A pool; its entries are `key: [podref, ifname]`. */
export function ipPool(
  name: string,
  range: string,
  entries: Readonly<Record<string, readonly [podref: string, ifname?: string]>>,
): IPPool {
  const allocations: IPPool['spec']['allocations'] = {};
  for (const [key, [podref, ifname = 'net1']] of Object.entries(entries)) {
    allocations[key] = { id: podref, podref, ifname };
  }
  return { metadata: { namespace: 'kube-system', name }, spec: { range, allocations } };
}

export function reservation(name: string, podref: string): OverlappingRangeIPReservation {
  return { metadata: { namespace: 'kube-system', name }, spec: { podref } };
}

export function definition(name: string, ipam: object): NetworkAttachmentDefinition {
  return {
    metadata: { namespace: 'shop', name },
    spec: { config: JSON.stringify({ type: 'macvlan', ipam }) },
  };
}
