/** The thread that `clients-thread.ts` starts. */
import { flushCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { serviceCidrs } from '../config/service-ranges.ts';
import { createLog } from '../telemetry/log.ts';
import type { ThreadMessage, ThreadStart } from './clients-thread.ts';
import { endInReverse } from './ending.ts';
import { runClients } from './up-clients.ts';

if (parentPort === null) throw new Error('this file is the entry of a thread');
const port = parentPort;
const start = workerData as ThreadStart;
const say = (message: ThreadMessage): void => port.postMessage(message);
const log = createLog({ level: start.config.logLevel, format: start.config.logFormat });
// What was started, to be ended in reverse, however far the start came.
const started: (() => Promise<void>)[] = [];
const stopped = new Promise<void>((resolve) => {
  port.once('message', () => resolve());
});
try {
  const introduction = await runClients({
    config: { ...start.config, serviceCidrs: serviceCidrs(start.serviceCidrs) },
    server: { kind: 'endpoint', ...start.server },
    log,
    started,
  });
  say({ kind: 'started', introduction });
  // Else only a process that ends in peace leaves its compiled code to the next one.
  flushCompileCache();
} catch (error) {
  say({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
}
await stopped;
await endInReverse(started);
port.close();
