import type { ResourceClient } from '../../client/resource-client.ts';
import type { Host } from '../../host/host.ts';
import type { KeptAddresses, NodeReport } from '../../network/announcing/agent-report.ts';
import { renewEveryMs } from '../../network/announcing/fence.ts';
import { ownerOfMac } from '../../network/announcing/agent-report.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { BGPPeer } from '../../objects/types/servicenet.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import type { AddressToAnnounce } from './view.ts';
import { Alarm } from '../../client/clock.ts';
import { AnnounceMetrics } from './metrics.ts';
import { AnnouncementView } from './view.ts';
import { BGPAgent } from './bgp.ts';
import { depart } from './share.ts';
import { Layer2Announcer, type Layer2Options } from './layer2/announcer.ts';
import { Layer2Share } from './share.ts';
import { LeaseKeeper } from './protocol.ts';

export interface AnnounceAgentOptions {
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
  readonly #share: Layer2Share;
  readonly #bgp: BGPAgent;
  /** The addresses that this agent leaves in the kernel at its end, by its Lease. */
  #left: KeptAddresses | undefined;
  /** Rings when there may be something to do. */
  readonly #changes: Alarm;
  /** When the cluster got its first address, or EgressIP, monotonic; undefined while it has none. */
  #activeSince: number | undefined;
  /** The last addresses for layer 2. */
  #wanted: readonly AddressToAnnounce[] = [];
  /** Whether BGP may announce; undefined until the first renewal. Changes only with `--on-api-loss=withdraw`. */
  #mayRoute: boolean | undefined;
  #isEnding = false;
  #hasPlanned = false;
  /** When the last sync began, monotonic. */
  #syncedAt = Number.NEGATIVE_INFINITY;

  constructor(options: AnnounceAgentOptions) {
    const { context, host, nodeName, layer2 = {}, onAPILoss } = options;
    if (onAPILoss === 'hold') this.#mayRoute = true;
    const { clock, informers, log } = context;
    this.#options = options;
    this.#changes = new Alarm(clock);
    this.#leases = new LeaseKeeper({
      ...options,
      view: () => this.#view,
      report: () => this.#report(),
      beforeRenewal: () => this.#lookAfterPause(),
      addresses: () => new Set([...this.#wanted.map(({ address }) => address), ...this.#layer2.announced]),
      released: (addresses) => {
        this.#wanted = this.#wanted.filter(({ address }) => !addresses.includes(address));
      },
      changed: () => this.#changes.ring(),
    });
    this.#share = new Layer2Share({
      ...{ context, nodeName, leases: this.#leases, view: () => this.#view, layer2: () => this.#layer2 },
      report: () => this.#report(),
      isEnding: () => this.#isEnding,
    });
    this.#layer2 = new Layer2Announcer({
      ...{ host, clock, log, on: layer2.on ?? 'macvlan', arping: layer2.arping ?? false },
      lifetime: (addresses) => this.#leases.lifetime(addresses),
      ownerOfMac: (mac, address) => ownerOfMac(this.#view.reports.values(), mac, address),
      isPooled: (address) => this.#view.isPooled(address),
      isNodeAddress: (address) => this.#view.nodeAddresses().has(address),
      isAgents: (address) => this.#share.isAgents(address),
    });
    this.#view = new AnnouncementView(informers, options.egress ?? false);
    this.#bgp = new BGPAgent({
      ...{ context, host, nodeName, view: () => this.#view, client: options.bgpPeers },
      forwardingOutlives: options.forwardingOutlives ?? true,
      others: () => this.#share.others(),
      mayAnnounce: () => this.#mayRoute,
      failed: (peer, reason) => AnnounceMetrics.of(context.metrics).sessionFailed(nodeName, peer, reason),
      changed: () => this.#leases.renewSoon(),
    });
    // Last: caches that are full already report their objects at once.
    this.#view.follow({
      changed: () => this.#planSoon(),
      leaseSeen: (node, lease) => {
        this.#share.leaseSeen(node, lease);
        this.#leases.leaseSeen(node, lease);
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
    const { clock } = this.#options.context;
    if (!(await this.#view.synced(signal))) return;
    await this.#layer2.open();
    const stopped = new AbortController();
    const stop = (): void => this.#changes.ring();
    signal.addEventListener('abort', stop, { once: true });
    const unfollow = AnnounceMetrics.of(this.#options.context.metrics).follow(this.#options.nodeName, () => ({
      ...{ announced: this.#layer2.announced, refused: this.#layer2.refused },
      sessions: this.#bgp.statuses,
    }));
    const running = Promise.all([this.#leases.run(stopped.signal), this.#bgp.run(signal)]);
    try {
      while (!signal.aborted) {
        await this.#sync();
        await this.#changes.sleep(this.#untilChange());
        // Changes that come together are planned at once.
        await clock.sleep(collectMs);
      }
      this.#isEnding = true;
      await depart({
        ...this.#options,
        ...{ view: this.#view, leases: this.#leases, layer2: this.#layer2, changes: this.#changes },
        announcers: () => this.#share.announcers(),
        say: (left) => {
          this.#left = left;
        },
      });
    } finally {
      signal.removeEventListener('abort', stop);
      stopped.abort();
      await running;
      unfollow();
    }
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

  /** Makes the announcements equal to the plan, or keeps them while there is no plan. */
  async #sync(): Promise<void> {
    const { clock, log } = this.#options.context;
    await this.#lookAfterPause();
    const now = clock.monotonic();
    this.#syncedAt = now;
    this.#updateMayRoute();
    const { addresses } = this.#view;
    if (!this.#view.isNeeded) this.#activeSince = undefined;
    else this.#activeSince ??= now;
    this.#leases.setActive(this.#activeSince !== undefined || this.#layer2.announced.size > 0);
    const isSettled = this.#activeSince !== undefined && now >= this.#activeSince + settleMs;
    if (this.#activeSince === undefined && this.#layer2.announced.size === 0) {
      // A new pool may have addresses of this node.
      this.#leases.reportSoon();
      return;
    }
    this.#leases.hold();
    if (isSettled && this.#leases.isCurrent) {
      this.#wanted = this.#share.plan();
      this.#hasPlanned = true;
      // Addresses of a former process stay until the owners are known.
    } else if (!this.#hasPlanned) return;
    else if (!this.#leases.isOpen) this.#wanted = [];
    else {
      const refused = new Set(this.#layer2.refused.map(({ address }) => address));
      this.#wanted = this.#wanted.filter(({ address }) => addresses.has(address) && !refused.has(address));
    }
    this.#layer2.retain((address) => addresses.has(address));
    try {
      await this.#layer2.announce(this.#wanted, this.#share.announceOptions);
    } catch (error) {
      log.warn({ err: error, reason: 'AnnounceFailed' }, 'cannot announce by layer 2, will retry');
    }
    this.#leases.reportSoon();
  }

  /** Without the API server routes go with `--on-api-loss=withdraw`, as addresses do. */
  #updateMayRoute(): void {
    const { isOpen } = this.#leases;
    if (this.#options.onAPILoss === 'hold' || isOpen === this.#mayRoute) return;
    // Announcements of a former process stay at routers until the first plan.
    if (!isOpen && this.#mayRoute === undefined) return;
    this.#mayRoute = isOpen;
    this.#bgp.planSoon();
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
      announced: this.#layer2.confirmed,
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
}
