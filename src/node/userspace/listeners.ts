import { createServer, type Server, type Socket, isIPv6 } from 'node:net';
import type { Logger } from 'pino';
import type { Host } from '../../host/host.ts';
import { sendDatagram } from '../../host/sockets.ts';
import type { PlannedEndpoint } from '../../network/forwarding/forwarding-plan.ts';
import type { Socket as UdpSocket } from 'node:dgram';
import type { Clock, Timer } from '../../client/clock.ts';

/** A listener at an address and port of a Service. */
export interface Listener {
  /** Whether connections are open that came to its address. */
  readonly isInUse: boolean;
  /** Accepts nothing new. */
  close(): void;
}

/** The target of a connection, by the client's address; undefined: it is refused. */
export type ChooseEndpoint = (client: string) => PlannedEndpoint | undefined;

/** Milliseconds after which an endpoint that does not answer is given up, as a client would. */
const connectTimeoutMs = 30_000;

/**
 * Accepts connections to one address and port, and connects each to an endpoint. Ends of one direction and resets pass
 * through. Connections that are open go on when the listener is closed: kube-proxy cuts none either.
 */
export class TcpListener implements Listener {
  readonly #server: Server;
  readonly #clients: ReadonlySet<Socket>;

  private constructor(server: Server, clients: ReadonlySet<Socket>) {
    this.#server = server;
    this.#clients = clients;
  }

  /** @throws the system's error where the address cannot be listened on. */
  static async open(
    host: Host,
    address: string,
    port: number,
    choose: ChooseEndpoint,
    log: Logger,
  ): Promise<TcpListener> {
    const clients = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (client) => {
      // An error event without a listener would end the process: the client may leave before the endpoint is connected.
      client.on('error', () => undefined);
      clients.add(client);
      client.on('close', () => clients.delete(client));
      forward(host, client, choose(client.remoteAddress ?? '')).catch((error: unknown) => {
        log.debug({ err: error, address, port }, 'a connection could not be forwarded');
        client.resetAndDestroy();
      });
    });
    await host.listen(server, address, port);
    return new TcpListener(server, clients);
  }

  get isInUse(): boolean {
    return this.#clients.size > 0;
  }

  close(): void {
    this.#server.close();
  }
}

async function forward(host: Host, client: Socket, endpoint: PlannedEndpoint | undefined): Promise<void> {
  if (endpoint === undefined) {
    client.resetAndDestroy();
    return;
  }
  const server = await host.connect(endpoint.address, endpoint.port, {
    signal: AbortSignal.timeout(connectTimeoutMs),
  });
  server.allowHalfOpen = true;
  server.setNoDelay(true);
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.on('error', () => to.resetAndDestroy());
    from.pipe(to);
  }
  if (client.destroyed) server.resetAndDestroy();
}

/** As the kernel's conntrack: how long a flow is remembered that was not answered, and one that was. Milliseconds. */
const unrepliedMs = 30_000;
const repliedMs = 120_000;
/** Most flows of one address and port; datagrams of others are dropped. */
const maxFlows = 10_000;
/** Most datagrams that wait for the socket of their flow. */
const maxWaiting = 16;

/** Datagrams of one client, and the socket on which their endpoint answers. */
interface Flow {
  readonly endpoint: PlannedEndpoint;
  socket: UdpSocket | undefined;
  readonly waiting: Buffer[];
  timer: Timer | undefined;
  isReplied: boolean;
}

/** Receives datagrams at one address and port, and sends those of each client to an endpoint, and the answers back. */
export class UdpListener implements Listener {
  readonly #host: Host;
  readonly #socket: UdpSocket;
  readonly #choose: ChooseEndpoint;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** By address and port of the client. */
  readonly #flows = new Map<string, Flow>();

  private constructor(host: Host, socket: UdpSocket, choose: ChooseEndpoint, clock: Clock, log: Logger) {
    this.#host = host;
    this.#socket = socket;
    this.#choose = choose;
    this.#clock = clock;
    this.#log = log;
    socket.on('error', (error) => log.debug({ err: error }, 'a UDP listener failed'));
    socket.on('message', (message, { address, port }) => this.#received(message, address, port));
  }

  /** @throws the system's error where the address cannot be listened on. */
  static async open(
    host: Host,
    address: string,
    port: number,
    choose: ChooseEndpoint,
    clock: Clock,
    log: Logger,
  ): Promise<UdpListener> {
    return new UdpListener(host, await host.datagram(address, port), choose, clock, log);
  }

  /** Ends flows whose endpoint has stopped serving: their next datagram goes to another one. */
  keep(isServing: (endpoint: PlannedEndpoint) => boolean): void {
    for (const [client, flow] of this.#flows) if (!isServing(flow.endpoint)) this.#end(client, flow);
  }

  /** Flows end with the listener. */
  get isInUse(): boolean {
    return false;
  }

  close(): void {
    for (const [client, flow] of this.#flows) this.#end(client, flow);
    this.#socket.close();
  }

  #received(message: Buffer, address: string, port: number): void {
    const client = `${address} ${port}`;
    const flow = this.#flows.get(client) ?? this.#begin(client, address, port);
    if (flow === undefined) return;
    this.#touch(client, flow);
    if (flow.socket !== undefined) sendDatagram(flow.socket, message, flow.endpoint);
    else if (flow.waiting.length < maxWaiting) flow.waiting.push(message);
  }

  #begin(client: string, address: string, port: number): Flow | undefined {
    const endpoint = this.#flows.size < maxFlows ? this.#choose(address) : undefined;
    if (endpoint === undefined) return undefined;
    const flow: Flow = { endpoint, socket: undefined, waiting: [], timer: undefined, isReplied: false };
    this.#flows.set(client, flow);
    const { address: to, port: at } = endpoint;
    this.#host.datagram(isIPv6(to) ? '::' : '0.0.0.0', 0).then(
      (socket) => {
        if (this.#flows.get(client) !== flow) {
          socket.close();
          return;
        }
        flow.socket = socket;
        socket.on('message', (message, from) => {
          if (from.address !== to || from.port !== at) return;
          flow.isReplied = true;
          this.#touch(client, flow);
          sendDatagram(this.#socket, message, { address, port });
        });
        socket.on('error', () => this.#end(client, flow));
        for (const message of flow.waiting.splice(0)) sendDatagram(socket, message, endpoint);
      },
      (error: unknown) => {
        this.#log.debug({ err: error, endpoint: `${to} ${at}` }, 'a datagram could not be forwarded');
        this.#end(client, flow);
      },
    );
    return flow;
  }

  #touch(client: string, flow: Flow): void {
    flow.timer?.cancel();
    flow.timer = this.#clock.after(flow.isReplied ? repliedMs : unrepliedMs, () => this.#end(client, flow));
  }

  #end(client: string, flow: Flow): void {
    flow.timer?.cancel();
    if (this.#flows.get(client) !== flow) return;
    this.#flows.delete(client);
    flow.socket?.close();
  }
}
