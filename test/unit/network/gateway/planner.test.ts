import { describe, expect, test } from 'vitest';
import { cpuMs, slowness, threadMs } from '../../../support/reference-time.ts';
import { planGatewayInSteps } from '../../../../src/network/gateway/planner.ts';
import {
  gateway,
  grant,
  grpcRoute,
  httpRoute,
  listener,
  objectsOf,
  plan,
  ready,
  service,
  streamRoute,
} from './objects.ts';

describe('ports', () => {
  const namesOf = (listeners: readonly string[]): unknown =>
    plan(listeners).ports.map(({ port, protocol, listeners: list }) => [
      ...[port, protocol],
      list.map(({ protocol: own, hostname }) => `${own} ${hostname}`),
    ]);

  test('are those of listeners that are served, the most specific hostname first', () => {
    expect(namesOf(['http 8080', 'http 8080 *.test', 'http 8080 A.test', 'http 8080 *.b.test'])).toEqual([
      [8080, 'HTTP', ['HTTP a.test', 'HTTP *.b.test', 'HTTP *.test', 'HTTP ']],
    ]);
    expect(
      namesOf(['udp 53', 'tls/Passthrough 443 b.test', 'tcp 53', 'https 443 *.test', 'http 80', 'http 80']),
    ).toEqual([
      [53, 'TCP', ['TCP ']],
      [53, 'UDP', ['UDP ']],
      [443, 'TLS', ['TLS b.test', 'HTTPS *.test']],
    ]);
  });

  test('have the matches of Routes whose hostnames they have in common, in the order of their precedence', () => {
    const at = (value: string) => [{ matches: [{ path: { type: 'PathPrefix', value } }] }];
    const routes = [
      httpRoute('shop/old', { hostnames: ['*.test', 'x.y'], rules: at('/a') }),
      httpRoute('shop/long', { hostnames: ['a.test'], rules: at('/a/b'), age: 1 }),
      httpRoute('shop/short', { hostnames: ['a.test'], rules: at('/'), age: 2 }),
      httpRoute('shop/all', { rules: at('/a/b/c'), age: 3 }),
      grpcRoute('shop/grpc', { hostnames: ['b.test'] }),
    ];
    const [port] = plan(['http 80', 'http 80 a.test'], { routes }).ports;
    const names = port?.listeners.map(({ matches }) =>
      matches.map(({ hostname, rule }) => `${rule.source.name} ${hostname}`),
    );
    expect(names).toEqual([
      ['long a.test', 'short a.test', 'old *.test', 'all '],
      ['long a.test', 'short a.test', 'grpc b.test', 'old x.y', 'old *.test', 'all '],
    ]);
  });

  test('of TLS have the hostnames of Routes within their own', () => {
    const routes = [
      streamRoute('TLSRoute', 'shop/young', { hostnames: ['*.test'], age: 2 }),
      streamRoute('TLSRoute', 'shop/old', { hostnames: ['*.A.test', 'b.test', 'x.y'] }),
    ];
    const [port] = plan(['tls 443 *.a.test', 'tls 443', 'tls 443 b.test'], { routes }).ports;
    expect(
      port?.listeners.map(({ streams }) =>
        streams.map(({ hostname, source }) => `${source.name} ${hostname}`),
      ),
    ).toEqual([
      ['old b.test', 'young b.test'],
      ['old *.a.test', 'young *.a.test'],
      ['old b.test', 'old x.y', 'old *.a.test', 'young *.test'],
    ]);
  });

  test.each(['TCPRoute', 'UDPRoute'] as const)('of a %s have the oldest Route; all count', (kind) => {
    const routes = [
      streamRoute(kind, 'shop/young', { age: 2 }),
      streamRoute(kind, 'shop/old-b', { age: 1 }),
      streamRoute(kind, 'shop/old-a', { age: 1 }),
    ];
    const found = plan([kind === 'TCPRoute' ? 'tcp 9000' : 'udp 9000'], { routes });
    expect(found.ports[0]?.listeners[0]?.streams.map(({ source }) => source.name)).toEqual(['old-a']);
    expect(found.listeners[0]?.attachedRoutes).toBe(3);
  });
});

test('lookups are what the plan depends on', () => {
  const namespaces = { from: 'Selector', selector: {} };
  const listeners = [listener('https 443', { allowedRoutes: { namespaces } })];
  const routes = [httpRoute('other/r', { backends: [{ name: 'web', port: 80, namespace: 'shop' }] })];
  const { lookups } = plan(listeners, { routes, grants: [grant('shop', 'HTTPRoute other', 'Service')] });
  expect([...lookups].toSorted()).toEqual([
    'BackendTLSPolicy shop/web',
    'Namespace other',
    'ReferenceGrant shop',
    'Secret shop/cert',
    'Service shop/web',
  ]);
});

test('a Gateway with 1,000 HTTPRoutes is planned again in no time', () => {
  const names = Array.from({ length: 1000 }, (_, i) => `shop/r${i}`);
  const routes = names.map((name, i) => {
    const matches = [{ path: { type: 'PathPrefix', value: `/${i % 7}` } }];
    const backendRefs = [{ name: `r${i}`, port: 80 }];
    return httpRoute(name, { hostnames: [`h${i}.test`], rules: [{ matches, backendRefs }], age: i });
  });
  const cluster = { routes, services: names.map((name) => service(name)) };
  const listeners = ['http 80', 'https 443'];
  expect(plan(listeners, cluster).ports.map((port) => port.listeners[0]?.matches.length)).toEqual([
    1000, 1000,
  ]);
  for (let i = 0; i < 10; i++) plan(listeners, cluster);
  expect(cpuMs(() => plan(listeners, cluster))).toBeLessThan(50);
});

test('however many matches Routes have, no step takes long', () => {
  const routes = Array.from({ length: 100 }, (_, i) =>
    httpRoute(`shop/r${i}`, {
      hostnames: Array.from({ length: 16 }, (__, host) => `h${host}.d${i % 50}.test`),
      rules: Array.from({ length: 16 }, (__, rule) => ({
        matches: Array.from({ length: 8 }, (___, n) => ({
          path: { type: 'Exact', value: `/${i}/${rule}/${n}` },
        })),
      })),
    }),
  );
  const objects = objectsOf({ routes });
  const longest = (): number => {
    const steps = planGatewayInSteps(gateway(['http 80']), objects, ready);
    let longestMs = 0;
    let before = threadMs();
    let result = steps.next();
    while (result.done !== true) {
      longestMs = Math.max(longestMs, threadMs() - before);
      before = threadMs();
      result = steps.next();
    }
    expect(result.value.ports[0]?.listeners[0]?.matches).toHaveLength(100 * 16 * 128);
    return longestMs;
  };
  // A collection of garbage may fall into any step, but not into the same one each time.
  const longestMs = Math.min(longest(), longest(), longest());
  expect(longestMs / slowness()).toBeLessThan(100);
});
