import {
  readEntries,
  type PoolEntry,
  poolName,
  chooseWhereaboutsAddress,
  type PoolChoice,
  type PoolOwner,
  type WhereaboutsRange,
} from '../../allocation/whereabouts.ts';
import { type AddressRange, rangeOfCidr, AllocationError } from '../../allocation/address-range.ts';
import {
  asksForNetworks,
  type Attachment,
  clusterInterface,
  gatewaysOf,
  defaultNetworkAnnotation,
} from '../../network/attachments/attachments.ts';
import {
  isAttached,
  type NetworkStatus,
  networkStatusOf,
  type NetworkDNS,
} from '../../network/attachments/network-status.ts';
import { formatAddress, parseAddress, parseCidr } from '../../objects/address.ts';
import { conditionOf, keyOf } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import type { IPPool, OverlappingRangeIPReservation } from '../../objects/types/openshift.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { AttachmentError } from '../../network/attachments/ipam.ts';
import { textAt, textsAt } from '../../objects/json.ts';

/** Addresses of IPPools that no Pod has (whereabouts `pkg/reconciler`). */

/** The addresses that the offsets of a pool count; undefined where its range is no CIDR. */
export function networkOf({ spec }: IPPool): AddressRange | undefined {
  const cidr = parseCidr(spec.range);
  return cidr === undefined ? undefined : rangeOfCidr(cidr);
}

/** The entries of a pool; none where its range is no CIDR. */
export function entriesOf(pool: IPPool): readonly PoolEntry[] {
  const network = networkOf(pool);
  return network === undefined ? [] : readEntries(network, pool.spec.allocations);
}

/** The network's name: the part of the pool's name before the range; "" without one. */
export function networkNameOf({ metadata, spec }: IPPool): string {
  const { name = '' } = metadata;
  const own = poolName(spec.range);
  return name.endsWith(`-${own}`) ? name.slice(0, -own.length - 1) : '';
}

/** The canonical text of an entry's address. */
export function addressText(pool: IPPool, { value }: PoolEntry): string {
  return formatAddress(networkOf(pool)?.family ?? 'IPv4', value);
}

/** Whether a Pod has an address, by its status and annotations. */
export type Holding =
  /** It has. */
  | 'held'
  /** It is not attached yet: the annotation may get the address soon. */
  | 'pending'
  | 'orphaned';

/**
 * @param pod of the entry; undefined: there is none.
 * @param ifname the interface that the address is of; "": in entries of old versions, of any interface.
 * @param address canonical.
 */
export function holdingOf(pod: Pod | undefined, ifname: string, address: string): Holding {
  return holding(pod, ifname, (ip) => ip === address);
}

/**
 * The same of a reservation, whose name may begin with that of a network. (whereabouts compares the whole name, so that
 * reservations of named networks look orphaned to it.)
 */
export function reservationHolding(
  pod: Pod | undefined,
  { metadata, spec }: OverlappingRangeIPReservation,
): Holding {
  const { name = '' } = metadata;
  return holding(pod, spec.ifname ?? '', (ip) => {
    const own = poolName(ip);
    return name === own || name.endsWith(`-${own}`);
  });
}

/** (whereabouts looks at the addresses of all interfaces: what the pool of another range gave stays.) */
function holding(pod: Pod | undefined, ifname: string, matches: (ip: string) => boolean): Holding {
  if (pod === undefined || isDisrupted(pod)) return 'orphaned';
  const isOf = ({ interface: own = ifname, default: isDefault }: NetworkStatus): boolean =>
    isDefault !== true && (ifname === '' || own === ifname);
  const ips = (networkStatusOf(pod) ?? []).flatMap((each) => (isOf(each) ? (each.ips ?? []) : []));
  if (ips.some((ip) => matches(parseAddress(ip)?.canonical ?? ip))) return 'held';
  const isAwaited = asksForNetworks(pod) && !isAttached(pod) && !isFinished(pod);
  return pod.status.phase === 'Pending' || isAwaited ? 'pending' : 'orphaned';
}

/** Its node is gone, and the taint manager has deleted it. */
function isDisrupted({ status }: Pod): boolean {
  const condition = conditionOf(status.conditions, 'DisruptionTarget');
  return condition?.status === 'True' && condition.reason === 'DeletionByTaintManager';
}

/** Which address of an IPPool a Pod's interface gets. */

/** The range that an address comes from. */
export interface PoolRange {
  readonly range: WhereaboutsRange;
  /** "" without a name. */
  readonly networkName: string;
  /** Whether the address is reserved in all ranges that have it. */
  readonly overlapping: boolean;
}

/** Whether an entry is of an owner's Pod and interface. */
export function isOwnedBy(
  entry: PoolEntry,
  { podref, ifname }: Pick<PoolOwner, 'podref' | 'ifname'>,
): boolean {
  return entry.podref === podref && entry.ifname === ifname;
}

/**
 * Whether a reservation is of an owner's Pod and interface. Old reservations have no interface. (whereabouts compares the Pods alone: two interfaces of a Pod on ranges that overlap
 * get one address.)
 */
export function isReservedFor(
  { spec }: OverlappingRangeIPReservation,
  { podref, ifname }: PoolOwner,
): boolean {
  return spec.podref === podref && (spec.ifname ?? ifname) === ifname;
}

/**
 * The address of a range for an owner.
 *
 * @throws {AttachmentError} if none is free, or where the pool is not of the range.
 */
export function assignAddress(
  { range, networkName }: PoolRange,
  pool: IPPool,
  owner: PoolOwner,
  isElsewhere: (value: bigint) => boolean,
): PoolChoice {
  // In a pool that was edited by hand, offsets count from elsewhere.
  if (networkOf(pool)?.text !== range.network.text) {
    const name = poolName(range.network.text, networkName);
    throw new AttachmentError(`IPPool ${name} has the range ${pool.spec.range}, not ${range.network.text}`);
  }
  try {
    return chooseWhereaboutsAddress(
      range,
      readEntries(range.network, pool.spec.allocations),
      owner,
      isElsewhere,
    );
  } catch (error) {
    if (!(error instanceof AllocationError)) throw error;
    throw new AttachmentError(`error at storage engine: ${error.message}`);
  }
}

/** The `network-status` of a Pod, and its Events about networks that it does not get. */

/** The name of the cluster's own network in `network-status`. */
const clusterNetwork = 'servicenet';

/** An attachment with the addresses that it has got, canonical. */
export interface Addressed {
  readonly attachment: Attachment;
  readonly ips: readonly string[];
}

/** The cluster's own network first, then the attachments in the order of the annotation. */
export function planNetworkStatus(pod: Pod, attached: readonly Addressed[]): readonly NetworkStatus[] {
  const podIPs = (pod.status.podIPs ?? []).map(({ ip }) => ip);
  return [
    { name: clusterNetwork, interface: clusterInterface, ips: podIPs, default: true, dns: {} },
    ...attached.map(({ attachment, ips }): NetworkStatus => {
      const { network, config, mac } = attachment;
      const { mtu, dns } = config.plugin;
      return {
        ...{ name: network, interface: attachment.interface, ips, mac },
        ...(mtu === undefined ? {} : { mtu }),
        ...{ dns: dnsOf(dns), gateway: gatewaysOf(attachment) },
      };
    }),
  ];
}

function dnsOf(written: unknown): NetworkDNS {
  const list = (member: 'nameservers' | 'search' | 'options'): NetworkDNS => {
    const found = textsAt(written, member);
    return found.length === 0 ? {} : { [member]: found };
  };
  const domain = textAt(written, 'domain');
  return {
    ...list('nameservers'),
    ...(domain === '' ? {} : { domain }),
    ...list('search'),
    ...list('options'),
  };
}

/** The requests of a Pod that are not fulfilled, one message each. */
export function planOmissions(pod: Pod, attachments: readonly Attachment[]): readonly string[] {
  const messages = attachments.flatMap(({ network, selection, config, interface: name }) => {
    const { ipam } = config.plugin;
    const unsupported = selection.unsupported.map(
      (member) => `${network} (${name}): ${member} of the annotation is not acted upon`,
    );
    if (ipam.type !== 'other') return unsupported;
    return [
      ...unsupported,
      `${network} (${name}): the interface gets no addresses, as those of the IPAM plugin "${ipam.plugin}" are not given here: use whereabouts, host-local or static`,
    ];
  });
  if (pod.metadata.annotations?.[defaultNetworkAnnotation] === undefined) return messages;
  return [
    ...messages,
    `${defaultNetworkAnnotation} is not acted upon: ${clusterInterface} is in the cluster's network`,
  ];
}

/**
 * The kubelet's message when the network of a sandbox cannot be set up (containerd's `RunPodSandbox`, multus'
 * `cmdAdd`).
 *
 * @param sandbox the sandbox's id.
 */
export function sandboxMessage(pod: Pod, sandbox: string, why: string): string {
  const { namespace = '', name = '', uid = '' } = pod.metadata;
  const plugin = `plugin type="multus" name="multus-cni-network" failed (add)`;
  return `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${sandbox}": ${plugin}: Multus: [${namespace}/${name}/${uid}]: ${why}`;
}

/** The owners of an IPPool's addresses. */
export interface IPPoolReport {
  readonly name: string;
  /** A CIDR. */
  readonly range: string;
  /** Addresses that whereabouts would give without bounds and excludes, which the pool does not know; rounded above 2^53. */
  readonly total: number;
  readonly used: number;
  readonly free: number;
  /** By value. */
  readonly addresses: readonly {
    readonly address: string;
    readonly pod: string;
    readonly interface: string;
  }[];
}

/** Reports how IPPools are used; by name. */
export function reportIPPools(pools: readonly IPPool[]): readonly IPPoolReport[] {
  return [...pools]
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .map((pool) => {
      const entries = [...entriesOf(pool)].sort((a, b) => (a.value < b.value ? -1 : 1));
      const total = Math.max(0, Number(networkOf(pool)?.size ?? 0n) - 2);
      return {
        name: pool.metadata.name ?? '',
        range: pool.spec.range,
        ...{ total, used: entries.length, free: Math.max(0, total - entries.length) },
        addresses: entries.map((entry) => ({
          address: addressText(pool, entry),
          ...{ pod: entry.podref, interface: entry.ifname },
        })),
      };
    });
}
