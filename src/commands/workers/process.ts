/** A further worker of `servicenet dns` or `servicenet router` (`worker.ts` starts it). */
import * as v8 from 'node:v8';
import type { Logger } from 'pino';
import { portSharingHost } from '../../host/local-host.ts';
import type { HealthCheck } from '../../telemetry/health.ts';
import { createLog } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { type FromWorker, isToWorker, type Job, type ToWorker } from './messages.ts';
import type { Worker } from './worker.ts';

// As in main.js; what it is for is loaded with the command.
v8.setFlagsFromString('--wasm-tiering-budget=2000000000');

const stopped = Promise.withResolvers<'SIGTERM'>();
/** What the command says of itself; nothing before it is that far. */
let known: { readonly metrics: Metrics; readonly ready: readonly HealthCheck[] } | undefined;

function tell(message: FromWorker): void {
  // Without a channel the process is about to end.
  process.send?.(message, () => undefined);
}

async function run(log: Logger, job: Job): Promise<void> {
  const worker: Worker = {
    ...{ isFirst: false, log, host: portSharingHost },
    signal: { received: stopped.promise, release: () => undefined },
    serveTelemetry: ({ address, metrics, ready }) => {
      if (address !== undefined) metrics.collectProcessMetrics();
      known = { metrics, ready: ready() };
      return Promise.resolve({ close: () => Promise.resolve() });
    },
    startOthers: () => undefined,
    endOthers: () => Promise.resolve(),
  };
  switch (job.command) {
    case 'dns':
      await (await import('../dns.ts')).dns(job.config, worker);
      return;
    case 'router':
      await (await import('../router.ts')).router(job.config, worker);
  }
}

function problems(): readonly string[] {
  if (known === undefined) return ['it is starting'];
  return known.ready.flatMap((one) => {
    const problem = one.check();
    return problem === undefined ? [] : [`${one.name}: ${problem}`];
  });
}

async function hear(message: ToWorker): Promise<void> {
  switch (message.to) {
    case 'start': {
      const { number, job } = message;
      const { logLevel: level, logFormat: format } = job.config;
      const log = createLog({ level, format }).child({ worker: number });
      try {
        await run(log, job);
        process.disconnect();
      } catch (error) {
        log.fatal({ err: error }, 'the worker cannot serve');
        process.exit(1);
      }
      return;
    }
    case 'problems':
      tell({ from: 'problems', id: message.id, problems: problems() });
      return;
    case 'metrics':
      tell({ from: 'metrics', id: message.id, snapshot: (await known?.metrics.snapshot()) ?? [] });
      return;
    case 'stop':
      stopped.resolve('SIGTERM');
  }
}

// Those of a terminal or of a service manager reach this process too; it ends when the first worker says so.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined);
process.on('message', (message) => {
  if (!isToWorker(message)) return;
  hear(message).catch((error: unknown) => {
    process.stderr.write(`servicenet: a worker failed: ${String(error)}\n`);
    process.exit(1);
  });
});
process.on('disconnect', () => process.exit(0));
