/** Whether a Pod's `network-status` is its own: one may have come with the copy of another Pod. */
import type { Pod } from '../../objects/types/core.generated.ts';
import { networkStatusOf } from './network-status.ts';

/** True for a Pod whose annotation says what it is attached to: that of the cluster's network has the Pod's addresses. */
export function isAttached(pod: Pod): boolean {
  const own = networkStatusOf(pod)?.find((each) => each.default === true);
  if (own === undefined) return false;
  const addresses = new Set((pod.status.podIPs ?? []).map(({ ip }) => ip));
  const { ips = [] } = own;
  return ips.length === addresses.size && ips.every((ip) => addresses.has(ip));
}
