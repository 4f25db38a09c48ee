import {
  type AddressToAnnounce,
  type AgentAction,
  type AgentEvent,
  type AnnouncingView,
  emptyKernel,
  emptyView,
  internalAddresses,
  type KernelState,
} from './agent-io.ts';
import { AgentLeaving, LeaseRenewer } from './agent-lease.ts';
import {
  type AgentReport,
  type AnnouncerLease,
  decodeReport,
  encodeReport,
  type NodeReport,
} from './agent-report.ts';
import { askEveryMs, type LeaseTimes, longerWaitMs, takeOverAfterMs } from './fence.ts';
import { SoleAddresses } from './handover.ts';
import { Layer2Ownership, otherAnnouncers, type Situation } from './layer2-ownership.ts';
import { expiredMembers, isAdmitted, Liveness, type Member, ownerOf, votersOf } from './membership.ts';

export interface AnnouncingAgentOptions {
  /** The name of the Node object. */
  readonly node: string;
  /** The treatment of addresses while the API server answers no agent. */
  readonly onAPILoss: 'hold' | 'withdraw';
  /** Seconds that addresses stay after an orderly end which no other node can take over. */
  readonly restartGraceSeconds: number;
  /** Of the grace, no more than `restartGraceSeconds` counts. */
  readonly lease: LeaseTimes;
}

/** A Lease that was not released. */
interface HeldLease extends Member {
  /** `metadata.resourceVersion`. */
  readonly version: string;
}

/** Milliseconds after the first address, in which the agents hear of each other before they divide it. */
const settleMs = 300;

/** Milliseconds between two looks, at least. */
const minPauseMs = 50;

/** Milliseconds between two syncs while there is no address in the cluster. */
const idleMs = 10_000;

/** Milliseconds in which changes are collected. */
export const collectMs = 20;

/** Milliseconds between two attempts to release the Lease of an agent that has died. */
const releaseAgainMs = 200;

const never = Number.POSITIVE_INFINITY;

/**
 * The protocol by which one node announces addresses of LoadBalancer Services. The agents of all nodes plan the same from the
 * same objects, and agree which agents live by the Leases that each renews; see `fence.ts` for why no address has two
 * owners.
 *
 * - Every 0.6 s (`--lease-renew-interval`): renew the Lease, then refresh the lifetimes of the addresses in the kernel.
 * - On a planned move the new owner announces first, and says so in its Lease; then the former one withdraws it.
 * - An agent is out when its Lease was released, by itself or by the first agent that sees that it has died: so all
 *   agents see the same.
 *
 * It does no I/O. Events say what is known; `tick` begins what is due. A process that was paused hears events and ticks late,
 * in any order.
 */
export class AnnouncingAgent {
  readonly #options: AnnouncingAgentOptions;
  readonly #renewer: LeaseRenewer;
  readonly #liveness = new Liveness(takeOverAfterMs);
  readonly #ownership: Layer2Ownership;
  #view: AnnouncingView = emptyView;
  #hasBegun = false;
  #kernel: KernelState = emptyKernel;
  #sessions: readonly string[] = [];
  /** The Leases as they were last seen, what they report, and those that were not released; by node. */
  readonly #leases = new Map<string, AnnouncerLease>();
  readonly #reports = new Map<string, AgentReport>();
  readonly #held = new Map<string, HeldLease>();
  /** Another one after each change of what is announced, or by whom. */
  #version = 0;

  /** The last addresses for layer 2. */
  #wanted: readonly AddressToAnnounce[] = [];
  readonly #sole: SoleAddresses;
  #hasPlanned = false;
  /** When the cluster got its first address, or EgressIP; undefined while it has none. */
  #activeSinceMs: number | undefined;
  #isActive = false;
  #syncAtMs = never;
  /** Something has changed since the sync that runs has begun. */
  #isSyncAgain = false;
  #isAnnouncing = false;
  #isLooking = false;
  /** When the address list of the kernel was last read. */
  #readAtMs = Number.NEGATIVE_INFINITY;

  /** Whether BGP may announce; undefined until the first renewal. Changes only with `--on-api-loss=withdraw`. */
  #mayRoute: boolean | undefined;
  /** BGP has not heard of the last change. */
  #isRoutesDue = false;

  #askAtMs = never;
  #expireAtMs = never;
  /** Agents that have died, and whose Leases are still to be released; undefined: none is looked for now. */
  #expired: readonly string[] | undefined;
  #hasFailedRelease = false;
  #isExpiryAgain = false;

  #isToLeave = false;
  #leaving: AgentLeaving | undefined;
  /** A step of the end has not ended yet. */
  #isLeaveBusy = false;
  #leaveAtMs = never;
  #hasEnded = false;

  constructor(options: AnnouncingAgentOptions) {
    const { node, onAPILoss, lease, restartGraceSeconds } = options;
    this.#options = options;
    const graceSeconds = Math.min(lease.graceSeconds, restartGraceSeconds);
    this.#sole = new SoleAddresses(graceSeconds);
    this.#renewer = new LeaseRenewer(onAPILoss === 'hold', { ...lease, graceSeconds });
    this.#ownership = new Layer2Ownership(node);
    if (onAPILoss === 'hold') this.#mayRoute = true;
  }

  /** What has happened, in milliseconds of a monotonic clock. @returns what is to be done. */
  handle(event: AgentEvent, nowMs: number): readonly AgentAction[] {
    if (this.#hasEnded) return [];
    switch (event.on) {
      case 'view':
        this.#see(event.view, nowMs);
        return [];
      case 'lease':
        return this.#leaseSeen(event.node, event.lease, nowMs);
      case 'kernel':
        this.#kernel = event.kernel;
        return [];
      case 'sessions':
        if (event.established.join() !== this.#sessions.join()) this.#renewer.renewSoon(nowMs);
        this.#sessions = event.established;
        return [];
      case 'looked':
        this.#isLooking = false;
        this.#readAtMs = nowMs;
        return [];
      case 'announced':
        this.#isAnnouncing = false;
        this.#sole.announced();
        this.#synced(nowMs);
        return [];
      case 'stayed':
        this.#isLeaveBusy = false;
        this.#leaveAtMs = nowMs;
        return [];
      case 'renewed':
        this.#renewer.renewed(event.version, event.leaseSeconds, nowMs);
        this.#changed(nowMs);
        return [];
      case 'renewalFailed':
        this.#renewer.failed(nowMs);
        this.#changed(nowMs);
        return [];
      case 'released':
        return this.#released(event.node, event.isDone, nowMs);
      case 'asked':
        return this.#answer(event, nowMs);
      case 'consented':
        if (!this.#isFrom(event.node, event.from)) return [];
        this.#withdraw(event.except);
        this.#renewer.fence.consented(event.node, event.askedAtMs, nowMs);
        this.#changed(nowMs);
        return [];
      case 'tick':
        return this.#hasBegun ? this.#tick(nowMs) : [];
      case 'leave':
        this.#isToLeave = true;
        return [];
    }
  }

  /** When `tick` is due next; infinite: not before another event. */
  get deadlineMs(): number {
    if (!this.#hasBegun || this.#hasEnded) return never;
    return Math.min(
      this.#isLooking ? never : this.#renewer.dueAtMs,
      this.#mayAnnounce && !this.#isLooking ? this.#syncAtMs : never,
      this.#isRoutesDue && this.#mayRoute !== undefined ? Number.NEGATIVE_INFINITY : never,
      this.#expired === undefined ? this.#expireAtMs : never,
      this.#askAtMs,
      this.#leaveDueAtMs,
    );
  }

  /**
   * Seconds that an address, one of so many, may live in the kernel from now on; 0: it is not to be refreshed, nor added. Asked
   * for at the moment at which the kernel gets it: an `announce` may take long.
   *
   * @param address default: any.
   */
  lifetimeSeconds(addresses: number, nowMs: number, address = ''): number {
    return this.#renewer.fence.lifetime(nowMs, addresses, this.#sole.has(address) ? address : undefined);
  }

  /** The last reports of all agents. */
  get reports(): Iterable<AgentReport> {
    return this.#reports.values();
  }

  /** Whether another agent has an address, or had it until a moment ago, and no agent refuses it. */
  isAgents(address: string, nowMs: number): boolean {
    const isFresh = (node: string): boolean => this.#liveness.isFresh(node, nowMs);
    const { node } = this.#options;
    return this.#ownership.isAgents({ node, reports: this.#reports, isFresh }, address, nowMs);
  }

  #tick(nowMs: number): readonly AgentAction[] {
    const actions: AgentAction[] = [];
    // Before renewals, which it ends.
    if (this.#leaveDueAtMs <= nowMs) this.#leave(actions, nowMs);
    if (this.#renewer.dueAtMs <= nowMs) this.#renew(actions, nowMs);
    if (this.#mayAnnounce && this.#syncAtMs <= nowMs) this.#sync(actions, nowMs);
    if (this.#expired === undefined && this.#expireAtMs <= nowMs) this.#expire(actions, nowMs);
    if (this.#askAtMs <= nowMs) this.#ask(actions, nowMs);
    if (this.#isRoutesDue && this.#mayRoute !== undefined) this.#updateRoutes(actions, this.#mayRoute, nowMs);
    return actions;
  }

  #see(view: AnnouncingView, nowMs: number): void {
    this.#view = view;
    this.#version++;
    this.#isRoutesDue = true;
    // The changes were collected before.
    this.#changed(nowMs, 0);
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#renewer.renewSoon(nowMs);
    this.#expireAtMs = nowMs;
  }

  #leaseSeen(node: string, lease: AnnouncerLease | undefined, nowMs: number): readonly AgentAction[] {
    const isNews = this.#store(node, lease);
    const actions: AgentAction[] = [];
    const kept = this.#ownership.leaseSeen(node, lease, this.#reports.get(node), nowMs);
    if (kept !== undefined) {
      actions.push({
        do: 'log',
        fields: { node, addresses: kept.addresses.length, seconds: kept.seconds },
        message:
          'the agent of a node has left addresses for its restart: no other one takes them for so long',
      });
    }
    if (node === this.#options.node) this.#ownLeaseSeen(lease?.version ?? '', nowMs);
    else if (lease === undefined) this.#liveness.forget(node);
    else {
      const isNew = !this.#liveness.isFresh(node, nowMs);
      const version = lease.acquired === undefined ? undefined : lease.version;
      this.#liveness.observe(node, version, nowMs, longerWaitMs(lease.seconds));
      if (isNew) this.#changed(nowMs);
    }
    if (isNews) {
      this.#version++;
      this.#isRoutesDue = true;
      this.#changed(nowMs);
    }
    return actions;
  }

  /** @returns whether the Lease says something new, and not only that it is renewed. */
  #store(node: string, lease: AnnouncerLease | undefined): boolean {
    const before = this.#leases.get(node);
    if (lease === undefined) {
      this.#leases.delete(node);
      this.#reports.delete(node);
      this.#held.delete(node);
      return true;
    }
    this.#leases.set(node, lease);
    const { acquired, reportText, version } = lease;
    const hasNewReport = before === undefined || before.reportText !== reportText;
    if (hasNewReport) this.#reports.set(node, decodeReport(reportText));
    const voters = this.#reports.get(node)?.voters ?? new Map<string, string>();
    if (acquired === undefined) this.#held.delete(node);
    else this.#held.set(node, { acquired, voters, version });
    return hasNewReport || before.acquired !== acquired;
  }

  #ownLeaseSeen(version: string, nowMs: number): void {
    const wasCurrent = this.#renewer.isCurrent(nowMs);
    const { isNew, wasGap } = this.#renewer.seen(version, nowMs);
    if (isNew && wasGap) this.#liveness.resume(nowMs);
    if (!isNew || wasCurrent || !this.#renewer.isCurrent(nowMs)) return;
    // Work that waited for this is done at once: on a busy machine a renewal is seen late.
    this.#changed(nowMs);
    this.#expireSoon(nowMs);
  }

  /** One change of layer 2 follows the other, and none comes once the agent is to end. */
  get #mayAnnounce(): boolean {
    return !this.#isAnnouncing && !this.#isToLeave;
  }

  /** There may be something to do. */
  #changed(nowMs: number, collectForMs = collectMs): void {
    if (this.#isAnnouncing) this.#isSyncAgain = true;
    else this.#syncAtMs = Math.min(this.#syncAtMs, nowMs + collectForMs);
    if (this.#leaving !== undefined) this.#leaveAtMs = nowMs;
  }

  /**
   * After a pause of the process the kernel may have dropped addresses, so that an old report would be wrong.
   *
   * @returns whether it is to be read first.
   */
  #isUnread(actions: AgentAction[], nowMs: number): boolean {
    if (nowMs - this.#readAtMs <= 3 * this.#options.lease.renewEveryMs) return false;
    if (!this.#isLooking) actions.push({ do: 'look' });
    this.#isLooking = true;
    return true;
  }

  #renew(actions: AgentAction[], nowMs: number): void {
    if (this.#renewer.isBlind(nowMs)) {
      this.#renewer.skip(nowMs);
      this.#changed(nowMs);
      return;
    }
    if (this.#isUnread(actions, nowMs)) return;
    const report = this.#agentReport();
    const text = encodeReport(report);
    const sole = new Set(report.kept?.addresses);
    const { size } = this.#addresses();
    const leaseSeconds = this.#renewer.renew(text, report.voters.keys(), sole, size, nowMs);
    actions.push({ do: 'renew', report: text, leaseSeconds });
  }

  /** Makes the announcements equal to the plan, or keeps them while there is no plan. */
  #sync(actions: AgentAction[], nowMs: number): void {
    if (this.#isUnread(actions, nowMs)) return;
    this.#syncAtMs = never;
    this.#isSyncAgain = false;
    this.#updateMayRoute(nowMs);
    const { addresses, isNeeded } = this.#view;
    this.#activeSinceMs = isNeeded ? (this.#activeSinceMs ?? nowMs) : undefined;
    const isIdle = this.#activeSinceMs === undefined && this.#kernel.announced.size === 0;
    this.#setActive(!isIdle, nowMs);
    if (isIdle) {
      // A new pool may have addresses of this node.
      this.#synced(nowMs);
      return;
    }
    const { fence } = this.#renewer;
    fence.hold(nowMs);
    const isSettled = this.#activeSinceMs !== undefined && nowMs >= this.#activeSinceMs + settleMs;
    if (isSettled && this.#renewer.isCurrent(nowMs)) {
      const situation = this.#situation(nowMs);
      const planned = this.#ownership.plan(situation, this.#version, nowMs);
      // Until it takes part again, what no other node can have stays.
      this.#wanted = situation.isAlive ? planned : [...planned, ...this.#staying(nowMs)];
      if (situation.isAlive) this.#sole.plan(this.#ownership.sole);
      this.#hasPlanned = true;
    } else if (!this.#hasPlanned) {
      // Addresses of a former process stay until the owners are known.
      this.#syncAtMs = nowMs + this.#untilChangeMs(nowMs) + collectMs;
      return;
    } else if (!fence.isOpen(nowMs)) this.#wanted = this.#staying(nowMs);
    else {
      const refused = new Set(this.#kernel.refused.map(({ address }) => address));
      this.#wanted = this.#wanted.filter(({ address }) => addresses.has(address) && !refused.has(address));
    }
    this.#sole.announcing();
    this.#isAnnouncing = true;
    this.#readAtMs = nowMs;
    const announcement = { addresses: this.#wanted, ...this.#ownership.surroundings };
    actions.push({ do: 'announce', announcement });
  }

  /** The addresses that stay although this node may have none. */
  #staying(nowMs: number): readonly AddressToAnnounce[] {
    const { announced } = this.#kernel;
    const mayStay = (address: string): boolean => this.lifetimeSeconds(announced.size, nowMs, address) > 0;
    return this.#sole.staying(this.#wanted, this.#view.addresses, announced, mayStay);
  }

  #synced(nowMs: number): void {
    this.#renewer.reportSoon(encodeReport(this.#agentReport()), nowMs);
    this.#syncAtMs = nowMs + collectMs + (this.#isSyncAgain ? 0 : this.#untilChangeMs(nowMs));
  }

  /** Milliseconds until something changes by time alone. */
  #untilChangeMs(nowMs: number): number {
    if (this.#activeSinceMs === undefined) return idleMs;
    const settlesInMs = this.#activeSinceMs + settleMs - nowMs;
    if (settlesInMs > 0) return settlesInMs;
    // Each renewal is followed by a look at the kernel, unless the API server is away.
    const dueInMs = Math.max(minPauseMs, this.#kernel.announceAgainAtMs - nowMs);
    return Math.min(1.5 * this.#options.lease.renewEveryMs, dueInMs);
  }

  #setActive(isActive: boolean, nowMs: number): void {
    if (isActive === this.#isActive) return;
    this.#isActive = isActive;
    // Until now renewals were far between.
    this.#liveness.resume(nowMs);
    this.#renewer.setActive(isActive, nowMs);
    this.#expireSoon(nowMs);
    this.#askAtMs = isActive ? nowMs + askEveryMs : never;
  }

  /** Without the API server routes go with `--on-api-loss=withdraw`, as addresses do. */
  #updateMayRoute(nowMs: number): void {
    const isOpen = this.#renewer.fence.isOpen(nowMs);
    if (this.#options.onAPILoss === 'hold' || isOpen === this.#mayRoute) return;
    // Announcements of a former process stay at routers until the first plan.
    if (!isOpen && this.#mayRoute === undefined) return;
    this.#mayRoute = isOpen;
    this.#isRoutesDue = true;
  }

  #updateRoutes(actions: AgentAction[], mayAnnounce: boolean, nowMs: number): void {
    this.#isRoutesDue = false;
    // At the end BGP closes its sessions by itself.
    if (this.#isToLeave) return;
    const isCordoned = this.#view.nodes.get(this.#options.node)?.spec.unschedulable === true;
    const others = isCordoned ? otherAnnouncers(this.#situation(nowMs)) : [];
    actions.push({ do: 'routes', mayAnnounce, others });
  }

  /** Others take over when the Lease of an agent that has died was released: the first agent that sees it does so. */
  #expire(actions: AgentAction[], nowMs: number): void {
    const isAlive = (node: string): boolean => this.#liveness.isAlive(node, nowMs);
    this.#expired = this.#isActive ? expiredMembers(this.#options.node, this.#members(), isAlive) : [];
    this.#hasFailedRelease = false;
    this.#releaseNext(actions, nowMs);
  }

  #releaseNext(actions: AgentAction[], nowMs: number): void {
    const mayRelease = this.#renewer.isCurrent(nowMs) && !this.#isToLeave;
    // Asked for each: the one before has taken time.
    const left = (this.#expired ?? []).filter((node) => mayRelease && !this.#liveness.isAlive(node, nowMs));
    const [node] = left;
    if (node !== undefined) {
      this.#expired = left.slice(1);
      actions.push({ do: 'release', node, version: this.#held.get(node)?.version ?? '' });
      return;
    }
    this.#expired = undefined;
    const isSoon = this.#hasFailedRelease || !this.#renewer.isCurrent(nowMs);
    const longestMs = !this.#isActive ? idleMs : isSoon ? releaseAgainMs : takeOverAfterMs;
    const nextMs = Math.max(1, this.#liveness.nextEnd(nowMs) - nowMs);
    this.#expireAtMs = this.#isExpiryAgain ? nowMs : nowMs + Math.min(nextMs, longestMs);
    this.#isExpiryAgain = false;
  }

  #expireSoon(nowMs: number): void {
    if (this.#expired !== undefined) this.#isExpiryAgain = true;
    else this.#expireAtMs = Math.min(this.#expireAtMs, nowMs);
  }

  #released(node: string, isDone: boolean, nowMs: number): readonly AgentAction[] {
    const actions: AgentAction[] = [];
    if (node === this.#options.node) {
      this.#leaving?.released(isDone);
      this.#isLeaveBusy = false;
      this.#leaveAtMs = nowMs;
    } else {
      if (!isDone) this.#hasFailedRelease = true;
      this.#releaseNext(actions, nowMs);
    }
    return actions;
  }

  /** Asks the others for their consent that this one holds its addresses, once the API server is lost. */
  #ask(actions: AgentAction[], nowMs: number): void {
    this.#askAtMs = nowMs + askEveryMs;
    const { fence } = this.#renewer;
    if (!fence.hasLostAPI(nowMs)) return;
    const addresses = [...this.#addresses()];
    for (const voter of fence.toAsk(nowMs)) {
      const node = this.#view.nodes.get(voter);
      const [to] = node === undefined ? [] : internalAddresses(node);
      if (to !== undefined) actions.push({ do: 'ask', to, addresses, askedAtMs: nowMs });
    }
    this.#changed(nowMs);
  }

  /**
   * Only an agent that has lost the API server too consents: it takes nothing over. Of two that have an address, in the
   * middle of a move, one keeps it.
   */
  #answer(
    { node, from, addresses, ticket }: Extract<AgentEvent, { readonly on: 'asked' }>,
    nowMs: number,
  ): readonly AgentAction[] {
    if (!this.#isFrom(node, from)) return [];
    if (!this.#renewer.fence.hasLostAPI(nowMs) || !this.#liveness.promise(node, nowMs)) return [];
    const own = this.#addresses();
    const common = addresses.filter((address) => own.has(address));
    const kept = common.filter(
      (address) => ownerOf(address, [this.#options.node, node]) === this.#options.node,
    );
    this.#withdraw(common.filter((address) => !kept.includes(address)));
    if (common.length > 0) this.#changed(nowMs);
    return [{ do: 'consent', to: from, ticket, except: kept }];
  }

  /** The receiver checks that a message came from an address of the node that it names. */
  #isFrom(name: string, from: string): boolean {
    const node = this.#view.nodes.get(name);
    return node !== undefined && internalAddresses(node).includes(from);
  }

  /** Another agent has these addresses, and keeps them. */
  #withdraw(addresses: readonly string[]): void {
    this.#wanted = this.#wanted.filter(({ address }) => !addresses.includes(address));
  }

  get #leaveDueAtMs(): number {
    if (!this.#isToLeave || this.#isAnnouncing || this.#isLeaveBusy) return never;
    return this.#leaving === undefined ? Number.NEGATIVE_INFINITY : this.#leaveAtMs;
  }

  #leave(actions: AgentAction[], nowMs: number): void {
    this.#renewer.stop();
    this.#leaving ??= new AgentLeaving(this.#options.restartGraceSeconds, nowMs);
    const situation = this.#situation(nowMs);
    const { fence, isWriting } = this.#renewer;
    const announcers = otherAnnouncers(situation);
    const step = this.#leaving.next(
      { ...situation, announcers, isAlone: !fence.hasVoters, isWriting },
      nowMs,
    );
    switch (step.do) {
      case 'wait':
        this.#leaveAtMs = step.untilMs;
        return;
      case 'release':
        this.#isLeaveBusy = true;
        actions.push({ do: 'releaseOwn', report: encodeReport(this.#agentReport()) });
        return;
      case 'stay':
        this.#isLeaveBusy = true;
        actions.push(step);
        return;
      case 'end':
        this.#hasEnded = true;
        actions.push(step);
    }
  }

  #situation(nowMs: number): Situation {
    const { node } = this.#options;
    const members = this.#members();
    const admitted = new Set([...members.keys()].filter((name) => isAdmitted(name, members)));
    return {
      ...{ node, view: this.#view, kernel: this.#kernel, report: this.#report(), reports: this.#reports },
      ...{ members: new Set(members.keys()), admitted },
      isAlive: this.#renewer.fence.isOpen(nowMs) && !this.#isToLeave && admitted.has(node),
      isFresh: (name) => this.#liveness.isFresh(name, nowMs),
    };
  }

  /** The agents of nodes in the API that have not released their Leases. */
  #members(): ReadonlyMap<string, HeldLease> {
    return new Map([...this.#held].filter(([node]) => this.#view.nodes.has(node)));
  }

  /** The addresses that this node has, or is about to have. */
  #addresses(): ReadonlySet<string> {
    return new Set([...this.#wanted.map(({ address }) => address), ...this.#kernel.announced.keys()]);
  }

  #report(): NodeReport {
    const { confirmed, interfaces, refused } = this.#kernel;
    const kept = this.#leaving === undefined ? this.#sole.kept : this.#leaving.kept;
    return { interfaces, sessions: this.#sessions, refused, announced: confirmed, kept };
  }

  #agentReport(): AgentReport {
    return { ...this.#report(), voters: votersOf(this.#options.node, this.#members()) };
  }
}
