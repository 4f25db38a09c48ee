import { Server, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isAborted } from '../client/clock.ts';
import {
  Caller,
  type FlowListener,
  type NetworkConfig,
  isNetworkEnded,
  isNetworkLocation,
  type Target,
  argvAt,
} from './protocol.ts';
import type { Tuple } from '../network/flows/conntrack.ts';
import type { Flow, FlowFilter } from '../network/flows/flow.ts';
import type { PodResponses } from './pod-server.ts';
import { NetworkSandbox, type NetworkSandboxOptions } from './network-sandbox.ts';
import { compileCache } from '../paths.ts';

/** MiB of V8's young generation in the process inside; its default is 48, which an idle process keeps. */
const youngHeap = 4;

/** Before a network that has ended is made anew; twice as long after each failure. */
const minPauseMs = 500;
const maxPauseMs = 10_000;

/** The number of times that the network may end before it is complete for the first time. */
const attempts = 3;

const networkEnded = 'ClusterNetworkEnded';
const madeAnew = 'the process of the cluster network has ended: it is made anew, and Pods get new sandboxes';

/** Take connections to the API server. */
export interface AcceptConnections {
  /** Those to its address on the LAN. */
  readonly tls: (socket: Socket) => void;
  /** Those of the process inside, without TLS. */
  readonly plain: (socket: Socket) => void;
}

/** A location of the network that is ready for a program. */
export interface Entered {
  /** The command line before the program. */
  readonly argv: readonly string[];
  /** To be called when the program has ended. */
  release(): Promise<void>;
}

/**
 * The cluster network, seen from `up`: namespaces with a process inside. Where that dies, all of them are made anew, and
 * Pods get fresh sandboxes with the addresses that they had.
 */
export class ClusterNetwork {
  readonly #options: NetworkSandboxOptions;
  readonly #log: Logger;
  #sandbox: NetworkSandbox;
  #caller: Caller;
  readonly #listeners: Server[] = [];
  /** How many have looked at flows. */
  #flowViewers = 0;
  /** Called with what Pods answer. */
  onResponses: ((responses: PodResponses) => void) | undefined;
  readonly #responded = (responses: PodResponses): void => this.onResponses?.(responses);
  readonly #closing = new AbortController();

  private constructor(options: NetworkSandboxOptions, log: Logger, sandbox: NetworkSandbox) {
    this.#options = options;
    this.#log = log;
    this.#sandbox = sandbox;
    this.#caller = new Caller(sandbox.channel, this.#responded);
  }

  /**
   * Makes the namespaces.
   *
   * @param entry the file that the process inside runs: it calls `serveNetwork`.
   * @throws {NetworkUnavailableError} where this machine does not let us.
   */
  static async open(
    { families, entry }: Pick<NetworkSandboxOptions, 'families' | 'entry'>,
    log: Logger,
  ): Promise<ClusterNetwork> {
    const options: NetworkSandboxOptions = {
      families,
      entry,
      nodeOptions: [`--max-semi-space-size=${youngHeap / 2}`],
      environment: { NODE_OPTIONS: '', ...compileCache() },
    };
    return new ClusterNetwork(options, log, await NetworkSandbox.open(options));
  }

  /**
   * Starts what runs inside, and makes the network anew whenever it ends.
   *
   * @param accept takes connections to the API server.
   * @returns true when every node has its machine; false where {@link close} came first.
   * @throws {Error} where it ends {@link attempts} times before that, or of what runs inside.
   */
  async start(config: NetworkConfig, accept: AcceptConnections): Promise<boolean> {
    const ready = Promise.withResolvers<boolean>();
    this.#keep(config, accept, ready).catch(ready.reject);
    return await ready.promise;
  }

  /** Why no command of a container can be run here; empty: they can. */
  get commandsObstacle(): string {
    return this.#sandbox.commandsObstacle;
  }

  /** Connects to an address of the cluster, from the control plane. @throws the system's error. */
  dial = async (address: string, port: number): Promise<Socket> => {
    const { handle } = await this.#caller.call({ call: 'dial', address, port });
    return asSocket(handle);
  };

  /** Connects to a port of a Service, by its number or name. @throws {Error} where there is none, or the system's error. */
  async dialService(namespace: string, name: string, port: string): Promise<Socket> {
    const { handle } = await this.#caller.call({ call: 'dial-service', namespace, name, port });
    return asSocket(handle);
  }

  /**
   * Prepares a location for a program.
   *
   * @param folder where it begins; by default that of this process.
   * @throws {Error} where there is no such target.
   */
  async enter(target: Target, folder = process.cwd()): Promise<Entered> {
    const { result: location } = await this.#caller.call({ call: 'locate', target });
    if (!isNetworkLocation(location)) throw new Error('no location came');
    return {
      argv: argvAt(this.#sandbox.enter, location, folder),
      release: async () => {
        await this.#caller.call({ call: 'release', location }).catch((error: unknown) => {
          // Where the network has ended, so has the location.
          if (!isNetworkEnded(error)) throw error;
        });
      },
    };
  }

  /**
   * Looks at flows.
   *
   * @param last how many that are known, at most.
   * @param listener gets what comes after them.
   * @throws {Error} where there can be none.
   */
  async watchFlows(
    filter: FlowFilter,
    last: number,
    listener: FlowListener,
  ): Promise<{ readonly known: readonly Flow[]; readonly end: () => Promise<void> }> {
    const caller = this.#caller;
    const viewer = ++this.#flowViewers;
    caller.flowListeners.set(viewer, listener);
    try {
      const { result } = await caller.call({ call: 'watch-flows', viewer, filter, last });
      const end = async (): Promise<void> => {
        // Without the network, there is nothing to be ended.
        if (caller.flowListeners.delete(viewer)) await caller.call({ call: 'leave-flows', viewer });
      };
      return { known: isFlows(result) ? result : [], end };
    } catch (error) {
      caller.flowListeners.delete(viewer);
      throw error;
    }
  }

  /** What nodes know of a connection of TCP. @throws {Error} where they do not tell. */
  async see(connection: Tuple): Promise<unknown> {
    const { result } = await this.#caller.call({ call: 'see', connection });
    return result;
  }

  /** Ends everything inside. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#sandbox.close();
    // Behind it: a client inside whose connection is refused or reset would log that the API server is gone.
    this.#closeListeners();
  }

  async #begin(config: NetworkConfig, accept: AcceptConnections): Promise<void> {
    const { forwarding } = this.#sandbox;
    if (forwarding === 'userspace') {
      this.#log.warn(
        { reason: 'NoNftables' },
        'Services are forwarded in userspace, host ports and policies are off: there is no nft, install the package nftables',
      );
    }
    const { handle: ownWay } = await this.#caller.call({ call: 'own-way' });
    if (ownWay instanceof Server) this.#listen(ownWay, accept.plain);
    const { handle } = await this.#caller.call({ call: 'start', config: { ...config, forwarding } });
    if (!(handle instanceof Server)) throw new Error('no server came');
    this.#listen(handle, accept.tls);
  }

  #listen(server: Server, accept: (socket: Socket) => void): void {
    server.on('connection', accept);
    server.on('error', (error) => this.#log.error({ err: error }, 'cannot accept a connection of the LAN'));
    this.#listeners.push(server);
  }

  #closeListeners(): void {
    for (const server of this.#listeners.splice(0)) server.close();
  }

  /**
   * Runs the network until it is closed.
   *
   * @param ready is resolved when it is complete for the first time.
   * @throws {Error} where that does not come about; later failures are logged, and it is tried again.
   */
  async #keep(
    config: NetworkConfig,
    accept: AcceptConnections,
    ready: PromiseWithResolvers<boolean>,
  ): Promise<void> {
    let isReady = false;
    let pauseMs = minPauseMs;
    for (let attempt = 1; !isAborted(this.#closing.signal); attempt++) {
      try {
        if (attempt > 1) await this.#reopen();
        await this.#begin(config, accept);
        await this.#caller.call({ call: 'complete' });
        isReady = true;
        pauseMs = minPauseMs;
        ready.resolve(true);
        await this.#sandbox.ended;
        const { exitCode, signalCode } = this.#sandbox.channel;
        if (!isAborted(this.#closing.signal)) {
          this.#log.error({ reason: networkEnded, exitCode, signal: signalCode }, madeAnew);
        }
      } catch (error) {
        if (isAborted(this.#closing.signal)) break;
        if (!isReady && attempt === attempts) throw error;
        this.#log.error({ reason: networkEnded, err: error }, madeAnew);
      }
      this.#closeListeners();
      await delay(pauseMs, undefined, { ref: false });
      pauseMs = Math.min(pauseMs * 2, maxPauseMs);
    }
    // One that came behind `close` would keep the process.
    this.#closeListeners();
    ready.resolve(false);
  }

  async #reopen(): Promise<void> {
    await this.#sandbox.close();
    this.#sandbox = await NetworkSandbox.open(this.#options);
    this.#caller = new Caller(this.#sandbox.channel, this.#responded);
    // `close` came meanwhile, and has ended the last one.
    if (isAborted(this.#closing.signal)) await this.#sandbox.close();
  }
}

/** The other end is this program. */
function isFlows(result: unknown): result is readonly Flow[] {
  return Array.isArray(result);
}

function asSocket(handle: unknown): Socket {
  // The other end may have closed it on its way.
  if (!(handle instanceof Socket)) throw Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
  return handle;
}
