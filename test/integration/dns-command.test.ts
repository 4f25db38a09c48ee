import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Child } from '../e2e/child.ts';
import { dig } from '../support/dns/dig.ts';
import { freePort } from '../support/free-port.ts';

const main = new URL('../../src/main.js', import.meta.url).pathname;
let api: TestServer;
let folder = '';

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  folder = await mkdtemp(join(tmpdir(), 'servicenet-dns-'));
  writeFileSync(join(folder, 'kubeconfig'), api.kubeconfig, { mode: 0o600 });
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

function start(port: number, ...flags: readonly string[]): Child {
  const common = ['--kubeconfig', join(folder, 'kubeconfig'), '--port', String(port), '--upstream', ''];
  return new Child(process.execPath, [
    main,
    'dns',
    ...common,
    '--metrics-bind-address',
    '127.0.0.1:0',
    ...flags,
  ]);
}

test('the command answers, says that it is ready, has the metrics of docs/dns.md, and ends by a signal', async () => {
  const port = await freePort();
  const dns = start(port);
  try {
    await dns.until(() => dns.output.includes('serving DNS'));
    const { answers } = await dig(port, 'kubernetes.default.svc.cluster.local');
    expect(answers).toEqual(['kubernetes.default.svc.cluster.local. 5 IN A 10.96.0.1']);
    const telemetry = `http://127.0.0.1:${/"port":(\d+),"msg":"serving health/.exec(dns.output)?.[1] ?? ''}`;
    expect((await fetch(`${telemetry}/readyz`)).status).toBe(200);
    const scrape = await (await fetch(`${telemetry}/metrics`)).text();
    const types = new Map(
      [...scrape.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, type]) => [name, type]),
    );
    const own = [...scrape.matchAll(/^# HELP ((?:coredns|servicenet_dns)_\S+) (.+)$/gm)].map(
      ([, name = '', help = '']) => `| \`${name}\` | ${types.get(name) ?? ''} | ${help} |`,
    );
    const documented = readFileSync(new URL('../../docs/dns.md', import.meta.url), 'utf8')
      .split('\n')
      .filter((line) => /^\| `(coredns|servicenet)_/.test(line))
      .map((line) => line.replace(/ +/g, ' '));
    expect(documented.sort()).toEqual(own.sort());
    await dns.end();
    expect(dns.code).toBe(0);
  } finally {
    await dns.end('SIGKILL');
  }
});

test('during its lameduck time it answers after a signal; a second one ends it', async () => {
  const port = await freePort();
  const dns = start(port, '--lameduck', '10m');
  try {
    await dns.until(() => dns.output.includes('serving DNS'));
    const ended = dns.end();
    await dns.until(() => dns.output.includes('"signal":"SIGTERM"'));
    expect((await dig(port, 'kubernetes.default.svc.cluster.local')).status).toBe('NOERROR');
    await Promise.all([ended, dns.end()]);
    expect(dns.code).toBe(143);
  } finally {
    await dns.end('SIGKILL');
  }
});

test('a port that is taken ends it with one line', async () => {
  const port = await freePort();
  const taken = createServer().listen(port, '127.0.0.1');
  await once(taken, 'listening');
  const dns = start(port);
  await dns.closed;
  taken.close();
  expect([dns.code, dns.output]).toEqual([1, expect.stringContaining('EADDRINUSE')]);
});
