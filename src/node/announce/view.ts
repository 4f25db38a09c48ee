import { onEach } from '../../client/informers/cache.ts';
import type { Informer, Informers } from '../../client/informers/informer.ts';
import { addressPools, egressIPs, endpointSlices, leases, nodes, services } from '../../client/resources.ts';
import type { AnnouncingView } from '../../network/announcing/agent-io.ts';
import { type AnnouncerLease, readAnnouncerLease } from '../../network/announcing/agent-report.ts';
import {
  type AnnouncedPool,
  announcedPools,
  assignedAddresses,
  egressAddresses,
  mayBeAnnounced,
  type ServiceAddress,
} from '../../network/announcing/assigned-addresses.ts';
import { egressRules } from '../../network/egress/egress-plan.ts';
import { bySliceService, indexBySliceService, serviceOfSlice } from '../../network/forwarding/endpoints.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { Node, Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { EgressIP } from '../../objects/types/openshift.ts';
import type { AddressPool } from '../../objects/types/servicenet.ts';
import { trimService, trimSlice } from '../forwarding/view.ts';

/** Called with what has happened, in the order in which it was seen. */
export interface ViewHandler {
  /** {@link AnnouncingInformers.view} may have changed. Only asks for work, and does none. */
  readonly changed: () => void;
  /** A Lease of an agent, this one's too, was seen new or changed; undefined: it is gone. */
  readonly leaseSeen: (node: string, lease: AnnouncerLease | undefined) => void;
}

/** Follows the objects that announcing depends on. */
export class AnnouncingInformers {
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #nodes: Informer<Node>;
  readonly #pools: Informer<AddressPool>;
  readonly #leases: Informer<Lease>;
  /** Undefined: egress addresses are not announced. */
  readonly #egressIPs: Informer<EgressIP> | undefined;
  /** Each undefined: to be read again. */
  #view: AnnouncingView | undefined;
  #addresses: ReadonlyMap<string, ServiceAddress> | undefined;
  #announcedPools: readonly AnnouncedPool[] | undefined;

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
  follow({ changed: readSoon, leaseSeen }: ViewHandler): void {
    const changed = (): void => {
      this.#view = undefined;
      readSoon();
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
    const see = (lease: Lease): void => {
      const read = readAnnouncerLease(lease);
      if (read !== undefined) leaseSeen(read.node, read);
    };
    this.#leases.addHandler({
      ...{ added: see, updated: see },
      deleted: (lease) => {
        const known = readAnnouncerLease(lease);
        if (known !== undefined) leaseSeen(known.node, undefined);
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

  /** The objects as they are now; the same value until one has changed. */
  get view(): AnnouncingView {
    this.#view ??= this.#read();
    return this.#view;
  }

  #read(): AnnouncingView {
    this.#announcedPools ??= announcedPools(this.#pools.cache.values());
    const pools = this.#announcedPools;
    this.#addresses ??= this.#readAddresses(pools);
    const addresses = this.#addresses;
    const isNeeded = addresses.size > 0 || (this.#egressIPs?.cache.size ?? 0) > 0;
    const named = pools.flatMap(({ announcement }) => announcement.layer2?.interfaces ?? []);
    return {
      ...{ addresses, pools, isNeeded, namedInterfaces: new Set(isNeeded ? named : []) },
      nodes: new Map([...this.#nodes.cache.values()].map((node) => [node.metadata.name ?? '', node])),
    };
  }

  #readAddresses(pools: readonly AnnouncedPool[]): ReadonlyMap<string, ServiceAddress> {
    const rules = egressRules(this.#egressIPs?.cache.values() ?? []);
    const ofServices = assignedAddresses(
      this.#services.cache.values(),
      (key) => this.#slices.cache.byIndex(bySliceService, key),
      pools,
    );
    const egress = egressAddresses(rules).map((one) => [one.address, one] as const);
    return new Map([...egress, ...ofServices]);
  }

  #isOfLocal(slice: EndpointSlice): boolean {
    const key = serviceOfSlice(slice);
    const service = key === undefined ? undefined : this.#services.cache.get(key);
    return service !== undefined && mayBeAnnounced(service) && service.spec.externalTrafficPolicy === 'Local';
  }
}

function partsOf({ metadata, spec, status }: Node): unknown {
  const ready = (status.conditions ?? []).find(({ type }) => type === 'Ready')?.status;
  return [metadata.labels, spec.unschedulable ?? false, status.addresses, ready];
}
