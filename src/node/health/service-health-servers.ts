import type { Server, ServerResponse } from 'node:http';
import type { Host } from '../../host/host.ts';
import { createServer } from '../../host/node-http.ts';
import type { ForwardingPlan, NodeFamilyPlan } from '../../network/forwarding/forwarding-plan.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { SyncHealth } from './sync-health.ts';

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
      const server = createServer((request, response) => {
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
