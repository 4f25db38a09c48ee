import {
  encodeReport,
  type NodeReport,
  type AnnouncerLease,
  isRefused,
  type KeptAddresses,
} from '../../network/announcing/agent-report.ts';
import { type Announcer, planAnnouncement } from '../../network/announcing/announcement-plan.ts';
import { keepsInMove } from '../../network/announcing/membership.ts';
import { ReleasedAddresses, RestartGrace, secondsLeft } from '../../network/announcing/handover.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { AddressToAnnounce, AnnouncementView } from './view.ts';
import type { AnnounceOptions, Layer2Announcer } from './layer2/announcer.ts';
import type { LeaseKeeper } from './protocol.ts';
import { takeOverAfterMs } from '../../network/announcing/fence.ts';
import type { Alarm } from '../../client/clock.ts';

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

/** The parts of an agent that {@link depart} uses. */
export interface DepartureOptions {
  readonly context: Pick<ControllerContext, 'clock' | 'log'>;
  readonly nodeName: string;
  /** Seconds that addresses stay which no other node can take over. */
  readonly restartGrace: number;
  readonly view: AnnouncementView;
  readonly leases: LeaseKeeper;
  readonly layer2: Layer2Announcer;
  /** Without this node. */
  readonly announcers: () => readonly Announcer[];
  /** Rings when there may be something new. */
  readonly changes: Alarm;
  /** Called before the Lease is given back: it is to say what stays. */
  readonly say: (left: KeptAddresses | undefined) => void;
}

/** Milliseconds that an orderly end waits until others have taken over. */
const leaveWithinMs = 5000;

/** Milliseconds between two looks at what others announce. */
const lookEveryMs = 50;

/**
 * The orderly end of an agent: gives the Lease back, so that others take over at once, and waits for them.
 * Addresses that no other node can announce stay for `restartGrace`, which the Lease says: an agent that has not
 * seen it cannot begin to announce them.
 */
export async function depart(options: DepartureOptions): Promise<void> {
  const { context, restartGrace, leases, layer2, changes } = options;
  const { clock, log } = context;
  leases.stopRenewing();
  const started = clock.monotonic();
  const end = started + leaveWithinMs;
  // Longer than all of this takes. Others that can give the Lease back do so after less.
  const stay = async (): Promise<void> =>
    layer2.leave(layer2.announced, secondsLeft(leaveWithinMs / 1000 + 1, started, clock.monotonic()));
  if (leases.isAlone) await stay();
  let kept: readonly string[] = [];
  /** Before and after the last write of the Lease. */
  let saidFrom = started;
  let saidAt: number | undefined;
  for (;;) {
    const { orphans, isTaken } = succession(options, kept);
    const keeps = restartGrace > 0 ? orphans : [];
    if (saidAt === undefined || keeps.length > kept.length) {
      kept = keeps;
      saidFrom = clock.monotonic();
      options.say(kept.length === 0 ? undefined : { addresses: kept, seconds: restartGrace });
      try {
        if (layer2.announced.size > 0) await leases.giveBack();
      } catch (error) {
        log.warn({ err: error }, 'cannot give the Lease back');
        // As long as the Lease is held, only agents that it names can take over.
        if (!leases.isAlone) kept = [];
        break;
      }
      if (saidAt === undefined && !leases.isAlone) await stay();
      saidAt = clock.monotonic();
    }
    const now = clock.monotonic();
    const isHeard = kept.length === 0 || leases.isAlone || now >= saidAt + takeOverAfterMs;
    if (now >= end && !isHeard) kept = [];
    if (now >= end || (isTaken && isHeard)) break;
    await changes.sleep(lookEveryMs);
  }
  const left = kept.filter((address) => !isWithAnother(options, address));
  const seconds = secondsLeft(restartGrace, saidFrom, clock.monotonic());
  await layer2.leave(new Set(left), seconds);
  if (left.length > 0) {
    log.info(
      { addresses: left.length, seconds },
      'no other node can announce these addresses: they stay for a restart',
    );
  }
}

/**
 * What happens to the addresses of this node: which stay because no other node takes them, and whether others have
 * the rest.
 *
 * @param kept the addresses that stay by the Lease: no other agent begins to announce them.
 */
function succession(
  options: DepartureOptions,
  kept: readonly string[],
): { readonly orphans: readonly string[]; readonly isTaken: boolean } {
  const { view, layer2 } = options;
  const announcers = options.announcers();
  const { announced } = layer2;
  const orphans: string[] = [];
  let isTaken = true;
  for (const assigned of view.addresses.values()) {
    const { address } = assigned;
    if (!announced.has(address) || isWithAnother(options, address)) continue;
    const isOrphan = kept.includes(address) || planAnnouncement(assigned, announcers).layer2 === undefined;
    if (isOrphan) orphans.push(address);
    else isTaken = false;
  }
  return { orphans, isTaken };
}

/** Whether an agent that renews its Lease announces an address. */
function isWithAnother({ view, leases, nodeName }: DepartureOptions, address: string): boolean {
  return [...view.members().keys()].some(
    (node) =>
      node !== nodeName &&
      leases.isFresh(node) &&
      view.reports.get(node)?.announced.includes(address) === true,
  );
}
