import { pino, type Logger } from 'pino';
import { systemClock } from '../../../src/client/clock.ts';
import { localHost } from '../../../src/host/local-host.ts';
import type { PlannedListener, PlannedPort } from '../../../src/network/gateway/plan.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../src/objects/types/discovery.generated.ts';
import { BackendConnections, type ServiceReader, TargetChoice } from '../../../src/router/backends.ts';
import { ClientLimits } from '../../../src/router/client-limits.ts';
import { Forward } from '../../../src/router/forward.ts';
import { GatewayListeners } from '../../../src/router/gateway/listeners.ts';
import { Mirrors } from '../../../src/router/gateway/mirrors.ts';
import { RouterMetrics } from '../../../src/router/router-metrics.ts';
import { Tunnels } from '../../../src/router/tunnels.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { freePort } from '../free-port.ts';

/** A Service of tests, whose port 80 leads to these ports of this machine. */
export interface PlayedService {
  readonly ports: readonly number[];
  readonly appProtocol?: string;
  readonly protocol?: 'TCP' | 'UDP';
}

/** Listeners of Gateways on 127.0.0.1, without a cluster. */
export class RunningGateway implements ServiceReader {
  readonly metrics = new Metrics();
  readonly listeners: GatewayListeners;
  /** By the Service's name, in the namespace shop. */
  readonly services = new Map<string, PlayedService>();
  readonly #choice: TargetChoice;
  readonly #connections: BackendConnections;
  readonly #tunnels: Tunnels;
  readonly #ports = new Map<string, { readonly bindPort: number; plan: PlannedPort }>();

  constructor(backendTimeoutMs = 10_000, log: Logger = pino({ enabled: false })) {
    const [clock, random, host] = [systemClock, Math.random, localHost];
    const metrics = new RouterMetrics(this.metrics);
    const choice = new TargetChoice(this, clock, random);
    const connections = new BackendConnections({ host, clock, connectTimeoutMs: 1000 });
    this.#choice = choice;
    this.#connections = connections;
    this.#tunnels = new Tunnels(choice, connections);
    const mirrors = new Mirrors({ choice, connections, clock, metrics });
    this.listeners = new GatewayListeners({
      onRefused: undefined,
      ...{ host, clock, random, log, metrics, choice, tunnels: this.#tunnels },
      forward: new Forward({ choice, connections, mirrors, clock }),
      ...{ limits: new ClientLimits(1000, clock), addresses: ['127.0.0.1'], accessLog: true },
      ...{ forwardedPolicy: 'replace', upgrades: ['websocket'], backendTimeoutMs },
    });
  }

  service(key: string): Service | undefined {
    const known = this.services.get(key.replace('shop/', ''));
    if (known === undefined) return undefined;
    const { appProtocol, protocol = 'TCP' } = known;
    const port = { name: 'main', port: 80, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) };
    return { apiVersion: 'v1', kind: 'Service', metadata: {}, spec: { ports: [port] }, status: {} };
  }

  slices(key: string): readonly EndpointSlice[] {
    const { ports = [], protocol = 'TCP' } = this.services.get(key.replace('shop/', '')) ?? {};
    return ports.map((port) => ({
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: {}, addressType: 'IPv4' },
      endpoints: [{ addresses: ['127.0.0.1'] }],
      ports: [{ name: 'main', port, protocol }],
    }));
  }

  /** Changes a Service. */
  serve(name: string, service: PlayedService): void {
    this.services.set(name, service);
    this.#choice.changed();
  }

  /** Serves listeners at a port of the Gateway. @returns where they answer. */
  async listen(
    port: number,
    protocol: PlannedPort['protocol'],
    listeners: readonly PlannedListener[],
  ): Promise<number> {
    const id = `shop/web ${protocol} ${port}`;
    const known = this.#ports.get(id);
    const plan: PlannedPort = { port, protocol, listeners };
    if (known !== undefined) known.plan = plan;
    const bindPort = known?.bindPort ?? (await freePort());
    this.#ports.set(id, { bindPort, plan });
    const problems = await this.#apply();
    const problem = problems.get(id);
    if (problem !== undefined) throw new Error(problem);
    return bindPort;
  }

  /** Serves a port no more. */
  async unlisten(port: number, protocol: PlannedPort['protocol']): Promise<void> {
    this.#ports.delete(`shop/web ${protocol} ${port}`);
    await this.#apply();
  }

  async #apply(): Promise<ReadonlyMap<string, string>> {
    return await this.listeners.apply(
      [...this.#ports].map(([id, { bindPort, plan }]) => ({ id, bindPort, plan })),
    );
  }

  async stop(): Promise<void> {
    const drained = this.listeners.drain();
    this.#tunnels.close();
    // Those that were begun meanwhile, too.
    const cutting = setInterval(() => this.listeners.cut(), 10);
    await drained;
    clearInterval(cutting);
    this.#connections.close();
  }
}
