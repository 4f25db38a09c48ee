import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RoutingTable } from '../../../../src/network/http/routing-table.ts';
import { RouteClaims, type RouteClaimOptions } from '../../../../src/network/http/route-claims.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import type { Ingress } from '../../../../src/objects/types/networking.generated.ts';
import type { Route } from '../../../../src/objects/types/route.generated.ts';
import { ingress, route, rule } from './objects.ts';

const options: RouteClaimOptions = {
  domain: 'apps.example.com',
  ...{ allowedDomains: [], deniedDomains: [], wildcards: false, ownership: true },
};

function tableOf(
  objects: readonly (Ingress | Route)[],
  given: Partial<RouteClaimOptions> = {},
): RoutingTable {
  const table = new RoutingTable({ ...options, ...given });
  for (const one of objects) {
    if ('to' in one.spec) table.setRoute(keyOf(one), one as Route);
    else table.setIngress(keyOf(one), one as Ingress);
  }
  return table;
}

/** The namespace whose Service answers, or the reason of a refusal. */
function ask(table: RoutingTable, host: string, path: string, scheme: 'http' | 'https' = 'http'): string {
  const decision = table.resolve({ scheme, host, path });
  if (decision.kind === 'refuse') return decision.reason;
  return decision.rule.source.namespace;
}

const withPaths = (name: string, host: string, age: number, ...paths: string[]): Ingress =>
  ingress(name, { rules: [rule(host, ...paths.map((path) => [path, 'Prefix', 'web'] as const))] }, age);

describe('a host of one namespace', () => {
  test.each<[string, readonly (Ingress | Route)[]]>([
    ['Ingress, Ingress', [withPaths('b/late', 'x.test', 2, '/admin'), withPaths('a/old', 'x.test', 1, '/')]],
    [
      'Ingress, Route',
      [route('b/late', { host: 'x.test', path: '/admin' }, 2), withPaths('a/old', 'x.test', 1, '/')],
    ],
    ['Route, Ingress', [withPaths('b/late', 'x.test', 2, '/admin'), route('a/old', { host: 'x.test' }, 1)]],
    ['wildcard, Ingress', [withPaths('b/late', 'x.test', 2, '/admin'), withPaths('a/old', '*.test', 1, '/')]],
    [
      'wildcard, Route',
      [route('b/late', { host: 'x.test', path: '/admin' }, 2), withPaths('a/old', '*.test', 1, '/')],
    ],
  ])('%s: gives no path to another, in whatever order they come', (_, objects) => {
    for (const table of [tableOf(objects), tableOf([...objects].reverse())]) {
      expect(ask(table, 'x.test', '/admin')).toBe('a');
      const refused = table.admissionOf('b/late')?.refusal ?? table.refusedHosts('b/late').get('x.test');
      expect(refused?.reason).toBe('HostAlreadyClaimed');
      expect(refused?.message).toMatch(/^an? (?:ingress|route) in another namespace holds host x\.test$/);
    }
  });

  test('goes to the next oldest with its last object, and comes back with an older one', () => {
    const late = withPaths('b/late', 'x.test', 2, '/');
    const old = route('a/old', { host: 'x.test' }, 1);
    const table = tableOf([late, old]);
    expect(ask(table, 'x.test', '/')).toBe('a');
    expect(table.setRoute('a/old', undefined).ingresses).toContain('b/late');
    expect(ask(table, 'x.test', '/')).toBe('b');
    expect(table.refusedHosts('b/late').size).toBe(0);
    expect(table.setRoute('a/old', old).ingresses).toContain('b/late');
    expect(ask(table, 'x.test', '/')).toBe('a');
  });

  test('leaves the other hosts of an Ingress alone', () => {
    const both = ingress(
      'b/both',
      { rules: [rule('x.test', ['/', 'Prefix', 'b']), rule('y.test', ['/', 'Prefix', 'b'])] },
      2,
    );
    const table = tableOf([withPaths('a/old', 'x.test', 1, '/'), both]);
    expect([ask(table, 'x.test', '/'), ask(table, 'y.test', '/')]).toEqual(['a', 'b']);
  });

  test('is not served by rules for all hosts, wildcards and default backends of others', () => {
    const service = { service: { name: 'web', port: { number: 80 } } };
    const others = [
      withPaths('b/any', '', 1, '/'),
      ingress('b/default', { defaultBackend: service }, 1),
      withPaths('b/wild', '*.test', 3, '/'),
    ];
    const table = tableOf([...others, withPaths('a/own', 'x.test', 2, '/shop')]);
    expect(ask(table, 'x.test', '/shop')).toBe('a');
    expect(ask(table, 'x.test', '/secret')).toBe('NoPath');
    // What nobody else has is theirs.
    expect(ask(table, 'y.test', '/')).toBe('b');
    expect(ask(table, 'y.example', '/')).toBe('b');
    const own = tableOf([
      withPaths('a/own', 'x.test', 2, '/shop'),
      ingress('a/default', { defaultBackend: service }, 1),
    ]);
    expect(ask(own, 'x.test', '/secret')).toBe('a');
  });

  test('is claimed by certificates too', () => {
    const tls = ingress(
      'b/tls',
      { tls: [{ hosts: ['x.test'], secretName: 's' }], rules: [rule('', ['/', 'Prefix', 'b'])] },
      2,
    );
    const table = tableOf([withPaths('a/old', 'x.test', 1, '/'), tls]);
    expect([...table.refusedHosts('b/tls').keys()]).toEqual(['x.test']);
  });

  test('may be shared, if the router is told so', () => {
    const objects = [withPaths('b/late', 'x.test', 2, '/admin'), withPaths('a/old', 'x.test', 1, '/')];
    const table = tableOf(objects, { ownership: false });
    expect([ask(table, 'x.test', '/'), ask(table, 'x.test', '/admin')]).toEqual(['a', 'b']);
    expect(table.refusedHosts('b/late').size).toBe(0);
  });
});

test('what a host serves by TLS alone is not served without it by a default backend', () => {
  const service = { service: { name: 'web', port: { number: 80 } } };
  const edge = route('a/edge', { host: 'x.test', tls: { termination: 'edge' } }, 1);
  for (const defaults of ['a', 'b']) {
    const table = tableOf([edge, ingress(`${defaults}/default`, { defaultBackend: service }, 0)]);
    expect(ask(table, 'x.test', '/')).toBe('NotServedInsecurely');
    expect(ask(table, 'x.test', '/', 'https')).toBe('a');
  }
});

test('who has a host depends on the objects alone, and all that changes is told', () => {
  const hosts = ['a.x.test', 'b.x.test', '*.x.test', 'x.test'];
  const change = fc.record({
    name: fc.constantFrom('a/1', 'a/2', 'b/1', 'b/2', 'c/1'),
    isRoute: fc.boolean(),
    hosts: fc.uniqueArray(fc.constantFrom(...hosts), { minLength: 1, maxLength: 3 }),
    age: fc.nat(5),
    isGone: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 14 }), fc.boolean(), (changes, wildcards) => {
      const routes = new Map<string, Route>();
      const ingresses = new Map<string, Ingress>();
      const claims = new RouteClaims({ ...options, wildcards });
      const said = new Map<string, string>();
      const state = (of: RouteClaims, kind: string, key: string): string =>
        JSON.stringify(kind === 'Route' ? of.admissionOf(key) : [...of.refusedHosts(key)].sort());
      for (const { name, isRoute, hosts: given, age, isGone } of changes) {
        const [first = ''] = given;
        const isWild = first.startsWith('*.');
        const host = first.replace('*.', 'w.');
        const made = route(name, { host, wildcardPolicy: isWild ? 'Subdomain' : 'None' }, age);
        const unnamed = ingress(name, { rules: given.map((one) => rule(one, ['/', 'Prefix', 'web'])) }, age);
        const wanted = { ...unnamed, metadata: { ...unnamed.metadata, uid: `ingress-${name}` } };
        if (isRoute && isGone) routes.delete(name);
        else if (isRoute) routes.set(name, made);
        else if (isGone) ingresses.delete(name);
        else ingresses.set(name, wanted);
        const told = isRoute
          ? claims.set(name, isGone ? undefined : made)
          : claims.setIngress(name, isGone ? undefined : wanted);
        for (const key of told.routes) said.set(`Route ${key}`, state(claims, 'Route', key));
        for (const key of told.ingresses) said.set(`Ingress ${key}`, state(claims, 'Ingress', key));
      }
      const fresh = new RouteClaims({ ...options, wildcards });
      for (const [key, one] of [...ingresses].reverse()) fresh.setIngress(key, one);
      for (const [key, one] of [...routes].reverse()) fresh.set(key, one);
      for (const key of routes.keys()) {
        expect(state(claims, 'Route', key)).toBe(state(fresh, 'Route', key));
        expect(said.get(`Route ${key}`)).toBe(state(claims, 'Route', key));
        const admission = claims.admissionOf(key);
        const isNamed = routes.get(key)?.spec.wildcardPolicy === 'None';
        if (admission?.refusal === undefined && isNamed) {
          expect(claims.ownerOf(admission?.host ?? '')).toBe(key[0]);
        }
      }
      for (const [key, { spec }] of ingresses) {
        expect(state(claims, 'Ingress', key)).toBe(state(fresh, 'Ingress', key));
        expect(said.get(`Ingress ${key}`)).toBe(state(claims, 'Ingress', key));
        for (const { host = '' } of spec.rules ?? []) {
          const isRefused = claims.refusedHosts(key).has(host);
          expect(claims.ownerOf(host) === key[0]).toBe(!isRefused);
        }
      }
    }),
    { numRuns: 500 },
  );
});
