import type { ResourceClient } from '../../client/resource-client.ts';
import type { Host } from '../../host/host.ts';
import { encodeReport, type KeptAddresses, type NodeReport } from '../../network/announcing/agent-report.ts';
import { type Announcer, planAnnouncement } from '../../network/announcing/announcement-plan.ts';
import type { AnnouncerLease } from '../../network/announcing/announcer-lease.ts';
import { renewEveryMs } from '../../network/announcing/fence.ts';
import { keepsInMove } from '../../network/announcing/membership.ts';
import { ownerOf } from '../../network/announcing/owner.ts';
import { isRefused, ownerOfMac } from '../../network/announcing/reported-holders.ts';
import { ReleasedAddresses } from '../../network/announcing/released-addresses.ts';
import { RestartGrace } from '../../network/announcing/restart-grace.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { BGPPeer } from '../../objects/types/servicenet.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import type { AddressToAnnounce } from './address-announcer.ts';
import { Alarm } from './alarm.ts';
import { AnnouncementView } from './announcement-view.ts';
import { BGPAgent } from './bgp-agent.ts';
import { depart } from './departure.ts';
import { Layer2Announcer, type Layer2Options } from './layer2/layer2-announcer.ts';
import { LeaseKeeper } from './lease-keeper.ts';

export interface AnnounceAgentOptions {
  /** Its informers are to see the Leases of `announceSelectors` alone, in the namespace of the Leases. */
  readonly context: Pick<ControllerContext, 'informers' | 'clock' | 'random' | 'log'>;
  readonly leases: ResourceClient<Lease>;
  readonly bgpPeers: ResourceClient<BGPPeer>;
  /** Where agents keep their Leases. */
  readonly leaseNamespace: string;
  readonly host: Host;
  /** Of the Node object. */
  readonly nodeName: string;
  /** What becomes of addresses while the API server answers no agent. */
  readonly onAPILoss: 'hold' | 'withdraw';
  /** Seconds that addresses stay after an orderly end which no other node can take over. */
  readonly restartGrace: number;
  /** The UDP port of heartbeats, the same on all nodes. */
  readonly heartbeatPort: number;
  readonly layer2?: Pick<Partial<Layer2Options>, 'on' | 'arping'>;
  /** Whether the addresses of EgressIPs are announced, too. Default false. */
  readonly egress?: boolean;
  /** Whether connections go on being forwarded while the agent does not run: then BGP peers keep its routes. Default true. */
  readonly forwardingOutlives?: boolean;
}

/** Milliseconds after the first address, in which the agents hear of each other before they divide it. */
const settleMs = 300;

/** Milliseconds between two looks at the kernel: each renewal is followed by one, unless the API server is away. */
const maxPauseMs = 900;

/** Who is to have an address. */
interface PlannedAddress extends AddressToAnnounce {
  readonly owner: string;
  /** Who asks for it from time to time: a machine may have taken it later. */
  readonly checker: string | undefined;
  /** The interfaces on which this node can announce it. */
  readonly own: readonly string[];
}

/** Milliseconds without the address list of the kernel read, after which it may have forgotten addresses. */
const pauseMs = 3 * renewEveryMs;

/** Milliseconds between two looks, at least. */
const minPauseMs = 50;

/** Milliseconds between two syncs while there is no address in the cluster. */
const idleMs = 10_000;

/** Milliseconds in which changes are collected. */
const collectMs = 20;

/**
 * Announces addresses of LoadBalancer Services from one node. The agents of all nodes plan the same from the same
 * objects, and agree which agents live by the Leases that each renews; see `network/announcing/fence.ts` for why no
 * address has two owners.
 *
 * - Every 0.6 s: renew the Lease, then refresh the lifetimes of the addresses in the kernel.
 * - On a planned move the new owner announces first, and says so in its Lease; then the former one withdraws it.
 */
export class AnnounceAgent implements Runnable {
  readonly #options: AnnounceAgentOptions;
  readonly #view: AnnouncementView;
  readonly #leases: LeaseKeeper;
  readonly #layer2: Layer2Announcer;
  readonly #bgp: BGPAgent;
  /** What agents that have ended left for their restart. */
  readonly #grace = new RestartGrace();
  readonly #released = new ReleasedAddresses();
  /** What this one leaves, as its Lease says. */
  #left: KeptAddresses | undefined;
  /** Rings when there may be something to do. */
  readonly #changes: Alarm;
  /** When the cluster got its first address, or EgressIP, monotonic; undefined while it has none. */
  #activeSince: number | undefined;
  /** What layer 2 was last told. */
  #wanted: readonly AddressToAnnounce[] = [];
  /** What `#planned` last found, and of what. */
  #lastPlanned: readonly PlannedAddress[] = [];
  #plannedOf = '';
  #isLeaving = false;
  #hasPlanned = false;
  /** When the last sync began, monotonic. */
  #syncedAt = Number.NEGATIVE_INFINITY;

  constructor(options: AnnounceAgentOptions) {
    const { context, host, nodeName, layer2 = {} } = options;
    const { clock, informers, log } = context;
    this.#options = options;
    this.#changes = new Alarm(clock);
    this.#leases = new LeaseKeeper({
      ...options,
      view: () => this.#view,
      report: () => this.#report(),
      beforeRenewal: () => this.#lookAfterPause(),
      addresses: () => new Set([...this.#wanted.map(({ address }) => address), ...this.#layer2.announced]),
      letGo: (addresses) => {
        this.#wanted = this.#wanted.filter(({ address }) => !addresses.includes(address));
      },
      changed: () => this.#changes.ring(),
    });
    this.#layer2 = new Layer2Announcer({
      ...{ host, clock, log, on: layer2.on ?? 'macvlan', arping: layer2.arping ?? false },
      lifetime: () => this.#leases.lifetime,
      ownerOfMac: (mac, address) => ownerOfMac(this.#view.reports.values(), mac, address),
      isNodeAddress: (address) => this.#view.nodeAddresses().has(address),
      isAgents: (address) => this.#isAgents(address),
    });
    this.#view = new AnnouncementView(informers, options.egress ?? false);
    this.#bgp = new BGPAgent({
      ...{ context, host, nodeName, view: () => this.#view, client: options.bgpPeers },
      forwardingOutlives: options.forwardingOutlives ?? true,
      others: () => this.#others(),
      changed: () => this.#leases.renewSoon(),
    });
    // Last: caches that are full already report their objects at once.
    this.#view.follow({
      changed: () => this.#planSoon(),
      leaseSeen: (node, lease) => this.#leaseSeen(node, lease),
    });
  }

  /**
   * Announces until the signal aborts; then other nodes take over, and addresses that none can announce stay for
   * `restartGrace`.
   *
   * @throws the system's error where the port of heartbeats is taken, or there is no `ip`.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.context;
    if (!(await this.#view.synced(signal))) return;
    await this.#layer2.open();
    const stopped = new AbortController();
    const stop = (): void => this.#changes.ring();
    signal.addEventListener('abort', stop, { once: true });
    const besides = Promise.all([this.#leases.run(stopped.signal), this.#bgp.run(signal)]);
    try {
      while (!signal.aborted) {
        await this.#sync();
        await this.#changes.sleep(this.#untilChange());
        // Changes that come together are planned at once.
        await clock.sleep(collectMs);
      }
      this.#isLeaving = true;
      await depart({
        ...this.#options,
        ...{ view: this.#view, leases: this.#leases, layer2: this.#layer2, changes: this.#changes },
        announcers: () => this.#announcers(),
        say: (left) => {
          this.#left = left;
        },
      });
    } finally {
      signal.removeEventListener('abort', stop);
      stopped.abort();
      await besides;
    }
  }

  #leaseSeen(node: string, lease: AnnouncerLease | undefined): void {
    const { clock, log } = this.#options.context;
    const hasEnded = lease !== undefined && lease.acquired === undefined && node !== this.#options.nodeName;
    const kept = hasEnded ? this.#view.reports.get(node)?.kept : undefined;
    this.#grace.observe(node, lease?.version ?? '', kept, clock.monotonic());
    this.#released.observe(node, lease, this.#view.reports.get(node)?.announced ?? [], clock.monotonic());
    if (kept !== undefined) {
      const { addresses, seconds } = kept;
      log.info(
        { node, addresses: addresses.length, seconds },
        'the agent of a node has left addresses for its restart: no other one takes them for so long',
      );
    }
    this.#leases.leaseSeen(node, lease);
  }

  /** After a pause of the process the kernel may have dropped addresses, so that an old report would be wrong. */
  async #lookAfterPause(): Promise<void> {
    const { clock, log } = this.#options.context;
    if (clock.monotonic() - this.#syncedAt <= pauseMs) return;
    try {
      await this.#layer2.look();
    } catch (error) {
      log.warn({ err: error, reason: 'AnnounceFailed' }, 'cannot announce by layer 2, will retry');
    }
  }

  /** Makes what is announced as the plan says, or keeps it while there is no plan. */
  async #sync(): Promise<void> {
    const { clock, log } = this.#options.context;
    await this.#lookAfterPause();
    const now = clock.monotonic();
    this.#syncedAt = now;
    const { addresses } = this.#view;
    if (!this.#view.isNeeded) this.#activeSince = undefined;
    else this.#activeSince ??= now;
    this.#leases.setActive(this.#activeSince !== undefined || this.#layer2.announced.size > 0);
    const isSettled = this.#activeSince !== undefined && now >= this.#activeSince + settleMs;
    if (this.#activeSince === undefined && this.#layer2.announced.size === 0) return;
    this.#leases.hold();
    if (isSettled && this.#leases.isCurrent) {
      this.#wanted = this.#plan();
      this.#hasPlanned = true;
      // What a former process left stays until the owners are known.
    } else if (!this.#hasPlanned) return;
    else if (!this.#leases.isOpen) this.#wanted = [];
    else this.#wanted = this.#wanted.filter(({ address }) => addresses.has(address));
    this.#layer2.retain((address) => addresses.has(address));
    try {
      const { nodeName } = this.#options;
      const planned = this.#lastPlanned;
      await this.#layer2.announce(this.#wanted, {
        others: planned.flatMap(({ address, checker }) => (checker === nodeName ? [address] : [])),
        standby: new Set(planned.flatMap(({ own }) => own)),
        leaving: new Set(planned.flatMap(({ address, owner }) => (owner === nodeName ? [] : [address]))),
      });
    } catch (error) {
      log.warn({ err: error, reason: 'AnnounceFailed' }, 'cannot announce by layer 2, will retry');
    }
    this.#leases.reportSoon();
  }

  /** What this node is to announce: its share, and what the next owner does not announce yet. */
  #plan(): readonly AddressToAnnounce[] {
    const { nodeName } = this.#options;
    const { announced } = this.#layer2;
    const kept = this.#keptByOthers();
    const has = (address: string): readonly string[] =>
      [...this.#view.reports].flatMap(([node, report]) =>
        node !== nodeName && this.#leases.isFresh(node) && report.announced.includes(address) ? [node] : [],
      );
    return this.#planned().flatMap(({ address, announcement, owner, interfaces }) => {
      if (owner === nodeName) {
        if (kept.has(address) && !announced.has(address)) return [];
        return [{ address, announcement, interfaces }];
      }
      const keeps = announced.has(address) && keepsInMove(address, nodeName, owner, has(address));
      if (!keeps) return [];
      return [{ address, announcement, interfaces: this.#layer2.interfacesOf(address) }];
    });
  }

  /** Who is to have each address by layer 2; computed when something has changed. */
  #planned(): readonly PlannedAddress[] {
    const { nodeName } = this.#options;
    const announcers = this.#announcers();
    const self = announcers.find(({ node }) => node === nodeName);
    const report = encodeReport({ ...this.#report(), announced: [], voters: new Map() });
    const of = `${this.#view.version} ${self?.isAlive ?? false} ${report}`;
    if (of === this.#plannedOf) return this.#lastPlanned;
    this.#plannedOf = of;
    this.#lastPlanned = [...this.#view.addresses.values()].flatMap((assigned) => {
      const { address, announcement } = assigned;
      const { layer2 } = planAnnouncement(assigned, announcers);
      if (layer2 === undefined) return [];
      const { node: owner, interfaces } = layer2;
      const others = announcers.flatMap(({ node, isAlive }) => (isAlive && node !== owner ? [node] : []));
      const own = self === undefined ? undefined : planAnnouncement(assigned, [self]).layer2?.interfaces;
      return [
        { address, announcement, owner, interfaces, checker: ownerOf(address, others), own: own ?? [] },
      ];
    });
    return this.#lastPlanned;
  }

  /**
   * What no other agent takes: what agents have that do not renew their Leases, and whose Leases were not given back; what
   * those have that are not admitted yet, because they begin anew; and what those left that have ended.
   */
  #keptByOthers(): ReadonlySet<string> {
    const { admitted } = this.#leases;
    const members = [...this.#view.members().keys()].filter((node) => node !== this.#options.nodeName);
    const keeping = members.filter((node) => !this.#leases.isFresh(node) || !admitted.has(node));
    const left = this.#grace.addresses(this.#options.context.clock.monotonic());
    return new Set([...left, ...keeping.flatMap((node) => this.#view.reports.get(node)?.announced ?? [])]);
  }

  #announcers(): readonly Announcer[] {
    const { nodeName } = this.#options;
    const isAlive = this.#leases.isOpen && !this.#isLeaving && this.#leases.admitted.has(nodeName);
    const self = this.#view.announcer(nodeName, this.#report(), isAlive);
    return self === undefined ? this.#others() : [self, ...this.#others()];
  }

  #others(): readonly Announcer[] {
    const { admitted } = this.#leases;
    return [...this.#view.reports].flatMap(([node, report]) => {
      if (node === this.#options.nodeName) return [];
      return this.#view.announcer(node, report, admitted.has(node)) ?? [];
    });
  }

  #planSoon(): void {
    this.#changes.ring();
    this.#bgp.planSoon();
  }

  #report(): NodeReport {
    return {
      interfaces: this.#layer2.interfaces(this.#view.namedInterfaces),
      sessions: this.#bgp.statuses.flatMap(({ peer, state }) => (state === 'established' ? [peer] : [])),
      refused: this.#layer2.refused,
      announced: this.#layer2.told,
      kept: this.#left,
    };
  }

  /** Milliseconds until something changes by time alone. */
  #untilChange(): number {
    const { clock } = this.#options.context;
    const now = clock.monotonic();
    if (this.#activeSince === undefined) return idleMs;
    const settles = this.#activeSince + settleMs - now;
    if (settles > 0) return settles;
    return Math.min(maxPauseMs, Math.max(minPauseMs, this.#layer2.nextDue - now));
  }

  /** Whether another agent has an address, or had it until a moment ago; and none knows that a stranger has it. */
  #isAgents(address: string): boolean {
    const { context, nodeName } = this.#options;
    if (isRefused(this.#view.reports.values(), address)) return false;
    const has = [...this.#view.reports].some(
      ([node, { announced }]) =>
        node !== nodeName && this.#leases.isFresh(node) && announced.includes(address),
    );
    return has || this.#released.has(address, context.clock.monotonic());
  }
}
