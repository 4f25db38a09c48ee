import { expect, test } from 'vitest';
import { listenerFor, type MatchedRequest, matchRequest } from '../../../../src/network/gateway/matching.ts';
import type { PlannedListener } from '../../../../src/network/gateway/plan.ts';
import type { HTTPRouteMatch } from '../../../../src/objects/types/gateway.ts';
import { cpuMs } from '../../../support/reference-time.ts';
import { grpcRoute, httpRoute, listener } from './routes.ts';

function asked(
  host: string,
  path = '/',
  more: Partial<MatchedRequest> & { headers?: Readonly<Record<string, string>> } = {},
): MatchedRequest {
  const { headers = {}, ...rest } = more;
  return {
    ...{ host, path, query: '', method: 'GET', isGrpc: false, tls: undefined },
    header: (name) => headers[name],
    ...rest,
  };
}

/** The name of the rule or the reason of the refusal. */
function found(listeners: readonly PlannedListener[], request: MatchedRequest): string {
  const decision = matchRequest(listeners, request);
  return decision.kind === 'match' ? decision.match.rule.name : `${decision.status} ${decision.reason}`;
}

/** A listener whose rules are named by their one match. */
function rules(matches: Readonly<Record<string, HTTPRouteMatch>>): readonly PlannedListener[] {
  const all = Object.entries(matches).map(([name, match]) => ({ name, matches: [match] }));
  return [listener('', [httpRoute(all)])];
}

test('a wildcard covers names of any depth, and the longest counts', () => {
  const listeners = ['a.b.test', '*.b.test', '*.test', ''].map((hostname) => listener(hostname, []));
  expect(listenerFor(listeners, 'a.b.test')?.hostname).toBe('a.b.test');
  expect(listenerFor(listeners, 'x.y.b.test')?.hostname).toBe('*.b.test');
  expect(listenerFor(listeners, 'b.test')?.hostname).toBe('*.test');
  expect(listenerFor(listeners, 'test')?.hostname).toBe('');
  expect(listenerFor(listeners.slice(0, 3), 'test')).toBeUndefined();
});

test('a listener serves its hosts alone, even where another has a rule', () => {
  const route = httpRoute([{ name: 'wide' }]);
  const listeners = [listener('a.test', []), listener('', [route])];
  expect(found(listeners, asked('a.test'))).toBe('404 NoPath');
  expect(found(listeners, asked('b.test'))).toBe('wide');
  expect(found([listener('a.test', [route])], asked('b.test'))).toBe('404 NoHost');
});

test('Routes with the host itself go before wildcards, and those before Routes without', () => {
  const route = (name: string, hostnames: string[], value = '/'): ReturnType<typeof httpRoute> =>
    httpRoute([{ name, matches: [{ path: { type: 'PathPrefix', value } }] }], { hostnames }, name);
  const listeners = [
    listener('', [
      route('any', [], '/very/long/path'),
      route('wildcard', ['*.test'], '/very'),
      route('deep', ['*.b.test']),
      route('own', ['a.b.test'], '/own'),
    ]),
  ];
  expect(found(listeners, asked('a.b.test', '/own/1'))).toBe('own');
  expect(found(listeners, asked('a.b.test', '/very/long/path'))).toBe('deep');
  expect(found(listeners, asked('a.test', '/very/long/path'))).toBe('wildcard');
  expect(found(listeners, asked('a.test', '/other'))).toBe('404 NoPath');
  expect(found(listeners, asked('other', '/very/long/path'))).toBe('any');
});

test('paths: exact, then expressions, then the longest prefix by elements', () => {
  const listeners = rules({
    root: { path: { type: 'PathPrefix', value: '/' } },
    a: { path: { type: 'PathPrefix', value: '/a' } },
    ab: { path: { type: 'PathPrefix', value: '/a/b/' } },
    exact: { path: { type: 'Exact', value: '/a/b/c' } },
    expression: { path: { type: 'RegularExpression', value: '/a/b/[0-9]+' } },
  });
  const cases = {
    '/': 'root',
    '/ab': 'root',
    '/A': 'root',
    '/a': 'a',
    '/a/': 'a',
    '/a/bc': 'a',
    '/a//b': 'a',
    '/a/b': 'ab',
    '/a/b/': 'ab',
    '/a/b/c': 'exact',
    '/a/b/c/': 'ab',
    '/a/b/12': 'expression',
    '/a/b/12/x': 'ab',
    [`/a/b${'/x'.repeat(5000)}`]: 'ab',
    [`/a${'/'.repeat(8000)}`]: 'a',
  };
  for (const [path, name] of Object.entries(cases)) {
    expect([path.slice(0, 20), found(listeners, asked('x', path))]).toEqual([path.slice(0, 20), name]);
  }
});

test('method, headers and parameters', () => {
  const listeners = rules({
    plain: {},
    post: { method: 'POST' },
    header: { headers: [{ name: 'Version', value: 'two' }] },
    both: {
      headers: [
        { name: 'version', value: 'two' },
        { name: 'color', value: 'bl.*', type: 'RegularExpression' },
      ],
    },
    query: { queryParams: [{ name: 'animal', value: 'whale' }] },
  });
  const header = (headers: Readonly<Record<string, string>>): string =>
    found(listeners, asked('x', '/', { headers }));
  const query = (text: string): string => found(listeners, asked('x', '/', { query: text }));
  expect(found(listeners, asked('x', '/', { method: 'POST' }))).toBe('post');
  expect(header({ version: 'two' })).toBe('header');
  expect(header({ version: 'two,two' })).toBe('plain');
  expect(header({ version: 'two', color: 'blue' })).toBe('both');
  expect(header({ version: 'two', color: 'dark blue' })).toBe('header');
  expect(query('animal=whale')).toBe('query');
  expect(query('animal=dolphin&animal=whale')).toBe('plain');
  expect(query('x=1&animal=%77hale')).toBe('query');
  expect(query('Animal=whale')).toBe('plain');
});

test('GRPCRoutes take calls of gRPC alone, beside HTTPRoutes of the host', () => {
  const calls = grpcRoute([
    { name: 'service', matches: [{ method: { service: 'a.B' } }] },
    { name: 'method', matches: [{ method: { method: 'Ping' } }] },
  ]);
  const listeners = [listener('', [httpRoute([{ name: 'web' }]), calls])];
  const call = (path: string): string => found(listeners, asked('x', path, { isGrpc: true, method: 'POST' }));
  expect(call('/a.B/Ping')).toBe('service');
  expect(call('/a.C/Ping')).toBe('method');
  expect(call('/a.C/Pong')).toBe('web');
  expect(found(listeners, asked('x', '/a.B/Ping'))).toBe('web');
  expect(found([listener('', [calls])], asked('x', '/a.B/Ping'))).toBe('404 NoPath');
});

/** The cases of the conformance suite: server name, Host, status. */
test.each<[string, string, number]>([
  ['example.org', 'example.org', 200],
  ['example.org', 'second-example.org', 421],
  ['example.org', 'unknown-example.org', 404],
  ['second-example.org', 'example.org', 421],
  ['unknown.example.com', 'a.example.com', 200],
  ['a.example.com', 'example.org', 421],
  ['', 'example.org', 421],
])('TLS for %s and a request for %s: %i', (serverName, host, status) => {
  const route = httpRoute([{}]);
  const listeners = ['example.org', 'second-example.org', '*.example.com'].map((hostname) =>
    listener(hostname, [route]),
  );
  const tls = { listener: listenerFor(listeners, serverName) };
  const decision = matchRequest(listeners, asked(host, '/', { tls }));
  expect(decision.kind === 'match' ? 200 : decision.status).toBe(status);
});

test('costly expressions end after a bounded time', () => {
  const value = '(?:[a-z]{1,9}x?){1,9}y';
  const headers = Array.from({ length: 16 }, (_, i) => ({ type: 'RegularExpression', name: `h${i}`, value }));
  const matches = Array.from({ length: 64 }, (_, i) => ({
    headers: [...headers.slice(i % 16), ...headers.slice(0, i % 16)],
  }));
  const listeners = [listener('', [httpRoute([{ matches }])])];
  const text = 'x'.repeat(15_000);
  let name = '';
  const took = cpuMs(() => {
    name = found(listeners, asked('x', '/', { header: () => text }));
  });
  expect(name).toBe('404 NoPath');
  expect(took).toBeLessThan(200);
});
