import { getCompileCacheDir } from 'node:module';
import { Server, Socket } from 'node:net';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isAborted } from '../client/clock.ts';
import { Caller, type InsideConfig, isPlace, type Where } from './calls.ts';
import type { PodAnswers } from './pod-server.ts';
import { Sandbox, type SandboxOptions } from './sandbox.ts';
import { wordsAt } from './calls.ts';

/** MiB of V8's young generation in the process inside; its default is 48, which an idle process keeps. */
const youngHeap = 4;

/** Milliseconds before a network that has ended is made anew; twice as many after each failure. */
const minPause = 500;
const maxPause = 10_000;

/** The number of times that the network may end before it is complete for the first time. */
const attempts = 3;

const networkEnded = 'ClusterNetworkEnded';
const madeAnew = 'the process of the cluster network has ended: it is made anew, and Pods get new sandboxes';

/** The words that run a program at a place of the network. */
export interface Entered {
  /** The words before the program. */
  readonly words: readonly string[];
  /** To be called when the program has ended. */
  leave(): Promise<void>;
}

/**
 * The cluster network, seen from `up`: namespaces with a process inside. Where that dies, all of them are made anew, and
 * Pods get fresh sandboxes with the addresses that they had.
 */
export class ClusterNetwork {
  readonly #options: SandboxOptions;
  readonly #log: Logger;
  #sandbox: Sandbox;
  #caller: Caller;
  #listener: Server | undefined;
  /** Called with what Pods answer. */
  onAnswers: ((answers: PodAnswers) => void) | undefined;
  readonly #answered = (answers: PodAnswers): void => this.onAnswers?.(answers);
  readonly #closing = new AbortController();

  private constructor(options: SandboxOptions, log: Logger, sandbox: Sandbox) {
    this.#options = options;
    this.#log = log;
    this.#sandbox = sandbox;
    this.#caller = new Caller(sandbox.channel, this.#answered);
  }

  /**
   * Makes the namespaces.
   *
   * @param entry the file that the process inside runs: it calls `serveNetwork`.
   * @throws {NetworkUnavailableError} where this machine does not let us.
   */
  static async open(
    { families, entry }: Pick<SandboxOptions, 'families' | 'entry'>,
    log: Logger,
  ): Promise<ClusterNetwork> {
    const cache = getCompileCacheDir();
    const options: SandboxOptions = {
      families,
      entry,
      nodeOptions: [`--max-semi-space-size=${youngHeap / 2}`],
      // Node adds a folder for its version to the one that it gets.
      environment: {
        NODE_OPTIONS: '',
        ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) }),
      },
    };
    return new ClusterNetwork(options, log, await Sandbox.open(options));
  }

  /**
   * Starts what runs inside, and makes the network anew whenever it ends.
   *
   * @param accept takes connections to the API server's address on the LAN.
   * @returns true when every node has its machine; false where {@link close} came first.
   * @throws {Error} where it ends {@link attempts} times before that, or of what runs inside.
   */
  async start(config: InsideConfig, accept: (socket: Socket) => void): Promise<boolean> {
    const ready = Promise.withResolvers<boolean>();
    this.#keep(config, accept, ready).catch(ready.reject);
    return await ready.promise;
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
   * Prepares a place for a program.
   *
   * @param folder where it begins; by default that of this process.
   * @throws {Error} where there is no such place.
   */
  async enter(where: Where, folder = process.cwd()): Promise<Entered> {
    const { result: place } = await this.#caller.call({ call: 'place', where });
    if (!isPlace(place)) throw new Error('no place came');
    return {
      words: wordsAt(this.#sandbox.enter, place, folder),
      leave: async () => {
        await this.#caller.call({ call: 'leave', place });
      },
    };
  }

  /** Ends everything inside. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#listener?.close();
    await this.#sandbox.close();
  }

  async #begin(config: InsideConfig, accept: (socket: Socket) => void): Promise<void> {
    const { forwarding } = this.#sandbox;
    if (forwarding === 'userspace') {
      this.#log.warn(
        { reason: 'NoNftables' },
        'Services are forwarded in userspace, host ports and policies are off: there is no nft, install the package nftables',
      );
    }
    const { handle } = await this.#caller.call({ call: 'start', config: { ...config, forwarding } });
    if (!(handle instanceof Server)) throw new Error('no server came');
    handle.on('connection', accept);
    handle.on('error', (error) => this.#log.error({ err: error }, 'cannot accept a connection of the LAN'));
    this.#listener = handle;
  }

  /**
   * Runs the network until it is closed.
   *
   * @param ready is resolved when it is complete for the first time.
   * @throws {Error} where that does not come about; later failures are logged, and it is tried again.
   */
  async #keep(
    config: InsideConfig,
    accept: (socket: Socket) => void,
    ready: PromiseWithResolvers<boolean>,
  ): Promise<void> {
    let isReady = false;
    let pause = minPause;
    for (let attempt = 1; !isAborted(this.#closing.signal); attempt++) {
      try {
        if (attempt > 1) await this.#reopen();
        await this.#begin(config, accept);
        await this.#caller.call({ call: 'complete' });
        isReady = true;
        pause = minPause;
        ready.resolve(true);
        await this.#sandbox.ended;
        if (!isAborted(this.#closing.signal)) this.#log.error({ reason: networkEnded }, madeAnew);
      } catch (error) {
        if (isAborted(this.#closing.signal)) break;
        if (!isReady && attempt === attempts) throw error;
        this.#log.error({ reason: networkEnded, err: error }, madeAnew);
      }
      this.#listener?.close();
      await delay(pause, undefined, { ref: false });
      pause = Math.min(pause * 2, maxPause);
    }
    // One that came behind `close` would keep the process.
    this.#listener?.close();
    ready.resolve(false);
  }

  async #reopen(): Promise<void> {
    await this.#sandbox.close();
    this.#sandbox = await Sandbox.open(this.#options);
    this.#caller = new Caller(this.#sandbox.channel, this.#answered);
    // `close` came meanwhile, and has ended the last one.
    if (isAborted(this.#closing.signal)) await this.#sandbox.close();
  }
}

function asSocket(handle: unknown): Socket {
  // The other end may have closed it on its way.
  if (!(handle instanceof Socket)) throw Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
  return handle;
}
