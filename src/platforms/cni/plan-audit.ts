/** Addresses of further networks that have leaked, are given twice, or are used without being given. */
import { poolName } from '../../allocation/whereabouts.ts';
import { AttachmentError, type Ipam } from '../../network/attachments/ipam.ts';
import { readNetworkConfig } from '../../network/attachments/network-config.ts';
import { isAttached, networkStatusOf } from '../../network/attachments/network-status.ts';
import { parseAddress } from '../../objects/address.ts';
import { keyOf } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import type {
  IPPool,
  NetworkAttachmentDefinition,
  OverlappingRangeIPReservation,
} from '../../objects/types/openshift.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { addressText, entriesOf, holdingOf, networkNameOf, reservationHolding } from './plan.ts';

/** One finding. */
export interface AttachmentFinding {
  readonly kind: 'IPPool' | 'OverlappingRangeIPReservation' | 'Pod';
  /** `namespace/name` */
  readonly key: string;
  /** The address; of a reservation, its name. */
  readonly value: string;
  /**
   * - `AddressLeaked`: no Pod has it.
   * - `AddressDuplicate`: two pools have given it.
   * - `AddressNotAllocated`: a Pod has it, and its pool has not given it to that Pod.
   */
  readonly reason: 'AddressLeaked' | 'AddressDuplicate' | 'AddressNotAllocated';
  readonly message: string;
}

/** The objects of a cluster. */
export interface AttachmentObjects {
  readonly pools: readonly IPPool[];
  readonly reservations: readonly OverlappingRangeIPReservation[];
  readonly pods: readonly Pod[];
  readonly definitions: readonly NetworkAttachmentDefinition[];
}

/** All findings, by kind, key, reason and value. */
export function auditAttachments(objects: AttachmentObjects): readonly AttachmentFinding[] {
  const pods = new Map(objects.pods.map((pod) => [keyOf(pod), pod]));
  const ipams = ipamsOf(objects.definitions);
  const findings = [
    ...objects.pools.flatMap((pool) => leaked(pool, pods)),
    ...objects.reservations.flatMap((reservation) => leakedReservation(reservation, pods)),
    ...duplicates(objects.pools, apartPools(ipams.values())),
    ...unallocated(objects, ipams),
  ];
  const order = ({ kind, key, reason, value }: AttachmentFinding): string =>
    [kind, key, reason, value].join(' ');
  return findings.sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

function leaked(pool: IPPool, pods: ReadonlyMap<string, Pod>): AttachmentFinding[] {
  const key = keyOf(pool);
  return entriesOf(pool).flatMap((entry): AttachmentFinding[] => {
    const { podref, ifname } = entry;
    const value = addressText(pool, entry);
    if (holdingOf(pods.get(podref), ifname, value) !== 'orphaned') return [];
    const message = `${value} of Pod ${podref} (${ifname}) appears to have leaked: the Pod does not have it`;
    return [{ kind: 'IPPool', key, value, reason: 'AddressLeaked', message }];
  });
}

function leakedReservation(
  reservation: OverlappingRangeIPReservation,
  pods: ReadonlyMap<string, Pod>,
): AttachmentFinding[] {
  const { podref } = reservation.spec;
  if (reservationHolding(pods.get(podref), reservation) !== 'orphaned') return [];
  const value = reservation.metadata.name ?? '';
  const message = `the reservation of Pod ${podref} appears to have leaked: the Pod does not have the address`;
  const key = keyOf(reservation);
  return [{ kind: 'OverlappingRangeIPReservation', key, value, reason: 'AddressLeaked', message }];
}

/** @param apart pools whose ranges may overlap with others. */
function duplicates(pools: readonly IPPool[], apart: ReadonlySet<string>): AttachmentFinding[] {
  const givers = new Map<
    string,
    { readonly key: string; readonly podref: string; readonly ifname: string }
  >();
  const findings: AttachmentFinding[] = [];
  for (const pool of pools) {
    if (apart.has(pool.metadata.name ?? '')) continue;
    const key = keyOf(pool);
    for (const entry of entriesOf(pool)) {
      const { podref, ifname } = entry;
      const value = addressText(pool, entry);
      const scope = `${networkNameOf(pool)} ${value}`;
      const first = givers.get(scope);
      givers.set(scope, first ?? { key, podref, ifname });
      if (first === undefined || (first.podref === podref && first.ifname === ifname)) continue;
      const message = `${value} of Pod ${podref} (${ifname}) is given to Pod ${first.podref} (${first.ifname}) by IPPool ${first.key}, too`;
      findings.push({ kind: 'IPPool', key, value, reason: 'AddressDuplicate', message });
    }
  }
  return findings;
}

/** Addresses of Pods that their pools have not given to them: another Pod can get them. */
function unallocated(
  { pools, pods }: AttachmentObjects,
  ipams: ReadonlyMap<string, Ipam>,
): AttachmentFinding[] {
  const given = new Set(
    pools.flatMap((pool) => {
      const { name = '' } = pool.metadata;
      return entriesOf(pool).map((entry) => `${name} ${addressText(pool, entry)} ${entry.podref}`);
    }),
  );
  return pods.flatMap((pod) => {
    if (isFinished(pod) || !isAttached(pod)) return [];
    const key = keyOf(pod);
    return (networkStatusOf(pod) ?? []).flatMap(({ name, ips = [] }) => {
      const ipam = ipams.get(name);
      if (ipam?.type !== 'whereabouts') return [];
      return ips.flatMap((value): AttachmentFinding[] => {
        const address = parseAddress(value);
        const range = ipam.ranges.find(
          ({ network }) => address !== undefined && network.contains(address.family, address.value),
        );
        if (range === undefined) return [];
        const pool = poolName(range.network.text, ipam.networkName);
        if (given.has(`${pool} ${value} ${key}`)) return [];
        const message = `IPPool ${pool} has not given ${value} to the Pod: another one can get it`;
        return [{ kind: 'Pod', key, value, reason: 'AddressNotAllocated', message }];
      });
    });
  });
}

/** By the key of the NetworkAttachmentDefinition; those that cannot be read are left out. */
function ipamsOf(definitions: readonly NetworkAttachmentDefinition[]): ReadonlyMap<string, Ipam> {
  const found = new Map<string, Ipam>();
  for (const definition of definitions) {
    try {
      found.set(keyOf(definition), readNetworkConfig(definition).plugin.ipam);
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
    }
  }
  return found;
}

function apartPools(ipams: Iterable<Ipam>): ReadonlySet<string> {
  const names = new Set<string>();
  for (const ipam of ipams) {
    if (ipam.type !== 'whereabouts' || ipam.overlapping) continue;
    for (const { network } of ipam.ranges) names.add(poolName(network.text, ipam.networkName));
  }
  return names;
}
