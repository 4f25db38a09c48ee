import type { ServiceCIDR } from '../../../../src/objects/types/networking.generated.ts';
import { isIn, spanOf } from './addresses.ts';
import type { Snapshot } from './snapshot.ts';

const finalizer = 'networking.k8s.io/service-cidr-finalizer';

/** ServiceCIDRs without a finalizer, that went too early or that never go. */
export function rangeFindings({ cidrs, addresses }: Snapshot): string[] {
  return cidrs.flatMap((cidr) => {
    const { metadata, status } = cidr;
    const name = metadata.name ?? '';
    const ready = status.conditions?.find(({ type }) => type === 'Ready');
    if (metadata.deletionTimestamp === undefined) {
      if (metadata.finalizers?.includes(finalizer) !== true) return [`${name}: has no finalizer`];
      return ready?.status === 'True' ? [] : [`${name}: is not ready`];
    }
    const kept = addresses.filter(({ metadata: { name: ip = '', labels } }) => {
      const isAllocated = labels?.['ipaddress.kubernetes.io/managed-by'] === 'ipallocator.k8s.io';
      const homes = cidrs.filter((other) => mayHaveGiven(other, ip));
      return isAllocated && homes.length === 1 && homes[0] === cidr;
    });
    if (kept.length === 0) return [`${name}: never went`];
    return ready?.status === 'False' ? [] : [`${name}: is needed and goes, and says that it is ready`];
  });
}

/** The first address of a range is never given, nor the last one of IPv4: a larger range gave it. */
function mayHaveGiven({ spec }: ServiceCIDR, ip: string): boolean {
  return (spec.cidrs ?? []).some((text) => {
    const { family, first, last } = spanOf(text);
    return isIn(ip, { family, first: first + 1n, last: family === 'IPv4' ? last - 1n : last });
  });
}
