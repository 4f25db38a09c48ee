import { Worker } from 'node:worker_threads';
import type { LogConfig } from '../../flags/shared.ts';
import { compileCache, entries } from '../../paths.ts';
import type { ClientsConfig, ClientsReport, RunningClients, ServerAccess } from './clients.ts';

/** Messages to the thread, as structured clones: its settings, then the order to stop. */
export type ThreadOrder = ThreadStart | { readonly kind: 'stop' };

export interface ThreadStart {
  readonly kind: 'start';
  readonly config: ClientsConfig;
  readonly log: LogConfig;
  readonly server: ServerAccess;
}

/** Messages of the thread: that it has started, then the state of the Services; or why it has failed. */
export type ThreadMessage =
  | { readonly kind: 'started'; readonly report: ClientsReport }
  | { readonly kind: 'services'; readonly table: string }
  | { readonly kind: 'failed'; readonly message: string };

/**
 * MiB of the thread's heap. The young generation is 48 by default, which an idle thread keeps. The old one needs
 * 1400 for a thousand nodes full of Pods.
 */
const heap = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 1800 };

/**
 * The clients of a local cluster in a thread of their own (`worker.ts`): a busy controller delays no answer of the
 * server. The thread loads its code from the start on, while the server does the same.
 */
export class ControllersThread {
  /** The table of Services, once those of type LoadBalancer have their addresses. Rejects when the thread fails. */
  readonly serviceTable: Promise<string>;
  readonly #worker: Worker;
  readonly #report: Promise<ClientsReport>;
  readonly #failure: Promise<never>;
  readonly #exited: Promise<unknown>;
  #stopping = false;

  constructor() {
    this.#worker = new Worker(entries.controllersThread, {
      env: { ...process.env, ...compileCache() },
      resourceLimits: heap,
    });
    this.#exited = new Promise((resolve) => this.#worker.once('exit', resolve));
    const report = Promise.withResolvers<ClientsReport>();
    const table = Promise.withResolvers<string>();
    const failure = Promise.withResolvers<never>();
    this.#worker.on('message', (message: ThreadMessage) => {
      if (message.kind === 'started') report.resolve(message.report);
      else if (message.kind === 'services') table.resolve(message.table);
      else failure.reject(new Error(message.message));
    });
    this.#worker.once('error', failure.reject);
    this.#worker.once('exit', () => {
      if (!this.#stopping) failure.reject(new Error('the thread of the controllers ended'));
    });
    this.#failure = failure.promise;
    this.#report = Promise.race([report.promise, this.#failure]);
    this.serviceTable = Promise.race([table.promise, this.#failure]);
    // A failure rejects both promises; a caller may await only one of them.
    for (const promise of [this.#exited, this.#failure, this.#report, this.serviceTable]) {
      promise.catch(() => undefined);
    }
  }

  /** Starts the clients of a server. @throws {Error} when one of them cannot start. */
  async start(
    config: ClientsConfig,
    server: ServerAccess,
    { logLevel, logFormat }: LogConfig,
  ): Promise<RunningClients> {
    const order: ThreadOrder = { kind: 'start', config, server, log: { logLevel, logFormat } };
    this.#worker.postMessage(order, server.thread === undefined ? [] : [server.thread]);
    return { report: await this.#report, failure: this.#failure, stop: () => this.stop() };
  }

  /** Lets running work finish, ends the clients, then the thread. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#order({ kind: 'stop' });
    await this.#exited;
  }

  #order(order: ThreadOrder): void {
    this.#worker.postMessage(order);
  }
}
