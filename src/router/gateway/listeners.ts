import type { Logger } from 'pino';
import type { Clock, Random } from '../../client/clock.ts';
import type { Host } from '../../host/host.ts';
import type { RefusedRequest } from '../../network/flows/tracker.ts';
import type { PlannedPort } from '../../network/gateway/plan.ts';
import { errorMessage } from '../../objects/status.ts';
import type { TargetChoice } from '../backends.ts';
import type { ClientLimits } from '../client-limits.ts';
import type { Forward } from '../forward.ts';
import { gatewayDecisions } from '../decisions.ts';
import { httpPortListener } from './http-port.ts';
import { tcpListener, UdpPort } from './streams.ts';
import { tlsPortListener } from './tls-port.ts';
import type { ServedPort } from './view.ts';
import type { ForwardedPolicy } from '../headers.ts';
import type { RouterListener } from '../listeners.ts';
import type { RouterMetrics } from '../router-metrics.ts';
import { clientGraceMs, RouterServing } from '../serving.ts';
import type { Tunnels } from '../tunnels.ts';

export interface GatewayListenerOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: RouterMetrics;
  readonly choice: TargetChoice;
  readonly forward: Forward;
  readonly tunnels: Tunnels;
  readonly limits: ClientLimits;
  /** Addresses that every port is bound to. */
  readonly addresses: readonly string[];
  readonly accessLog: boolean;
  readonly forwardedPolicy: ForwardedPolicy;
  readonly upgrades: readonly string[];
  /** Milliseconds that a backend may be silent. */
  readonly backendTimeoutMs: number;
  /** Is told each request that the router itself refuses; undefined: nobody is. */
  readonly onRefused: ((request: RefusedRequest) => void) | undefined;
}

/** Milliseconds for requests and tunnels of a port that is served no more. */
const drainMs = 10_000;
/** Milliseconds until a port that could not be bound is tried again. */
const retryMs = 2000;

/** A port that is bound, or is about to be. */
interface OpenPort {
  plan: PlannedPort;
  readonly serving: RouterServing;
  readonly listeners: RouterListener[];
  readonly datagrams: UdpPort[];
  /** Why it is not bound. */
  problem: string | undefined;
}

/** Listens for the ports of Gateways, and serves each by its plan of now. */
export class GatewayListeners {
  readonly #options: GatewayListenerOptions;
  readonly #open = new Map<string, OpenPort>();
  /** Ports that are served no more, until their connections have ended. */
  readonly #ending = new Set<RouterListener>();
  readonly #drains = new Set<Promise<void>>();
  #wanted: ReadonlyMap<string, ServedPort> = new Map();
  #applying: Promise<void> = Promise.resolve();
  #retry: { cancel(): void } | undefined;
  #isDraining = false;
  #isClosed = false;

  constructor(options: GatewayListenerOptions) {
    this.#options = options;
  }

  /**
   * Serves these ports and no others. A new plan of a port counts for the next request; its connections stay.
   *
   * @returns why ports are not bound, by their ids, once all of them were tried. Those are tried again later.
   */
  async apply(ports: readonly ServedPort[]): Promise<ReadonlyMap<string, string>> {
    this.#wanted = new Map(ports.map((port) => [keyOf(port), port]));
    for (const [key, { plan }] of this.#wanted) {
      const open = this.#open.get(key);
      if (open !== undefined) open.plan = plan;
    }
    this.#applying = this.#applying.then(() => this.#listen());
    await this.#applying;
    return this.problems;
  }

  /** Why ports are not bound, by their ids. */
  get problems(): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    for (const [key, { problem }] of this.#open) {
      const id = this.#wanted.get(key)?.id;
      if (id !== undefined && problem !== undefined) found.set(id, problem);
    }
    return found;
  }

  /** From now on each answer is the last of its connection. */
  lameduck(): void {
    this.#isDraining = true;
    for (const { serving } of this.#open.values()) serving.drain();
  }

  /** Accepts no more connections; resolves when all have ended. */
  async drain(): Promise<void> {
    this.#isClosed = true;
    this.#retry?.cancel();
    await this.#applying;
    for (const [key, port] of [...this.#open]) this.#end(key, port);
    await Promise.all(this.#drains);
  }

  /** Cuts what is left after {@link drain}. */
  cut(): void {
    for (const listener of this.#ending) listener.cut();
  }

  async #listen(): Promise<void> {
    for (const [key, port] of [...this.#open]) if (!this.#wanted.has(key)) this.#end(key, port);
    for (const [key, { id, bindPort, plan }] of this.#wanted) {
      if (this.#isClosed) return;
      const known = this.#open.get(key);
      if (known !== undefined && known.problem === undefined) continue;
      const open = known ?? this.#portOf(plan);
      this.#open.set(key, open);
      open.problem = await this.#bind(open, bindPort);
      if (open.problem === undefined) continue;
      this.#options.log.warn(
        { reason: 'ListenFailed', port: id, bindPort, problem: open.problem },
        'a port of a Gateway cannot be bound; it is tried again',
      );
      this.#retryLater();
    }
  }

  #retryLater(): void {
    this.#retry ??= this.#options.clock.after(retryMs, () => {
      this.#retry = undefined;
      if (!this.#isClosed) this.#applying = this.#applying.then(() => this.#listen());
    });
  }

  #portOf(plan: PlannedPort): OpenPort {
    const { clock, log, accessLog, forwardedPolicy, metrics, limits, upgrades } = this.#options;
    const { forward, tunnels, backendTimeoutMs, random, onRefused } = this.#options;
    const serving = new RouterServing({
      ...{ forward, tunnels, limits, upgrades, backendTimeoutMs, clock, log, accessLog },
      ...{ onRefused, forwardedPolicy, metrics, decide: gatewayDecisions(() => open.plan, random) },
    });
    if (this.#isDraining) serving.drain();
    const open: OpenPort = { plan, serving, listeners: [], datagrams: [], problem: undefined };
    return open;
  }

  /** On all addresses, or on none. @returns why not. */
  async #bind(open: OpenPort, bindPort: number): Promise<string | undefined> {
    const { addresses, host, log } = this.#options;
    try {
      for (const address of addresses) {
        if (open.plan.protocol === 'UDP') {
          const datagrams = this.#udpPort(open);
          await datagrams.bind(address, bindPort);
          open.datagrams.push(datagrams);
          continue;
        }
        const listener = this.#listenerOf(open);
        await host.listen(listener.server, address, bindPort);
        listener.server.on('error', (error) =>
          log.warn({ reason: 'AcceptFailed', err: error }, 'a listener failed; it goes on'),
        );
        open.listeners.push(listener);
      }
      return undefined;
    } catch (error) {
      this.#release(open);
      return errorMessage(error);
    }
  }

  #listenerOf(open: OpenPort): RouterListener {
    const { metrics, clock, tunnels, limits, random, backendTimeoutMs } = this.#options;
    const { serving } = open;
    const plan = (): PlannedPort => open.plan;
    const streams = { tunnels, limits, random, problem: serving.problem };
    const http = { serving, metrics, clock, idleTimeoutMs: backendTimeoutMs + clientGraceMs };
    switch (open.plan.protocol) {
      case 'HTTP':
        return httpPortListener(http);
      case 'TLS':
        return tlsPortListener({ ...http, plan, streams });
      case 'TCP':
      case 'UDP':
        return tcpListener(plan, streams, metrics);
    }
  }

  #udpPort(open: OpenPort): UdpPort {
    const { host, clock, random, choice } = this.#options;
    const { problem } = open.serving;
    return new UdpPort({ ...{ host, clock, random, choice, problem }, plan: () => open.plan });
  }

  #end(key: string, port: OpenPort): void {
    this.#open.delete(key);
    port.serving.end();
    this.#release(port);
  }

  /** Listens no more, and gives connections time to end. */
  #release({ listeners, datagrams }: OpenPort): void {
    for (const one of datagrams.splice(0)) one.close();
    for (const listener of listeners.splice(0)) {
      this.#ending.add(listener);
      const late = this.#options.clock.after(drainMs, () => listener.cut());
      const ended = listener.drain().then(() => {
        late.cancel();
        this.#ending.delete(listener);
        this.#drains.delete(ended);
      });
      this.#drains.add(ended);
    }
  }
}

/** What a port is bound for: all but its plan. */
function keyOf({ id, bindPort, plan }: ServedPort): string {
  return `${id} ${bindPort} ${plan.protocol}`;
}
