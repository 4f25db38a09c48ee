import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AnnounceMetrics } from '../../src/node/announce/agent.ts';
import { ProxyMetrics } from '../../src/node/forwarding/metrics.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Child } from '../e2e/child.ts';

const main = new URL('../../src/main.js', import.meta.url).pathname;
let server: TestServer;
let folder = '';
let controller: Child;

beforeAll(async () => {
  server = await startApiServer();
  folder = await mkdtemp(join(tmpdir(), 'servicenet-metrics-'));
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, server.kubeconfig, { mode: 0o600 });
  const flags = ['--kubeconfig', kubeconfig, '--metrics-bind-address', '127.0.0.1:0', '--no-leader-elect'];
  controller = new Child(process.execPath, [main, 'controller', ...flags]);
});
afterAll(async () => {
  await controller.end();
  await server.stop();
  await rm(folder, { recursive: true });
});

/** Rows as docs/metrics.md has them, of what a scrape says of each metric but those of Node.js and the process. */
function rows(scrape: string): string[] {
  const types = new Map([...scrape.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, type]) => [name, type]));
  return [...scrape.matchAll(/^# HELP (\S+) (.+)$/gm)]
    .filter(([, name = '']) => !/^(process|nodejs)_/.test(name))
    .map(([, name = '', help]) => `| \`${name}\` | ${types.get(name) ?? ''} | ${help ?? ''} |`)
    .sort();
}

test('docs/metrics.md lists what a scrape of the controller, of the server and of a node has, and nothing else', async () => {
  const text = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const documented = text
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.replace(/ +/g, ' '))
    .sort();
  // The agent itself needs a node.
  const nodeMetrics = new Metrics();
  ProxyMetrics.of(nodeMetrics);
  AnnounceMetrics.of(nodeMetrics);
  const ofNode = rows(await nodeMetrics.scrape()).filter((row) =>
    /`(kubeproxy|servicenet_layer2|servicenet_bgp)_/.test(row),
  );
  let scraped: string[] = [];
  await controller.until(async () => {
    const port = /"port":(\d+)/.exec(controller.output)?.[1];
    if (port === undefined) return false;
    const ours = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const theirs = (await server.client.request('GET', '/metrics')).bytes.toString();
    scraped = [...rows(`${ours}\n${theirs}`), ...ofNode].sort();
    // Controllers add theirs when they start.
    return scraped.some((row) => row.includes('servicenet_pool_')) && ours.includes('servicenet_allocation_');
  });
  expect(documented).toEqual(scraped);
}, 180_000);
