import type { Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Logger } from 'pino';
import type { Clock, Timer } from '../../client/clock.ts';
import type { Host } from '../../host/host.ts';
import type { PlannedEndpoint } from '../../network/forwarding/forwarding-plan.ts';
import type { Listener } from './listener.ts';
import type { ChooseEndpoint } from './tcp-listener.ts';

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
  socket: Socket | undefined;
  readonly waiting: Buffer[];
  timer: Timer | undefined;
  isReplied: boolean;
}

/** Receives datagrams at one address and port, and sends those of each client to an endpoint, and the answers back. */
export class UdpListener implements Listener {
  readonly #host: Host;
  readonly #socket: Socket;
  readonly #choose: ChooseEndpoint;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** By address and port of the client. */
  readonly #flows = new Map<string, Flow>();

  private constructor(host: Host, socket: Socket, choose: ChooseEndpoint, clock: Clock, log: Logger) {
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
    if (flow.socket !== undefined) flow.socket.send(message, flow.endpoint.port, flow.endpoint.address);
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
          this.#socket.send(message, port, address);
        });
        socket.on('error', () => this.#end(client, flow));
        for (const message of flow.waiting.splice(0)) socket.send(message, at, to);
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
