import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RouteClaims, type RouteClaimOptions } from '../../../../src/network/http/route-claims.ts';
import { endpointWeights } from '../../../../src/network/http/backends.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import type { Route } from '../../../../src/objects/types/route.generated.ts';
import { route } from './objects.ts';

const options: RouteClaimOptions = {
  domain: 'apps.example.com',
  ...{ allowedDomains: [], deniedDomains: [], wildcards: false, ownership: true },
};

function claimsOf(routes: readonly Route[], given: Partial<RouteClaimOptions> = {}): RouteClaims {
  const claims = new RouteClaims({ ...options, ...given });
  for (const one of routes) claims.set(keyOf(one), one);
  return claims;
}

function reasons(claims: RouteClaims, ...keys: readonly string[]): (string | undefined)[] {
  return keys.map((key) => claims.admissionOf(key)?.refusal?.reason ?? 'Admitted');
}

const taken = 'HostAlreadyClaimed';

describe('claims', () => {
  test('a host belongs to the namespace of its oldest Route, other paths included', () => {
    const claims = claimsOf([
      route('b/late', { host: 'x.test', path: '/b' }, 2),
      route('a/old', { host: 'x.test', path: '/a' }, 1),
      route('a/more', { host: 'x.test', path: '/c' }, 3),
    ]);
    expect(reasons(claims, 'a/old', 'a/more', 'b/late')).toEqual(['Admitted', 'Admitted', taken]);
    expect(claims.admissionOf('b/late')?.refusal?.message).toBe(
      'a route in another namespace holds host x.test',
    );
  });

  test('without ownership, only host and path are claimed', () => {
    const routes = [
      route('a/old', { host: 'x.test', path: '/a' }, 1),
      route('b/other', { host: 'x.test', path: '/b' }, 2),
      route('b/same', { host: 'x.test', path: '/a' }, 3),
    ];
    expect(reasons(claimsOf(routes, { ownership: false }), 'a/old', 'b/other', 'b/same')).toEqual([
      'Admitted',
      'Admitted',
      taken,
    ]);
  });

  test('an older Route displaces the one that holds the host; when it goes, the oldest is admitted again', () => {
    const claims = claimsOf([route('b/2', { host: 'x.test' }, 2), route('c/3', { host: 'x.test' }, 3)]);
    expect(reasons(claims, 'b/2', 'c/3')).toEqual(['Admitted', taken]);
    expect([...claims.set('a/1', route('a/1', { host: 'x.test' }, 1)).routes].sort()).toEqual(['a/1', 'b/2']);
    expect(reasons(claims, 'a/1', 'b/2', 'c/3')).toEqual(['Admitted', taken, taken]);
    expect([...claims.set('a/1', undefined).routes].sort()).toEqual(['a/1', 'b/2']);
    expect(reasons(claims, 'b/2', 'c/3')).toEqual(['Admitted', taken]);
  });

  test('of one age, the UID decides; / and no path are the same path', () => {
    const claims = claimsOf([route('a/y', { host: 'x.test', path: '/' }), route('a/x', { host: 'x.test' })]);
    expect(reasons(claims, 'a/x', 'a/y')).toEqual(['Admitted', taken]);
    expect(claims.admissionOf('a/y')?.refusal?.message).toBe('the older route x holds host x.test');
  });

  test.each([
    ['passthrough', 'edge', taken],
    ['edge', 'passthrough', taken],
    ['reencrypt', 'passthrough', taken],
    ['edge', 'reencrypt', 'Admitted'],
    [undefined, 'passthrough', 'Admitted'],
    ['passthrough', undefined, 'Admitted'],
  ])('%s on a host, then %s with another path', (first, second, expected) => {
    const tls = (termination: string | undefined): object =>
      termination === undefined ? {} : { tls: { termination } };
    const claims = claimsOf([
      route('a/1', { host: 'x.test', ...(first === 'passthrough' ? {} : { path: '/a' }), ...tls(first) }, 1),
      route('a/2', { host: 'x.test', ...(first === 'passthrough' ? { path: '/b' } : {}), ...tls(second) }, 2),
    ]);
    expect(reasons(claims, 'a/1', 'a/2')).toEqual(['Admitted', expected]);
  });

  test('a wildcard claims its domain against other namespaces, and lives beside hosts of its own', () => {
    const wild = { host: 'www.x.test', wildcardPolicy: 'Subdomain' };
    const routes = [
      route('a/wild', wild, 2),
      route('a/own', { host: 'foo.x.test' }, 3),
      route('b/other', { host: 'bar.x.test' }, 4),
      route('b/deeper', { host: 'a.bar.x.test' }, 5),
      route('a/again', { ...wild, host: 'ftp.x.test' }, 6),
    ];
    const claims = claimsOf(routes, { wildcards: true });
    expect(reasons(claims, 'a/wild', 'a/own', 'b/other', 'b/deeper', 'a/again')).toEqual([
      'Admitted',
      'Admitted',
      taken,
      'Admitted',
      taken,
    ]);
    claims.set('b/first', route('b/first', { host: 'baz.x.test' }, 1));
    expect(reasons(claims, 'b/first', 'a/wild', 'a/own', 'b/other')).toEqual([
      'Admitted',
      taken,
      'Admitted',
      'Admitted',
    ]);
  });
});

describe('hosts that are refused', () => {
  test.each([
    [{}, {}, 'NoHostValue'],
    [{ host: 'no_dns' }, {}, 'InvalidHost'],
    [{ host: '*' }, {}, 'InvalidHost'],
    [{ host: '*.x.test' }, {}, 'InvalidHost'],
    [{ host: 'x.test.' }, {}, 'Admitted'],
    [{ host: `${'l'.repeat(63)}.test` }, {}, 'Admitted'],
    [{ host: `${'l'.repeat(64)}.test` }, {}, 'InvalidHost'],
    [{ host: `${'l'.repeat(49)}.`.repeat(5) + 'tes' }, {}, 'Admitted'],
    [{ host: `${'l'.repeat(49)}.`.repeat(5) + 'test' }, {}, 'InvalidHost'],
    [{ host: 'x.test', wildcardPolicy: 'Subdomain' }, {}, 'RouteNotAdmitted'],
    [{ host: 'x.test', wildcardPolicy: 'Some' }, {}, 'RouteNotAdmitted'],
    [{ host: 'a.x.test' }, { deniedDomains: ['x.test'] }, 'RouteNotAdmitted'],
    [{ host: 'a.x.test' }, { allowedDomains: ['y.test'] }, 'RouteNotAdmitted'],
    [{ host: 'ax.test' }, { deniedDomains: ['x.test'] }, 'Admitted'],
    [{ host: 'a.x.test' }, { allowedDomains: ['x.test'] }, 'Admitted'],
    [{ host: 'a.x.test' }, { allowedDomains: ['x.test'], deniedDomains: ['a.x.test'] }, 'RouteNotAdmitted'],
  ])('%j with %j', (spec, given, expected) => {
    const claims = claimsOf([route('a/r', spec)], given);
    expect(reasons(claims, 'a/r')).toEqual([expected]);
  });

  test('a label is too long for the router with the annotation of the API server too', () => {
    const long = route('a/r', { host: `${'l'.repeat(64)}.test` });
    const annotations = { 'route.openshift.io/allow-non-dns-compliant-host': 'true' };
    const claims = claimsOf([{ ...long, metadata: { ...long.metadata, annotations } }]);
    expect(reasons(claims, 'a/r')).toEqual(['InvalidHost']);
  });

  test('such a Route holds nothing', () => {
    const claims = claimsOf([
      route('a/1', { host: 'x.test', wildcardPolicy: 'Subdomain' }, 1),
      route('b/2', { host: 'x.test' }, 2),
    ]);
    expect(reasons(claims, 'b/2')).toEqual(['Admitted']);
  });

  test('a subdomain gets the domain of the router', () => {
    const claims = claimsOf([route('a/r', { subdomain: 'shop' })]);
    expect(claims.admissionOf('a/r')).toEqual({ host: 'shop.apps.example.com', refusal: undefined });
  });
});

test('admissions depend on the Routes that are there, not on how they came', () => {
  const changeOf = fc.record({
    name: fc.constantFrom('a/1', 'a/2', 'b/3', 'b/4', 'c/5'),
    host: fc.constantFrom('x.test', 'a.x.test', 'b.x.test'),
    path: fc.constantFrom('', '/p'),
    age: fc.integer({ min: 0, max: 3 }),
    termination: fc.constantFrom('', 'edge', 'passthrough'),
    isWild: fc.boolean(),
    isGone: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(changeOf, { maxLength: 15 }), fc.boolean(), (changes, wildcards) => {
      const present = new Map<string, Route>();
      const claims = claimsOf([], { wildcards });
      const said = new Map<string, string | undefined>();
      for (const { name, host, path, age, termination, isWild, isGone } of changes) {
        const tls = termination === '' ? {} : { tls: { termination } };
        const made = route(name, { host, path, ...tls, wildcardPolicy: isWild ? 'Subdomain' : 'None' }, age);
        if (isGone) present.delete(name);
        else present.set(name, made);
        // What is not told as changed must be as it was.
        for (const key of claims.set(name, isGone ? undefined : made).routes) {
          said.set(key, JSON.stringify(claims.admissionOf(key)));
        }
      }
      const fresh = claimsOf([...present.values()].reverse(), { wildcards });
      for (const key of present.keys()) {
        expect(claims.admissionOf(key)).toEqual(fresh.admissionOf(key));
        expect(JSON.stringify(claims.admissionOf(key))).toBe(said.get(key));
      }
      const admitted = [...present].filter(([key]) => claims.admissionOf(key)?.refusal === undefined);
      const holders = new Map(admitted.map(([, { metadata, spec }]) => [spec.host, metadata.namespace]));
      for (const [, { metadata, spec }] of admitted) {
        if (spec.wildcardPolicy === 'None') expect(holders.get(spec.host)).toBe(metadata.namespace);
      }
    }),
    { numRuns: 500 },
  );
});

describe('weights of endpoints', () => {
  const of = (...services: readonly (readonly [number, number])[]): number[] =>
    endpointWeights(services.map(([weight, endpoints]) => ({ weight, endpoints })));
  test.each([
    [[[100, 3]], [1]],
    [[[0, 3]], [0]],
    [[[100, 0]], [0]],
    [[], []],
    [
      [
        [100, 1],
        [100, 1],
      ],
      [256, 256],
    ],
    [
      [
        [100, 2],
        [100, 1],
      ],
      [128, 256],
    ],
    [
      [
        [256, 1],
        [1, 2],
      ],
      [256, 1],
    ],
    [
      [
        [100, 1],
        [0, 5],
      ],
      [1, 0],
    ],
    [
      [
        [100, 1],
        [100, 0],
      ],
      [1, 0],
    ],
    [
      [
        [90, 1],
        [10, 1],
      ],
      [256, 28],
    ],
    [
      [
        [0, 1],
        [0, 1],
      ],
      [0, 0],
    ],
    [
      [
        [25, 1],
        [75, 1],
      ],
      [85, 256],
    ],
    [
      [
        [20, 2],
        [60, 1],
      ],
      [42, 256],
    ],
    [
      [
        [3, 5],
        [256, 1],
      ],
      [1, 256],
    ],
  ] as const)('%j', (services, expected) => {
    expect(of(...services)).toEqual(expected);
  });
});
