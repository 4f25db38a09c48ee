import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createTransport } from '../../src/client/connect.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { serviceAllocationController } from '../../src/controllers/service-allocation/controller.ts';
import { loadBalancerController } from '../../src/controllers/load-balancer/controller.ts';
import { nodePortRange } from '../../src/flags/shared.ts';
import { isRecord } from '../../src/objects/json.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { until } from '../support/until.ts';

let directory = '';
const cleanups: (() => Promise<void>)[] = [];

beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-outage-'));
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  fs.rmSync(directory, { recursive: true });
});

interface Line {
  readonly level: string;
  readonly time: string;
  readonly reason: string;
  readonly msg: string;
}

interface Watched {
  /** What the controllers logged at info and above. */
  readonly lines: readonly Line[];
  readonly text: () => string;
  /** Failed lists and watches. */
  failures(): Promise<number>;
  isReady(): boolean;
}

/** The controllers of `servicenet controller`, with a lease that is renewed ten times a second. */
async function run(server: TestServer, token = server.token): Promise<Watched> {
  const texts: string[] = [];
  const lines: Line[] = [];
  const write = (text: string): void => {
    texts.push(text);
    const entry: unknown = JSON.parse(text);
    const word = (name: string): string => (isRecord(entry) ? String(entry[name]) : '');
    lines.push({ level: word('level'), time: word('time'), reason: word('reason'), msg: word('msg') });
  };
  const metrics = new Metrics();
  const transport = await createTransport({ kind: 'endpoint', url: server.url, ca: server.ca, token });
  cleanups.push(() => transport.close());
  const controllers = runControllers({
    transport,
    controllers: [
      serviceAllocationController({
        transport,
        allocation: 'server',
        nodePorts: nodePortRange('30000-32767'),
      }),
      loadBalancerController(),
    ],
    log: createLog({ level: 'info', format: 'json', destination: { write } }),
    metrics,
    leaderElection: {
      namespace: 'kube-system',
      name: 'test',
      identity: 'me',
      leaseDurationMs: 3_600_000,
      renewDeadlineMs: 3_000_000,
      retryPeriodMs: 100,
    },
  });
  cleanups.push(() => controllers.stop());
  return {
    lines,
    text: () => texts.join(''),
    failures: async () => {
      const { values } = await metrics.watchFailures.get();
      return values.reduce((sum, { value }) => sum + value, 0);
    },
    isReady: () => controllers.healthChecks().every((check) => check.check() === undefined),
  };
}

async function untilFailures(watched: Watched, count: number): Promise<void> {
  while ((await watched.failures()) < count) await setImmediate();
}

/** What warns says why, and the same no more than once a minute. */
function expectNoFlood(lines: readonly Line[]): void {
  const said = new Map<string, number>();
  for (const { level, time, reason, msg } of lines) {
    if (level === 'info') continue;
    const at = Date.parse(time);
    expect(msg).toMatch(/; trying again$/);
    // A minute by the monotonic clock, of which the other one may be off by a little.
    expect(at - (said.get(reason) ?? 0)).toBeGreaterThan(59_000);
    said.set(reason, at);
  }
}

test('an API server that goes away and comes back takes a line for each', async () => {
  const first = await startApiServer({ dataDirectory: directory });
  let server: TestServer | undefined = first;
  cleanups.push(async () => server?.stop());
  const crd: unknown = parse(fs.readFileSync('deploy/crds/servicenet.dev_addresspools.yaml', 'utf8'));
  await first.client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: crd,
  });
  const watched = await run(first);
  await until(() => watched.isReady());
  await first.stop();
  server = undefined;
  await until(() => watched.lines.some(({ reason }) => reason === 'ECONNREFUSED'));
  await untilFailures(watched, 15);
  server = await startApiServer({ dataDirectory: directory, port: Number(new URL(first.url).port) });
  await until(() => watched.lines.some(({ msg }) => msg === 'the API server answers again'));
  expectNoFlood(watched.lines);
  expect(watched.lines.find(({ reason }) => reason === 'ECONNREFUSED')).toMatchObject({
    level: 'error',
    msg: expect.stringContaining('check that it runs') as unknown,
  });
  expect(watched.text()).not.toContain('"stack"');
});

test('a token that is refused takes one line', async () => {
  const server = await startApiServer();
  cleanups.push(() => server.stop());
  const watched = await run(server, 'wrong');
  await untilFailures(watched, 5);
  expectNoFlood(watched.lines);
  expect(watched.lines.filter(({ level }) => level !== 'info')).toEqual([
    expect.objectContaining({ reason: 'Unauthorized', msg: expect.stringContaining('renew') as unknown }),
  ]);
});
