/** Rolling updates of backends and of the router itself while clients ask, and several routers beside each other. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect, createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { Clients } from '../../src/client/resource-client.ts';
import { systemClock } from '../../src/client/clock.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import { leases } from '../../src/client/resources.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { RouterStatus } from '../../src/router/router-status.ts';
import { Leadership } from '../../src/runtime/leadership.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask } from '../support/router/requests.ts';
import {
  type Backend,
  Objects,
  portOf,
  type RunningRouter,
  startBackend,
  startRouter,
} from '../support/router/router.ts';
import { call, revisionOf, untilFound, watchEvents } from '../support/test-server.ts';

const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';

let api: TestServer;
let objects: Objects;
beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
});
afterAll(() => api.stop());

/** A Pod that says its name, and sends back what it gets. */
async function startPod(name: string): Promise<Backend> {
  return startBackend((request, response) => {
    response.setHeader('x-pod', name);
    if (request.method === 'POST') request.pipe(response);
    else response.end(name);
  });
}

/**
 * Clients that ask one request after the other until they are stopped, each with a kept connection of its own or with new
 * ones. None is idle: a connection that is may end under its next request with any server (RFC 9112, 9.5).
 */
class Load {
  readonly failures: string[] = [];
  readonly pods = new Set<string>();
  readonly #counts = new Array<number>(6).fill(0);
  #isOver = false;
  readonly #running: Promise<unknown>;

  constructor(port: number, host: string) {
    this.#running = Promise.all(this.#counts.map((_, i) => this.#client(port, host, i)));
  }

  /** Resolves when each client has so many more answers. */
  async more(count: number): Promise<void> {
    const before = [...this.#counts];
    while (this.#counts.some((now, i) => now < (before[i] ?? 0) + count)) await delay(2);
  }

  async stop(): Promise<number> {
    this.#isOver = true;
    await this.#running;
    return Math.min(...this.#counts);
  }

  async #client(port: number, host: string, i: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const kept = i % 3 === 0 ? {} : { agent };
    const posted = i % 2 === 0 ? {} : { method: 'POST', body: 'x'.repeat(2000) };
    while (!this.#isOver) {
      try {
        const { status, body, headers } = await ask(port, host, { ...kept, ...posted });
        if (status !== 200 || (posted.body !== undefined && body !== posted.body)) {
          this.failures.push(`${status} ${body.slice(0, 40)}`);
        }
        this.pods.add(String(headers['x-pod']));
      } catch (error) {
        this.failures.push(String(error));
      }
      this.#counts[i] = (this.#counts[i] ?? 0) + 1;
    }
    agent.destroy();
  }
}

test('a rolling update of the backend: no request fails', async () => {
  await objects.service('rolled', []);
  await objects.ingress('rolled', 'rolled.test', 'rolled');
  let present = await startPod('pod-0');
  await objects.slice('rolled', present.port, 100);
  const router = await startRouter(api.client);
  const load = new Load(router.ports.http, 'rolled.test');
  await load.more(10);
  for (let i = 1; i <= 5; i++) {
    const next = await startPod(`pod-${i}`);
    await objects.slice('rolled', next.port, 100 + i);
    await load.more(3);
    // The old Pod ends: it is in the slice as one that serves still, then it is gone; it closes its connections last.
    const old = `${slices}/rolled-${99 + i}`;
    const conditions = { ready: false, serving: true, terminating: true };
    await objects.patch(old, { endpoints: [{ addresses: [`10.244.0.${99 + i}`], conditions }] });
    await load.more(3);
    await objects.delete(old);
    await load.more(3);
    await present.close();
    present = next;
  }
  const count = await load.stop();
  expect(load.failures).toEqual([]);
  expect(count).toBeGreaterThan(50);
  expect([...load.pods].toSorted()).toEqual(['pod-0', 'pod-1', 'pod-2', 'pod-3', 'pod-4', 'pod-5']);
  await router.stop();
  await present.close();
});

/** Leads connections to the routers that are ready, as a Service does. */
async function startBalancer(
  routers: RunningRouter[],
): Promise<{ readonly port: number; readonly server: Server }> {
  let turn = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const ready = routers.filter(({ router }) => router.healthCheck.check() === undefined);
    const chosen = ready[turn++ % ready.length];
    if (chosen === undefined) {
      client.destroy();
      return;
    }
    const inside = connect({ port: chosen.ports.http, host: '127.0.0.1', allowHalfOpen: true });
    client.pipe(inside).pipe(client);
    const end = (): void => {
      client.destroy();
      inside.destroy();
    };
    client.on('error', end);
    inside.on('error', end);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: portOf(server), server };
}

test('a rolling update of the router: no request fails', async () => {
  const pod = await startPod('pod');
  await objects.service('steady', [pod.port]);
  await objects.ingress('steady', 'steady.test', 'steady');
  const routers = [await startRouter(api.client), await startRouter(api.client)];
  const { port, server } = await startBalancer(routers);
  const load = new Load(port, 'steady.test');
  await load.more(10);
  for (let i = 0; i < 3; i++) {
    const next = await startRouter(api.client);
    const [old] = routers.splice(0, 1, next);
    // While it is a lame duck, answers tell clients to come by another connection.
    old?.router.lameduck();
    await load.more(3);
    await old?.stop(20_000);
    await load.more(3);
  }
  const count = await load.stop();
  expect(load.failures).toEqual([]);
  expect(count).toBeGreaterThan(25);
  server.close();
  for (const router of routers) await router.stop();
  await pod.close();
});

test('routers of one name write by turns, those of another name beside them: each says a thing once', async () => {
  const definition: unknown = parse(readFileSync('deploy/components/router/routes-definition.yaml', 'utf8'));
  await objects.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', recordAt(definition));
  const routes = '/apis/route.openshift.io/v1/namespaces/shop/routes';
  await untilFound(api.client, routes);
  const first = await startWriter('a', 'a.test');
  const second = await startWriter('a', 'a.test');
  const other = await startWriter('b', 'b.test');
  const since = await revisionOf(api.client, routes);
  const to = { name: 'web' };
  await objects.create(routes, { ...kind, metadata: { name: 'shared' }, spec: { host: 'shared.test', to } });
  const entries = async (): Promise<string[]> => {
    const { body } = await call(api.client, 'GET', `${routes}/shared`);
    return listAt(body, 'status', 'ingress')
      .map((entry) => `${textAt(entry, 'routerName')} ${textAt(entry, 'host')}`)
      .toSorted();
  };
  const becomes = (host: string): Promise<void> =>
    vi.waitFor(async () => expect(await entries()).toEqual([`a ${host}`, `b ${host}`]), { timeout: 60_000 });
  await becomes('shared.test');
  await objects.patch(`${routes}/shared`, { spec: { host: 'moved.test' } });
  await becomes('moved.test');
  // The leader goes: the other one goes on, and has nothing to write until something changes.
  const leading = first.isLeading() ? first : second;
  const standby = leading === first ? second : first;
  await leading.stop();
  await vi.waitFor(() => expect(standby.isLeading()).toBe(true), { timeout: 60_000 });
  await objects.patch(`${routes}/shared`, { spec: { host: 'again.test' } });
  await becomes('again.test');
  await standby.stop();
  await other.stop();
  // One creation and two changes of the user, and after each a write of either name.
  const query = { resourceVersion: since, watch: 'true', timeoutSeconds: 1 };
  const events = await watchEvents(api.client, routes, query, 100);
  expect(events.map((event) => event['type'])).toEqual(['ADDED', ...new Array<string>(8).fill('MODIFIED')]);
});

const kind = { apiVersion: 'route.openshift.io/v1', kind: 'Route' };

/** A router that writes status while it holds the Lease of its name, as `servicenet router` does. */
async function startWriter(
  name: string,
  canonicalHostname: string,
): Promise<{ isLeading(): boolean; stop(): Promise<void> }> {
  const router = await startRouter(api.client);
  const [clock, random, log] = [systemClock, Math.random, pino({ enabled: false })];
  const informers = new InformerFactory({ transport: api.client, clock, random, log });
  const clients = new Clients(api.client);
  const stopping = new AbortController();
  let isLeading = false;
  const context = { clients, informers, clock, random, log, metrics: router.metrics, serves: () => true };
  const status = new RouterStatus(
    { ...context, events: { event: () => undefined } },
    ...([router.router.view, router.router.table] as const),
    { publishService: undefined, publishAddresses: [], podName: '', router: { name, canonicalHostname } },
  );
  const leadership = new Leadership({
    ...{ client: clients.for(leases), namespace: 'shop', name: `servicenet-router-${name}` },
    ...{ identity: randomUUID(), clock, random, log, metrics: router.metrics, retryPeriodMs: 200 },
  });
  informers.start(stopping.signal);
  const run = async (signal: AbortSignal): Promise<void> => {
    isLeading = true;
    await status.run(signal);
    isLeading = false;
  };
  const running = leadership.run([{ run }], stopping.signal);
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running;
    await informers.finished();
    await router.stop();
  };
  return { isLeading: () => isLeading, stop };
}
