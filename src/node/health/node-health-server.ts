import type { Server, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { whenAborted } from '../../client/abort.ts';
import type { Clock } from '../../client/clock.ts';
import type { Host } from '../../host/host.ts';
import { createServer } from '../../host/node-http.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { ProxyMetrics } from '../proxy-metrics.ts';
import type { SyncHealth } from './sync-health.ts';

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

/** The address of a server. */
export interface BindAddress {
  /** An IP address; empty or unspecified: all of both families. */
  readonly host: string;
  readonly port: number;
}

/** Milliseconds between tries to listen. */
const retryDelay = 5000;

/**
 * Serves the health of the node to load balancers and the kubelet, as kube-proxy does (`pkg/proxy/healthcheck/proxy_health.go`,
 * KEP-3836): `/healthz` fails where the rules are behind or the node is going away, `/livez` only where they are behind.
 */
export class NodeHealthServer {
  readonly #options: NodeHealthOptions;
  readonly #servers: Server[] = [];

  constructor(options: NodeHealthOptions) {
    this.#options = options;
  }

  /** Serves until the signal aborts; where the port is taken, tries again until it is free. */
  async run({ host, port }: BindAddress, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    // An unspecified address is that of both families, as in Go.
    const isAll = ['', '0.0.0.0', '::'].includes(host);
    let isLogged = false;
    for (const address of isAll ? ['0.0.0.0', '::'] : [host]) {
      while (!signal.aborted) {
        try {
          await this.#listen(address, port);
          break;
        } catch (error) {
          if (isAll && hasNoFamily(error)) break;
          if (!isLogged) log.warn({ address, port, err: error }, 'cannot serve the health of the node yet');
          isLogged = true;
          await clock.sleep(retryDelay, signal);
        }
      }
    }
    await whenAborted(signal);
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  async #listen(address: string, port: number): Promise<void> {
    const server = createServer((request, response) => {
      request.resume();
      const [path = ''] = (request.url ?? '').split('?');
      if (path === '/healthz') this.#answer(response, this.#options.isEligible());
      else if (path === '/livez') this.#answer(response, undefined);
      else response.writeHead(404).end('404 page not found\n');
    });
    await this.#options.host.listen(server, address, port);
    this.#servers.push(server);
  }

  /** @param nodeEligible undefined for `/livez`, where it does not count. */
  #answer(response: ServerResponse, nodeEligible: boolean | undefined): void {
    const { clock, families, health, metrics } = this.#options;
    const healthy = health.isHealthy && nodeEligible !== false;
    const status = healthy ? 200 : 503;
    metrics.answered(nodeEligible === undefined ? 'livez' : 'healthz', status);
    const lastSynced = timeOf(health.lastSynced);
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

/** The machine has no IPv6, or no IPv4. */
function hasNoFamily(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL';
}

/** Go's zero time. */
const neverSynced = '0001-01-01T00:00:00Z';

function timeOf(milliseconds: number | undefined): string {
  return milliseconds === undefined ? neverSynced : new Date(milliseconds).toISOString();
}
