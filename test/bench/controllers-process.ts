/**
 * The endpoints controllers in a process of their own, so that memory and CPU are theirs alone. Forked by
 * controllers.ts: argv[2] is the connection as JSON, argv[3] the number of reconciles of a cold start. It tells when
 * everything is written, answers `used`, and ends on `stop`.
 */
import { pino } from 'pino';
import { createTransport } from '../../src/client/connect.ts';
import type { ClusterSource, Transport } from '../../src/client/transport.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { endpointsController } from '../../src/controllers/service-endpoints/endpoints/controller.ts';
import { endpointSlicesController } from '../../src/controllers/service-endpoints/slices/controller.ts';
import { isRecord } from '../../src/objects/json.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';

/** What the process tells when it has been quiet for a second. */
export interface Settled {
  readonly seconds: number;
  readonly writes: number;
  readonly cpuSeconds: number;
  readonly residentMiB: number;
}

function source(text: string): ClusterSource {
  const said: unknown = JSON.parse(text);
  if (!isRecord(said) || typeof said['url'] !== 'string') return { kind: 'kubeconfig' };
  const { url, token, ca } = said;
  return { kind: 'endpoint', url, token: String(token), ca: String(ca) };
}

/** Counts writes that pass through. */
function counting(inner: Transport): Transport & { writes: number; lastWrite: number } {
  return {
    server: inner.server,
    writes: 0,
    lastWrite: 0,
    async request(method, path, options) {
      const answer = await inner.request(method, path, options);
      if (method !== 'GET') {
        this.writes++;
        this.lastWrite = performance.now();
      }
      return answer;
    },
    stream: (path, options) => inner.stream(path, options),
    close: () => inner.close(),
  };
}

function cpuSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

/** Resolves when nothing was reconciled for so many milliseconds. */
async function untilQuiet(metrics: Metrics, milliseconds: number, atLeast: number): Promise<void> {
  let last = -1;
  let since = performance.now();
  for (;;) {
    const { values } = await metrics.reconciles.get();
    const total = values.reduce((sum, { value }) => sum + value, 0);
    if (total !== last) since = performance.now();
    last = total;
    if (total >= atLeast && performance.now() - since >= milliseconds) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const transport = counting(await createTransport(source(process.argv[2] ?? '{}')));
const metrics = new Metrics();
const began = performance.now();
const cpu = process.cpuUsage();
const running = runControllers({
  transport,
  controllers: [endpointsController, endpointSlicesController()],
  log: pino({ level: 'silent' }),
  metrics,
  // In a foreign cluster, other Services are not ours.
  serves: ({ metadata }) => metadata.namespace?.startsWith('servicenet-bench') === true,
});
process.on('message', (message) => {
  if (message === 'used') process.send?.({ writes: transport.writes, cpuSeconds: cpuSince(cpu) });
  if (message !== 'stop') return;
  running
    .stop()
    .then(() => transport.close())
    .then(
      () => process.exit(0),
      () => process.exit(1),
    );
});
process.on('disconnect', () => process.exit());
await untilQuiet(metrics, 1000, Number(process.argv[3] ?? 0));
const settled: Settled = {
  seconds: Math.max(0, transport.lastWrite - began) / 1000,
  writes: transport.writes,
  cpuSeconds: cpuSince(cpu),
  residentMiB: process.memoryUsage.rss() / 2 ** 20,
};
process.send?.(settled);
