import { textAt } from '../../objects/read.ts';
import { joinKey, type ObjectKey, splitKey } from '../../objects/key.ts';
import type { IPAddress } from '../../objects/types/networking.generated.ts';
import { familyOf } from './plan-view.ts';

const managedByLabel = 'ipaddress.kubernetes.io/managed-by';
const allocator = 'ipallocator.k8s.io';

/** True for IPAddresses that the allocator of clusterIPs manages, in kube-apiserver or here. */
export function isManagedAddress({ metadata }: IPAddress): boolean {
  return metadata.labels?.[managedByLabel] === allocator;
}

/** The Service that is the parent of an IPAddress; "" for another parent. */
export function serviceOf(address: IPAddress): ObjectKey {
  const parent = (member: string): string => textAt(address.spec, 'parentRef', member);
  if (parent('group') !== '' || parent('resource') !== 'services') return '';
  return joinKey(parent('namespace'), parent('name'));
}

/** Index of managed IPAddresses by their Service. */
export const byService = 'service';

export function indexByService(address: IPAddress): readonly string[] {
  const key = isManagedAddress(address) ? serviceOf(address) : '';
  return key === '' ? [] : [key];
}

/** The IPAddress of a Service, as kube-apiserver's allocator creates it. */
export function newIPAddress(address: string, service: ObjectKey): IPAddress {
  const { namespace, name } = splitKey(service);
  return {
    metadata: {
      name: address,
      labels: {
        'ipaddress.kubernetes.io/ip-family': familyOf(address) ?? 'IPv4',
        [managedByLabel]: allocator,
      },
    },
    spec: { parentRef: { group: '', resource: 'services', namespace, name } },
  };
}
