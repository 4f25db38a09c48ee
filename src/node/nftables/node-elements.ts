import type { NodeFamilyPlan } from '../../network/forwarding/forwarding-plan.ts';
import type { Element } from './elements.ts';
import { disjointRanges } from './ranges.ts';

/** The elements that no Service has anything to do with. */
export function nodeElements({
  podDetection,
  nodePortAddresses,
  serviceCIDRs,
}: NodeFamilyPlan): readonly Element[] {
  const podCidrs = podDetection?.by === 'cidr' ? podDetection.cidrs : [];
  return [
    ...disjointRanges(podCidrs).map((range): Element => ({ set: 'pod-cidrs', key: [range] })),
    ...disjointRanges(serviceCIDRs).map((range): Element => ({ set: 'service-cidrs', key: [range] })),
    ...(nodePortAddresses === 'all' ? [] : nodePortAddresses).map((address): Element => ({
      set: 'node-port-ips',
      key: [address],
    })),
  ];
}
