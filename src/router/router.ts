import type { Logger } from 'pino';
import type { Clock, Random } from '../client/clock.ts';
import type { Informers } from '../client/informers/informer.ts';
import type { Host } from '../host/host.ts';
import type { RefusedRequest } from '../network/flows/tracker.ts';
import { RoutingTable } from '../network/http/routing-table.ts';
import type { IngressSelection } from '../network/http/ingress.ts';
import type { RouteClaimOptions } from '../network/http/route-claims.ts';
import type { ObjectKey } from '../objects/meta.ts';
import type { HealthCheck } from '../telemetry/health.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { Certificates } from './certificates.ts';
import { BackendConnections, TargetChoice } from './backends.ts';
import { ClientLimits } from './client-limits.ts';
import { Forward } from './forward.ts';
import { GatewayListeners } from './gateway/listeners.ts';
import { GatewayView } from './gateway/view.ts';
import { ingressDecisions } from './decisions.ts';
import { Mirrors } from './gateway/mirrors.ts';
import type { ForwardedPolicy } from './headers.ts';
import { httpListener, httpsListener, type RouterListener } from './listeners.ts';
import { RouterMetrics } from './router-metrics.ts';
import { RouterView } from './router-view.ts';
import { clientGraceMs, RouterServing } from './serving.ts';
import { Tunnels } from './tunnels.ts';

/** What a router serves, and how. */
export interface RoutingOptions {
  readonly selection: IngressSelection;
  /** Whether Routes are served. */
  readonly routes: boolean;
  /** Whether Gateways of our classes are served. */
  readonly gateways: boolean;
  /** Who has which host, among Ingresses and Routes. */
  readonly claims: RouteClaimOptions;
  /** The Secret of the certificate for hosts that have none: `namespace/name`. */
  readonly defaultCertificate: ObjectKey | undefined;
  readonly forwardedPolicy: ForwardedPolicy;
  /** Requests of one client at a time; 0: any number. */
  readonly maxClientRequests: number;
  /** Protocols that connections may change to, in lower case. */
  readonly upgrades: readonly string[];
  readonly accessLog: boolean;
  /** Milliseconds to connect to a backend. */
  readonly connectTimeoutMs: number;
  /** Milliseconds that a backend may be silent; clients get 5 s more. */
  readonly backendTimeoutMs: number;
}

export interface RouterOptions {
  /** The constructor makes the informers; the caller starts them. */
  readonly informers: Informers;
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly routing: RoutingOptions;
  readonly addresses: readonly string[];
  /** 0: any free one. */
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Is told each request that the router itself refuses. */
  readonly onRefused?: (request: RefusedRequest) => void;
}

/** Where a router answers. */
export interface RouterPorts {
  readonly http: number;
  readonly https: number;
}

/** Milliseconds that a start waits until Gateways are served. */
const gatewaysWaitMs = 5000;
/** Milliseconds between two checks whether a drain is over. */
const drainStepMs = 20;

/** The router of a cluster: carries requests to the endpoints of Services, as Ingresses and Routes say. */
export class Router {
  readonly view: RouterView;
  readonly table: RoutingTable;
  /** The Gateways that are served; undefined where none are. */
  readonly gateways: GatewayView | undefined;
  readonly #options: RouterOptions;
  readonly #connections: BackendConnections;
  readonly #tunnels: Tunnels;
  readonly #serving: RouterServing;
  readonly #limits: ClientLimits;
  readonly #certificates = new Certificates();
  readonly #routerMetrics: RouterMetrics;
  readonly #listeners: RouterListener[] = [];
  readonly #gatewayListeners: GatewayListeners;
  #planning: Promise<void> | undefined;
  readonly #stopping = new AbortController();
  #isServing = false;

  constructor(options: RouterOptions) {
    const { informers, host, clock, random, log, metrics, routing } = options;
    const { connectTimeoutMs, backendTimeoutMs, accessLog, forwardedPolicy, upgrades } = routing;
    this.#options = options;
    this.#routerMetrics = new RouterMetrics(metrics);
    this.table = new RoutingTable(routing.claims);
    this.view = new RouterView({
      ...{
        informers,
        log,
        table: this.table,
        certificates: this.#certificates,
        selection: routing.selection,
      },
      ...{ routes: routing.routes, defaultCertificate: routing.defaultCertificate },
    });
    const choice = new TargetChoice(this.view, clock, random);
    this.view.onBackends = () => choice.changed();
    this.#connections = new BackendConnections({ host, clock, connectTimeoutMs });
    const mirrors = new Mirrors({
      choice,
      connections: this.#connections,
      clock,
      metrics: this.#routerMetrics,
    });
    this.#tunnels = new Tunnels(choice, this.#connections);
    this.#limits = new ClientLimits(routing.maxClientRequests, clock);
    const forward = new Forward({ choice, connections: this.#connections, mirrors, clock });
    const serving = {
      ...{ forward, tunnels: this.#tunnels, limits: this.#limits, metrics: this.#routerMetrics },
      ...{ clock, log, accessLog, forwardedPolicy, upgrades, backendTimeoutMs },
      onRefused: options.onRefused,
    };
    this.#serving = new RouterServing({ ...serving, decide: ingressDecisions(this.table) });
    this.#gatewayListeners = new GatewayListeners({
      ...serving,
      ...{ host, random, choice, addresses: options.addresses },
    });
    this.gateways = routing.gateways
      ? new GatewayView({ informers, clock, random, log, metrics }, (ports) =>
          this.#gatewayListeners.apply(ports),
        )
      : undefined;
  }

  /** Fails until the router listens and has all objects, and again from its end on. */
  get healthCheck(): HealthCheck {
    return {
      name: 'router',
      check: () => {
        if (this.#serving.isDraining) return 'ending';
        return this.#isServing ? undefined : 'not all objects are known yet';
      },
    };
  }

  /**
   * Waits for all objects: a request that came before would be answered that its host is unknown. Then listens.
   *
   * @returns where it answers; undefined where it was closed meanwhile.
   * @throws the system's error where it cannot listen (`EADDRINUSE`, `EACCES`).
   */
  async start(): Promise<RouterPorts | undefined> {
    const { addresses, httpPort, httpsPort, log } = this.#options;
    if (!(await this.view.synced(this.#stopping.signal))) return undefined;
    let ports: RouterPorts = { http: httpPort, https: httpsPort };
    try {
      for (const address of addresses) {
        ports = {
          http: await this.#listen(httpListener(this.#listenerOptions), address, httpPort),
          https: await this.#listen(httpsListener(this.#listenerOptions), address, httpsPort),
        };
      }
    } catch (error) {
      await this.close(0);
      throw error;
    }
    this.#planning = this.gateways?.run(this.#stopping.signal);
    await this.#gatewaysServed();
    this.#isServing = true;
    log.info({ addresses, ...ports }, 'routing HTTP');
    return ports;
  }

  /** A router that may not read some kind of Gateway API serves the rest. */
  async #gatewaysServed(): Promise<void> {
    if (this.gateways === undefined) return;
    const over = new AbortController();
    const late = this.#options.clock.after(gatewaysWaitMs, () => over.abort());
    await this.gateways.served(AbortSignal.any([over.signal, this.#stopping.signal]));
    late.cancel();
  }

  /** From now on it is not ready, but still answers: load balancers have time to notice. */
  lameduck(): void {
    this.#serving.drain();
    this.#gatewayListeners.lameduck();
  }

  /**
   * Accepts no more connections, lets requests and tunnels end, then closes the rest.
   *
   * @param drainTimeout milliseconds for that.
   */
  async close(drainTimeout: number): Promise<void> {
    const { clock } = this.#options;
    this.#stopping.abort(new Error('the router is stopping'));
    this.#serving.end();
    this.#isServing = false;
    const listeners = this.#listeners.splice(0);
    const drain = { isOver: false };
    const drains = [...listeners, this.#gatewayListeners].map((listener) => listener.drain());
    const drained = Promise.all(drains).then(() => {
      drain.isOver = true;
    });
    const deadline = clock.monotonic() + drainTimeout;
    while ((!drain.isOver || this.#tunnels.size > 0) && clock.monotonic() < deadline)
      await clock.sleep(drainStepMs);
    this.#tunnels.close();
    for (const listener of [...listeners, this.#gatewayListeners]) listener.cut();
    await drained;
    await this.#planning;
    this.#connections.close();
  }

  get #listenerOptions() {
    const { clock, routing } = this.#options;
    return {
      ...{ serving: this.#serving, tunnels: this.#tunnels, table: this.table, clock, limits: this.#limits },
      ...{ certificates: this.#certificates, metrics: this.#routerMetrics },
      idleTimeoutMs: routing.backendTimeoutMs + clientGraceMs,
    };
  }

  async #listen(listener: RouterListener, address: string, port: number): Promise<number> {
    const { host, log } = this.#options;
    const { server } = listener;
    await host.listen(server, address, port);
    this.#listeners.push(listener);
    server.on('error', (error) =>
      log.warn({ reason: 'AcceptFailed', err: error }, 'a listener failed; it goes on'),
    );
    const bound = server.address();
    return bound === null || typeof bound === 'string' ? port : bound.port;
  }
}
