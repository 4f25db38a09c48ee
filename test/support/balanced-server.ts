import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { Clients } from '../../src/client/resource-client.ts';
import { services, addressPools } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { offerAddresses } from '../../src/commands/default-pool.ts';
import {
  type LoadBalancerOptions,
  loadBalancerController,
} from '../../src/controllers/load-balancer/controller.ts';
import type { AddressPool, AddressPoolSpec } from '../../src/objects/types/servicenet.ts';
import { loadBalancerReadyCondition } from '../../src/network/announcing/assigned-addresses.ts';
import { runControllers, type RunningControllers, type RunOptions } from '../../src/controllers/run.ts';
import type { Service, ServiceSpec } from '../../src/objects/types/core.generated.ts';
import { startApiServer, type TestServer, type TestServerOptions } from '../../src/testing/index.ts';

/** Milliseconds within which something must have come. */
const timeoutMs = 60_000;

/** The load balancer alone, on any transport. */
export function startLoadBalancer(
  transport: Transport,
  options: Pick<RunOptions, 'leaderElection' | 'metrics'> = {},
  settings: LoadBalancerOptions = {},
): RunningControllers {
  return runControllers({
    transport,
    controllers: [loadBalancerController(settings)],
    log: pino({ enabled: false }),
    ...options,
  });
}

/** An API server that knows AddressPools, and the calls that tests of the load balancer need. */
export class BalancedServer {
  readonly server: TestServer;
  readonly clients: Clients;

  private constructor(server: TestServer) {
    this.server = server;
    this.clients = new Clients(server.client);
  }

  static async start(options: TestServerOptions = {}): Promise<BalancedServer> {
    const server = await startApiServer(options);
    await offerAddresses(server.client, []);
    return new BalancedServer(server);
  }

  /** Makes a pool, as soon as the new kind is served. */
  async pool(name: string, spec: AddressPoolSpec): Promise<AddressPool> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      try {
        return await this.clients.for(addressPools).create({ metadata: { name }, spec });
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await sleep(20);
      }
    }
  }

  async service(
    name: string,
    spec: Partial<ServiceSpec> = {},
    annotations: Record<string, string> = {},
  ): Promise<Service> {
    return this.clients.for(services).create({
      metadata: { namespace: 'default', name, annotations },
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
    });
  }

  read(name: string): Promise<Service> {
    return this.clients.for(services).get('default', name);
  }

  /** Reads a Service until it is as wanted. */
  async until(name: string, wanted: (service: Service) => boolean): Promise<Service> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const service = await this.read(name);
      if (wanted(service)) return service;
      if (Date.now() > deadline) throw new Error(`${name} never came: ${JSON.stringify(service.status)}`);
      await sleep(20);
    }
  }

  /** Reads a Service until its condition has this reason. */
  untilReason(name: string, reason: string): Promise<Service> {
    return this.until(name, (service) => loadBalancerReadyCondition(service)?.reason === reason);
  }
}

/** The IP addresses in a Service's status. */
export function addressesOf(service: Service): string[] {
  return (service.status.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
}
