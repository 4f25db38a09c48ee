import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/client/clock.ts';
import type { RowChanges } from '../../src/view/stored-rows.ts';
import { Follower, type FollowerListener } from '../../src/view/follower.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { drawsOf } from '../support/fuzz/hostile-bytes.ts';
import { call } from '../support/test-server.ts';

/** The rows that followed a cluster through its changes are those that a follower makes which comes later. */

const settings = { loadBalancerClass: 'servicenet.dev/load-balancer', isDefaultClass: true, compat: true };

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer({ controllers: [], nodes: 0 });
});
afterAll(async () => server.stop());

function followed(listener: Partial<FollowerListener> = {}): Follower {
  const follower = new Follower(
    {
      ...{ transport: server.client, log: pino({ enabled: false }), clock: systemClock },
      ...{ random: () => 0, namespace: undefined, settings },
    },
    { changed: () => undefined, stands: () => undefined, ...listener },
  );
  follower.start();
  return follower;
}

/** All rows, as one sees them. */
function rowsOf({ tables }: Follower): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(tables.rows).map(([kind, rows]) => [
      kind,
      Object.fromEntries([...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, { row }]) => [key, row])),
    ]),
  );
}

const seeds = (process.env['FAST_CHECK_SEED'] ?? '1,2').split(',').map(Number);

test.each(seeds)('follow changes, seed %i', { timeout: 120_000 }, async (seed) => {
  const draw = drawsOf(seed);
  const told = new Map<string, Map<string, unknown>>();
  const live = followed({
    changed: (changes: RowChanges) => {
      for (const [kind, rows] of Object.entries(changes)) {
        const known = told.get(kind) ?? new Map<string, unknown>();
        told.set(kind, known);
        for (const [key, stored] of rows) {
          if (stored === undefined) known.delete(key);
          else known.set(key, stored.row);
        }
      }
    },
  });
  await live.complete();
  for (let step = 0; step < 250; step++) await change(draw, `s${seed}`, step);
  const fresh = followed();
  await fresh.complete();
  await vi.waitFor(
    () => {
      live.flush();
      fresh.flush();
      expect(rowsOf(live)).toEqual(rowsOf(fresh));
    },
    { timeout: 60_000, interval: 50 },
  );
  const { service, pod, problem } = rowsOf(live);
  for (const rows of [service, pod, problem]) expect(Object.keys(rows ?? {}).length).toBeGreaterThan(1);
  // Whoever was told each change has the same.
  const copied = [...told].map(([kind, rows]) => [
    kind,
    Object.fromEntries([...rows].sort(([a], [b]) => (a < b ? -1 : 1))),
  ]);
  expect(Object.fromEntries(copied)).toEqual(rowsOf(live));
  await live.stop();
  await fresh.stop();
});

/** Makes, changes or deletes an object. What is refused, as it is there or not, changes nothing. */
async function change(draw: (below: number) => number, prefix: string, step: number): Promise<void> {
  const of = <T>(...choices: readonly [T, ...T[]]): T => choices[draw(choices.length)] ?? choices[0];
  const namespace = 'default';
  const name = `${prefix}-${draw(6)}`;
  const labels = { app: of('a', 'b'), tier: of('x', 'y') };
  const path = `/api/v1/namespaces/${namespace}`;
  const send = async (method: string, at: string, body?: unknown): Promise<void> => {
    await call(server.client, method, at, body === undefined ? {} : { body });
  };
  const ready = of('True', 'False');
  switch (draw(12)) {
    case 0:
    case 1: {
      const containers = [{ name: 'c', image: 'i', ports: [{ name: 'http', containerPort: 8080 }] }];
      const metadata = { name, labels: { ...labels, 'pod-template-hash': 'h' } };
      return send('POST', `${path}/pods`, { metadata, spec: { containers, nodeName: of('n1', 'n2') } });
    }
    case 2:
    case 3: {
      const conditions = [{ type: 'Ready', status: ready, lastTransitionTime: '2026-01-01T00:00:00Z' }];
      const phase = of('Running', 'Running', 'Pending', 'Failed');
      const podIPs = [{ ip: `10.244.0.${1 + draw(200)}` }];
      const body = { status: { phase, conditions, podIPs, podIP: podIPs[0]?.ip } };
      await server.client
        .request('PATCH', `${path}/pods/${name}/status`, {
          body,
          contentType: 'application/merge-patch+json',
        })
        .catch(() => undefined);
      return;
    }
    case 4:
      return send('DELETE', `${path}/pods/${name}`, { gracePeriodSeconds: 0 });
    case 5: {
      const spec = {
        ...{ selector: of({ app: 'a' }, { app: 'b', tier: 'x' }, { app: 'none' }, undefined) },
        ...{
          type: of('ClusterIP', 'LoadBalancer'),
          ports: [{ port: 80, targetPort: of<number | string>(8080, 'http', 'no') }],
        },
      };
      return send('POST', `${path}/services`, { metadata: { name }, spec });
    }
    case 6:
      return send('DELETE', `${path}/services/${name}`);
    case 7: {
      const pod = `${prefix}-${draw(6)}`;
      const endpoints = [
        {
          ...{ addresses: [`10.244.1.${1 + draw(200)}`], conditions: { ready: ready === 'True' } },
          targetRef: { kind: 'Pod', namespace, name: pod },
        },
      ];
      const metadata = { name: `${name}-slice${draw(2)}`, labels: { 'kubernetes.io/service-name': name } };
      const slice = {
        metadata,
        addressType: 'IPv4',
        endpoints,
        ports: [{ name: '', port: 8080, protocol: 'TCP' }],
      };
      return send('POST', `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, slice);
    }
    case 8:
      return send(
        'DELETE',
        `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/${name}-slice${draw(2)}`,
      );
    case 9: {
      const at = new Date(Date.UTC(2026, 0, 1) + step * 1000).toISOString().replace('.000', '');
      return send('POST', `${path}/events`, {
        ...{
          metadata: { name: `${prefix}-${step}` },
          type: of('Warning', 'Normal'),
          reason: of('Unhealthy', 'BackOff'),
        },
        ...{ message: `at ${step}`, firstTimestamp: at, lastTimestamp: at, count: 1 },
        involvedObject: { kind: 'Pod', namespace, name },
      });
    }
    case 10: {
      const backend = { service: { name, port: { number: 80 } } };
      const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] };
      const spec = { ingressClassName: 'none', rules: [{ host: `${name}.example.com`, http }] };
      const ingresses = `/apis/networking.k8s.io/v1/namespaces/${namespace}/ingresses`;
      return draw(2) === 0
        ? send('POST', ingresses, { metadata: { name }, spec })
        : send('DELETE', `${ingresses}/${name}`);
    }
    default: {
      const policies = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
      const spec = { podSelector: { matchLabels: of({ app: 'a' }, { app: 'none' }) } };
      return draw(2) === 0
        ? send('POST', policies, { metadata: { name }, spec })
        : send('DELETE', `${policies}/${name}`);
    }
  }
}

test('what an audit finds twice is a problem, until it is mended', { timeout: 120_000 }, async () => {
  const name = '10.96.0.200';
  const path = '/apis/networking.k8s.io/v1/ipaddresses';
  const live = followed();
  await live.complete();
  /** As the clock does it every ten seconds. */
  const problems = (): readonly string[] => {
    live.tables.tick();
    live.flush();
    return [...live.tables.rows.problem.values()].flatMap(({ row: { about, reason, message } }) =>
      about.kind === 'IPAddress' ? [`${reason} ${about.name}: ${message}`] : [],
    );
  };
  live.tables.tick();
  const labels = {
    'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
    'ipaddress.kubernetes.io/ip-family': 'IPv4',
  };
  const parentRef = { group: '', resource: 'services', namespace: 'default', name: 'gone' };
  const body = { metadata: { name, labels }, spec: { parentRef } };
  expect((await call(server.client, 'POST', path, { body })).status).toBe(201);
  await vi.waitFor(() => expect(live.caches.ipAddresses.cache.get(name)).toBeDefined(), { timeout: 60_000 });
  // Caches of two kinds may show one change at different times.
  expect(problems()).toEqual([]);
  expect(problems()).toEqual([
    `IPAddressNotAllocated ${name}: IPAddress ${name} for Service default/gone appears to have leaked`,
  ]);
  await call(server.client, 'DELETE', `${path}/${name}`);
  await vi.waitFor(() => expect(problems()).toEqual([]), { timeout: 60_000, interval: 50 });
  await live.stop();
});
