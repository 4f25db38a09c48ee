import { createServer, type Socket, isIPv6 } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Random, Clock, Timer } from '../../client/clock.ts';
import { chosenBackend } from '../../network/gateway/filters.ts';
import type { PlannedPort, StreamRule, GatewayBackend } from '../../network/gateway/plan.ts';
import { clientAddress, type ClientLimits } from '../client-limits.ts';
import { closed, openSockets, type RouterListener } from '../listeners.ts';
import type { RouterMetrics } from '../router-metrics.ts';
import type { RouterServing } from '../serving.ts';
import type { Tunnels } from '../tunnels.ts';
import type { RemoteInfo, Socket as UdpSocket } from 'node:dgram';
import type { Host } from '../../host/host.ts';
import { sendDatagram } from '../../host/sockets.ts';
import type { HttpRule } from '../../network/http/rules.ts';
import type { ForwardTarget, TargetChoice } from '../backends.ts';

/** What passes as it is: the connections of TLSRoutes and TCPRoutes, and the datagrams of UDPRoutes. */

export interface StreamOptions {
  readonly tunnels: Tunnels;
  readonly limits: ClientLimits;
  readonly random: Random;
  /** Counts and logs why a connection was cut. */
  readonly problem: RouterServing['problem'];
}

/**
 * Connects a client to a backend of a rule, by weight. The connection is reset where there is none.
 *
 * @param first bytes that were read of the client.
 */
export function carryStream(
  client: Socket,
  first: Buffer,
  rule: StreamRule | undefined,
  options: StreamOptions,
): void {
  const { tunnels, limits, random, problem } = options;
  client.on('error', () => client.destroy());
  const refuse = (reason: string, error?: Error): void => {
    const source = rule?.source;
    const object = source === undefined ? '' : `${source.kind} ${source.namespace}/${source.name}`;
    problem(reason, error, { object });
    reset(client);
  };
  if (rule === undefined) {
    refuse('NoHost');
    return;
  }
  const backend = chosenBackend(rule.backends, random());
  if (backend?.rule === undefined) {
    refuse(backend === undefined ? 'NoBackends' : 'InvalidBackend');
    return;
  }
  const leave = limits.enter(clientAddress(client));
  if (leave === undefined) {
    refuse('TooManyRequests');
    return;
  }
  client.on('close', leave);
  // One side may end while the other still sends.
  client.allowHalfOpen = true;
  void tunnels.passThrough(client, first, backend.rule, refuse);
}

/** The client sees that it was refused, where TCP can say so. */
export function reset(client: Socket): void {
  if (client instanceof TLSSocket || client.destroyed) client.destroy();
  else client.resetAndDestroy();
}

/** A listener for TCPRoutes: the oldest carries all connections. */
export function tcpListener(
  plan: () => PlannedPort,
  options: StreamOptions,
  metrics: RouterMetrics,
): RouterListener {
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  const sockets = openSockets(server, metrics, 'gateway');
  server.on('connection', (socket: Socket) => {
    carryStream(socket, Buffer.alloc(0), plan().listeners[0]?.streams[0], options);
  });
  return {
    server,
    drain: () => closed(server),
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

interface UdpOptions {
  readonly plan: () => PlannedPort;
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly choice: TargetChoice;
  /** Counts and logs why datagrams were dropped. */
  readonly problem: RouterServing['problem'];
}

/** Milliseconds without a datagram after which a flow ends; conntrack has 120 s for flows of both directions. */
const idleFlowMs = 60_000;
/** Milliseconds between two looks for idle flows, and for flows whose backend has gone. */
const sweepMs = 5000;
/** Flows of a port at a time: each has a socket. */
const maxFlows = 4096;
/** Milliseconds without a datagram after which a flow gives way to a new one where there are too many. */
const replaceableMs = 5000;
/** Datagrams that wait for the socket of their flow. */
const maxWaiting = 16;

/** The datagrams between one address and port of a client and one backend. */
interface Flow {
  /** Undefined: the flow is one of an invalid backend's share. */
  readonly rule: HttpRule | undefined;
  readonly target: ForwardTarget | undefined;
  socket: UdpSocket | undefined;
  readonly waiting: Buffer[];
  usedAt: number;
  isClosed: boolean;
}

/** A port of UDP whose flows go to the backends of the oldest UDPRoute, by weight. */
export class UdpPort {
  readonly #options: UdpOptions;
  /** By the client's address and port; the one that was not used for the longest time first. */
  readonly #flows = new Map<string, Flow>();
  #socket: UdpSocket | undefined;
  #sweep: Timer | undefined;

  constructor(options: UdpOptions) {
    this.#options = options;
  }

  /** @throws the system's error. */
  async bind(address: string, port: number): Promise<void> {
    const socket = await this.#options.host.datagram(address, port);
    this.#socket = socket;
    socket.on('message', (message, from) => this.#received(message, from));
    this.#sweepLater();
  }

  /** Where it is bound; 0: not yet. */
  get port(): number {
    return this.#socket?.address().port ?? 0;
  }

  close(): void {
    this.#sweep?.cancel();
    this.#socket?.close();
    this.#socket = undefined;
    for (const key of [...this.#flows.keys()]) this.#end(key);
  }

  #received(message: Buffer, from: RemoteInfo): void {
    const { clock } = this.#options;
    const key = `${from.address} ${from.port}`;
    const flow = this.#flows.get(key) ?? this.#begin(key, from);
    if (flow === undefined) return;
    flow.usedAt = clock.monotonic();
    this.#flows.delete(key);
    this.#flows.set(key, flow);
    if (flow.target === undefined) return;
    if (flow.socket !== undefined) sendDatagram(flow.socket, message, flow.target);
    else if (flow.waiting.length < maxWaiting) flow.waiting.push(message);
  }

  #begin(key: string, from: RemoteInfo): Flow | undefined {
    const { clock, random, choice, plan, problem } = this.#options;
    const stream = streamOf(plan());
    const backend = chosenBackend(stream?.backends ?? [], random());
    if (stream === undefined || backend === undefined) {
      problem('NoBackends', undefined, objectOf(stream));
      return undefined;
    }
    const target = backend.rule === undefined ? undefined : choice.choose(backend.rule);
    if (typeof target === 'string') {
      problem(target, undefined, objectOf(stream));
      return undefined;
    }
    if (!this.#hasRoom()) {
      problem('TooManyFlows', undefined, objectOf(stream));
      return undefined;
    }
    if (target === undefined) problem('InvalidBackend', undefined, objectOf(stream));
    const flow: Flow = {
      ...{ rule: backend.rule, target, socket: undefined, waiting: [], isClosed: false },
      usedAt: clock.monotonic(),
    };
    this.#flows.set(key, flow);
    if (target !== undefined) void this.#open(key, flow, target, from);
    return flow;
  }

  /** The kernel answers nobody but this socket, and this passes on what comes from the backend alone. */
  async #open(key: string, flow: Flow, target: ForwardTarget, from: RemoteInfo): Promise<void> {
    const { host, clock, problem } = this.#options;
    try {
      const socket = await host.datagram(isIPv6(target.address) ? '::' : '0.0.0.0', 0);
      if (flow.isClosed) {
        socket.close();
        return;
      }
      flow.socket = socket;
      socket.on('message', (answer, { address, port }) => {
        if (this.#socket === undefined || address !== target.address || port !== target.port) return;
        flow.usedAt = clock.monotonic();
        sendDatagram(this.#socket, answer, from);
      });
      socket.on('error', () => this.#end(key));
      for (const message of flow.waiting.splice(0)) sendDatagram(socket, message, target);
    } catch (error) {
      problem('BackendFailed', error instanceof Error ? error : new Error(String(error)));
      if (this.#flows.get(key) === flow) this.#end(key);
    }
  }

  #end(key: string): void {
    const flow = this.#flows.get(key);
    if (flow === undefined || flow.isClosed) return;
    this.#flows.delete(key);
    flow.isClosed = true;
    flow.socket?.close();
  }

  #hasRoom(): boolean {
    if (this.#flows.size < maxFlows) return true;
    const [oldest] = this.#flows;
    if (oldest === undefined) return true;
    const [key, { usedAt }] = oldest;
    if (this.#options.clock.monotonic() - usedAt < replaceableMs) return false;
    this.#end(key);
    return true;
  }

  /** Ends flows that are idle, and those whose Service or endpoint gets nothing any more. */
  #sweepLater(): void {
    const { clock, plan } = this.#options;
    this.#sweep = clock.after(sweepMs, () => {
      const now = clock.monotonic();
      const backends = streamOf(plan())?.backends ?? [];
      for (const [key, flow] of [...this.#flows]) {
        if (now - flow.usedAt >= idleFlowMs || !this.#isServed(flow, backends)) this.#end(key);
      }
      this.#sweepLater();
    });
  }

  #isServed({ rule, target }: Flow, backends: readonly GatewayBackend[]): boolean {
    if (rule === undefined || target === undefined) {
      return backends.some((one) => one.weight > 0 && one.rule === undefined);
    }
    const service = serviceOf(rule);
    const now = backends.find(
      (one) => one.weight > 0 && one.rule !== undefined && serviceOf(one.rule) === service,
    );
    return now?.rule !== undefined && this.#options.choice.includes(now.rule, target);
  }
}

function streamOf({ listeners }: PlannedPort): StreamRule | undefined {
  return listeners[0]?.streams[0];
}

function serviceOf({ backends: [backend] }: HttpRule): string {
  return backend === undefined ? '' : `${backend.namespace}/${backend.service} ${backend.port ?? ''}`;
}

function objectOf(stream: StreamRule | undefined): object {
  if (stream === undefined) return {};
  const { kind, namespace, name } = stream.source;
  return { object: `${kind} ${namespace}/${name}` };
}
