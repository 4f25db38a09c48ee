import { pino } from 'pino';
import type { Clock } from '../../../src/client/clock.ts';
import { createTransport } from '../../../src/client/connect.ts';
import type { Transport } from '../../../src/client/transport.ts';
import {
  controllersBesideACluster,
  runControllers,
  type RunningControllers,
} from '../../../src/controllers/index.ts';
import type { Choices } from './random.ts';
import type { Trace } from './trace.ts';

const lease = { namespace: 'kube-system', name: 'simulation' };

/** What an instance runs with. */
export interface InstanceOptions {
  readonly url: string;
  readonly allocation: 'server' | 'controller';
  readonly clock: Clock;
  readonly choices: Choices;
  readonly identity: string;
  readonly trace: Trace;
}

/** One process of controllers, as far as the cluster can tell. */
export class Instance {
  readonly #transport: Transport;
  readonly #running: RunningControllers;

  private constructor(transport: Transport, running: RunningControllers) {
    this.#transport = transport;
    this.#running = running;
  }

  static async start(options: InstanceOptions): Promise<Instance> {
    const { url, allocation, clock, choices, identity, trace } = options;
    const transport = await createTransport({ kind: 'endpoint', url });
    const running = runControllers({
      transport,
      catalog: controllersBesideACluster(
        { transport, allocation, nodePorts: { first: 30000, last: 30099 } },
        { transport },
      ),
      controllers: ['*', 'endpoints-controller', 'endpointslice-controller'],
      log:
        trace === undefined
          ? pino({ enabled: false })
          : pino({ level: 'debug', base: { identity } }, { write: trace }),
      clock,
      random: choices.next,
      leaderElection: { ...lease, identity, leaseDuration: 10_000, renewDeadline: 8000, retryPeriod: 500 },
    });
    return new Instance(transport, running);
  }

  /** Resolves when it leads no more: it was stopped, or lost the lease. Rejects on a bug. */
  get ended(): Promise<unknown> {
    return this.#running.ended;
  }

  get isLeader(): boolean {
    return this.#running.healthChecks().some(({ name }) => name === 'leader-election (leading)');
  }

  /** What its `/readyz` complains about. */
  complaints(): string[] {
    return this.#running.healthChecks().flatMap((health) => {
      const complaint = health.check();
      return complaint === undefined ? [] : [`not ready: ${health.name}: ${complaint}`];
    });
  }

  /** As a signal does: work is finished and the lease given back, where the network lets it. */
  async stop(): Promise<void> {
    await this.#running.stop();
    await this.#transport.close();
  }

  /** As kill -9 does: nothing is sent any more. What is on its way arrives all the same. */
  async crash(): Promise<void> {
    await this.#transport.close();
    await this.#running.stop();
  }
}
