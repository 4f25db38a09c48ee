import { errorWord } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import type { Host } from '../../host/host.ts';
import { type AgentReport, encodeReport } from '../../network/announcing/agent-report.ts';
import { type Announcer, planAnnouncement } from '../../network/announcing/announcement-plan.ts';
import { Fence, heartbeatEveryMs, leaseLastsMs, renewEveryMs } from '../../network/announcing/fence.ts';
import { Liveness } from '../../network/announcing/liveness.ts';
import { WatchedTime } from '../../network/announcing/watched-time.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { BGPPeer } from '../../objects/types/servicenet.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import type { AddressToAnnounce } from './address-announcer.ts';
import { Alarm } from './alarm.ts';
import { AnnouncementView, internalAddresses } from './announcement-view.ts';
import { BGPAgent } from './bgp-agent.ts';
import { Heartbeats } from './heartbeats.ts';
import { Layer2Announcer, type Layer2Options } from './layer2/layer2-announcer.ts';
import { LeaseWriter } from './lease-writer.ts';

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
  /** Whether connections go on being forwarded while the agent does not run: then BGP peers keep its routes. Default true. */
  readonly forwardingOutlives?: boolean;
}

/** Milliseconds without a Lease seen, the own one too, after which the cache of Leases may be behind. */
const watchGapMs = 3 * renewEveryMs;

/** Milliseconds between renewals while there is no address in the cluster. */
const idleRenewMs = 10_000;

/** Milliseconds after the first address, in which the agents hear of each other before they divide it. */
const settleMs = 300;

/** Milliseconds between two looks at the kernel: each renewal is followed by one, unless the API server is away. */
const longestPauseMs = 900;

/** Milliseconds in which changes are collected. */
const collectMs = 20;

/** Milliseconds that an orderly end waits until others have taken over. */
const leaveWithinMs = 5000;

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
  readonly #fence: Fence;
  readonly #liveness = new Liveness(leaseLastsMs);
  readonly #watched = new WatchedTime(watchGapMs);
  readonly #lease: LeaseWriter;
  readonly #layer2: Layer2Announcer;
  readonly #bgp: BGPAgent;
  readonly #heartbeats: Heartbeats;
  /** Rings when there may be something to do. */
  readonly #changes: Alarm;
  /** Rings when the Lease is to be renewed before its time. */
  readonly #due: Alarm;
  /** When the cluster got its first address, monotonic; undefined while it has none. */
  #activeSince: number | undefined;
  /** What layer 2 was last told. */
  #wanted: readonly AddressToAnnounce[] = [];
  #isLeaving = false;
  #hasPlanned = false;
  /** When the last sync began, monotonic. */
  #syncedAt = Number.NEGATIVE_INFINITY;
  #ownRenewal: string | undefined;
  #failing = '';

  constructor(options: AnnounceAgentOptions) {
    const { context, host, nodeName, layer2 = {} } = options;
    const { clock, informers, log } = context;
    this.#options = options;
    this.#changes = new Alarm(clock);
    this.#due = new Alarm(clock);
    this.#fence = new Fence(options.onAPILoss === 'hold');
    this.#lease = new LeaseWriter(options.leases, options.leaseNamespace, nodeName, clock);
    this.#heartbeats = new Heartbeats(host, options.heartbeatPort, log);
    this.#layer2 = new Layer2Announcer({
      ...{ host, clock, log, on: layer2.on ?? 'macvlan', arping: layer2.arping ?? false },
      lifetime: () => this.#fence.lifetime(clock.monotonic()),
      ownerOfMac: (mac, address) => this.#ownerOfMac(mac, address),
      isNodeAddress: (address) => this.#view.nodeAddresses().has(address),
    });
    this.#view = new AnnouncementView(informers);
    this.#bgp = new BGPAgent({
      ...{ context, host, nodeName, view: () => this.#view, client: options.bgpPeers },
      forwardingOutlives: options.forwardingOutlives ?? true,
      others: () => this.#others(clock.monotonic()),
      changed: () => this.#due.ring(),
    });
    // Last: caches that are full already report their objects at once.
    this.#view.follow({
      changed: () => this.#planSoon(),
      leaseSeen: (node, lease) => {
        const now = clock.monotonic();
        if (node === nodeName) {
          if (lease?.renewal !== this.#ownRenewal) this.#watched.seen(now);
          this.#ownRenewal = lease?.renewal;
        } else if (lease === undefined) this.#liveness.forget(node);
        else {
          const watched = this.#watched.at(now);
          const lived = this.#liveness.isAlive(node, watched);
          this.#liveness.observe(node, lease.renewal, watched);
          if (lived !== this.#liveness.isAlive(node, watched)) this.#planSoon();
        }
      },
    });
  }

  /**
   * Announces until the signal aborts; then other nodes take over, and addresses that none can announce stay for
   * `restartGrace`.
   *
   * @throws the system's error where the port of heartbeats is taken, or there is no `ip`.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options.context;
    if (!(await this.#view.synced(signal))) return;
    await this.#layer2.open();
    // Only a heartbeat less: nothing else is lost.
    await this.#openHeartbeats().catch((error: unknown) => {
      log.warn({ err: error, reason: 'NoHeartbeats' }, 'cannot listen for heartbeats of other agents');
    });
    const stopped = new AbortController();
    const stop = (): void => this.#changes.ring();
    signal.addEventListener('abort', stop, { once: true });
    const besides = Promise.all([
      this.#beat(stopped.signal),
      this.#keepLease(stopped.signal),
      this.#bgp.run(signal),
    ]);
    try {
      while (!signal.aborted) {
        await this.#sync();
        await this.#changes.sleep(this.#untilChange());
        // Changes that come together are planned at once.
        await clock.sleep(collectMs);
      }
      await this.#leave();
    } finally {
      signal.removeEventListener('abort', stop);
      stopped.abort();
      this.#due.ring();
      await besides;
      this.#heartbeats.close();
    }
  }

  /** Renews the Lease in time, and at once where others wait for what the report says, until the signal aborts. */
  async #keepLease(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.context;
    while (!signal.aborted && !this.#isLeaving) {
      const started = clock.monotonic();
      await this.#renew();
      this.#changes.ring();
      const every = this.#activeSince === undefined ? idleRenewMs : renewEveryMs;
      await this.#due.sleep(started + every - clock.monotonic());
      await clock.sleep(this.#lease.delay, signal);
    }
  }

  async #renew(): Promise<void> {
    const { context, nodeName } = this.#options;
    await this.#lookAfterPause();
    const sentAt = context.clock.monotonic();
    try {
      await this.#lease.renew(encodeReport(this.#report()));
      this.#fence.renewed(sentAt);
      if (this.#failing !== '') context.log.info({ node: nodeName }, 'the Lease is renewed again');
      this.#failing = '';
    } catch (error) {
      const word = errorWord(error);
      if (word !== this.#failing) {
        context.log.warn({ node: nodeName, err: error, reason: 'LeaseNotRenewed' }, 'cannot renew the Lease');
      }
      this.#failing = word;
    }
  }

  /** After a pause of the process the kernel may have dropped addresses, so that an old report would be wrong. */
  async #lookAfterPause(): Promise<void> {
    const { clock, log } = this.#options.context;
    if (clock.monotonic() - this.#syncedAt <= leaseLastsMs) return;
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
    if (addresses.size === 0) this.#activeSince = undefined;
    else if (this.#activeSince === undefined) {
      this.#activeSince = now;
      this.#due.ring();
    }
    const isSettled = this.#activeSince !== undefined && now >= this.#activeSince + settleMs;
    if (this.#activeSince === undefined && this.#layer2.announced.size === 0) return;
    this.#fence.hold(this.#othersAlive(now), now);
    if (isSettled && this.#watched.isSeeing(now) && !this.#fence.hasLostAPI(now) && this.#fence.isOpen(now)) {
      this.#wanted = this.#plan(now);
      this.#hasPlanned = true;
      // What a former process left stays until the owners are known.
    } else if (!this.#hasPlanned) return;
    else if (!this.#fence.isOpen(now)) this.#wanted = [];
    else this.#wanted = this.#wanted.filter(({ address }) => addresses.has(address));
    this.#layer2.retain((address) => addresses.has(address));
    try {
      await this.#layer2.announce(this.#wanted);
    } catch (error) {
      log.warn({ err: error, reason: 'AnnounceFailed' }, 'cannot announce by layer 2, will retry');
    }
    if (encodeReport(this.#report()) !== this.#lease.writtenReport) this.#due.ring();
  }

  /** What this node is to announce: its share, and what the next owner does not announce yet. */
  #plan(now: number): readonly AddressToAnnounce[] {
    const { nodeName } = this.#options;
    const announcers = this.#announcers(now);
    const { announced } = this.#layer2;
    return [...this.#view.addresses.values()].flatMap((assigned) => {
      const { address, announcement } = assigned;
      const { layer2 } = planAnnouncement(assigned, announcers);
      if (layer2 === undefined) return [];
      if (layer2.node === nodeName) return [{ address, announcement, interfaces: layer2.interfaces }];
      const hasTakenOver = this.#view.reports.get(layer2.node)?.announced.includes(address) === true;
      if (!announced.has(address) || hasTakenOver) return [];
      return [{ address, announcement, interfaces: this.#layer2.interfacesOf(address) }];
    });
  }

  #announcers(now: number): readonly Announcer[] {
    const { nodeName } = this.#options;
    const isAlive = this.#fence.isOpen(now) && !this.#isLeaving;
    const self = this.#view.announcer(nodeName, this.#report(), isAlive);
    return self === undefined ? this.#others(now) : [self, ...this.#others(now)];
  }

  #others(now: number): readonly Announcer[] {
    const watched = this.#watched.at(now);
    return [...this.#view.reports].flatMap(([node, report]) => {
      if (node === this.#options.nodeName) return [];
      return this.#view.announcer(node, report, this.#liveness.isAlive(node, watched)) ?? [];
    });
  }

  #planSoon(): void {
    this.#changes.ring();
    this.#bgp.planSoon();
  }

  #report(): AgentReport {
    return {
      interfaces: this.#layer2.interfaces(this.#view.namedInterfaces),
      sessions: this.#bgp.statuses.flatMap(({ peer, state }) => (state === 'established' ? [peer] : [])),
      refused: this.#layer2.refused,
      announced: this.#layer2.told,
    };
  }

  /**
   * Releases the Lease, so that others take over at once, and waits for them. What no other node can announce is not
   * waited for.
   */
  async #leave(): Promise<void> {
    const { context, restartGrace } = this.#options;
    const { clock, log } = context;
    this.#isLeaving = true;
    const end = clock.monotonic() + leaveWithinMs;
    if (this.#layer2.announced.size > 0) {
      await this.#lease
        .giveBack(encodeReport(this.#report()))
        .catch((error: unknown) => log.warn({ err: error }, 'cannot give the Lease back'));
    }
    await this.#layer2.leave(this.#layer2.announced, leaveWithinMs / 1000 + 1);
    let kept = new Set<string>();
    for (;;) {
      const now = clock.monotonic();
      const announcers = this.#announcers(now);
      const { announced } = this.#layer2;
      const open = [...this.#view.addresses.values()].filter(({ address }) => announced.has(address));
      const next = open.map((assigned) => ({
        address: assigned.address,
        node: planAnnouncement(assigned, announcers).layer2?.node,
      }));
      kept = new Set(next.flatMap(({ address, node }) => (node === undefined ? [address] : [])));
      const isDone = next.every(
        ({ address, node }) =>
          node === undefined || this.#view.reports.get(node)?.announced.includes(address) === true,
      );
      if (isDone || now >= end) break;
      await this.#changes.sleep(50);
    }
    await this.#layer2.leave(kept, restartGrace);
    if (kept.size > 0) {
      log.info(
        { addresses: kept.size, seconds: restartGrace },
        'no other node can announce these addresses: they stay for a restart',
      );
    }
  }

  /** Milliseconds until something changes by time alone. */
  #untilChange(): number {
    const { clock } = this.#options.context;
    const now = clock.monotonic();
    if (this.#activeSince === undefined) return idleRenewMs;
    const settles = this.#activeSince + settleMs - now;
    const ends = this.#liveness.nextEnd(this.#watched.at(now)) - this.#watched.at(now);
    return Math.min(settles > 0 ? settles : longestPauseMs, Math.max(5, ends));
  }

  /** Those that lived when the Leases were last seen. */
  #othersAlive(now: number): readonly string[] {
    const watched = this.#watched.at(now);
    return [...this.#view.reports.keys()].filter(
      (node) => node !== this.#options.nodeName && this.#liveness.isAlive(node, watched),
    );
  }

  async #openHeartbeats(): Promise<void> {
    const { context, nodeName } = this.#options;
    const own = this.#view.node(nodeName);
    if (own === undefined) return;
    await this.#heartbeats.open(internalAddresses(own), ({ node, hasLostAPI }, from) => {
      const sender = this.#view.node(node);
      if (sender === undefined || !internalAddresses(sender).includes(from)) return;
      this.#fence.heard(node, hasLostAPI, context.clock.monotonic());
    });
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { context, nodeName } = this.#options;
    const { clock } = context;
    while (!signal.aborted) {
      await clock.sleep(heartbeatEveryMs, signal);
      const now = clock.monotonic();
      if (this.#activeSince === undefined) continue;
      const hasLostAPI = this.#fence.hasLostAPI(now);
      // Also to those that look dead: they may have lost only the API server, and must hear that others have it.
      const addresses = [...this.#view.reports.keys()].flatMap((name) => {
        const node = name === nodeName ? undefined : this.#view.node(name);
        return node === undefined ? [] : internalAddresses(node).slice(0, 1);
      });
      this.#heartbeats.send({ node: nodeName, hasLostAPI }, addresses);
      if (hasLostAPI) this.#changes.ring();
    }
  }

  /** The interface below an agent's own answers too for what the agent announces: the kernel's `arp_ignore` is 0. */
  #ownerOfMac(mac: string, address: string): 'agent' | 'node' | undefined {
    let owner: 'node' | undefined;
    for (const { interfaces, announced } of this.#view.reports.values()) {
      if (interfaces.some((one) => one.mac === mac && one.mac !== one.ownMac)) return 'agent';
      if (!interfaces.some((one) => one.ownMac === mac)) continue;
      if (announced.includes(address)) return 'agent';
      owner = 'node';
    }
    return owner;
  }
}
