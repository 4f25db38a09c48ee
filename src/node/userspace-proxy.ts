import { createServer, type Server, type Socket, isIPv6 } from 'node:net';
import type { Logger } from 'pino';
import type { Host, ExecResult } from '../host/host.ts';
import { sendDatagram } from '../host/sockets.ts';
import type {
  PlannedEndpoint,
  Destination,
  ForwardingPlan,
  ServicePortPlan,
} from '../network/forwarding/forwarding-plan.ts';
import type { Socket as UdpSocket } from 'node:dgram';
import type { Clock, Timer, Random } from '../client/clock.ts';
import { type Candidate, type ForwardVerdict, sourceOf, verdictFor } from '../network/forwarding/verdict.ts';
import type { DataPath } from './forwarding/agent.ts';
import type { SyncResult } from './nftables/writer.ts';

/** A listener at an address and port of a Service. */
interface Listener {
  /** Whether connections are open that came to its address. */
  readonly isInUse: boolean;
  /** Accepts nothing new. */
  close(): void;
}

/** The target of a connection, by the client's address; undefined: it is refused. */
type ChooseEndpoint = (client: string) => PlannedEndpoint | undefined;

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

/** Most clients that are remembered; the one that came longest ago is forgotten. */
const maxClients = 100_000;

/** Chooses the endpoint of a connection as the kernel does: at random, or the client's former one. */
class EndpointChoice {
  readonly #random: Random;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By Service port and client; in the order of the last connection. */
  readonly #former = new Map<string, { readonly endpoint: string; readonly until: number }>();

  constructor(random: Random, clock: Pick<Clock, 'monotonic'>) {
    this.#random = random;
    this.#clock = clock;
  }

  choose({ candidates, port, affinitySeconds }: ForwardVerdict, client: string): Candidate {
    const drawn = candidates[Math.floor(this.#random() * candidates.length)];
    if (drawn === undefined) throw new RangeError(`${port.id} has no candidates`);
    if (affinitySeconds === undefined) return drawn;
    const key = `${port.id} ${client}`;
    const now = this.#clock.monotonic();
    const former = this.#former.get(key);
    const kept =
      former !== undefined && now < former.until
        ? candidates.find((candidate) => nameOf(candidate) === former.endpoint)
        : undefined;
    const chosen = kept ?? drawn;
    this.#former.delete(key);
    this.#former.set(key, { endpoint: nameOf(chosen), until: now + affinitySeconds * 1000 });
    if (this.#former.size > maxClients) {
      const [oldest] = this.#former.keys();
      if (oldest !== undefined) this.#former.delete(oldest);
    }
    return chosen;
  }
}

function nameOf({ endpoint }: Candidate): string {
  return `${endpoint.address} ${endpoint.port}`;
}

interface UserspaceProxyOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** An address and port at which a node must listen. */
interface ListenAddress {
  readonly port: ServicePortPlan;
  readonly address: string;
  readonly number: number;
}

/**
 * Forwards the traffic of Services without nftables, for machines that lack it: this process accepts connections to the
 * addresses of Services and connects them to endpoints, on the same plan. It listens only where a connection can go
 * somewhere, so that others are refused by the kernel.
 *
 * Unlike the kernel: endpoints see the node as the client always, what the plan drops is refused,
 * and SCTP is left out.
 */
export class UserspaceProxy implements DataPath {
  readonly #options: UserspaceProxyOptions;
  readonly #choice: EndpointChoice;
  readonly #listeners = new Map<string, Listener>();
  /** Addresses of Services that the node has been given, so that it takes their packets. */
  readonly #addresses = new Set<string>();
  /** Closed listeners whose connections go on, with their addresses. */
  readonly #closed = new Map<Listener, string>();
  #mayLackAddresses = false;
  #plan: ForwardingPlan | undefined;

  constructor(options: UserspaceProxyOptions) {
    this.#options = options;
    this.#choice = new EndpointChoice(options.random, options.clock);
  }

  /**
   * Listens by the plan. One call at a time.
   *
   * @throws {Error} where `ip` is missing or refuses an address; the next sync tries again.
   */
  async sync(plan: ForwardingPlan): Promise<SyncResult> {
    this.#plan = plan;
    const places = listenAddressesOf(plan);
    for (const [key, listener] of this.#listeners) {
      if (places.has(key)) continue;
      listener.close();
      this.#listeners.delete(key);
      this.#closed.set(listener, key.slice(0, key.indexOf(' ')));
    }
    for (const listener of this.#closed.keys()) if (!listener.isInUse) this.#closed.delete(listener);
    await this.#giveAddresses(plan);
    for (const [key, place] of places) {
      const listener = this.#listeners.get(key) ?? (await this.#open(key, place));
      if (listener instanceof UdpListener) {
        const serving = new Set(
          place.port.servingEndpoints?.map(({ address, port }) => `${address} ${port}`),
        );
        listener.keep(({ address, port }) => serving.has(`${address} ${port}`));
      }
    }
    return { transactions: 0, elements: 0, former: [] };
  }

  /** Addresses that something else took away are given again. */
  invalidate(): void {
    this.#mayLackAddresses = true;
  }

  /** Closes all listeners, and takes the addresses away. Connections that are open go on. */
  async close(): Promise<void> {
    for (const listener of this.#listeners.values()) listener.close();
    this.#listeners.clear();
    await this.#ip([...this.#addresses].map((address) => lineFor('del', address)));
    this.#addresses.clear();
  }

  /** A port that is taken by another program is tried again with the next sync. */
  async #open(key: string, place: ListenAddress): Promise<Listener | undefined> {
    const { host, clock, log } = this.#options;
    const { address, number, port } = place;
    const choose = (client: string): PlannedEndpoint | undefined => this.#choose(place, client);
    try {
      const listener =
        port.protocol === 'TCP'
          ? await TcpListener.open(host, address, number, choose, log)
          : await UdpListener.open(host, address, number, choose, clock, log);
      this.#listeners.set(key, listener);
      return listener;
    } catch (error) {
      log.warn(
        { err: error, key: port.service, reason: 'ListenFailed', address, port: number },
        'cannot listen for a Service: is another program there?',
      );
      return undefined;
    }
  }

  #choose({ port, address, number }: ListenAddress, client: string): PlannedEndpoint | undefined {
    if (this.#plan === undefined) return undefined;
    const verdict = verdictFor(this.#plan, {
      // The node's own connections to an address that it was given come from that address.
      source: client === address ? 'node' : sourceOf(this.#plan, client),
      ...{ sourceAddress: client, protocol: port.protocol },
      ...{ destinationAddress: address, destinationPort: number },
    });
    return verdict.verdict === 'forward' ? this.#choice.choose(verdict, client).endpoint : undefined;
  }

  /**
   * Makes the addresses of Services the node's own. IPv4 by routes, which no program takes for an address of the node;
   * IPv6 sockets need an address. One that has open connections stays until a later sync.
   */
  async #giveAddresses(plan: ForwardingPlan): Promise<void> {
    const own = new Set(plan.node.families.flatMap(({ nodeAddresses }) => nodeAddresses));
    const wanted = new Set(this.#closed.values());
    for (const { destination } of plan.destinations.values()) {
      const { address } = destination;
      if (address !== undefined && (this.#addresses.has(address) || !own.has(address))) wanted.add(address);
    }
    const added = [...wanted].filter((address) => this.#mayLackAddresses || !this.#addresses.has(address));
    const removed = [...this.#addresses].filter((address) => !wanted.has(address));
    await this.#ip(removed.map((address) => lineFor('del', address)));
    const { exitCode, stderr } = await this.#ip(added.map((address) => lineFor('replace', address)));
    if (exitCode !== 0)
      throw new Error(`ip could not give the node the addresses of Services: ${stderr.trim()}`);
    this.#mayLackAddresses = false;
    for (const address of removed) this.#addresses.delete(address);
    for (const address of added) this.#addresses.add(address);
  }

  /** `-force`: a line that fails, such as for a route that is gone already, keeps no other from its work. */
  async #ip(lines: readonly string[]): Promise<ExecResult> {
    if (lines.length === 0) return { exitCode: 0, stdout: '', stderr: '' };
    return this.#options.host.exec('ip', ['-force', '-batch', '-'], { input: `${lines.join('\n')}\n` });
  }
}

function lineFor(verb: 'replace' | 'del', address: string): string {
  return address.includes(':')
    ? `address ${verb} ${address}/128 dev lo${verb === 'del' ? '' : ' nodad'}`
    : `route ${verb} local ${address} dev lo`;
}

/** The listeners by address, protocol and port: those at which at least one source is forwarded. */
function listenAddressesOf({ destinations, node }: ForwardingPlan): Map<string, ListenAddress> {
  const places = new Map<string, ListenAddress>();
  const add = (port: ServicePortPlan, destination: Destination, address: string): void => {
    const key = `${address} ${port.protocol} ${destination.port}`;
    // Addresses of Services go before node ports.
    if (destination.address === undefined && places.has(key)) return;
    places.set(key, { port, address, number: destination.port });
  };
  for (const { port, destination } of destinations.values()) {
    const isForwarded = Object.values(destination.actions).some(({ action }) => action === 'forward');
    if (!isForwarded || port.protocol === 'SCTP') continue;
    const family = node.families.find((each) => each.family === port.family);
    const { nodePortAddresses = [], nodeAddresses = [] } = family ?? {};
    const ofNode = nodePortAddresses === 'all' ? nodeAddresses : nodePortAddresses;
    const addresses = destination.address === undefined ? ofNode : [destination.address];
    for (const address of addresses) add(port, destination, address);
  }
  return places;
}
