import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FurtherWorkers } from '../../../../src/commands/workers/worker.ts';
import { isRecord } from '../../../../src/objects/json.ts';
import { createLog } from '../../../../src/telemetry/log.ts';
import { Metrics, mergedMetrics } from '../../../../src/telemetry/metrics.ts';
import { givenFlags } from '../../../support/command-line.ts';
import { dnsConfig } from '../../../../src/flags/dns.ts';
import { routerConfig } from '../../../../src/flags/router.ts';
import type { Job } from '../../../../src/commands/workers/messages.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

/** Processes that play workers. */
const programs = {
  'ends.mjs': 'process.exit(3);',
  'silent.mjs': "process.on('message', ({ to }) => { if (to === 'stop') process.exit(0); });",
  'lingers.mjs': "process.on('message', () => undefined);",
  // Each counts 5 requests, and ends when it is asked for problems.
  'counts.mjs': `
    import { Counter, Gauge, Registry } from ${JSON.stringify(import.meta.resolve('prom-client'))};
    const registry = new Registry();
    new Counter({ name: 'requests_total', help: 'h', registers: [registry] }).inc(5);
    new Gauge({ name: 'open', help: 'h', registers: [registry] }).set(7);
    process.on('message', async ({ to, id }) => {
      if (to === 'metrics') process.send({ from: 'metrics', id, snapshot: await registry.getMetricsAsJSON() });
      else if (to !== 'start') process.exit(0);
    });
  `,
};
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servicenet-workers-'));
  for (const [name, text] of Object.entries(programs)) await writeFile(join(folder, name), text);
});
afterAll(async () => rm(folder, { recursive: true }));

function workersOf(
  program: keyof typeof programs,
  job: Job = { command: 'dns', config: dnsConfig(givenFlags('dns', [])) },
) {
  const clock = new FakeClock();
  const lines: Readonly<Record<string, unknown>>[] = [];
  const destination = {
    write: (line: string) => {
      const entry: unknown = JSON.parse(line);
      if (isRecord(entry)) lines.push(entry);
    },
  };
  const workers = new FurtherWorkers({
    ...{ entry: join(folder, program), count: 1, clock, random: () => 0 },
    job,
    log: createLog({ level: 'info', format: 'json', destination }),
  });
  return { workers, clock, lines };
}

test('one that ends again and again is started again ever later, with a line each time, until all are stopped', async () => {
  const { workers, clock, lines } = workersOf('ends.mjs');
  workers.start();
  for (let ends = 1; ends <= 4; ends++) {
    await expect.poll(() => lines.length).toBe(ends);
    expect(await workers.ready[0]?.check()).toBe('it has ended, and starts again');
    expect(await workers.live[0]?.check()).toBeUndefined();
    if (ends < 4) await clock.advance(Number(lines.at(-1)?.['againMs']));
  }
  expect(lines.map(({ reason, worker, code, againMs }) => [reason, worker, code, againMs])).toEqual(
    [100, 200, 400, 800].map((againMs) => ['WorkerEnded', 2, 3, againMs]),
  );
  await workers.close();
  expect(clock.timers).toEqual([]);
});

test('one that does not answer in time is neither ready nor alive', async () => {
  const { workers, clock } = workersOf('silent.mjs');
  workers.start();
  const checks = Promise.all([...workers.ready, ...workers.live].map((one) => one.check()));
  await clock.advance(2000);
  expect(await checks).toEqual(['it does not answer', 'it does not answer']);
  await workers.close();
});

test('what those that have ended had counted stays, and what they had at the time goes', async () => {
  const { workers, clock, lines } = workersOf('counts.mjs');
  workers.start();
  const metrics = new Metrics();
  const seen: unknown[] = [];
  for (let ends = 1; ends <= 3; ends++) {
    const text = await mergedMetrics([await metrics.snapshot(), ...(await workers.snapshots())]).metrics();
    seen.push([/^requests_total (.*)/m.exec(text)?.[1], /^open (.*)/m.exec(text)?.[1]]);
    await workers.ready[0]?.check();
    await expect.poll(() => lines.length).toBe(ends);
    await clock.advance(Number(lines.at(-1)?.['againMs']));
  }
  expect(seen).toEqual([
    ['5', '7'],
    ['10', '7'],
    ['15', '7'],
  ]);
  await workers.close();
});

test('one has the time of the flags to end, however soon the first has ended, and not more', async () => {
  const config = routerConfig(givenFlags('router', ['--lameduck', '20s', '--drain-timeout', '30s']));
  const { workers, clock } = workersOf('lingers.mjs', { command: 'router', config });
  workers.start();
  let isOver = false;
  const closed = workers.close().then(() => {
    isOver = true;
  });
  await clock.advance(54_999);
  expect([isOver, clock.timers]).toEqual([false, [1]]);
  await clock.advance(1);
  await closed;
});
