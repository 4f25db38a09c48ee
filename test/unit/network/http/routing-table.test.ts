import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RoutingTable } from '../../../../src/network/http/routing-table.ts';
import { isServedIngress } from '../../../../src/network/http/ingress.ts';
import type { RouteClaimOptions } from '../../../../src/network/http/route-claims.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import type { Ingress } from '../../../../src/objects/types/networking.generated.ts';
import type { Route } from '../../../../src/objects/types/route.generated.ts';
import { ingress, route, rule } from './objects.ts';
import { cpuMs } from '../../../support/reference-time.ts';

const options: RouteClaimOptions = {
  domain: 'apps.example.com',
  ...{ allowedDomains: [], deniedDomains: [], wildcards: false, ownership: true },
};

function tableOf(
  ingresses: readonly Ingress[],
  routes: readonly Route[] = [],
  given = options,
): RoutingTable {
  const table = new RoutingTable(given);
  for (const one of ingresses) table.setIngress(keyOf(one), one);
  for (const one of routes) table.setRoute(keyOf(one), one);
  return table;
}

/** The Service that answers, `https` for a redirect, or the status and reason of a refusal. */
function ask(table: RoutingTable, url: string): string {
  const [, scheme = '', host = '', path = ''] = /^(https?):\/\/([^/]+)(.*)$/.exec(url) ?? [];
  const decision = table.resolve({ scheme: scheme === 'https' ? 'https' : 'http', host, path });
  if (decision.kind === 'redirect') return `redirect ${decision.status}`;
  if (decision.kind === 'refuse') return `${decision.status} ${decision.reason}`;
  return decision.rule.backends.map(({ service }) => service).join(' ');
}

describe('Ingress: paths', () => {
  // The table of the Kubernetes documentation, "Ingress: examples" of path types.
  test.each([
    ['Prefix', ['/'], '/anything', true],
    ['Exact', ['/foo'], '/foo', true],
    ['Exact', ['/foo'], '/bar', false],
    ['Exact', ['/foo'], '/foo/', false],
    ['Exact', ['/foo/'], '/foo', false],
    ['Prefix', ['/foo'], '/foo', true],
    ['Prefix', ['/foo'], '/foo/', true],
    ['Prefix', ['/foo/'], '/foo', true],
    ['Prefix', ['/foo/'], '/foo/', true],
    ['Prefix', ['/aaa/bb'], '/aaa/bbb', false],
    ['Prefix', ['/aaa/bbb'], '/aaa/bbb', true],
    ['Prefix', ['/aaa/bbb/'], '/aaa/bbb', true],
    ['Prefix', ['/aaa/bbb'], '/aaa/bbb/', true],
    ['Prefix', ['/aaa/bbb'], '/aaa/bbb/ccc', true],
    ['Prefix', ['/aaa/bbb'], '/aaa/bbbxyz', false],
    ['Prefix', ['/aaa'], '/AAA', false],
    ['ImplementationSpecific', ['/aaa'], '/aaa/bbb', true],
    ['ImplementationSpecific', [''], '/any', true],
  ] as const)('%s %j and the request %s', (type, [path], request, matches) => {
    const table = tableOf([ingress('a/i', { rules: [rule('x.test', [path, type, 'web'])] })]);
    expect(ask(table, `http://x.test${request}`)).toBe(matches ? 'web' : '404 NoPath');
  });

  test('the longest path wins, Exact before Prefix before ImplementationSpecific', () => {
    const paths = rule(
      'x.test',
      ['/', 'Prefix', 'root'],
      ['/aaa', 'Prefix', 'aaa'],
      ['/aaa/bbb', 'Prefix', 'bbb'],
      ['/aaa/bbb', 'ImplementationSpecific', 'own'],
      ['/aaa/bbb/', 'Exact', 'exact'],
      ['/aaa/ccc', 'Prefix', 'ccc'],
      ['/aaa/ccc', 'Exact', 'exactly'],
      ['/zzz', 'ImplementationSpecific', 'zzz'],
    );
    const table = tableOf([ingress('a/i', { rules: [paths] })]);
    const asked = [
      '/ccc',
      '/aaa/c',
      '/aaa/bbb',
      '/aaa/bbb/',
      '/aaa/bbb/c',
      '/aaa/ccc',
      '/aaa/ccc/',
      '/zzz/1',
    ];
    expect(asked.map((path) => ask(table, `http://x.test${path}`))).toEqual([
      'root',
      'aaa',
      'bbb',
      'exact',
      'bbb',
      'exactly',
      'ccc',
      'zzz',
    ]);
  });

  test('the oldest of two Ingresses with the same host, path and type keeps it, in whatever order they came', () => {
    const old = ingress('b/old', { rules: [rule('x.test', ['/', 'Prefix', 'old'])] }, 1);
    const late = ingress('a/late', { rules: [rule('x.test', ['/', 'Prefix', 'late'])] }, 2);
    const table = tableOf([late, old]);
    expect(ask(table, 'http://x.test/')).toBe('old');
    table.setIngress('b/old', undefined);
    expect(ask(table, 'http://x.test/')).toBe('late');
    table.setIngress('a/late', undefined);
    expect(ask(table, 'http://x.test/')).toBe('404 NoHost');
  });

  test('a backend that is no Service is left out', () => {
    const resource = { apiGroup: 'k8s.example', kind: 'Bucket', name: 'b' };
    const paths = [{ path: '/', pathType: 'Prefix', backend: { resource } }];
    const table = tableOf([ingress('a/i', { rules: [{ host: 'x.test', http: { paths } }] })]);
    expect(ask(table, 'http://x.test/')).toBe('404 NoHost');
  });
});

describe('Ingress: hosts', () => {
  test('the host itself, then one label of a wildcard, then every host', () => {
    const table = tableOf([
      ingress('a/i', {
        rules: [
          rule('foo.x.test', ['/', 'Prefix', 'foo']),
          rule('*.x.test', ['/', 'Prefix', 'wild']),
          rule('', ['/any', 'Prefix', 'any']),
        ],
      }),
    ]);
    expect(ask(table, 'http://FOO.x.test:8080/')).toBe('foo');
    expect(ask(table, 'http://foo.x.test./')).toBe('foo');
    expect(ask(table, 'http://bar.x.test/')).toBe('wild');
    expect(ask(table, 'http://a.bar.x.test/')).toBe('404 NoPath');
    expect(ask(table, 'http://x.test/')).toBe('404 NoPath');
    expect(ask(table, 'http://x.test/any')).toBe('any');
  });

  test('the default backend gets what no rule matches, first that of an Ingress with the host', () => {
    const service = (name: string): object => ({ service: { name, port: { number: 80 } } });
    const table = tableOf([
      ingress('a/all', { defaultBackend: service('all') }, 1),
      ingress('a/own', { defaultBackend: service('own'), rules: [rule('x.test', ['/a', 'Exact', 'a'])] }, 2),
      ingress('a/bare', { defaultBackend: service('bare'), rules: [{ host: 'y.test' }] }, 3),
    ]);
    expect(ask(table, 'http://x.test/a')).toBe('a');
    expect(ask(table, 'http://x.test/b')).toBe('own');
    expect(ask(table, 'http://y.test/b')).toBe('bare');
    expect(ask(table, 'http://z.test/b')).toBe('all');
  });

  test('a host with TLS sends http to https, unless the annotation says no', () => {
    const spec = {
      tls: [{ hosts: ['*.x.test'], secretName: 's' }],
      rules: [rule('a.x.test', ['/', 'Prefix', 'a'])],
    };
    expect(ask(tableOf([ingress('a/i', spec)]), 'http://a.x.test/')).toBe('redirect 308');
    expect(ask(tableOf([ingress('a/i', spec)]), 'https://a.x.test/')).toBe('a');
    const kept = ingress('a/i', spec, 0, { 'servicenet.dev/ssl-redirect': 'false' });
    expect(ask(tableOf([kept]), 'http://a.x.test/')).toBe('a');
  });
});

describe('Ingress: classes', () => {
  const classes = new Map(
    [
      ['ours', 'servicenet.dev/router'],
      ['theirs', 'k8s.io/ingress-nginx'],
    ].map(([name = '', controller = '']) => [name, { metadata: { name }, spec: { controller } }]),
  );
  const served = (
    ingressClassName: string | undefined,
    annotation: string | undefined,
    withoutClass = false,
  ): boolean =>
    isServedIngress(
      ingress(
        'a/i',
        ingressClassName === undefined ? {} : { ingressClassName },
        0,
        annotation === undefined ? {} : { 'kubernetes.io/ingress.class': annotation },
      ),
      { className: 'servicenet', withoutClass },
      (name) => classes.get(name),
    );
  test.each([
    ['ours', undefined, true],
    ['theirs', undefined, false],
    ['missing', undefined, false],
    ['servicenet', undefined, false],
    [undefined, 'servicenet', true],
    [undefined, 'nginx', false],
    [undefined, '', false],
    ['theirs', 'servicenet', false],
    ['', 'servicenet', true],
  ])('the field %s and the annotation %s', (field, annotation, expected) => {
    expect(served(field, annotation)).toBe(expected);
  });
  test('without any class, the flag decides', () => {
    expect([served(undefined, undefined), served(undefined, undefined, true)]).toEqual([false, true]);
    expect(served('', undefined, true)).toBe(true);
  });
});

describe('Route', () => {
  const edge = (policy = ''): { termination: string; insecureEdgeTerminationPolicy: string } => ({
    termination: 'edge',
    insecureEdgeTerminationPolicy: policy,
  });

  test.each([
    ['/sub', '/sub', true],
    ['/sub', '/sub/x', true],
    ['/sub', '/subpar', false],
    ['/sub/', '/sub', false],
    ['/sub/', '/sub/', true],
    ['/sub/', '/sub/x', true],
    ['/', '/x', true],
    ['', '/x', true],
  ])('path %s and the request %s', (path, request, matches) => {
    const table = tableOf([], [route('a/web', { host: 'x.test', path })]);
    expect(ask(table, `http://x.test${request}`)).toBe(matches ? 'web' : '404 NoPath');
  });

  test.each([
    [undefined, 'web', '503 NotServedSecurely'],
    [edge(), '503 NotServedInsecurely', 'web'],
    [edge('None'), '503 NotServedInsecurely', 'web'],
    [edge('Allow'), 'web', 'web'],
    [edge('Redirect'), 'redirect 302', 'web'],
    [{ termination: 'reencrypt', insecureEdgeTerminationPolicy: 'Allow' }, 'web', 'web'],
    [{ termination: 'passthrough' }, '503 NotServedInsecurely', '503 PassthroughOnly'],
    [
      { termination: 'passthrough', insecureEdgeTerminationPolicy: 'Redirect' },
      'redirect 302',
      '503 PassthroughOnly',
    ],
  ])('tls %j: http and https', (tls, http, https) => {
    const table = tableOf([], [route('a/web', { host: 'x.test', ...(tls === undefined ? {} : { tls }) })]);
    expect([ask(table, 'http://x.test/'), ask(table, 'https://x.test/')]).toEqual([http, https]);
  });

  test('passthrough goes by the server name, while any is admitted', () => {
    const table = tableOf([], [route('a/web', { host: 'x.test', tls: { termination: 'passthrough' } })]);
    expect(table.passthrough('X.test')?.backends[0]?.service).toBe('web');
    expect(table.passthrough('y.test')).toBeUndefined();
    expect(table.hasPassthrough).toBe(true);
    table.setRoute('a/web', undefined);
    expect(table.hasPassthrough).toBe(false);
  });

  test('a wildcard covers one label, not two and not the domain itself; a host goes before it', () => {
    const wild = route('a/wild', { host: 'www.x.test', wildcardPolicy: 'Subdomain' });
    const table = tableOf([], [wild, route('a/foo', { host: 'foo.x.test' })], {
      ...options,
      wildcards: true,
    });
    const asked = ['www.x.test', 'bar.x.test', 'foo.x.test', 'a.b.x.test', 'x.test'];
    expect(asked.map((host) => ask(table, `http://${host}/`))).toEqual([
      'wild',
      'wild',
      'foo',
      '404 NoHost',
      '404 NoHost',
    ]);
  });

  test('a Route that its problem keeps out holds its host, and serves nothing', () => {
    const table = tableOf([], [route('b/late', { host: 'x.test' }, 2)]);
    const problem = { reason: 'ExtendedValidationFailed', message: 'no' } as const;
    table.setRoute('a/old', route('a/old', { host: 'x.test' }, 1), problem);
    expect(table.admissionOf('a/old')?.refusal).toEqual(problem);
    expect(table.admissionOf('b/late')?.refusal?.reason).toBe('HostAlreadyClaimed');
    expect(ask(table, 'http://x.test/')).toBe('404 NoHost');
  });

  test('without a weight a Service counts 1; header actions have their percent signs', () => {
    const actions = { response: [{ name: 'X-A', action: { type: 'Set', set: { value: '5%%' } } }] };
    const spec = {
      alternateBackends: [{ kind: 'Service', name: 'b', weight: 7 }],
      host: 'x.test',
      httpHeaders: { actions },
    };
    const table = tableOf([], [route('a/web', spec)]);
    const decision = table.resolve({ scheme: 'http', host: 'x.test', path: '/' });
    expect(decision.rule?.backends.map(({ weight }) => weight)).toEqual([1, 7]);
    expect(decision.rule?.responseHeaders).toEqual([{ name: 'x-a', value: '5%' }]);
  });
});

describe('against a search through all rules', () => {
  const segment = fc.constantFrom('a', 'b', 'ab');
  const pathOf = fc
    .tuple(fc.array(segment, { maxLength: 3 }), fc.boolean())
    .map(([segments, slash]) => `/${segments.join('/')}${slash && segments.length > 0 ? '/' : ''}`);
  const hostOf = fc.constantFrom('', 'x.test', 'a.x.test', '*.x.test', 'b.a.x.test');
  const ingressOf = fc.record({
    name: fc.constantFrom('a/1', 'a/2', 'b/3'),
    age: fc.integer({ min: 0, max: 3 }),
    rules: fc.array(fc.tuple(hostOf, pathOf, fc.constantFrom('Exact', 'Prefix', 'ImplementationSpecific')), {
      maxLength: 5,
    }),
  });

  /** How well a rule matches, best last; undefined: not at all. */
  function score(
    host: string,
    path: string,
    type: string,
    asked: { host: string; path: string },
  ): number[] | undefined {
    const hosts = host === asked.host ? 2 : host === '' ? 0 : undefined;
    const wild =
      host.startsWith('*.') && asked.host.split('.').slice(1).join('.') === host.slice(2) ? 1 : undefined;
    const hostScore = hosts ?? wild;
    const elements = (text: string): string[] => text.replace(/\/$/, '').split('/');
    const isPrefix = elements(path).every((element, i) => elements(asked.path)[i] === element);
    const matches = type === 'Exact' ? path === asked.path : isPrefix;
    if (hostScore === undefined || !matches) return undefined;
    const length = type === 'Exact' ? path.length + 1 : path.replace(/\/$/, '').length;
    return [hostScore, length, { Exact: 2, Prefix: 1, ImplementationSpecific: 0 }[type] ?? 0];
  }

  test('the same Ingress answers, after any changes', () => {
    const askedOf = fc.record({
      host: fc.constantFrom('x.test', 'a.x.test', 'b.a.x.test', 'y.test'),
      path: pathOf,
    });
    fc.assert(
      fc.property(
        fc.array(ingressOf, { maxLength: 12 }),
        fc.array(askedOf, { maxLength: 10 }),
        (changes, requests) => {
          const table = new RoutingTable({ ...options, ownership: false });
          const present = new Map<string, Ingress>();
          for (const { name, age, rules } of changes) {
            const to = name.replace('/', '-');
            const made = ingress(
              name,
              { rules: rules.map(([host, path, type]) => rule(host, [path, type, to])) },
              age,
            );
            table.setIngress(name, rules.length === 0 ? undefined : made);
            if (rules.length === 0) present.delete(name);
            else present.set(name, made);
          }
          for (const asked of requests) {
            const found = [...present.values()]
              .flatMap(({ metadata, spec }) =>
                (spec.rules ?? []).flatMap(({ host = '', http }) =>
                  (http?.paths ?? []).map(({ path = '', pathType }) => ({
                    score: score(host, path, pathType ?? '', asked),
                    age: metadata.creationTimestamp ?? '',
                    name: `${metadata.namespace ?? ''}-${metadata.name ?? ''}`,
                  })),
                ),
              )
              .filter((one) => one.score !== undefined)
              .sort((one, other) => {
                for (const i of [0, 1, 2]) {
                  const difference = (other.score?.[i] ?? 0) - (one.score?.[i] ?? 0);
                  if (difference !== 0) return difference;
                }
                return one.age < other.age ? -1 : one.age > other.age ? 1 : one.name < other.name ? -1 : 1;
              });
            const answer = ask(table, `http://${asked.host}${asked.path}`);
            expect(answer.startsWith('404') ? undefined : answer).toBe(found[0]?.name);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

test('10,000 Routes: a change takes 5 ms of CPU at most', () => {
  const table = new RoutingTable({ ...options, wildcards: true });
  const routes = Array.from({ length: 10_000 }, (_, i) =>
    route(`ns${i % 50}/r${i}`, { host: `h${i}.x${i % 100}.test` }, i),
  );
  for (const one of routes) table.setRoute(keyOf(one), one);
  const changes = routes.slice(0, 100);
  const taken = cpuMs(() => {
    for (const one of changes) {
      table.setRoute(keyOf(one), undefined);
      table.setRoute(keyOf(one), one);
    }
  });
  expect(taken / changes.length).toBeLessThan(5);
});

test('a request with thousands of slashes is looked up in no time', () => {
  const table = tableOf([ingress('a/i', { rules: [rule('x.test', ['/a/b', 'Prefix', 'web'])] })]);
  const look = (): string => ask(table, `http://x.test${'/'.repeat(16_000)}`);
  expect(look()).toBe('404 NoPath');
  expect(cpuMs(look)).toBeLessThan(200);
});
