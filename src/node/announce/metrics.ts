import { Counter, Gauge } from 'prom-client';
import type { AnnouncementRefusal } from '../../network/announcing/announcement-plan.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { BGPSessionStatus } from './bgp-session.ts';

/** The metrics of one node, when they are scraped. */
export interface NodeAnnouncing {
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
