import { expect, test } from 'vitest';
import { compileRules, ruleProblems, sortMatches } from '../../../../src/network/gateway/http-rules.ts';
import type { HTTPRouteFilter, HTTPRouteRule } from '../../../../src/objects/types/gateway.ts';
import { grpcRoute, httpRoute, resolve } from './routes.ts';

test('a Route without hostnames, rules and matches takes all requests', () => {
  for (const rules of [[], [{}], [{ matches: [] }]] satisfies HTTPRouteRule[][]) {
    const object = httpRoute(rules);
    if (rules.length === 0) delete object.spec.rules;
    expect(compileRules({ kind: 'HTTPRoute', object }, resolve)).toMatchObject([
      { hostname: '', path: { type: 'Prefix', value: '' }, method: undefined, headers: [], query: [] },
    ]);
  }
});

test('each hostname has each match of each rule, in order', () => {
  const object = httpRoute(
    [
      { name: 'first', matches: [{ path: { type: 'Exact', value: '/a/' } }, { method: 'POST' }] },
      { matches: [{ path: { type: 'PathPrefix', value: '/b/' } }] },
    ],
    { hostnames: ['A.test', '*.b.test'] },
  );
  const found = compileRules({ kind: 'HTTPRoute', object }, resolve);
  expect(found.map(({ hostname, path, method, rule }) => [hostname, rule.name, path.value, method])).toEqual([
    ['a.test', 'first', '/a/', undefined],
    ['a.test', 'first', '', 'POST'],
    ['a.test', '1', '/b', undefined],
    ['*.b.test', 'first', '/a/', undefined],
    ['*.b.test', 'first', '', 'POST'],
    ['*.b.test', '1', '/b', undefined],
  ]);
});

test('of headers and parameters with one name the first counts', () => {
  const headers = [
    { name: 'X-One', value: 'a' },
    { name: 'x-one', value: 'b' },
  ];
  const queryParams = [
    { name: 'q', value: 'a' },
    { name: 'Q', value: 'b' },
    { name: 'q', value: 'c', type: 'RegularExpression' },
  ];
  const object = httpRoute([{ matches: [{ headers, queryParams }] }]);
  const [match] = compileRules({ kind: 'HTTPRoute', object }, resolve);
  expect(match?.headers).toEqual([{ name: 'x-one', value: 'a', isExpression: false }]);
  expect(match?.query.map(({ name, value }) => name + value)).toEqual(['qa', 'Qb']);
});

test('backends have weights, their own headers, and none where they are invalid', () => {
  const object = httpRoute([
    {
      backendRefs: [
        { name: 'a', port: 80 },
        { name: 'bad', port: 80, weight: 0 },
        {
          name: 'b',
          weight: 7,
          filters: [
            { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'X-B', value: '1' }] } },
          ],
        },
      ],
      timeouts: { request: '1s', backendRequest: '0s' },
    },
  ]);
  const [match] = compileRules({ kind: 'HTTPRoute', object }, resolve);
  const { backends, requestTimeoutMs, backendTimeoutMs } = match?.rule ?? {};
  expect(backends?.map(({ weight, rule }) => [weight, rule?.backends[0]?.service])).toEqual([
    [1, 'a'],
    [0, undefined],
    [7, 'b'],
  ]);
  expect(backends?.[2]?.requestHeaders).toEqual({ set: [{ name: 'x-b', value: '1' }], add: [], remove: [] });
  expect([requestTimeoutMs, backendTimeoutMs]).toEqual([1000, undefined]);
});

test('filters with their defaults', () => {
  const filters: HTTPRouteFilter[] = [
    { type: 'ResponseHeaderModifier', responseHeaderModifier: { remove: ['X-Gone'] } },
    { type: 'RequestMirror', requestMirror: { backendRef: { name: 'a' } } },
    { type: 'RequestMirror', requestMirror: { backendRef: { name: 'b' }, percent: 5 } },
    {
      type: 'RequestMirror',
      requestMirror: { backendRef: { name: 'bad' }, fraction: { numerator: 1, denominator: 3 } },
    },
    { type: 'RequestRedirect', requestRedirect: { hostname: 'b.test' } },
    { type: 'CORS', cors: { allowOrigins: ['*'] } },
  ];
  const object = httpRoute([{ filters }]);
  const [match] = compileRules({ kind: 'HTTPRoute', object }, resolve);
  expect(match?.rule.filters).toMatchObject({
    responseHeaders: { set: [], add: [], remove: ['x-gone'] },
    redirect: { hostname: 'b.test', status: 302, scheme: undefined, path: undefined },
    cors: { origins: ['*'], credentials: false, maxAgeSeconds: 5 },
    unsupported: undefined,
  });
  const shares = match?.rule.filters.mirrors.map(({ rule, numerator, denominator }) => [
    ...[rule?.backends[0]?.service, numerator, denominator],
  ]);
  expect(shares).toEqual([
    ['a', 100, 100],
    ['b', 5, 100],
    [undefined, 1, 3],
  ]);
});

test('services and methods of gRPC are elements of the path', () => {
  const object = grpcRoute([
    {
      matches: [
        { method: { service: 'a.B', method: 'C' } },
        { method: { service: 'a.B' } },
        { method: { method: 'C' } },
        { headers: [{ name: 'X', value: 'y' }] },
      ],
    },
  ]);
  const found = compileRules({ kind: 'GRPCRoute', object }, resolve);
  expect(found.map(({ path, rule }) => [path.type, path.value, rule.isGrpc])).toEqual([
    ['Exact', '/a.B/C', true],
    ['Prefix', '/a.B', true],
    ['RegularExpression', '/[^/]+/C', true],
    ['Prefix', '', true],
  ]);
});

test('matches are tried by host, path, method, headers, parameters, age and name', () => {
  const at = (value: string, type = 'PathPrefix'): { type: string; value: string } => ({ type, value });
  const header = [{ name: 'a', value: 'b' }];
  const two = [...header, { name: 'c', value: 'd' }];
  const sorted: [HTTPRouteRule, string[], string?][] = [
    [{ matches: [{}] }, ['a.test']],
    [{ matches: [{ path: at('/long/prefix', 'Exact') }] }, ['*.one.test']],
    [{ matches: [{ path: at('/x', 'Exact') }] }, ['*.test']],
    [{ matches: [{ path: at('/.*', 'RegularExpression') }] }, ['*.test']],
    [{ matches: [{ path: at('/long') }] }, ['*.test']],
    [{ matches: [{ path: at('/x'), method: 'GET' }] }, ['*.test']],
    [{ matches: [{ path: at('/x'), headers: two }] }, ['*.test']],
    [{ matches: [{ path: at('/x'), headers: header, queryParams: header }] }, ['*.test']],
    [{ matches: [{ path: at('/x'), headers: header }] }, ['*.test']],
    [{ matches: [{ path: at('/x'), queryParams: header }] }, ['*.test'], '2025-01-01T00:00:00Z'],
    [{ matches: [{ path: at('/x'), queryParams: header }] }, ['*.test'], '2025-01-02T00:00:00Z'],
    [{ matches: [{ path: at('/x') }] }, ['*.test']],
    [{ matches: [{ path: at('/x') }] }, ['*.test']],
    [{ matches: [{ path: at('/x', 'Exact') }] }, []],
  ];
  const all = sorted.flatMap(([rule, hostnames, creationTimestamp], i) => {
    const object = httpRoute([rule], { hostnames }, `route-${String(i).padStart(2, '0')}`);
    if (creationTimestamp !== undefined) object.metadata.creationTimestamp = creationTimestamp;
    return compileRules({ kind: 'HTTPRoute', object }, resolve);
  });
  const wanted = all.map(({ rule }) => rule.source.name);
  expect(wanted).toHaveLength(sorted.length);
  const shuffled = all.toSorted((a, b) => a.rule.source.name.localeCompare(b.rule.source.name) * -1);
  expect(sortMatches(shuffled).map(({ rule }) => rule.source.name)).toEqual(wanted);
});

test('a service goes before a method in any service, and both before all calls', () => {
  const object = grpcRoute([
    { name: 'all' },
    { name: 'method', matches: [{ method: { method: 'AVeryLongMethod' } }] },
    { name: 'service', matches: [{ method: { service: 'a' } }] },
    { name: 'both', matches: [{ method: { service: 'a', method: 'B' } }] },
  ]);
  const sorted = sortMatches(compileRules({ kind: 'GRPCRoute', object }, resolve));
  expect(sorted.map(({ rule }) => rule.name)).toEqual(['both', 'service', 'method', 'all']);
});

test.each<[string, HTTPRouteRule, string]>([
  ['a path', { matches: [{ path: { type: 'Glob', value: '/' } }] }, 'type Glob'],
  ['a header', { matches: [{ headers: [{ type: 'Glob', name: 'a', value: '' }] }] }, 'type Glob'],
  ['an expression', { matches: [{ path: { type: 'RegularExpression', value: '(' } }] }, 'invalid'],
  [
    'an expression that is not linear',
    { matches: [{ queryParams: [{ type: 'RegularExpression', name: 'a', value: '(a)\\1' }] }] },
    'invalid',
  ],
  [
    'an expression that is large',
    { matches: [{ path: { type: 'RegularExpression', value: '/.{1000}' } }] },
    'too large',
  ],
  ['a filter', { filters: [{ type: 'ExternalAuth' }] }, 'ExternalAuth'],
  ['an extension', { filters: [{ type: 'ExtensionRef', extensionRef: { name: 'a' } }] }, 'ExtensionRef'],
  ['a filter without its field', { filters: [{ type: 'CORS' }] }, 'has no cors'],
  [
    'a path modifier',
    { filters: [{ type: 'URLRewrite', urlRewrite: { path: { type: 'Regex' } } }] },
    'unknown type Regex',
  ],
  [
    'a filter of a backend',
    { backendRefs: [{ name: 'a', filters: [{ type: 'URLRewrite', urlRewrite: {} }] }] },
    'URLRewrite',
  ],
  [
    'a header of the connection',
    {
      filters: [
        {
          type: 'RequestHeaderModifier',
          requestHeaderModifier: { set: [{ name: 'Content-Length', value: '5' }] },
        },
      ],
    },
    'Content-Length',
  ],
  [
    'two lines in a header',
    {
      filters: [
        {
          type: 'ResponseHeaderModifier',
          responseHeaderModifier: { add: [{ name: 'X', value: 'a\r\nb' }] },
        },
      ],
    },
    'cannot be sent',
  ],
])('%s that is not known makes its rule invalid', (_, rule, message) => {
  const object = httpRoute([{}, rule]);
  const problems = ruleProblems({ kind: 'HTTPRoute', object });
  const problem = problems.get(1);
  expect(problems.size).toBe(1);
  expect(problem?.reason).toBe('UnsupportedValue');
  expect(problem?.message).toContain(`rules[1]: `);
  expect(problem?.message).toContain(message);
  // Nothing of it can be served by mistake.
  const compiled = compileRules({ kind: 'HTTPRoute', object }, resolve);
  expect(compiled.length).toBeLessThanOrEqual(2);
  expect(compiled.map(({ rule: { filters } }) => filters.unsupported)).toEqual(
    [undefined, problem?.message].slice(0, compiled.length),
  );
});

test('fields of the experimental channel are not passed over', () => {
  const rule = { name: 'a', retry: { attempts: 3 } };
  const problems = ruleProblems({ kind: 'HTTPRoute', object: httpRoute([rule]) });
  expect(problems.get(0)?.message).toBe('rules[0]: retry is not supported');
});

test('redirects and rewrites exclude each other; what is supported has no problem', () => {
  const redirect = { type: 'RequestRedirect', requestRedirect: {} };
  const rewrite = { type: 'URLRewrite', urlRewrite: { hostname: 'b.test' } };
  const both = httpRoute([{ filters: [redirect, rewrite] }]);
  expect(ruleProblems({ kind: 'HTTPRoute', object: both }).get(0)?.reason).toBe('IncompatibleFilters');
  const one = httpRoute([{ filters: [redirect] }, { filters: [rewrite] }, {}]);
  expect(ruleProblems({ kind: 'HTTPRoute', object: one }).size).toBe(0);
  const calls = grpcRoute([{ matches: [{ method: { service: 'a' } }] }]);
  expect(ruleProblems({ kind: 'GRPCRoute', object: calls }).size).toBe(0);
  const wrong = grpcRoute([{ filters: [redirect] }]);
  expect(ruleProblems({ kind: 'GRPCRoute', object: wrong }).get(0)?.reason).toBe('UnsupportedValue');
});
