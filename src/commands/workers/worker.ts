import { createServer } from 'node:net';
import type { Logger } from 'pino';
import { systemClock } from '../../client/clock.ts';
import type { Host } from '../../host/host.ts';
import { localHost, portSharingHost } from '../../host/local-host.ts';
import { entries } from '../../paths.ts';
import { createLog } from '../../telemetry/log.ts';
import { startTelemetryServer, type TelemetryServerOptions } from '../connect.ts';
import { type SignalWait, untilSignal } from '../signals.ts';
import { FurtherWorkers } from './further-workers.ts';
import type { Job } from './messages.ts';

/**
 * A process of a command whose work several may share (`--workers`): what is one thing for all of them. Each has its own
 * connection to the API server and its own view of its objects, and binds the same ports.
 */
export interface Worker {
  /** Whether it does what one alone does, such as writing status. */
  readonly isFirst: boolean;
  readonly log: Logger;
  readonly host: Host;
  /** The signal to end. */
  readonly signal: SignalWait;
  /** Serves health and metrics, those of all workers, or hands its own to who does. */
  serveTelemetry(options: TelemetryServerOptions): Promise<{ close(): Promise<void> }>;
  /** Called once it serves: starts the others. They end by the same signal. */
  startOthers(): void;
  /** Resolves when the others have ended. */
  endOthers(): Promise<void>;
}

/** The worker that a command's own process is, by its flags. */
export function firstWorker(job: Job): Worker {
  const { logLevel: level, logFormat: format, workers: count } = job.config;
  const log = createLog({ level, format });
  const signal = untilSignal(log);
  if (count === 1) {
    return {
      ...{ isFirst: true, log, host: localHost, signal, serveTelemetry: startTelemetryServer },
      ...{ startOthers: () => undefined, endOthers: () => Promise.resolve() },
    };
  }
  const { workerProcess: entry } = entries;
  const random = Math.random;
  const others = new FurtherWorkers({ entry, count: count - 1, job, clock: systemClock, random, log });
  void signal.received.then(() => others.stop());
  let isAlone = true;
  return {
    ...{ isFirst: true, log: log.child({ worker: 1 }), signal },
    host: hostOfFirst(() => isAlone),
    serveTelemetry: (options) => startTelemetryServer({ ...options, peers: others }),
    startOthers: () => {
      isAlone = false;
      others.start();
    },
    endOthers: () => others.close(),
  };
}

/** A port that shares is bound beside one of another command too, which would get half of what comes: that is refused. */
function hostOfFirst(isAlone: () => boolean): Host {
  return {
    ...portSharingHost,
    async listen(server, address, port) {
      if (isAlone()) {
        const probe = createServer();
        await localHost.listen(probe, address, port);
        await new Promise((resolve) => probe.close(resolve));
      }
      await portSharingHost.listen(server, address, port);
    },
    async datagram(address, port) {
      if (isAlone() && port !== 0) {
        const probe = await localHost.datagram(address, port);
        await new Promise<void>((resolve) => probe.close(resolve));
      }
      return await portSharingHost.datagram(address, port);
    },
  };
}
