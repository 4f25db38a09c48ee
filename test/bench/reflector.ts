/**
 * Fills a cache with 200,000 Pods over HTTP, streamed and in pages: `node test/bench/reflector.ts`. The server
 * runs in a process of its own, so that the delays are the reader's. Budget (issue C): nothing may hold the event
 * loop up for more than 50 ms.
 */
import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { pino } from 'pino';
import { systemClock } from '../../src/client/clock.ts';
import { createTransport } from '../../src/client/connect.ts';
import { byNamespace, byNode, indexByNamespace, indexByNode } from '../../src/client/informers/cache.ts';
import { Reflector } from '../../src/client/informers/reflector.ts';
import { pods } from '../../src/client/resources.ts';
import { SharedInformer } from '../../src/client/informers/shared-informer.ts';
import { report, type Row } from './report.ts';

const count = 200_000;

/** A Pod of about 3 KB, as clusters have them. */
function pod(number: number): object {
  const env = Array.from({ length: 20 }, (_, i) => ({
    name: `VARIABLE_${i}`,
    value: `value ${i} of ${number}`,
  }));
  return {
    metadata: {
      name: `pod-${number}`,
      namespace: `namespace-${number % 100}`,
      uid: `00000000-0000-0000-0000-${String(number).padStart(12, '0')}`,
      resourceVersion: String(number + 1),
      labels: { app: `app-${number % 1000}`, tier: 'web' },
      managedFields: [
        { manager: 'kubelet', operation: 'Update', fieldsV1: { 'f:status': { 'f:podIP': {} } } },
      ],
    },
    spec: { nodeName: `node-${number % 500}`, containers: [{ name: 'main', image: 'image:1', env }] },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
      conditions: ['Ready', 'Initialized', 'ContainersReady', 'PodScheduled'].map((type) => ({
        type,
        status: 'True',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })),
    },
  };
}

function serve(): void {
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? '/', 'http://localhost').searchParams;
    response.setHeader('content-type', 'application/json');
    if (!query.has('watch')) {
      const start = Number(query.get('continue') ?? 0);
      const end = Math.min(count, start + Number(query.get('limit')));
      const items = Array.from({ length: end - start }, (_, i) => pod(start + i));
      const token = end < count ? { continue: String(end) } : {};
      response.end(JSON.stringify({ metadata: { resourceVersion: String(count), ...token }, items }));
      return;
    }
    if (!query.has('sendInitialEvents')) {
      response.flushHeaders();
      return;
    }
    const send = (from: number): void => {
      for (let i = from; i < count; i++) {
        if (!response.write(`${JSON.stringify({ type: 'ADDED', object: pod(i) })}\n`)) {
          response.once('drain', () => send(i + 1));
          return;
        }
      }
      const annotations = { 'k8s.io/initial-events-end': 'true' };
      const metadata = { resourceVersion: String(count), annotations };
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata } })}\n`);
    };
    send(0);
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    process.send?.(typeof address === 'object' ? address?.port : undefined);
  });
  process.on('disconnect', () => process.exit());
}

async function measure(): Promise<void> {
  const child = fork(new URL(import.meta.url), ['serve']);
  const port = await new Promise<unknown>((resolve) => child.once('message', resolve));
  const rows: Row[] = [];
  try {
    for (const [name, watchList] of [
      ['streamed', true],
      ['pages', false],
    ] as const) {
      const transport = await createTransport({ kind: 'endpoint', url: `http://127.0.0.1:${String(port)}` });
      const log = pino({ level: 'warn' });
      const informer = new SharedInformer({
        resource: pods,
        clock: systemClock,
        log,
        // What an endpoints controller keeps.
        transform: (object) => ({ ...object, spec: { ...object.spec, containers: [] } }),
      });
      informer.addIndex(byNamespace, indexByNamespace);
      informer.addIndex(byNode, indexByNode);
      const reflector = new Reflector({
        transport,
        resource: pods,
        sink: informer,
        clock: systemClock,
        random: Math.random,
        log,
        watchList,
      });
      const stop = new AbortController();
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      const started = performance.now();
      const running = reflector.run(stop.signal);
      await informer.synced(stop.signal);
      const seconds = (performance.now() - started) / 1000;
      delay.disable();
      rows.push(
        { name: `${name}: ${count} Pods`, value: seconds, unit: 's' },
        { name: `${name}: longest stall`, value: delay.max / 1e6, unit: 'ms', budget: '≤ 50 ms' },
        { name: `${name}: stall p99`, value: delay.percentile(99) / 1e6, unit: 'ms' },
        { name: `${name}: resident`, value: process.memoryUsage.rss() / 2 ** 20, unit: 'MiB' },
      );
      stop.abort();
      await running;
      await transport.close();
    }
  } finally {
    child.disconnect();
  }
  await report('reflector', rows);
}

if (process.argv[2] === 'serve') serve();
else await measure();
