import { type ChildProcess, fork } from 'node:child_process';
import type { Logger } from 'pino';
import { type Clock, LoopBackoff, type Random, type Timer, systemClock } from '../../client/clock.ts';
import { asError, type Host } from '../../host/host.ts';
import { checkStreams, localHost, portSharingHost } from '../../host/local-host.ts';
import { compileCache, entries } from '../../paths.ts';
import type { Peers } from '../../telemetry/health.ts';
import { countsOf, mergedMetrics, type MetricsSnapshot } from '../../telemetry/metrics.ts';
import { type FromWorker, isFromWorker, type Job, type ToWorker } from './messages.ts';
import { createServer } from 'node:net';
import { createLog } from '../../telemetry/log.ts';
import { startTelemetryServer, type TelemetryServerOptions } from '../connect.ts';
import { type SignalWait, untilSignal } from '../signals.ts';

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

interface FurtherWorkersOptions {
  /** The file that each runs. */
  readonly entry: string;
  /** How many. They are numbered from 2: the process of the command is the first worker. */
  readonly count: number;
  readonly job: Job;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Between two starts of a worker that ends again and again. */
const backoffLimits = { base: 100, max: 30_000 };
/** Milliseconds for an answer; a probe of a kubelet waits 5 s. */
const answerMs = 2000;
/** Milliseconds that workers have to end beside those that the flags give them. */
const endMs = 5000;

/** The further workers of a command: each a process, which is started again when it ends. */
export class FurtherWorkers implements Peers {
  readonly #options: FurtherWorkersOptions;
  readonly #workers: readonly FurtherWorker[];
  #ofEnded: readonly MetricsSnapshot[] = [];
  #late: Timer | undefined;

  constructor(options: FurtherWorkersOptions) {
    this.#options = options;
    const ended = (counts: MetricsSnapshot): void => {
      this.#ofEnded = [...this.#ofEnded, counts];
    };
    this.#workers = Array.from(
      { length: options.count },
      (_, index) => new FurtherWorker(options, index + 2, ended),
    );
  }

  start(): void {
    for (const worker of this.#workers) worker.start();
  }

  /** From now on each ends as by a signal, and none is started again. One that takes longer than it may is killed. */
  stop(): void {
    const { clock, job } = this.#options;
    // One may have requests to wait for where the first has none.
    const drainMs = job.command === 'router' ? job.config.drainTimeoutMs : 0;
    this.#late ??= clock.after(job.config.lameduckMs + drainMs + endMs, () => {
      for (const worker of this.#workers) worker.kill();
    });
    for (const worker of this.#workers) worker.stop();
  }

  /** Stops them; resolves when all have ended. */
  async close(): Promise<void> {
    this.stop();
    await Promise.all(this.#workers.map((worker) => worker.ended));
    this.#late?.cancel();
  }

  get live(): Peers['live'] {
    return this.#workers.map((worker) => ({ name: worker.name, check: () => worker.whyDead() }));
  }

  get ready(): Peers['ready'] {
    return this.#workers.map((worker) => ({ name: worker.name, check: () => worker.whyNotReady() }));
  }

  async snapshots(): Promise<readonly MetricsSnapshot[]> {
    const running = await Promise.all(this.#workers.map((worker) => worker.snapshot()));
    const ofEnded = this.#ofEnded;
    if (ofEnded.length > 1) {
      const sum = await mergedMetrics(ofEnded).getMetricsAsJSON();
      // Others may have ended meanwhile.
      this.#ofEnded = [sum, ...this.#ofEnded.filter((one) => !ofEnded.includes(one))];
    }
    return [...running, ...this.#ofEnded];
  }
}

/** One of them, and the next process when that ends. */
class FurtherWorker {
  readonly name: string;
  readonly #options: FurtherWorkersOptions;
  readonly #number: number;
  readonly #onCounts: (counts: MetricsSnapshot) => void;
  readonly #backoff: LoopBackoff;
  readonly #asked = new Map<number, (answer: FromWorker | undefined) => void>();
  readonly #over = Promise.withResolvers<undefined>();
  #count = 0;
  #process: ChildProcess | undefined;
  #again: Timer | undefined;
  #snapshot: MetricsSnapshot = [];
  #isStopping = false;

  /** @param onCounts gets what a process that has ended had counted, as far as it was ever asked. */
  constructor(options: FurtherWorkersOptions, number: number, onCounts: (counts: MetricsSnapshot) => void) {
    this.name = `worker-${number}`;
    this.#options = options;
    this.#number = number;
    this.#onCounts = onCounts;
    this.#backoff = new LoopBackoff(options.clock, options.random, backoffLimits);
  }

  /** Resolves when it has been stopped and its process has ended. */
  get ended(): Promise<undefined> {
    return this.#over.promise;
  }

  start(): void {
    const { entry, job } = this.#options;
    this.#again = undefined;
    try {
      // The words are for who lists processes.
      const child = fork(entry, [job.command, this.name], {
        env: { ...process.env, ...compileCache() },
        serialization: 'advanced',
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      checkStreams(child);
      this.#process = child;
      this.#hear(child);
      this.#send({ to: 'start', number: this.#number, job });
    } catch (error) {
      this.#ended({ err: asError(error) });
    }
  }

  stop(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#again?.cancel();
    if (this.#process === undefined) this.#over.resolve(undefined);
    else this.#send({ to: 'stop' });
  }

  kill(): void {
    this.#process?.kill('SIGKILL');
  }

  /** One that starts again is not dead; one that does not answer is. */
  async whyDead(): Promise<string | undefined> {
    const asked = this.#process;
    if (asked === undefined) return undefined;
    const answer = await this.#ask('problems');
    return answer === undefined && this.#process === asked ? 'it does not answer' : undefined;
  }

  async whyNotReady(): Promise<string | undefined> {
    if (this.#process === undefined) return 'it has ended, and starts again';
    const answer = await this.#ask('problems');
    if (answer?.from !== 'problems') return 'it does not answer';
    return answer.problems.length === 0 ? undefined : answer.problems.join('; ');
  }

  /** Its metrics; those of before where it does not answer. */
  async snapshot(): Promise<MetricsSnapshot> {
    const answer = await this.#ask('metrics');
    if (answer?.from === 'metrics') this.#snapshot = answer.snapshot;
    return this.#snapshot;
  }

  #hear(child: ChildProcess): void {
    let isOver = false;
    const over = (how: object): void => {
      if (isOver) return;
      isOver = true;
      this.#ended({ pid: child.pid, ...how });
    };
    child.on('message', (message) => {
      if (isFromWorker(message)) this.#asked.get(message.id)?.(message);
    });
    child.on('error', (error) => {
      // One that could not be started has no end; the error of another is of a message to it, and its end follows.
      if (child.pid === undefined) over({ err: error });
    });
    child.once('exit', (code, signal) => over({ code, signal }));
  }

  #ended(how: object): void {
    const { clock, log } = this.#options;
    this.#process = undefined;
    for (const answer of this.#asked.values()) answer(undefined);
    this.#onCounts(countsOf(this.#snapshot));
    this.#snapshot = [];
    if (this.#isStopping) {
      this.#over.resolve(undefined);
      return;
    }
    const againMs = Math.round(this.#backoff.next());
    log.error(
      { reason: 'WorkerEnded', worker: this.#number, ...how, againMs },
      'a worker has ended and starts again; the others serve on: its lines before this one say why',
    );
    this.#again = clock.after(againMs, () => this.start());
  }

  async #ask(to: 'problems' | 'metrics'): Promise<FromWorker | undefined> {
    if (this.#process === undefined) return undefined;
    const id = ++this.#count;
    const answer = Promise.withResolvers<FromWorker | undefined>();
    const late = this.#options.clock.after(answerMs, () => answer.resolve(undefined));
    this.#asked.set(id, answer.resolve);
    this.#send({ to, id });
    const answered = await answer.promise;
    late.cancel();
    this.#asked.delete(id);
    return answered;
  }

  #send(message: ToWorker): void {
    // One that has ended hears nothing more: its end is seen.
    this.#process?.send(message, () => undefined);
  }
}
