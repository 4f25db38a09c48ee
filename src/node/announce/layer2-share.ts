import { encodeReport, type NodeReport } from '../../network/announcing/agent-report.ts';
import { type Announcer, planAnnouncement } from '../../network/announcing/announcement-plan.ts';
import type { AnnouncerLease } from '../../network/announcing/announcer-lease.ts';
import { keepsInMove } from '../../network/announcing/membership.ts';
import { isRefused } from '../../network/announcing/reported-holders.ts';
import { ReleasedAddresses } from '../../network/announcing/released-addresses.ts';
import { RestartGrace } from '../../network/announcing/restart-grace.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { AddressToAnnounce } from './address-announcer.ts';
import type { AnnouncementView } from './announcement-view.ts';
import type { AnnounceOptions, Layer2Announcer } from './layer2/layer2-announcer.ts';
import type { LeaseKeeper } from './lease-keeper.ts';

export interface Layer2ShareOptions {
  readonly context: Pick<ControllerContext, 'clock' | 'log'>;
  readonly nodeName: string;
  readonly view: () => AnnouncementView;
  readonly leases: LeaseKeeper;
  readonly layer2: () => Pick<Layer2Announcer, 'announced' | 'refused' | 'interfacesOf'>;
  /** The contents of this node's Lease. */
  readonly report: () => NodeReport;
  /** The agent is ending: others take over. */
  readonly isEnding: () => boolean;
}

/** An address with its planned owner. */
interface PlannedAddress extends AddressToAnnounce {
  readonly owner: string;
  /** The interfaces on which this node can announce it. */
  readonly own: readonly string[];
  /**
   * Connections from an egress address are translated by one node: no other has the address meanwhile, also during
   * a planned move.
   */
  readonly isEgress: boolean;
}

/** Which addresses one node is to announce by layer 2, as all agents plan it from the same objects and Leases. */
export class Layer2Share {
  readonly #options: Layer2ShareOptions;
  /** Addresses that stopped agents left for their restart. */
  readonly #grace = new RestartGrace();
  readonly #released = new ReleasedAddresses();
  /** The last result of `#planned`, with its inputs. */
  #lastPlanned: readonly PlannedAddress[] = [];
  #plannedOf = '';

  constructor(options: Layer2ShareOptions) {
    this.#options = options;
  }

  /**
   * A Lease of an agent was seen, this one's too; undefined: it was deleted. Called before the view reports the
   * change.
   */
  leaseSeen(node: string, lease: AnnouncerLease | undefined): void {
    const { context, nodeName } = this.#options;
    const now = context.clock.monotonic();
    const report = this.#options.view().reports.get(node);
    const hasEnded = lease !== undefined && lease.acquired === undefined && node !== nodeName;
    const kept = hasEnded ? report?.kept : undefined;
    this.#grace.observe(node, lease?.version ?? '', kept, now);
    this.#released.observe(node, lease, report?.announced ?? [], now);
    if (kept !== undefined) {
      const { addresses, seconds } = kept;
      context.log.info(
        { node, addresses: addresses.length, seconds },
        'the agent of a node has left addresses for its restart: no other one takes them for so long',
      );
    }
  }

  /** The addresses for this node to announce: its share, and those that the next owner does not announce yet. */
  plan(): readonly AddressToAnnounce[] {
    const { nodeName, layer2 } = this.#options;
    const { announced } = layer2();
    const kept = this.#keptByOthers();
    const refused = new Set(layer2().refused.map(({ address }) => address));
    return this.#planned().flatMap(({ address, announcement, owner, interfaces, isEgress }) => {
      const has = announced.has(address);
      if (owner === nodeName) {
        const waits = kept.has(address) || (isEgress && this.#othersWith(address).length > 0);
        return waits && !has ? [] : [{ address, announcement, interfaces }];
      }
      const mayKeep = has && !isEgress && !refused.has(address);
      const keeps = mayKeep && keepsInMove(address, nodeName, owner, this.#othersWith(address));
      if (!keeps) return [];
      return [{ address, announcement, interfaces: layer2().interfacesOf(address) }];
    });
  }

  /** For the addresses of the last {@link plan}. */
  get announceOptions(): AnnounceOptions {
    const { nodeName } = this.#options;
    const planned = this.#lastPlanned;
    return {
      standby: new Set(planned.flatMap(({ own }) => own)),
      leaving: new Set(planned.flatMap(({ address, owner }) => (owner === nodeName ? [] : [address]))),
    };
  }

  /** Whether another agent has an address, or had it until a moment ago, and no agent refuses it. */
  isAgents(address: string): boolean {
    const { context, view } = this.#options;
    if (isRefused(view().reports.values(), address)) return false;
    return this.#othersWith(address).length > 0 || this.#released.has(address, context.clock.monotonic());
  }

  /** All nodes whose agents announce. */
  announcers(): readonly Announcer[] {
    const { isEnding, leases, nodeName, report, view } = this.#options;
    const isAlive = leases.isOpen && !isEnding() && leases.admitted.has(nodeName);
    const self = view().announcer(nodeName, report(), isAlive);
    return self === undefined ? this.others() : [self, ...this.others()];
  }

  /** The other ones. */
  others(): readonly Announcer[] {
    const { leases, nodeName, view } = this.#options;
    const { admitted } = leases;
    return [...view().reports].flatMap(([node, report]) =>
      node === nodeName ? [] : (view().announcer(node, report, admitted.has(node)) ?? []),
    );
  }

  /** Other agents that announce an address, and renew their Leases. */
  #othersWith(address: string): readonly string[] {
    const { leases, nodeName, view } = this.#options;
    return [...view().reports].flatMap(([node, { announced }]) =>
      node !== nodeName && leases.isFresh(node) && announced.includes(address) ? [node] : [],
    );
  }

  /** The planned owner of each address; computed when something has changed. */
  #planned(): readonly PlannedAddress[] {
    const { nodeName, view } = this.#options;
    const announcers = this.announcers();
    const self = announcers.find(({ node }) => node === nodeName);
    const report = encodeReport({ ...this.#options.report(), announced: [], voters: new Map() });
    const of = `${view().version} ${self?.isAlive ?? false} ${report}`;
    if (of === this.#plannedOf) return this.#lastPlanned;
    this.#plannedOf = of;
    this.#lastPlanned = [...view().addresses.values()].flatMap((assigned) => {
      const { address, announcement } = assigned;
      const { layer2 } = planAnnouncement(assigned, announcers);
      if (layer2 === undefined) return [];
      const { node: owner, interfaces } = layer2;
      const own = self === undefined ? undefined : planAnnouncement(assigned, [self]).layer2?.interfaces;
      return [
        {
          ...{ address, announcement, owner, interfaces, own: own ?? [] },
          isEgress: assigned.egressNode !== undefined,
        },
      ];
    });
    return this.#lastPlanned;
  }

  /**
   * What no other agent takes: what agents have that do not renew their Leases, and whose Leases were not given back; what
   * those have that are not admitted yet, because they begin anew; and what those left that have ended.
   */
  #keptByOthers(): ReadonlySet<string> {
    const { context, leases, nodeName, view } = this.#options;
    const { admitted } = leases;
    const members = [...view().members().keys()].filter((node) => node !== nodeName);
    const keeping = members.filter((node) => !leases.isFresh(node) || !admitted.has(node));
    const left = this.#grace.addresses(context.clock.monotonic());
    return new Set([...left, ...keeping.flatMap((node) => view().reports.get(node)?.announced ?? [])]);
  }
}
