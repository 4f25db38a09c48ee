import { describe, expect, test } from 'vitest';
import {
  changedAnswerHeaders,
  changedHeaders,
  changedTarget,
  chosenBackend,
  isPreflight,
  originHeaders,
  preflightHeaders,
  redirectLocation,
} from '../../../../src/network/gateway/filters.ts';
import type { CorsFilter, RedirectFilter } from '../../../../src/network/gateway/plan.ts';
import { serviceRule } from './routes.ts';

const prefix = (value: string) => ({ type: 'Prefix', value }) as const;

test.each([
  ['/foo', '/xyz', '/foo/bar', '/xyz/bar'],
  ['/foo', '/xyz/', '/foo/bar', '/xyz/bar'],
  ['/foo', '/xyz', '/foo', '/xyz'],
  ['/foo', '/xyz/', '/foo/', '/xyz/'],
  ['/foo', '', '/foo', '/'],
  ['/foo', '/', '/foo', '/'],
  ['/foo', '/', '/foo/', '/'],
  ['/foo', '/', '/foo/bar', '/bar'],
  ['', '/x', '/a', '/x/a'],
  ['', '/x', '/', '/x/'],
  ['/foo', '/xyz', '/foo/bar//baz?q=/foo', '/xyz/bar//baz?q=/foo'],
  ['/foo', '/ä b', '/foo/c', '/%C3%A4%20b/c'],
])('the prefix %s replaced by "%s" makes of %s %s', (matched, value, target, result) => {
  expect(changedTarget({ type: 'ReplacePrefixMatch', value }, target, prefix(matched))).toBe(result);
});

test('a full path is replaced as it is written, and the query stays', () => {
  const change = { type: 'ReplaceFullPath', value: '/new/' } as const;
  expect(changedTarget(change, '/old/path?a=b', prefix('/old'))).toBe('/new/?a=b');
  expect(changedTarget(undefined, '/old?a', prefix('/old'))).toBe('/old?a');
});

describe('redirects', () => {
  const none: RedirectFilter = {
    ...{ scheme: undefined, hostname: undefined, port: undefined, path: undefined, status: 302 },
  };
  const request = { scheme: 'http', host: 'a.test:31000', target: '/p?q', listenerPort: 80 } as const;
  test.each<[Partial<RedirectFilter>, number, string]>([
    [{ hostname: 'b.test' }, 80, 'http://b.test/p?q'],
    [{}, 8080, 'http://a.test:8080/p?q'],
    [{ scheme: 'https' }, 8080, 'https://a.test/p?q'],
    [{ scheme: 'http' }, 8080, 'http://a.test/p?q'],
    [{ scheme: 'https', port: 8443 }, 80, 'https://a.test:8443/p?q'],
    [{ port: 80 }, 8080, 'http://a.test/p?q'],
    [{ port: 443 }, 80, 'http://a.test:443/p?q'],
    [{ path: { type: 'ReplaceFullPath', value: '/n' } }, 80, 'http://a.test/n?q'],
    [{ path: { type: 'ReplacePrefixMatch', value: '/n' } }, 80, 'http://a.test/n?q'],
  ])('%j from port %i lead to %s', (filter, listenerPort, location) => {
    expect(redirectLocation({ ...none, ...filter }, { ...request, listenerPort }, prefix('/p'))).toBe(
      location,
    );
  });
  test('by TLS the port of https is left out', () => {
    const secure = { ...request, scheme: 'https', listenerPort: 443 } as const;
    expect(redirectLocation(none, secure, prefix(''))).toBe('https://a.test/p?q');
    expect(redirectLocation({ ...none, scheme: 'http' }, secure, prefix(''))).toBe('http://a.test/p?q');
  });
});

test('headers of a request are removed, set and added', () => {
  const headers = ['Host', 'a', 'X-Set', '1', 'x-set', '2', 'X-Add', 'one', 'X-Gone', 'x', 'Other', 'y'];
  const change = {
    set: [{ name: 'x-set', value: '3' }],
    add: [
      { name: 'x-add', value: 'two' },
      { name: 'x-new', value: 'n' },
    ],
    remove: ['x-gone'],
  };
  expect(changedHeaders(headers, [change, undefined])).toEqual([
    ...['Host', 'a', 'X-Add', 'one,two', 'Other', 'y', 'x-set', '3', 'x-new', 'n'],
  ]);
});

test('headers of an answer are removed, set and added; cookies stay apart', () => {
  const change = {
    set: [{ name: 'x-set', value: '3' }],
    add: [
      { name: 'x-add', value: 'two' },
      { name: 'set-cookie', value: 'b=2' },
    ],
    remove: ['x-gone'],
  };
  const headers = { 'x-set': ['1', '2'], 'x-add': 'one', 'set-cookie': 'a=1', 'x-gone': 'x' };
  expect(changedAnswerHeaders(headers, change)).toEqual({
    ...{ 'x-set': '3', 'x-add': 'one,two', 'set-cookie': ['a=1', 'b=2'] },
  });
});

describe('CORS', () => {
  const filter: CorsFilter = {
    origins: ['https://www.foo.test', 'https://*.bar.test', 'http://port.test:8080'],
    ...{ methods: ['GET', 'OPTIONS'], headers: ['x-1', 'x-2'], exposed: ['x-3'] },
    ...{ credentials: true, maxAgeSeconds: 3600 },
  };
  const preflight = {
    ...{ method: 'OPTIONS', origin: 'https://www.foo.test' },
    ...{ wantedMethod: 'PUT', wantedHeaders: 'x-9, x-8' },
  };
  test('a preflight is an OPTIONS with an origin and a method', () => {
    expect(isPreflight(preflight)).toBe(true);
    expect(isPreflight({ ...preflight, method: 'GET' })).toBe(false);
    expect(isPreflight({ ...preflight, origin: undefined })).toBe(false);
    expect(isPreflight({ ...preflight, wantedMethod: undefined })).toBe(false);
  });
  test('an allowed origin gets what is configured', () => {
    expect(preflightHeaders(filter, preflight)).toEqual({
      'access-control-allow-origin': 'https://www.foo.test',
      vary: 'Origin',
      'access-control-allow-methods': 'GET, OPTIONS',
      'access-control-allow-headers': 'x-1, x-2',
      'access-control-expose-headers': 'x-3',
      'access-control-allow-credentials': 'true',
      'access-control-max-age': '3600',
    });
  });
  test.each<[string, boolean]>([
    ['https://www.bar.test', true],
    ['https://a.b.bar.test', true],
    ['https://www.bar.test:443', true],
    ['https://bar.test', false],
    ['https://.bar.test.evil', false],
    ['http://www.bar.test', false],
    ['https://www.bar.test:444', false],
    ['http://port.test:8080', true],
    ['http://port.test', false],
    ['null', false],
    ['https://evil.test/.bar.test', false],
  ])('the origin %s is allowed: %s', (origin, isAllowed) => {
    expect(Object.keys(originHeaders(filter, origin)).length > 0).toBe(isAllowed);
    expect(Object.keys(preflightHeaders(filter, { ...preflight, origin })).length > 0).toBe(isAllowed);
  });
  test('wildcards: what was asked for with credentials, * without', () => {
    const all = { ...filter, origins: ['*'], methods: ['*'], headers: ['*'], exposed: ['*'] };
    expect(preflightHeaders(all, preflight)).toMatchObject({
      'access-control-allow-origin': 'https://www.foo.test',
      'access-control-allow-methods': 'PUT',
      'access-control-allow-headers': 'x-9, x-8',
    });
    expect(preflightHeaders(all, { ...preflight, wantedHeaders: undefined })).not.toHaveProperty(
      'access-control-allow-headers',
    );
    expect(originHeaders(all, 'https://www.foo.test')).not.toHaveProperty('access-control-expose-headers');
    expect(preflightHeaders({ ...all, credentials: false }, preflight)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': '*',
      'access-control-allow-headers': '*',
      'access-control-expose-headers': '*',
      'access-control-max-age': '3600',
    });
  });
});

test('backends get their shares; without any weight there is none', () => {
  const backend = (service: string, weight: number) => ({
    ...{ weight, rule: serviceRule(service), requestHeaders: undefined },
  });
  const all = [backend('a', 7), backend('none', 0), backend('b', 3)];
  const names = Array.from(
    { length: 100 },
    (_, i) => chosenBackend(all, i / 100)?.rule?.backends[0]?.service,
  );
  expect(names.filter((name) => name === 'a')).toHaveLength(70);
  expect(names.filter((name) => name === 'b')).toHaveLength(30);
  expect(chosenBackend([backend('a', 0)], 0.5)).toBeUndefined();
  expect(chosenBackend([], 0)).toBeUndefined();
});
