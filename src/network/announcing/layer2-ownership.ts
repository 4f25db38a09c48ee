import type { AddressToAnnounce, AnnouncingView, KernelState, Layer2Plan } from './agent-io.ts';
import {
  type AgentReport,
  announcerOf,
  encodeReport,
  isRefused,
  type AnnouncerLease,
  type KeptAddresses,
  type NodeReport,
} from './agent-report.ts';
import { type Announcer, planAnnouncement } from './announcement-plan.ts';
import { ReleasedAddresses, RestartGrace } from './handover.ts';
import { keepsInMove } from './membership.ts';

/** What an agent knows at a moment. */
export interface Situation {
  /** This node. */
  readonly node: string;
  readonly view: AnnouncingView;
  readonly kernel: KernelState;
  /** What the Lease of this node is to say. */
  readonly report: NodeReport;
  /** Whether this node may take addresses. */
  readonly isAlive: boolean;
  /** The reports of all agents, by node. */
  readonly reports: ReadonlyMap<string, AgentReport>;
  /** The agents that have not released their Leases. */
  readonly members: ReadonlySet<string>;
  /** Those of them that may take addresses. */
  readonly admitted: ReadonlySet<string>;
  /** Whether an agent renews its Lease. One that does not may keep what it has, until its Lease is released. */
  readonly isFresh: (node: string) => boolean;
}

/** An address with its planned owner. */
interface PlannedAddress extends AddressToAnnounce {
  readonly owner: string;
  /** The interfaces on which this node can announce it. */
  readonly ownInterfaces: readonly string[];
  /**
   * Connections from an egress address are translated by one node: no other has the address meanwhile, also during
   * a planned move.
   */
  readonly isEgress: boolean;
  /** Whether this node alone can announce it. */
  readonly isSole: boolean;
}

/** The other nodes whose agents announce. */
export function otherAnnouncers({
  admitted,
  node: self,
  reports,
  view,
}: Pick<Situation, 'admitted' | 'node' | 'reports' | 'view'>): readonly Announcer[] {
  return [...reports].flatMap(([name, report]) => {
    const node = name === self ? undefined : view.nodes.get(name);
    return node === undefined ? [] : [announcerOf(node, report, admitted.has(name))];
  });
}

/** The other agents that announce an address, and renew their Leases. */
export function othersWith(
  { node: self, reports, isFresh }: Pick<Situation, 'node' | 'reports' | 'isFresh'>,
  address: string,
): readonly string[] {
  return [...reports].flatMap(([node, { announced }]) =>
    node !== self && isFresh(node) && announced.includes(address) ? [node] : [],
  );
}

/** Which addresses one node is to announce by layer 2, as all agents plan it from the same objects and Leases. */
export class Layer2Ownership {
  readonly #node: string;
  /** Addresses that stopped agents left for their restart. */
  readonly #grace = new RestartGrace();
  readonly #released = new ReleasedAddresses();
  /** The last result of `#planned`, with its inputs. */
  #lastPlanned: readonly PlannedAddress[] = [];
  #plannedFrom = '';

  constructor(node: string) {
    this.#node = node;
  }

  /**
   * A Lease of an agent was seen, this one's too; undefined: it was deleted.
   *
   * @returns what an agent that has ended has left for its restart.
   */
  leaseSeen(
    node: string,
    lease: AnnouncerLease | undefined,
    report: AgentReport | undefined,
    nowMs: number,
  ): KeptAddresses | undefined {
    const hasEnded = lease !== undefined && lease.acquired === undefined && node !== this.#node;
    const kept = hasEnded ? report?.kept : undefined;
    this.#grace.observe(node, lease?.version ?? '', kept, nowMs);
    this.#released.observe(node, lease, report?.announced ?? [], nowMs);
    return kept;
  }

  /**
   * The addresses for this node to announce: its share, and those that the next owner does not announce yet.
   *
   * @param version another one after each change of `view` or `reports`.
   */
  plan(situation: Situation, version: number, nowMs: number): readonly AddressToAnnounce[] {
    const { kernel } = situation;
    const kept = this.#keptByOthers(situation, nowMs);
    const refused = new Set(kernel.refused.map(({ address }) => address));
    return this.#planned(situation, version).flatMap(
      ({ address, announcement, owner, interfaces, isEgress }) => {
        const present = kernel.announced.get(address);
        if (owner === this.#node) {
          const waits = kept.has(address) || (isEgress && othersWith(situation, address).length > 0);
          return waits && present === undefined ? [] : [{ address, announcement, interfaces }];
        }
        if (present === undefined || isEgress || refused.has(address)) return [];
        const keeps = keepsInMove(address, this.#node, owner, othersWith(situation, address));
        return keeps ? [{ address, announcement, interfaces: present }] : [];
      },
    );
  }

  /** The addresses of the last {@link plan} that no other node could announce. */
  get sole(): ReadonlySet<string> {
    return new Set(this.#lastPlanned.flatMap(({ address, isSole }) => (isSole ? [address] : [])));
  }

  /** For the addresses of the last {@link plan}. */
  get surroundings(): Omit<Layer2Plan, 'addresses'> {
    const planned = this.#lastPlanned;
    return {
      standbyInterfaces: new Set(planned.flatMap(({ ownInterfaces }) => ownInterfaces)),
      leaving: new Set(planned.flatMap(({ address, owner }) => (owner === this.#node ? [] : [address]))),
    };
  }

  /** Whether another agent has an address, or had it until a moment ago, and no agent refuses it. */
  isAgents(
    situation: Pick<Situation, 'node' | 'reports' | 'isFresh'>,
    address: string,
    nowMs: number,
  ): boolean {
    if (isRefused(situation.reports.values(), address)) return false;
    return othersWith(situation, address).length > 0 || this.#released.has(address, nowMs);
  }

  /** The planned owner of each address; computed when something has changed. */
  #planned(situation: Situation, version: number): readonly PlannedAddress[] {
    const { isAlive, view } = situation;
    const node = view.nodes.get(this.#node);
    const self = node === undefined ? undefined : announcerOf(node, situation.report, isAlive);
    const report = encodeReport({
      ...{ ...situation.report, announced: [], kept: undefined, voters: new Map() },
    });
    const from = `${version} ${self?.isAlive ?? false} ${report}`;
    if (from === this.#plannedFrom) return this.#lastPlanned;
    this.#plannedFrom = from;
    const others = otherAnnouncers(situation);
    const announcers = [...(self === undefined ? [] : [self]), ...others];
    this.#lastPlanned = [...view.addresses.values()].flatMap((assigned) => {
      const { address, announcement } = assigned;
      const { layer2 } = planAnnouncement(assigned, announcers);
      if (layer2 === undefined) return [];
      const { node: owner, interfaces } = layer2;
      const own = self === undefined ? undefined : planAnnouncement(assigned, [self]).layer2?.interfaces;
      const isEgress = assigned.egressNode !== undefined;
      // An egress address moves by its EgressIP.
      const isSole =
        owner === this.#node && !isEgress && planAnnouncement(assigned, others).layer2 === undefined;
      return [{ address, announcement, owner, interfaces, ownInterfaces: own ?? [], isEgress, isSole }];
    });
    return this.#lastPlanned;
  }

  /**
   * What no other agent takes: what agents have that do not renew their Leases, and whose Leases were not released; what
   * those have that are not admitted yet, because they begin anew; what those left that have ended; and what kernels may
   * have for longer than a Lease.
   */
  #keptByOthers({ admitted, isFresh, members, reports }: Situation, nowMs: number): ReadonlySet<string> {
    const keeping = [...members].filter(
      (node) => node !== this.#node && (!isFresh(node) || !admitted.has(node)),
    );
    const left = this.#grace.addresses(nowMs);
    const longer = [...members].filter((node) => node !== this.#node);
    return new Set([
      ...left,
      ...keeping.flatMap((node) => reports.get(node)?.announced ?? []),
      ...longer.flatMap((node) => reports.get(node)?.kept?.addresses ?? []),
    ]);
  }
}
