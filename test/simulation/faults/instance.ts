import { pino } from 'pino';
import type { Clock } from '../../../src/client/clock.ts';
import { createTransport } from '../../../src/client/connect.ts';
import { runControllers, type RunningControllers } from '../../../src/controllers/run.ts';
import { controllersOf } from '../../support/all-controllers.ts';
import { maxEndpointsPerSlice } from './findings/endpoints.ts';
import { SimulatedProcess } from './process.ts';
import type { Choices } from './random.ts';
import type { Scene } from './scene.ts';
import type { Trace } from './trace.ts';

/** What the instances elect their leader by. */
export const lease = { namespace: 'kube-system', name: 'simulation' };
/** Milliseconds that a follower waits for a silent leader. */
export const leaseDurationMs = 10_000;
const controllers = {
  always: [
    ...['service-allocation-controller', 'load-balancer-controller', 'service-cidr-controller'],
    ...['endpoints-controller', 'endpointslice-controller', 'endpointslice-mirroring-controller'],
  ],
  collecting: ['garbage-collector-controller', 'namespace-controller'],
};

/** What an instance runs with. */
export interface InstanceOptions {
  readonly url: string;
  readonly scene: Scene;
  readonly clock: Clock;
  readonly choices: Choices;
  readonly identity: string;
  readonly trace: Trace;
  /** Called for each request that it sends. */
  readonly sends: (method: string, path: string) => void;
  /** One of another installation: it allocates without leader election. */
  readonly isRival?: boolean;
}

/** One process of controllers, as far as the cluster can tell. */
export class Instance {
  readonly process: SimulatedProcess;
  readonly identity: string;
  readonly #running: RunningControllers;

  private constructor(identity: string, process: SimulatedProcess, running: RunningControllers) {
    this.identity = identity;
    this.process = process;
    this.#running = running;
  }

  static async start(options: InstanceOptions): Promise<Instance> {
    const { url, scene, clock: time, choices, identity, trace, sends, isRival = false } = options;
    const network = await createTransport({ kind: 'endpoint', url });
    const process = new SimulatedProcess(identity, network, time, sends);
    const { transport, clock } = process;
    const { allocation, nodePorts, collects } = scene;
    const running = runControllers({
      transport,
      controllers: controllersOf(
        {
          transport,
          maxEndpointsPerSlice,
          namespaceGracePeriodMs: 1000,
          serviceAllocation: { allocation, nodePorts },
        },
        isRival
          ? ['service-allocation-controller']
          : [...controllers.always, ...(collects ? controllers.collecting : [])],
      ),
      log:
        trace === undefined
          ? pino({ enabled: false })
          : pino({ level: 'debug', base: { identity } }, { write: trace }),
      clock,
      random: choices.next,
      ...(isRival
        ? {}
        : {
            leaderElection: {
              ...lease,
              identity,
              leaseDurationMs,
              renewDeadlineMs: 8000,
              retryPeriodMs: 500,
            },
          }),
    });
    return new Instance(identity, process, running);
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
    // A signal waits until a process goes on.
    this.process.continue('timers');
    this.process.hear();
    await this.#running.stop();
    await this.process.transport.close();
  }

  /** As kill -9 does: nothing is sent any more. What is on its way arrives all the same. */
  async crash(): Promise<void> {
    await this.process.transport.close();
    await this.#running.stop();
  }
}
