import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { services } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import { isRecord } from '../../src/objects/json.ts';
import { keyOf, splitKey } from '../../src/objects/meta.ts';
import type { ControllerSpec } from '../../src/runtime/key-loop.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { type Exchange, ScriptedServer } from '../support/scripted-server.ts';
import { until } from '../support/until.ts';

const forbidden =
  'services is forbidden: User "system:serviceaccount:a:b" cannot list resource "services" in API group "" at the cluster scope';

let server: ScriptedServer;
let transport: Transport;
let clock: FakeClock;
let lines: unknown[];
let running: RunningControllers;
const stop = new AbortController();

/** A controller that touches every Service once. */
function toucher(touched: string[]): ControllerSpec {
  return {
    ...{ name: 'toucher', eventSource: 'test', queue: 'toucher' },
    build(loop) {
      loop.on(loop.cache(services), ({ kind, object }) => (kind === 'added' ? [keyOf(object)] : []));
      return async (key, signal) => {
        const { namespace, name } = splitKey(key);
        await loop.context.clients.for(services).mergePatch(namespace, name, { metadata: {} }, { signal });
        touched.push(key);
        return undefined;
      };
    },
  };
}

function start(touched: string[] = []): void {
  const log = pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line)) });
  running = runControllers({ transport, controllers: [toucher(touched)], log, clock, random: () => 0 });
}

beforeEach(async () => {
  server = await ScriptedServer.start();
  transport = await createTransport({ kind: 'endpoint', url: server.url });
  clock = new FakeClock();
  lines = [];
});

afterEach(async () => {
  await running.stop();
  await transport.close();
  await server.close();
});

function failures(): string[] {
  return running.healthChecks().flatMap((check) => check.check() ?? []);
}

const errors = (): unknown[] =>
  lines
    .filter((line) => isRecord(line) && line['level'] === 50)
    .map((line) => (isRecord(line) ? line['msg'] : ''));

const list = (names: readonly string[]) => ({
  kind: 'ServiceList',
  metadata: { resourceVersion: '10' },
  items: names.map((name) => ({
    metadata: { name, namespace: 'a', resourceVersion: '5' },
    spec: {},
    status: {},
  })),
});

describe('what RBAC refuses', () => {
  it('is said once with verb and resource, makes the process unready, and is tried again slowly', async () => {
    let asked = 0;
    let allowed = false;
    void server.serve((exchange) => {
      if (allowed && exchange.query.has('sendInitialEvents')) exchange.status(400, 'BadRequest');
      else if (allowed && exchange.isWatch) exchange.watch();
      else if (allowed) exchange.json(200, list([]));
      else {
        asked++;
        exchange.status(403, 'Forbidden', forbidden);
      }
    }, stop.signal);
    start();
    await until(() => failures().some((failure) => failure.includes('not allowed: watch services')));
    await clock.timerWithin(29_000, 31_000);
    expect(asked).toBe(1);
    await clock.advance(29_000);
    expect(asked).toBe(1);
    await clock.advance(2000);
    await until(() => asked === 2);
    expect(errors()).toEqual([
      'not allowed to watch services: grant it to this identity in a ClusterRole; trying again slowly',
    ]);
    expect(failures().join('\n')).toContain('not synced yet: services');
    allowed = true;
    await clock.timerWithin(29_000, 31_000);
    await clock.advance(31_000);
    await until(() => failures().length === 0);
  });

  it('does not stop other keys, and writes are tried again slowly too', async () => {
    const touched: string[] = [];
    const patched = new Map<string, number>();
    const answer = (exchange: Exchange): void => {
      if (exchange.query.has('sendInitialEvents')) exchange.status(400, 'BadRequest');
      else if (exchange.isWatch) exchange.watch();
      else if (exchange.method === 'GET') exchange.json(200, list(['no', 'yes']));
      else {
        patched.set(exchange.path, (patched.get(exchange.path) ?? 0) + 1);
        if (exchange.path.endsWith('/yes')) exchange.json(200, { ...list(['yes']).items[0] });
        else
          exchange.status(
            403,
            'Forbidden',
            'services "no" is forbidden: User "x" cannot patch resource "services"',
          );
      }
    };
    void server.serve(answer, stop.signal);
    start(touched);
    await until(() => patched.size === 2 && touched.length === 1);
    await clock.timerWithin(29_000, 31_000);
    // The other Service was patched before or after the refusal: only a refusal that lasts shows in the checks.
    expect(touched).toEqual(['a/yes']);
    expect(patched.get('/api/v1/namespaces/a/services/no')).toBe(1);
    expect(errors()).toHaveLength(1);
    clock.jump(-86_400_000);
    await clock.advance(31_000);
    await until(() => patched.get('/api/v1/namespaces/a/services/no') === 2);
    clock.jump(10 * 86_400_000);
    expect(patched.get('/api/v1/namespaces/a/services/yes')).toBe(1);
  });
});
