import { Counter, Gauge } from 'prom-client';
import type { AnnouncementRefusal } from '../../network/announcing/announcement-plan.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { BGPSessionStatus } from './bgp-session.ts';
import { type Clock, Wakeup } from '../../client/clock.ts';
import { errorWord } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import type { Host } from '../../host/host.ts';
import { AnnouncingAgent, collectMs } from '../../network/announcing/agent.ts';
import { type AgentAction, type AgentEvent, internalAddresses } from '../../network/announcing/agent-io.ts';
import type { LeaseTimes } from '../../network/announcing/fence.ts';
import { ownerOfMac } from '../../network/announcing/agent-report.ts';
import { isPooled } from '../../network/announcing/assigned-addresses.ts';
import { parseStrictAddress } from '../../objects/address.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { BGPPeer } from '../../objects/types/servicenet.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { BGPAgent } from './bgp.ts';
import { Layer2Announcer, type Layer2Options } from './layer2/announcer.ts';
import { Heartbeats, LeaseWriter } from './lease-io.ts';
import { AnnouncingInformers } from './view.ts';

interface AnnounceAgentOptions {
  /** Its informers are to see the Leases of `announceSelectors` alone, in the namespace of the Leases. */
  readonly context: Pick<ControllerContext, 'informers' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly leases: ResourceClient<Lease>;
  readonly bgpPeers: ResourceClient<BGPPeer>;
  /** The namespace of agents' Leases. */
  readonly leaseNamespace: string;
  readonly host: Host;
  /** Of the Node object. */
  readonly nodeName: string;
  /** The treatment of addresses while the API server answers no agent. */
  readonly onAPILoss: 'hold' | 'withdraw';
  /** Seconds that addresses stay after an orderly end which no other node can take over. */
  readonly restartGraceSeconds: number;
  readonly lease: LeaseTimes;
  /** The UDP port of heartbeats, the same on all nodes. */
  readonly heartbeatPort: number;
  readonly layer2?: Pick<Partial<Layer2Options>, 'on' | 'arping'>;
  /** Whether the addresses of EgressIPs are announced, too. Default false. */
  readonly egress?: boolean;
  /** Whether connections go on being forwarded while the agent does not run: then BGP peers keep its routes. Default true. */
  readonly forwardingOutlives?: boolean;
}

/**
 * Announces addresses of LoadBalancer Services from one node: what surrounds {@link AnnouncingAgent}. Each of its actions
 * is a request, a datagram or a change of the kernel here, and what came of it an event.
 */
export class AnnounceAgent implements Runnable {
  readonly #options: AnnounceAgentOptions;
  readonly #clock: Clock;
  readonly #agent: AnnouncingAgent;
  readonly #informers: AnnouncingInformers;
  readonly #lease: LeaseWriter;
  readonly #heartbeats: Heartbeats;
  readonly #layer2: Layer2Announcer;
  readonly #bgp: BGPAgent;
  /** Wakes when the deadline of the agent has come nearer. */
  readonly #wakeup: Wakeup;
  /** When the sleep ends, monotonic. */
  #sleepsUntilMs = Number.NEGATIVE_INFINITY;
  #isRunning = false;
  #hasEnded = false;
  #isViewDue = false;
  #failure: { readonly error: unknown } | undefined;
  /** Why the last renewal failed; empty if it did not. */
  #renewalError = '';

  constructor(options: AnnounceAgentOptions) {
    const { bgpPeers, context, host, layer2 = {}, nodeName, onAPILoss, restartGraceSeconds, lease } = options;
    const { clock, informers, log, metrics } = context;
    this.#options = options;
    this.#clock = clock;
    this.#wakeup = new Wakeup(clock);
    const agent = new AnnouncingAgent({ node: nodeName, onAPILoss, restartGraceSeconds, lease });
    const followed = new AnnouncingInformers(informers, options.egress ?? false);
    this.#agent = agent;
    this.#informers = followed;
    this.#lease = new LeaseWriter(options.leases, options.leaseNamespace, nodeName, clock);
    this.#heartbeats = new Heartbeats(host, nodeName, options.heartbeatPort, log);
    this.#layer2 = new Layer2Announcer({
      ...{ host, clock, log, on: layer2.on ?? 'macvlan', arping: layer2.arping ?? false },
      lifetime: (addresses, address) => agent.lifetimeSeconds(addresses, clock.monotonic(), address),
      ownerOfMac: (mac, address) => ownerOfMac(agent.reports, mac, address),
      isPooled: (address) => {
        const parsed = parseStrictAddress(address);
        return parsed !== undefined && isPooled(parsed, followed.view.pools);
      },
      isNodeAddress: (address) =>
        [...followed.view.nodes.values()].some((node) => internalAddresses(node).includes(address)),
      isAgents: (address) => agent.isAgents(address, clock.monotonic()),
    });
    this.#bgp = new BGPAgent({
      ...{ context, host, nodeName, client: bgpPeers },
      forwardingOutlives: options.forwardingOutlives ?? true,
      failed: (peer, reason) => AnnounceMetrics.of(metrics).sessionFailed(nodeName, peer, reason),
      changed: () => this.#hear(this.#sessions()),
    });
    // Last: caches that are full already report their objects at once.
    followed.follow({
      changed: () => this.#viewSoon(),
      leaseSeen: (node, lease) => this.#hear({ on: 'lease', node, lease }),
    });
  }

  /**
   * Announces until the signal aborts; then other nodes take over, and addresses that none can announce stay for
   * `restartGraceSeconds`. Without the port of heartbeats nothing is held without the API server, and nothing else is lost.
   *
   * @throws the system's error where there is no `ip`.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (!(await this.#informers.synced(signal))) return;
    await this.#layer2.open();
    const { context, nodeName } = this.#options;
    const stopped = new AbortController();
    const leave = (): void => this.#hear({ on: 'leave' });
    signal.addEventListener('abort', leave, { once: true });
    const unfollow = AnnounceMetrics.of(context.metrics).follow(nodeName, () => ({
      ...{ announced: this.#layer2.announced, refused: this.#layer2.refused },
      sessions: this.#bgp.statuses,
    }));
    const listening = this.#listen();
    const routing = this.#bgp
      .run(AbortSignal.any([signal, stopped.signal]))
      .catch((error: unknown) => this.#fail(error));
    try {
      this.#isRunning = true;
      this.#hear({ on: 'view', view: this.#informers.view });
      if (signal.aborted) leave();
      while (!this.#hasEnded) {
        this.#sleepsUntilMs = this.#agent.deadlineMs;
        await this.#wakeup.sleep(this.#sleepsUntilMs - this.#clock.monotonic());
        if (this.#failure !== undefined) throw this.#failure.error;
        this.#hear(this.#kernel());
        this.#hear(this.#sessions());
        this.#hear({ on: 'tick' });
      }
    } finally {
      this.#isRunning = false;
      signal.removeEventListener('abort', leave);
      stopped.abort();
      await Promise.all([listening, routing]);
      this.#heartbeats.close();
      unfollow();
    }
  }

  #hear(event: AgentEvent): void {
    for (const action of this.#agent.handle(event, this.#clock.monotonic())) {
      this.#carryOut(action).then(
        (result) => {
          if (result === undefined) return;
          if (result.on === 'looked' || result.on === 'announced' || result.on === 'stayed') {
            this.#hear(this.#kernel());
          }
          this.#hear(result);
        },
        (error: unknown) => this.#fail(error),
      );
    }
    if (this.#agent.deadlineMs < this.#sleepsUntilMs) this.#wakeup.wake();
  }

  /** @returns what came of it, once it has ended. @throws what ends the agent. */
  async #carryOut(action: AgentAction): Promise<AgentEvent | undefined> {
    const { log } = this.#options.context;
    switch (action.do) {
      case 'look':
        await this.#tryLayer2(() => this.#layer2.look());
        return { on: 'looked' };
      case 'announce': {
        const { addresses, standbyInterfaces, leaving } = action.announcement;
        const { view } = this.#informers;
        this.#layer2.retain((address) => view.addresses.has(address));
        await this.#tryLayer2(() => this.#layer2.announce(addresses, { standbyInterfaces, leaving }));
        return { on: 'announced' };
      }
      case 'renew':
        return this.#renew(action.report, action.leaseSeconds);
      case 'releaseOwn':
        return this.#releaseOwn(action.report);
      case 'release':
        return this.#release(action.node, action.version);
      case 'ask':
        this.#heartbeats.ask(action.addresses, action.askedAtMs, action.to);
        return undefined;
      case 'consent':
        this.#heartbeats.consent(action.ticket, action.except, action.to);
        return undefined;
      case 'routes': {
        const { mayAnnounce, others } = action;
        this.#bgp.follow({ view: this.#informers.view, mayAnnounce, others });
        return undefined;
      }
      case 'log':
        log.info(action.fields, action.message);
        return undefined;
      case 'stay':
        await this.#layer2.leave(this.#layer2.announced, action.seconds);
        return { on: 'stayed' };
      case 'end':
        await this.#end(action.addresses, action.seconds);
        return undefined;
    }
  }

  async #tryLayer2(change: () => Promise<void>): Promise<void> {
    try {
      await change();
    } catch (error) {
      const { log } = this.#options.context;
      log.warn({ err: error, reason: 'AnnounceFailed' }, 'cannot announce by layer 2, will retry');
    }
  }

  async #renew(report: string, leaseSeconds: number): Promise<AgentEvent> {
    const { context, nodeName: node } = this.#options;
    try {
      const written = await this.#lease.renew(report, leaseSeconds);
      if (this.#renewalError !== '') context.log.info({ node }, 'the Lease is renewed again');
      this.#renewalError = '';
      return { on: 'renewed', ...written };
    } catch (error) {
      const word = errorWord(error);
      if (word !== this.#renewalError) {
        context.log.warn({ node, err: error, reason: 'LeaseNotRenewed' }, 'cannot renew the Lease');
      }
      this.#renewalError = word;
      return { on: 'renewalFailed' };
    }
  }

  async #releaseOwn(report: string): Promise<AgentEvent> {
    const { context, nodeName: node } = this.#options;
    try {
      await this.#lease.release(report);
      return { on: 'released', node, isDone: true };
    } catch (error) {
      context.log.warn({ err: error }, 'cannot give the Lease back');
      return { on: 'released', node, isDone: false };
    }
  }

  async #release(node: string, version: string): Promise<AgentEvent> {
    const { log } = this.#options.context;
    try {
      const isDone = await this.#lease.releaseOf(node, version);
      if (isDone) log.info({ node }, 'the agent of a node has died: its addresses move');
      return { on: 'released', node, isDone };
    } catch (error) {
      log.warn({ node, err: error }, 'cannot give the Lease of an agent back that has died');
      return { on: 'released', node, isDone: false };
    }
  }

  async #end(addresses: ReadonlySet<string>, seconds: number): Promise<void> {
    await this.#layer2.leave(addresses, seconds);
    if (addresses.size > 0) {
      this.#options.context.log.info(
        { addresses: addresses.size, seconds },
        'no other node can announce these addresses: they stay for a restart',
      );
    }
    this.#hasEnded = true;
    this.#wakeup.wake();
  }

  async #listen(): Promise<void> {
    const { context, nodeName } = this.#options;
    const own = this.#informers.view.nodes.get(nodeName);
    if (own === undefined) return;
    try {
      await this.#heartbeats.open(internalAddresses(own), {
        asked: (question, from) => this.#hear({ on: 'asked', ...question, from }),
        consented: (consent, from) => this.#hear({ on: 'consented', ...consent, from }),
      });
    } catch (error) {
      const message = 'cannot listen for heartbeats of other agents';
      context.log.warn({ err: error, reason: 'NoHeartbeats' }, message);
    }
  }

  /** Tells the agent of the objects; changes that come together at once. */
  #viewSoon(): void {
    if (!this.#isRunning || this.#isViewDue) return;
    this.#isViewDue = true;
    this.#clock.after(collectMs, () => {
      this.#isViewDue = false;
      if (this.#isRunning) this.#hear({ on: 'view', view: this.#informers.view });
    });
  }

  #kernel(): AgentEvent {
    const { confirmed, nextDueMs, placement, refused } = this.#layer2;
    return {
      on: 'kernel',
      kernel: {
        ...{ announced: placement, confirmed, refused, announceAgainAtMs: nextDueMs },
        interfaces: this.#layer2.interfaces(this.#informers.view.namedInterfaces),
      },
    };
  }

  #sessions(): AgentEvent {
    const established = this.#bgp.statuses.filter(({ state }) => state === 'established');
    return { on: 'sessions', established: established.map(({ peer }) => peer) };
  }

  /** Ends {@link run} with an error. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wakeup.wake();
  }
}

/** The metrics of one node, when they are scraped. */
interface NodeAnnouncing {
  /** By layer 2. */
  readonly announced: ReadonlySet<string>;
  readonly refused: readonly AnnouncementRefusal[];
  readonly sessions: readonly BGPSessionStatus[];
}

/** Metrics of announced addresses. One object for all agents of a process, labelled by node. */
export class AnnounceMetrics {
  static readonly #ofProcess = new WeakMap<Metrics, AnnounceMetrics>();

  readonly #announced: Gauge<'node'>;
  readonly #refused: Gauge<'node' | 'reason'>;
  readonly #sessionUp: Gauge<'node' | 'peer'>;
  readonly #advertised: Gauge<'node' | 'peer'>;
  readonly #received: Gauge<'node' | 'peer'>;
  readonly #failures: Counter<'node' | 'peer' | 'reason'>;
  readonly #nodes = new Map<string, () => NodeAnnouncing>();

  private constructor(metrics: Metrics) {
    const registers = [metrics.registry];
    const ofPeer = { labelNames: ['node', 'peer'] as const, registers };
    this.#announced = new Gauge({
      name: 'servicenet_layer2_announced_addresses',
      help: 'Addresses that a node announces by ARP and NDP.',
      labelNames: ['node'],
      registers,
    });
    this.#refused = new Gauge({
      name: 'servicenet_layer2_refused_addresses',
      help: 'Addresses that a node does not announce by ARP and NDP since something else has them, by reason.',
      labelNames: ['node', 'reason'],
      registers,
    });
    this.#sessionUp = new Gauge({
      name: 'servicenet_bgp_session_up',
      help: '1 while the BGP session of a node with a BGPPeer is established.',
      ...ofPeer,
    });
    this.#advertised = new Gauge({
      name: 'servicenet_bgp_advertised_routes',
      help: 'Routes that the peer of a BGP session has been sent.',
      ...ofPeer,
    });
    this.#received = new Gauge({
      name: 'servicenet_bgp_received_routes',
      help: 'Announcements of routes in a BGP session, all ignored.',
      ...ofPeer,
    });
    this.#failures = new Counter({
      name: 'servicenet_bgp_session_failures_total',
      help: 'BGP sessions that ended or did not come about, by reason.',
      labelNames: ['node', 'peer', 'reason'],
      registers,
    });
    metrics.beforeScrape(() => this.#refresh());
  }

  static of(metrics: Metrics): AnnounceMetrics {
    const present = AnnounceMetrics.#ofProcess.get(metrics) ?? new AnnounceMetrics(metrics);
    AnnounceMetrics.#ofProcess.set(metrics, present);
    return present;
  }

  /** @returns ends it: the node's series go. */
  follow(node: string, announcing: () => NodeAnnouncing): () => void {
    this.#nodes.set(node, announcing);
    return () => void this.#nodes.delete(node);
  }

  sessionFailed(node: string, peer: string, reason: string): void {
    this.#failures.inc({ node, peer, reason });
  }

  #refresh(): void {
    const gauges = [this.#announced, this.#refused, this.#sessionUp, this.#advertised, this.#received];
    for (const gauge of gauges) gauge.reset();
    for (const [node, announcing] of this.#nodes) {
      const { announced, refused, sessions } = announcing();
      this.#announced.set({ node }, announced.size);
      for (const { reason } of refused) this.#refused.inc({ node, reason });
      for (const { peer, state, advertised, routesReceived } of sessions) {
        this.#sessionUp.set({ node, peer }, state === 'established' ? 1 : 0);
        this.#advertised.set({ node, peer }, advertised);
        this.#received.set({ node, peer }, routesReceived);
      }
    }
  }
}
