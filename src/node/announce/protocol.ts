import type { Host } from '../../host/host.ts';
import {
  Fence,
  askEveryMs,
  leaseSecondsFor,
  longerWaitMs,
  type Renewal,
  renewEveryMs,
  takeOverAfterMs,
} from '../../network/announcing/fence.ts';
import {
  Liveness,
  ownerOf,
  expiredMembers,
  isAdmitted,
  votersOf,
} from '../../network/announcing/membership.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { type AnnouncementView, internalAddresses } from './view.ts';
import { Heartbeats, type KeepQuestion, LeaseWriter } from './lease-io.ts';
import { errorWord } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import {
  type AgentReport,
  encodeReport,
  type NodeReport,
  type AnnouncerLease,
} from '../../network/announcing/agent-report.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import { Alarm } from '../../client/clock.ts';

export interface HoldConsentOptions {
  readonly context: Pick<ControllerContext, 'clock' | 'log'>;
  readonly host: Host;
  /** Of the Node object. */
  readonly nodeName: string;
  /** The UDP port of heartbeats, the same on all nodes. */
  readonly heartbeatPort: number;
  readonly view: () => AnnouncementView;
  /** Addresses that this node has, or is about to have. */
  readonly addresses: () => Iterable<string>;
  /** Another agent has these addresses, and keeps them. */
  readonly released: (addresses: readonly string[]) => void;
  /** There may be something to do. */
  readonly changed: () => void;
}

/**
 * The consent of agents, by heartbeats, that each of them holds its addresses while the API server answers none:
 * this agent asks for it, and answers those that ask. `network/announcing/fence.ts` says which agents are asked.
 */
export class HoldConsent {
  readonly #options: HoldConsentOptions;
  readonly #fence: Fence;
  readonly #liveness: Liveness;
  readonly #heartbeats: Heartbeats;

  constructor(options: HoldConsentOptions, fence: Fence, liveness: Liveness) {
    this.#options = options;
    this.#fence = fence;
    this.#liveness = liveness;
    this.#heartbeats = new Heartbeats(options.host, options.heartbeatPort, options.context.log);
  }

  /** Listens for heartbeats. @throws the system's error. */
  async open(): Promise<void> {
    const { changed, nodeName, released, view } = this.#options;
    const own = view().node(nodeName);
    if (own === undefined) return;
    const isFrom = (node: string, from: string): boolean => {
      const sender = view().node(node);
      return sender !== undefined && internalAddresses(sender).includes(from);
    };
    await this.#heartbeats.open(nodeName, internalAddresses(own), {
      asked: (question, from) => (isFrom(question.node, from) ? this.#answer(question) : undefined),
      consented: ({ node, askedAt, except }, from) => {
        if (!isFrom(node, from)) return;
        released(except);
        this.#fence.consented(node, askedAt, this.#now());
        changed();
      },
    });
  }

  close(): void {
    this.#heartbeats.close();
  }

  /** Asks the others, once the API server is lost. */
  ask(): void {
    const { addresses, changed, nodeName, view } = this.#options;
    const now = this.#now();
    if (!this.#fence.hasLostAPI(now)) return;
    const own = [...addresses()];
    for (const voter of this.#fence.toAsk(now)) {
      const node = view().node(voter);
      const [to] = node === undefined ? [] : internalAddresses(node);
      if (to !== undefined) this.#heartbeats.ask(nodeName, own, now, to);
    }
    changed();
  }

  /**
   * Only an agent that has lost the API server too consents: it takes nothing over. Of two that have an address, in the
   * middle of a move, one keeps it.
   */
  #answer({ node, addresses }: KeepQuestion): readonly string[] | undefined {
    const { changed, nodeName, released } = this.#options;
    const now = this.#now();
    if (!this.#fence.hasLostAPI(now) || !this.#liveness.promise(node, now)) return undefined;
    const own = new Set(this.#options.addresses());
    const common = addresses.filter((address) => own.has(address));
    const kept = common.filter((address) => ownerOf(address, [nodeName, node]) === nodeName);
    released(common.filter((address) => !kept.includes(address)));
    if (common.length > 0) changed();
    return kept;
  }

  #now(): number {
    return this.#options.context.clock.monotonic();
  }
}

export interface LeaseKeeperOptions extends HoldConsentOptions {
  readonly leases: ResourceClient<Lease>;
  /** The namespace of agents' Leases. */
  readonly leaseNamespace: string;
  /** The treatment of addresses while the API server answers no agent. */
  readonly onAPILoss: 'hold' | 'withdraw';
  /** The contents of the Lease. */
  readonly report: () => NodeReport;
  /** Called before each renewal: what it reports is to be true. */
  readonly beforeRenewal: () => Promise<void>;
}

/** Milliseconds between renewals while there is no address in the cluster. */
const idleRenewMs = 10_000;

/** Milliseconds without seeing own renewals, after which the silence of other agents means nothing. */
const watchGapMs = 3 * renewEveryMs;

/** Milliseconds between two attempts to give back the Lease of an agent that has died. */
const giveBackAgainMs = 200;

/**
 * Renews the Lease of this node's agent, and gives those of agents that have died back: an agent is out when its Lease was
 * given back, and so all agents see the same. `network/announcing/fence.ts` says how long this one may have addresses.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  readonly #fence: Fence;
  readonly #liveness = new Liveness(takeOverAfterMs);
  readonly #lease: LeaseWriter;
  readonly #consent: HoldConsent;
  /** Rings when the Lease is to be renewed before its time. */
  readonly #due: Alarm;
  /** Rings when another agent may have died. */
  readonly #expiry: Alarm;
  /** Renewals that were not seen yet, by the version that they made. */
  readonly #unseen = new Map<string, { readonly renewal: Renewal; readonly leaseSeconds: number }>();
  /** The version of the own Lease that was last seen, and when. */
  #seenVersion = '';
  #seenAt = Number.NEGATIVE_INFINITY;
  /** Since when a renewal is written and none was seen. */
  #blindSince: number | undefined;
  #isActive = false;
  #isStopped = false;
  #failing = '';

  constructor(options: LeaseKeeperOptions) {
    const { context, leases, leaseNamespace, nodeName, onAPILoss } = options;
    this.#options = options;
    this.#due = new Alarm(context.clock);
    this.#expiry = new Alarm(context.clock);
    this.#fence = new Fence(onAPILoss === 'hold');
    this.#lease = new LeaseWriter(leases, leaseNamespace, nodeName, context.clock);
    this.#consent = new HoldConsent(options, this.#fence, this.#liveness);
  }

  /** A Lease of an agent was seen, this one's too; undefined: it is gone. */
  leaseSeen(node: string, lease: AnnouncerLease | undefined): void {
    const now = this.#now();
    const { nodeName, changed } = this.#options;
    if (node === nodeName) {
      const version = lease?.version ?? '';
      if (version === this.#seenVersion) return;
      const wasCurrent = this.#isCurrentAt(now);
      if (now - this.#seenAt > watchGapMs) this.#liveness.resume(now);
      this.#seenVersion = version;
      this.#seenAt = now;
      this.#blindSince = undefined;
      this.#count();
      if (wasCurrent || !this.#isCurrentAt(now)) return;
      // Work that waited for this is done at once: on a busy machine a renewal is seen late.
      changed();
      this.#expiry.ring();
    } else if (lease === undefined) this.#liveness.forget(node);
    else {
      const isNew = !this.#liveness.isFresh(node, now);
      const version = lease.acquired === undefined ? undefined : lease.version;
      this.#liveness.observe(node, version, now, longerWaitMs(lease.seconds));
      if (isNew) changed();
    }
  }

  /** The cluster got its first address, or lost its last one. */
  setActive(isActive: boolean): void {
    if (isActive === this.#isActive) return;
    this.#isActive = isActive;
    // Until now renewals were far between.
    this.#liveness.resume(this.#now());
    this.#due.ring();
    this.#expiry.ring();
  }

  /** Keeps the addresses without the API server, where that is safe. Comes before {@link isOpen} and {@link lifetime}. */
  hold(): void {
    this.#fence.hold(this.#now());
  }

  /** Whether the node may have addresses. */
  get isOpen(): boolean {
    return this.#fence.isOpen(this.#now());
  }

  /** Seconds that addresses may live in the kernel from now on. @param addresses how many are refreshed together. */
  lifetime(addresses: number): number {
    return this.#fence.lifetime(this.#now(), addresses);
  }

  /**
   * Whether what is known of other agents is as new as a renewal by which this node has addresses: no other one can have
   * given its Lease back since.
   */
  get isCurrent(): boolean {
    return this.#isCurrentAt(this.#now());
  }

  /** The agents that may take addresses. */
  get admitted(): ReadonlySet<string> {
    const members = this.#options.view().members();
    return new Set([...members.keys()].filter((node) => isAdmitted(node, members)));
  }

  /** Whether another agent renews its Lease. One that does not may keep what it has, until its Lease is given back. */
  isFresh(node: string): boolean {
    return this.#liveness.isFresh(node, this.#now());
  }

  /** Renews the Lease at once where it does not say what is so now. */
  reportSoon(): void {
    if (encodeReport(this.#report()) !== this.#lease.writtenReport) this.#due.ring();
  }

  /** Renews the Lease at once. */
  renewSoon(): void {
    this.#due.ring();
  }

  /**
   * Keeps the Lease until the signal aborts. Without the port of heartbeats nothing is held without the API server, and
   * nothing else is lost.
   */
  async run(signal: AbortSignal): Promise<void> {
    await this.#consent.open().catch((error: unknown) => {
      const message = 'cannot listen for heartbeats of other agents';
      this.#options.context.log.warn({ err: error, reason: 'NoHeartbeats' }, message);
    });
    const stop = (): void => {
      this.#due.ring();
      this.#expiry.ring();
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      await Promise.all([this.#keep(signal), this.#ask(signal), this.#giveBackExpired(signal)]);
    } finally {
      signal.removeEventListener('abort', stop);
      this.#consent.close();
    }
  }

  /** Gives the Lease back, which is not renewed from now on. @throws what the API server answers. */
  async giveBack(): Promise<void> {
    this.#isStopped = true;
    await this.#lease.giveBack(encodeReport(this.#report()));
  }

  /** Whether no other agent can have taken addresses: the Lease names none, as it is written and as it was seen. */
  get isAlone(): boolean {
    return !this.#fence.hasVoters;
  }

  /** Nothing is renewed from now on. */
  stopRenewing(): void {
    this.#isStopped = true;
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.context;
    while (!signal.aborted && !this.#isStopped) {
      const started = clock.monotonic();
      await this.#renew();
      this.#options.changed();
      await this.#due.sleep(started + (this.#isActive ? renewEveryMs : idleRenewMs) - clock.monotonic());
      await clock.sleep(this.#lease.delay, signal);
    }
  }

  async #renew(): Promise<void> {
    const { context, nodeName, beforeRenewal } = this.#options;
    // Others take over from an agent that does not see them.
    if (this.#blindSince !== undefined && this.#now() - this.#blindSince > watchGapMs) return;
    await beforeRenewal();
    const report = this.#report();
    const renewal = this.#fence.renewing(report.voters.keys(), this.#now());
    try {
      const addresses = new Set(this.#options.addresses()).size;
      const version = await this.#lease.renew(encodeReport(report), leaseSecondsFor(addresses));
      if (version !== this.#seenVersion) this.#blindSince ??= this.#now();
      this.#unseen.set(version, { renewal, leaseSeconds: this.#lease.seconds });
      this.#count();
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

  /** Counts a renewal that is written and seen, in either order. */
  #count(): void {
    const seen = this.#unseen.get(this.#seenVersion);
    if (seen === undefined) return;
    this.#fence.renewed(seen.renewal, seen.leaseSeconds);
    for (const [version, { renewal }] of this.#unseen) {
      if (renewal.sentAt <= seen.renewal.sentAt) this.#unseen.delete(version);
    }
  }

  #isCurrentAt(now: number): boolean {
    return this.#fence.isOpen(now) && !this.#fence.hasLostAPI(now);
  }

  #report(): AgentReport {
    const { nodeName, report, view } = this.#options;
    return { ...report(), voters: votersOf(nodeName, view().members()) };
  }

  /** Others take over when the Lease of an agent that has died was given back: the first agent that sees it does so. */
  async #giveBackExpired(signal: AbortSignal): Promise<void> {
    const { context, nodeName, view } = this.#options;
    while (!signal.aborted) {
      const members = view().members();
      const isAlive = (node: string): boolean => this.#liveness.isAlive(node, this.#now());
      let hasFailed = false;
      for (const node of this.#isActive ? expiredMembers(nodeName, members, isAlive) : []) {
        // Asked for each: the one before has taken time.
        if (!this.isCurrent || this.#isStopped || isAlive(node)) continue;
        try {
          const isDone = await this.#lease.giveBackOf(node, members.get(node)?.version ?? '');
          if (isDone) context.log.info({ node }, 'the agent of a node has died: its addresses move');
          else hasFailed = true;
        } catch (error) {
          hasFailed = true;
          context.log.warn({ node, err: error }, 'cannot give the Lease of an agent back that has died');
        }
      }
      const now = this.#now();
      const next = Math.max(1, this.#liveness.nextEnd(now) - now);
      const longest = !this.#isActive
        ? idleRenewMs
        : hasFailed || !this.isCurrent
          ? giveBackAgainMs
          : takeOverAfterMs;
      await this.#expiry.sleep(Math.min(next, longest));
    }
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.context;
    while (!signal.aborted) {
      await clock.sleep(askEveryMs, signal);
      if (this.#isActive) this.#consent.ask();
    }
  }

  #now(): number {
    return this.#options.context.clock.monotonic();
  }
}
