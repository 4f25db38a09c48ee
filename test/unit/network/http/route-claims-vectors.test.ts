/** The steps of hostindex_test.go and activation_test.go of OpenShift's router, as what is admitted at their end. */
import { expect, test } from 'vitest';
import { RouteClaims } from '../../../../src/network/http/route-claims.ts';
import { keyOf, type ObjectKey } from '../../../../src/objects/meta.ts';
import type { Route, RouteSpec } from '../../../../src/objects/types/route.generated.ts';
import { route } from './objects.ts';

const taken = 'HostAlreadyClaimed';
const edge = { tls: { termination: 'edge' } };
const passthrough = { tls: { termination: 'passthrough' } };

function x(name: string, age: number, spec: Partial<RouteSpec> = {}): Route {
  return route(name, { host: 'x.test', ...spec }, age);
}

/** Takes the Route away. */
function gone(name: ObjectKey): ObjectKey {
  return name;
}

/** The reason of each Route behind the steps. */
function outcome(
  steps: readonly (Route | ObjectKey)[],
  names: readonly ObjectKey[],
  ownership = true,
): readonly string[] {
  const lists = { allowedDomains: [], deniedDomains: [] };
  const claims = new RouteClaims({ domain: '', ...lists, wildcards: false, ownership });
  for (const step of steps) {
    if (typeof step === 'string') claims.set(step, undefined);
    else claims.set(keyOf(step), step);
  }
  return names.map((name) => claims.admissionOf(name)?.refusal?.reason ?? 'Admitted');
}

test.each<[string, (Route | string)[], Record<string, string>]>([
  ['another version of a Route', [x('a/1', 1), x('a/1', 1)], { 'a/1': 'Admitted' }],
  ['a Route that is made anew, older or younger', [x('a/1', 2), x('a/1', 1)], { 'a/1': 'Admitted' }],
  ['a younger Route', [x('a/1', 1), x('a/2', 2)], { 'a/1': 'Admitted', 'a/2': taken }],
  ['an older Route', [x('a/2', 2), x('a/1', 1)], { 'a/1': 'Admitted', 'a/2': taken }],
  [
    'a Route of another host',
    [x('a/1', 1), x('b/2', 2, { host: 'y.test' })],
    { 'a/1': 'Admitted', 'b/2': 'Admitted' },
  ],
  [
    'an older Route that comes from another host',
    [x('a/2', 2), x('a/1', 1, { host: 'y.test' }), x('a/1', 1)],
    { 'a/1': 'Admitted', 'a/2': taken },
  ],
  [
    'a Route that leaves for another host',
    [x('a/1', 1), x('b/2', 2), x('a/1', 1, { host: 'y.test' })],
    { 'a/1': 'Admitted', 'b/2': 'Admitted' },
  ],
  ['the end of one that was never there', [x('a/1', 1), gone('a/2')], { 'a/1': 'Admitted' }],
  ['the end of the holder', [x('a/1', 1), x('a/2', 2), gone('a/1')], { 'a/2': 'Admitted' }],
  [
    'the end of the holder, and two that wait: the older one',
    [x('a/3', 3), x('a/2', 2), x('a/1', 1), gone('a/1')],
    { 'a/2': 'Admitted', 'a/3': taken },
  ],
  [
    'the end of the holders, one after the other',
    [x('a/3', 3), x('a/2', 2), x('a/1', 1), gone('a/1'), gone('a/2')],
    { 'a/3': 'Admitted' },
  ],
  ['the end of one that waits', [x('a/1', 1), x('a/2', 2), gone('a/2')], { 'a/1': 'Admitted' }],
  [
    'paths to and fro: no path stays claimed',
    [x('a/1', 1, { path: '/a' }), x('a/1', 1, { path: '/b' }), x('a/2', 2, { path: '/a' })],
    { 'a/1': 'Admitted', 'a/2': 'Admitted' },
  ],
  [
    'the end of a Route whose path has changed: no path stays claimed',
    [
      x('a/1', 1, { path: '/a' }),
      x('a/1', 1, { path: '/b' }),
      gone('a/1'),
      x('b/2', 2, { path: '/a' }),
      x('b/3', 3, { path: '/b' }),
    ],
    { 'b/2': 'Admitted', 'b/3': 'Admitted' },
  ],
  [
    'a path that an older Route has',
    [x('a/1', 1, { path: '/a' }), x('a/2', 2, { path: '/b' }), x('a/2', 2, { path: '/a' })],
    { 'a/1': 'Admitted', 'a/2': taken },
  ],
  [
    'younger and older paths of one namespace',
    [x('a/3', 3, { path: '/a' }), x('a/1', 1)],
    { 'a/1': 'Admitted', 'a/3': 'Admitted' },
  ],
  [
    'an older Route of another namespace: all of the other one wait, whatever their paths',
    [x('a/2', 2), x('a/3', 3, { path: '/a' }), x('b/1', 1)],
    { 'b/1': 'Admitted', 'a/2': taken, 'a/3': taken },
  ],
  [
    'two older Routes of another namespace',
    [x('b/2', 2), x('a/1', 1), x('a/3', 3, { path: '/a' })],
    { 'a/1': 'Admitted', 'a/3': 'Admitted', 'b/2': taken },
  ],
  [
    'passthrough, then one without TLS and one that ends it, at other paths',
    [x('a/1', 1, passthrough), x('a/2', 2, { path: '/b' }), x('a/3', 3, { path: '/a', ...edge })],
    { 'a/1': 'Admitted', 'a/2': 'Admitted', 'a/3': taken },
  ],
  [
    'a path that ends TLS, then passthrough',
    [x('a/1', 1, { path: '/a', ...edge }), x('a/2', 2, passthrough)],
    { 'a/1': 'Admitted', 'a/2': taken },
  ],
])('%s', (_, steps, expected) => {
  expect(outcome(steps, Object.keys(expected))).toEqual(Object.values(expected));
});

test('without ownership, an older Route of another namespace takes its own path alone', () => {
  const steps = [x('a/2', 2), x('a/3', 3, { path: '/a' }), x('b/1', 1)];
  expect(outcome(steps, ['b/1', 'a/2', 'a/3'], false)).toEqual(['Admitted', taken, 'Admitted']);
});
