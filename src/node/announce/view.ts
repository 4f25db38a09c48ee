import { onEach } from '../../client/informers/cache.ts';
import type { Informer, Informers } from '../../client/informers/informer.ts';
import { addressPools, egressIPs, endpointSlices, leases, nodes, services } from '../../client/resources.ts';
import {
  type AgentReport,
  decodeReport,
  type NodeReport,
  announcerOf,
  type AnnouncerLease,
  readAnnouncerLease,
} from '../../network/announcing/agent-report.ts';
import type { Announcer, PoolAnnouncement } from '../../network/announcing/announcement-plan.ts';
import {
  type AnnouncedPool,
  announcedPools,
  assignedAddresses,
  egressAddresses,
  isPooled,
  mayBeAnnounced,
  type ServiceAddress,
} from '../../network/announcing/assigned-addresses.ts';
import type { Member } from '../../network/announcing/membership.ts';
import { egressRules } from '../../network/egress/egress-plan.ts';
import { bySliceService, indexBySliceService, serviceOfSlice } from '../../network/forwarding/endpoints.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { Node, Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { parseStrictAddress } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { EgressIP } from '../../objects/types/openshift.ts';
import type { AddressPool } from '../../objects/types/servicenet.ts';
import { trimService, trimSlice } from '../forwarding/view.ts';

/** Called with what has happened; both only ask for work, and do none. */
export interface ViewHandler {
  /** The announcements or their nodes may have changed. */
  readonly changed: () => void;
  /** A Lease of an agent, this one's too, was seen new or changed; undefined report: it is gone. */
  readonly leaseSeen: (node: string, lease: AnnouncerLease | undefined) => void;
}

/** A Lease that was not given back. */
export interface HeldLease extends Member {
  /** `metadata.resourceVersion`. */
  readonly version: string;
}

/** Follows the objects that announcing depends on. */
export class AnnouncementView {
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #nodes: Informer<Node>;
  readonly #pools: Informer<AddressPool>;
  readonly #leases: Informer<Lease>;
  /** Undefined: egress addresses are not announced. */
  readonly #egressIPs: Informer<EgressIP> | undefined;
  readonly #reports = new Map<string, AgentReport>();
  /** The Leases that were not given back, by node. */
  readonly #held = new Map<string, HeldLease>();
  #addresses: ReadonlyMap<string, ServiceAddress> | undefined;
  /** Undefined: to be read again. */
  #announcedPools: readonly AnnouncedPool[] | undefined;
  #version = 0;

  /** @param egress whether the addresses of EgressIPs are announced, too. */
  constructor(informers: Informers, egress: boolean) {
    this.#egressIPs = egress ? informers.informer(egressIPs) : undefined;
    this.#services = informers.informer(services, { transform: trimService });
    this.#slices = informers.informer(endpointSlices, { transform: trimSlice });
    this.#nodes = informers.informer(nodes);
    this.#pools = informers.informer(addressPools);
    this.#leases = informers.informer(leases);
    this.#slices.addIndex(bySliceService, indexBySliceService);
  }

  /** Reports all present objects at once, and all changes from then on. Call once. */
  follow({ changed: planSoon, leaseSeen }: ViewHandler): void {
    const changed = (): void => {
      this.#version++;
      planSoon();
    };
    const touch = (): void => {
      this.#addresses = undefined;
      changed();
    };
    const touchIfAnnounced = (service: Service): void => {
      if (mayBeAnnounced(service)) touch();
    };
    this.#services.addHandler({
      added: touchIfAnnounced,
      updated: (service, old) => {
        if (mayBeAnnounced(service) || mayBeAnnounced(old)) touch();
      },
      deleted: touchIfAnnounced,
    });
    this.#slices.addHandler(
      onEach((slice) => {
        if (this.#isOfLocal(slice)) touch();
      }),
    );
    this.#pools.addHandler(
      onEach(() => {
        this.#announcedPools = undefined;
        touch();
      }),
    );
    this.#egressIPs?.addHandler(onEach(touch));
    this.#nodes.addHandler({
      added: changed,
      // A heartbeat of the kubelet changes nothing that matters.
      updated: (node, old) => {
        if (!jsonEqual(partsOf(node), partsOf(old))) changed();
      },
      deleted: changed,
    });
    this.#leases.addHandler({
      added: (lease) => this.#see(lease, undefined, leaseSeen, changed),
      updated: (lease, old) => this.#see(lease, old, leaseSeen, changed),
      deleted: (lease) => {
        const known = readAnnouncerLease(lease);
        if (known === undefined) return;
        this.#reports.delete(known.node);
        this.#held.delete(known.node);
        leaseSeen(known.node, undefined);
        changed();
      },
    });
  }

  /** True once all objects are known; false: the signal has aborted. */
  async synced(signal: AbortSignal): Promise<boolean> {
    const sources = [
      ...[this.#services, this.#slices, this.#nodes, this.#pools, this.#leases],
      ...(this.#egressIPs === undefined ? [] : [this.#egressIPs]),
    ];
    const synced = await Promise.all(sources.map((source) => source.synced(signal)));
    return synced.every(Boolean);
  }

  /** The addresses of Services and of EgressIPs, by their canonical text; of both, it is the Service's. */
  get addresses(): ReadonlyMap<string, ServiceAddress> {
    if (this.#addresses === undefined) {
      const rules = egressRules(this.#egressIPs?.cache.values() ?? []);
      const ofServices = assignedAddresses(
        this.#services.cache.values(),
        (key) => this.#slices.cache.byIndex(bySliceService, key),
        this.#poolsInOrder,
      );
      const egress = egressAddresses(rules).map((one) => [one.address, one] as const);
      this.#addresses = new Map([...egress, ...ofServices]);
    }
    return this.#addresses;
  }

  /**
   * Whether agents need each other's Leases: there are addresses, or EgressIPs with addresses in known networks of
   * nodes.
   */
  get isNeeded(): boolean {
    return this.addresses.size > 0 || (this.#egressIPs?.cache.size ?? 0) > 0;
  }

  /** Whether a pool has an address that it may give to a Service. */
  isPooled(address: string): boolean {
    const parsed = parseStrictAddress(address);
    return parsed !== undefined && isPooled(parsed, this.#poolsInOrder);
  }

  /** Another one after each change of what is announced, or by whom. */
  get version(): number {
    return this.#version;
  }

  /** The interfaces that pools name. */
  get namedInterfaces(): ReadonlySet<string> {
    if (!this.isNeeded) return new Set();
    return new Set(this.#poolsInOrder.flatMap(({ announcement }) => announcement.layer2?.interfaces ?? []));
  }

  /** The agents of nodes in the API, by node. */
  get reports(): ReadonlyMap<string, AgentReport> {
    return this.#reports;
  }

  /** The agents of nodes in the API that have not given their Leases back. */
  members(): ReadonlyMap<string, HeldLease> {
    return new Map([...this.#held].filter(([node]) => this.#nodes.cache.get(node) !== undefined));
  }

  /** A node with the report of its agent; undefined if the API has no such node. */
  announcer(node: string, report: NodeReport, isAlive: boolean): Announcer | undefined {
    const object = this.#nodes.cache.get(node);
    return object === undefined ? undefined : announcerOf(object, report, isAlive);
  }

  node(name: string): Node | undefined {
    return this.#nodes.cache.get(name);
  }

  /** The InternalIPs of all nodes. */
  nodeAddresses(): ReadonlySet<string> {
    return new Set([...this.#nodes.cache.values()].flatMap(internalAddresses));
  }

  get #poolsInOrder(): readonly AnnouncedPool[] {
    this.#announcedPools ??= announcedPools(this.#pools.cache.values());
    return this.#announcedPools;
  }

  #see(lease: Lease, old: Lease | undefined, leaseSeen: ViewHandler['leaseSeen'], changed: () => void): void {
    const read = readAnnouncerLease(lease);
    if (read === undefined) return;
    const before = old === undefined ? undefined : readAnnouncerLease(old);
    const hasNewReport = before === undefined || before.reportText !== read.reportText;
    if (hasNewReport) this.#reports.set(read.node, decodeReport(read.reportText));
    const { node, version, acquired } = read;
    const voters = this.#reports.get(node)?.voters ?? new Map<string, string>();
    if (acquired === undefined) this.#held.delete(node);
    else this.#held.set(node, { acquired, voters, version });
    leaseSeen(read.node, read);
    if (hasNewReport || before.acquired !== read.acquired) changed();
  }

  #isOfLocal(slice: EndpointSlice): boolean {
    const key = serviceOfSlice(slice);
    const service = key === undefined ? undefined : this.#services.cache.get(key);
    return service !== undefined && mayBeAnnounced(service) && service.spec.externalTrafficPolicy === 'Local';
  }
}

/** The addresses of a node by which other nodes reach it. */
export function internalAddresses({ status }: Node): readonly string[] {
  return (status.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []));
}

function partsOf({ metadata, spec, status }: Node): unknown {
  const ready = (status.conditions ?? []).find(({ type }) => type === 'Ready')?.status;
  return [metadata.labels, spec.unschedulable ?? false, status.addresses, ready];
}

/** An address that this node announces now, in one of the ways. */
export interface AddressToAnnounce {
  /** Canonical. */
  readonly address: string;
  /** Of its pool: the announcer reads the member of its own way, which is defined. */
  readonly announcement: PoolAnnouncement;
  /** Names of the interfaces to announce it on; empty for BGP. */
  readonly interfaces: readonly string[];
}

/**
 * One way to announce addresses of a node: layer 2, or BGP. Which addresses is planned outside
 * (`network/announcing`).
 */
export interface AddressAnnouncer {
  /**
   * Announces these addresses from now on, and no others. Never called twice at once; with the same addresses it sends
   * nothing. What cannot be announced is logged by its reason and tried again, here or with the next call.
   *
   * @throws {Error} where no address could be announced: the caller calls again.
   */
  announce(addresses: readonly AddressToAnnounce[]): Promise<void>;
  /** Canonical: those that are announced now. */
  readonly announced: ReadonlySet<string>;
  /**
   * Ends in an orderly way. The addresses of the last {@link announce} stay without the process for as long as they
   * can, so that the next one finds them; `announce([])` before withdraws them.
   */
  close(): Promise<void>;
}
