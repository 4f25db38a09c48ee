/** The thread that `controllers-thread.ts` starts. */
import { flushCompileCache } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { collectHeapAtRest } from '../../host/unused-memory.ts';
import { createLog } from '../../telemetry/log.ts';
import { untilServed } from '../default-pool.ts';
import { explanation, listenProblem } from '../explanation.ts';
import { serviceTable } from '../tables.ts';
import { startClients } from './clients.ts';
import type { ThreadMessage, ThreadOrder, ThreadStart } from './controllers-thread.ts';

/** Bytes of the thread's heap up to which it is collected at rest: with some 100,000 Pods. */
const largestHeap = 512 * 2 ** 20;
/** The table of Services waits so long for the addresses of those of type LoadBalancer. */
const addressTimeoutMs = 2000;

if (parentPort === null) throw new Error('this file is the entry of a thread');
const port = parentPort;
const post = (message: ThreadMessage): void => port.postMessage(message);
const start = Promise.withResolvers<ThreadStart>();
const stop = Promise.withResolvers<undefined>();
port.on('message', (order: ThreadOrder) => {
  if (order.kind === 'start') start.resolve(order);
  else stop.resolve(undefined);
});

const order = await Promise.race([start.promise, stop.promise]);
if (order !== undefined) {
  try {
    await run(order);
  } catch (error) {
    // The only port of the clients is that of their metrics.
    const problem = listenProblem(error, () => '--metrics-bind-address');
    post({ kind: 'failed', message: problem ?? (await explanation(error)) });
  }
}
port.close();

/** Runs the clients until the main thread ends them. */
async function run({ config, server, log }: ThreadStart): Promise<void> {
  const logger = createLog({ level: log.logLevel, format: log.logFormat });
  const clients = await startClients(config, server, logger);
  const stopCollecting = collectHeapAtRest(logger, largestHeap);
  try {
    post({ kind: 'started', report: clients.report });
    const { transport, report } = clients;
    if (config.controllers.includes('load-balancer-controller') && report.applied.length > 0) {
      await untilServed(transport, addressTimeoutMs);
    }
    post({ kind: 'services', table: await serviceTable(transport) });
    // Otherwise only a process that ends by itself leaves its compiled code to the next one.
    flushCompileCache();
    await Promise.race([stop.promise, clients.failure]);
  } finally {
    stopCollecting();
    await clients.stop();
  }
}
