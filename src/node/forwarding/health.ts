import type { Clock } from '../../client/clock.ts';
import type { Server, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Host } from '../../host/host.ts';
import { httpServer } from '../../host/http-server.ts';
import type { IPFamily } from '../../objects/address.ts';
import { type BindAddress, serveAt } from '../listening.ts';
import type { ProxyMetrics } from './metrics.ts';
import type { ForwardingPlan, NodeFamilyPlan } from '../../network/forwarding/forwarding-plan.ts';
import type { ObjectKey } from '../../objects/meta.ts';

/** Milliseconds that a change may wait to be written: twice kube-proxy's default `--sync-period`. */
const maxWaitMs = 60_000;

/**
 * Whether a node's rules follow the API (`pkg/proxy/healthcheck/proxy_health.go`). Only the age of what is not written
 * counts: it is healthy while nothing changes, and before the first sync.
 */
export class SyncHealth {
  readonly #clock: Clock;
  /** Monotonic milliseconds of the oldest change that no sync has taken up, and of that which the last sync took up. */
  #queuedMs: number | undefined;
  #writingMs: number | undefined;
  #lastSyncedMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something has changed that has to be written. */
  queued(): void {
    this.#queuedMs ??= this.#clock.monotonic();
  }

  /** A sync takes up all that is queued; what an earlier one failed to write stays as old as it is. */
  begin(): void {
    this.#writingMs ??= this.#queuedMs;
    this.#queuedMs = undefined;
  }

  /** The changes of the sync are written. */
  synced(): void {
    this.#writingMs = undefined;
    this.#lastSyncedMs = this.#clock.now();
  }

  /** There is nothing to write for the sync. */
  skipped(): void {
    this.#writingMs = undefined;
  }

  get isHealthy(): boolean {
    const oldest = this.#writingMs ?? this.#queuedMs;
    if (oldest === undefined || this.#lastSyncedMs === undefined) return true;
    return this.#clock.monotonic() - oldest < maxWaitMs;
  }

  /** Milliseconds since 1970 of the last sync that succeeded; undefined before the first. */
  get lastSyncedMs(): number | undefined {
    return this.#lastSyncedMs;
  }
}

export interface NodeHealthOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  readonly families: readonly IPFamily[];
  readonly health: SyncHealth;
  readonly metrics: ProxyMetrics;
  /** False once the node is on its way out: load balancers are to send nothing new. */
  readonly isEligible: () => boolean;
}

/**
 * Serves the health of the node to load balancers and the kubelet, as kube-proxy does (`pkg/proxy/healthcheck/proxy_health.go`,
 * KEP-3836): `/healthz` fails where the rules are behind or the node is going away, `/livez` only where they are behind.
 */
export class NodeHealthServer {
  readonly #options: NodeHealthOptions;

  constructor(options: NodeHealthOptions) {
    this.#options = options;
  }

  /** Serves until the signal aborts. */
  async run(address: BindAddress, signal: AbortSignal): Promise<void> {
    const { host, clock, log } = this.#options;
    const message = 'cannot serve the health of the node yet';
    await serveAt({ host, clock, log, address, message }, () => this.#open(), signal);
  }

  #open(): Server {
    return httpServer((request, response, { pathname }) => {
      request.resume();
      if (pathname === '/healthz') this.#answer(response, this.#options.isEligible());
      else if (pathname === '/livez') this.#answer(response, undefined);
      else response.writeHead(404).end('404 page not found\n');
    });
  }

  /** @param nodeEligible undefined for `/livez`, where it does not count. */
  #answer(response: ServerResponse, nodeEligible: boolean | undefined): void {
    const { clock, families, health, metrics } = this.#options;
    const healthy = health.isHealthy && nodeEligible !== false;
    const status = healthy ? 200 : 503;
    metrics.answered(nodeEligible === undefined ? 'livez' : 'healthz', status);
    const lastSynced = timeOf(health.lastSyncedMs);
    const currentTime = timeOf(clock.now());
    const ofFamily = { lastUpdated: lastSynced, healthy: health.isHealthy };
    response.writeHead(status, {
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
    });
    response.end(
      JSON.stringify({
        // Readers expect a time that advances while the node is healthy.
        lastUpdated: healthy ? currentTime : lastSynced,
        currentTime,
        nodeEligible,
        healthy,
        status:
          lastSynced === neverSynced ? {} : Object.fromEntries(families.map((name) => [name, ofFamily])),
      }),
    );
  }
}

/** Go's zero time. */
const neverSynced = '0001-01-01T00:00:00Z';

function timeOf(milliseconds: number | undefined): string {
  return milliseconds === undefined ? neverSynced : new Date(milliseconds).toISOString();
}

/** A server that is to be there. */
interface WantedServer {
  readonly service: ObjectKey;
  readonly address: string;
  readonly port: number;
  readonly localEndpoints: number;
}

/** A server that is there; what it answers changes, its address and port do not. */
interface OpenServer {
  readonly server: Server;
  localEndpoints: number;
}

/** A health check that could not be opened. */
export interface FailedHealthCheck {
  readonly service: ObjectKey;
  readonly port: number;
  readonly error: unknown;
}

/**
 * The health checks of Services for load balancers (`pkg/proxy/healthcheck/service_health.go`): `healthCheckNodePort`
 * at each address at which node ports answer. Any path and method: 200 where ready endpoints are on this node and its
 * rules follow the API, otherwise 503.
 */
export class ServiceHealthServers {
  readonly #host: Host;
  readonly #health: SyncHealth;
  readonly #open = new Map<string, OpenServer>();

  constructor(host: Host, health: SyncHealth) {
    this.#host = host;
    this.#health = health;
  }

  /**
   * Opens and closes servers by the plan; servers that stay are not touched.
   *
   * @returns the Services with a port that is taken, once for each port: the next sync tries again.
   */
  async sync(plan: ForwardingPlan): Promise<readonly FailedHealthCheck[]> {
    const wanted = wantedServers(plan);
    for (const [id, { server }] of this.#open) {
      if (wanted.has(id)) continue;
      this.#open.delete(id);
      await closed(server);
    }
    const failed = new Map<string, FailedHealthCheck>();
    for (const [id, { service, address, port, localEndpoints }] of wanted) {
      const open = this.#open.get(id);
      if (open !== undefined) {
        open.localEndpoints = localEndpoints;
        continue;
      }
      const server = httpServer((request, response) => {
        request.resume();
        this.#answer(response, service, this.#open.get(id)?.localEndpoints ?? 0);
      });
      try {
        await this.#host.listen(server, address, port);
        this.#open.set(id, { server, localEndpoints });
      } catch (error) {
        failed.set(`${service} ${port}`, { service, port, error });
      }
    }
    return [...failed.values()];
  }

  async close(): Promise<void> {
    const servers = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(servers.map(({ server }) => closed(server)));
  }

  #answer(response: ServerResponse, service: ObjectKey, localEndpoints: number): void {
    const [namespace, name] = service.split('/');
    const serviceProxyHealthy = this.#health.isHealthy;
    response.writeHead(localEndpoints > 0 && serviceProxyHealthy ? 200 : 503, {
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
      'x-load-balancing-endpoint-weight': String(localEndpoints),
    });
    response.end(
      JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy }, undefined, '\t'),
    );
  }
}

/** By Service, address and port. */
function wantedServers({ node, services }: ForwardingPlan): ReadonlyMap<string, WantedServer> {
  const wanted = new Map<string, WantedServer>();
  for (const { key: service, healthChecks } of services.values()) {
    for (const { family, port, localEndpoints } of healthChecks) {
      const ofNode = node.families.find((one) => one.family === family);
      for (const address of ofNode === undefined ? [] : listenAddresses(ofNode)) {
        wanted.set(`${service} ${address} ${port}`, { service, address, port, localEndpoints });
      }
    }
  }
  return wanted;
}

function listenAddresses({ family, nodePortAddresses }: NodeFamilyPlan): readonly string[] {
  if (nodePortAddresses !== 'all') return nodePortAddresses;
  return [family === 'IPv4' ? '0.0.0.0' : '::'];
}

/** Ends connections too: a load balancer that keeps one would go on asking a server that is gone. */
function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
