/**
 * HTTPRoutes beside an Ingress, on one router: requests a second of each in turn; then 1,000 HTTPRoutes: milliseconds
 * from a change of one until it is served, and memory. `node test/bench/gateways.ts [routes]`. Prints a table and writes
 * bench-results/gateways.json.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { createTransport } from '../../src/client/connect.ts';
import { gatewayController } from '../../src/network/gateway/plan.ts';
import { listAt, numberAt, textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { Objects, portOf, startRouter, writeGateways } from '../support/router/router.ts';
import { call } from '../support/test-server.ts';
import { load, type Load, median, residentMiB } from './http-load.ts';
import { report } from './report.ts';

const seconds = Number(process.env['SECONDS_EACH'] ?? 4);
const rounds = 5;
const changes = 20;
const apiVersion = 'gateway.networking.k8s.io/v1';
const namespace = `/apis/${apiVersion}/namespaces/shop`;

/** The parts that run in processes of their own; each sends where it is. */
const parts: Readonly<Record<string, (at: unknown) => Promise<unknown>>> = {
  async backend() {
    const body = Buffer.alloc(1024, 'a');
    const server = createServer((_, response) => response.end(body));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return portOf(server);
  },
  async api() {
    const { url, token, ca } = await startApiServer({ controllers: [], nodes: 0, gatewayApi: 'standard' });
    return { url, token, ca };
  },
  async router(at) {
    const api = await clientOf(at);
    const router = await startRouter(api, { accessLog: false, gateways: true });
    writeGateways(api, router, 'shop/routers');
    return router.ports.http;
  },
};

function clientOf(at: unknown) {
  const [url, token, ca] = [textAt(at, 'url'), textAt(at, 'token'), textAt(at, 'ca')];
  return createTransport({ kind: 'endpoint', url, ca, token });
}

const children: ChildProcess[] = [];

async function begin(part: string, at: unknown): Promise<{ readonly at: unknown; readonly pid: number }> {
  const child = fork(import.meta.filename, [part, JSON.stringify(at)], {
    // The limit of the young generation that the image has (Dockerfile).
    execArgv: ['--max-semi-space-size=4'],
  });
  children.push(child);
  const [answer] = (await once(child, 'message')) as [unknown];
  return { at: answer, pid: child.pid ?? 0 };
}

async function main(): Promise<void> {
  const backend = await begin('backend', {});
  const api = await begin('api', {});
  const client = await clientOf(api.at);
  const objects = new Objects(client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  await objects.service('web', [Number(backend.at)]);
  await objects.ingress('web', 'web.test', 'web');
  await objects.create(`/apis/${apiVersion}/gatewayclasses`, {
    ...{
      apiVersion,
      kind: 'GatewayClass',
      metadata: { name: 'ours' },
      spec: { controllerName: gatewayController },
    },
  });
  const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }];
  await objects.create(`${namespace}/gateways`, {
    ...{ apiVersion, kind: 'Gateway', metadata: { name: 'web' } },
    ...{ spec: { gatewayClassName: 'ours', listeners } },
  });
  await objects.create(`${namespace}/httproutes`, routeOf('web'));
  const router = await begin('router', api.at);
  const port = await patiently(async () => {
    const { body } = await call(client, 'GET', '/api/v1/namespaces/shop/services/web-ours');
    const [first] = listAt(body, 'spec', 'ports');
    return first === undefined ? undefined : numberAt(first, 'targetPort');
  });
  await patiently(async () => ((await versionOf(port, 'web')) === undefined ? undefined : true));

  const ways = { Ingress: Number(router.at), HTTPRoute: port };
  const results = new Map<string, Load[]>();
  for (let round = 0; round <= rounds; round++) {
    for (const [name, at] of Object.entries(ways)) {
      const measured = await load(at, 'web.test', seconds);
      // The first round is for the compilers.
      if (round > 0) results.set(name, [...(results.get(name) ?? []), measured]);
    }
  }
  const of = (name: string, member: keyof Load): number =>
    median((results.get(name) ?? []).map((one) => one[member]));
  const beforeMiB = residentMiB(router.pid);

  const count = Number(process.argv[2] ?? 1000);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await objects.create(`${namespace}/httproutes`, routeOf(`r${next++}`));
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  const last = `r${count - 1}`;
  await patiently(async () => ((await versionOf(port, last)) === undefined ? undefined : true));
  const times: number[] = [];
  for (let change = 1; change <= changes; change++) {
    // The change before has been told in the statuses by now.
    await delay(1000);
    const name = `r${Math.floor((count * change) / (changes + 1))}`;
    const { spec } = routeOf(name, `v${change}`);
    const began = performance.now();
    await objects.patch(`${namespace}/httproutes/${name}`, { spec });
    await patiently(async () => ((await versionOf(port, name)) === `v${change}` ? true : undefined));
    times.push(performance.now() - began);
  }
  const share = of('HTTPRoute', 'perSecond') / of('Ingress', 'perSecond');
  await report('gateways', [
    { name: 'by an Ingress', value: of('Ingress', 'perSecond'), unit: 'requests/s' },
    { name: 'by an Ingress, p99', value: of('Ingress', 'p99'), unit: 'ms' },
    { name: 'by an HTTPRoute', value: of('HTTPRoute', 'perSecond'), unit: 'requests/s' },
    { name: 'by an HTTPRoute, p99', value: of('HTTPRoute', 'p99'), unit: 'ms' },
    { name: 'HTTPRoute beside Ingress', value: 100 * share, unit: '%', budget: '≥ 95' },
    { name: `${count} HTTPRoutes, one changed: served`, value: median(times), unit: 'ms', budget: '≤ 100' },
    { name: `${count} HTTPRoutes, one changed: the slowest`, value: Math.max(...times), unit: 'ms' },
    { name: `${count} HTTPRoutes: memory`, value: residentMiB(router.pid) - beforeMiB, unit: 'MiB' },
  ]);
  await client.close();
}

function routeOf(name: string, version = 'v0') {
  const responseHeaderModifier = { set: [{ name: 'x-version', value: version }] };
  const rule = {
    filters: [{ type: 'ResponseHeaderModifier', responseHeaderModifier }],
    backendRefs: [{ name: 'web', port: 80 }],
  };
  // The Route that is compared with the Ingress has no filter, as the Ingress has none.
  const rules = name === 'web' ? [{ backendRefs: rule.backendRefs }] : [rule];
  return {
    apiVersion,
    kind: 'HTTPRoute',
    metadata: { name },
    spec: { parentRefs: [{ name: 'web' }], hostnames: [`${name}.test`], rules },
  };
}

/** What the Route of a name answers with; "" for none, undefined where it is not served. */
async function versionOf(port: number, name: string): Promise<string | undefined> {
  const answer = await request(`http://127.0.0.1:${port}/`, { headers: { host: `${name}.test` } }).catch(
    () => undefined,
  );
  await answer?.body.dump();
  if (answer?.statusCode !== 200) return undefined;
  return textAt(answer.headers, 'x-version');
}

/** Asks until there is an answer, for a minute. */
async function patiently<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (const began = performance.now(); performance.now() - began < 60_000;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await delay(1);
  }
  throw new Error('no answer within a minute');
}

const [part = ''] = process.argv.slice(2);
const run = parts[part];
if (run === undefined) {
  try {
    await main();
  } finally {
    for (const child of children) child.kill();
  }
} else {
  process.send?.(await run(JSON.parse(process.argv[3] ?? '{}')));
}
