import { describe, expect, test } from 'vitest';
import {
  ignoredRouteAnnotations,
  isAllowed,
  restrictionProblem,
  rewrittenPath,
  routeSettings,
} from '../../../../src/network/http/route-annotations.ts';

const of = (annotations: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(annotations).map(([name, value]) => [`haproxy.router.openshift.io/${name}`, value]),
  );

// The table of OpenShift's documentation, "Route-specific annotations".
test.each([
  ['/foo', '/foo', '/', '/'],
  ['/foo', '/foo/', '/', '/'],
  ['/foo', '/foo/bar', '/', '/bar'],
  ['/foo', '/foo/bar/', '/', '/bar/'],
  ['/foo', '/foo', '/bar', '/bar'],
  ['/foo', '/foo/', '/bar', '/bar/'],
  ['/foo', '/foo/bar', '/baz', '/baz/bar'],
  ['/foo', '/foo/bar/', '/baz', '/baz/bar/'],
  ['/foo/', '/foo/', '/', '/'],
  ['/foo/', '/foo/bar', '/', '/bar'],
  // Beyond it: the query stays.
  ['/foo', '/foo?a=/foo', '/', '/?a=/foo'],
  ['', '/x?y', '/baz', '/baz/x?y'],
])('of a Route for %s, %s with the target %s is %s', (matched, path, target, rewritten) => {
  expect(rewrittenPath(path, matched, target)).toBe(rewritten);
});

describe('the allowlist', () => {
  test.each([
    ['192.168.1.10', '192.168.1.10', true],
    ['192.168.1.10', '192.168.1.11', false],
    ['192.168.1.0/24 10.0.0.0/8  180.5.61.153', '10.255.0.1', true],
    ['192.168.1.0/24 10.0.0.0/8', '11.0.0.1', false],
    ['0.0.0.0/0', '1.2.3.4', true],
    ['0.0.0.0/0', 'fd00::1', false],
    ['fd00::/8', 'fd00::1', true],
    ['fd00::1', 'fd00::2', false],
    ['10.0.0.0/8', '', false],
  ])('%s and the client %s: %s', (list, address, isIn) => {
    for (const name of ['ip_allowlist', 'ip_whitelist']) {
      const { allowed = [] } = routeSettings(of({ [name]: list }), undefined);
      expect(isAllowed(address, allowed)).toBe(isIn);
    }
  });

  test('the newer name goes before the older one; an empty list is none', () => {
    const both = of({ ip_allowlist: '10.0.0.1', ip_whitelist: '10.0.0.2' });
    expect(isAllowed('10.0.0.2', routeSettings(both, undefined).allowed ?? [])).toBe(false);
    expect(routeSettings(of({ ip_allowlist: ' ' }), undefined).allowed).toBeUndefined();
  });
});

describe('a Route is refused', () => {
  test.each([
    [
      { ip_allowlist: '10.0.0.1,10.0.0.2' },
      'the allowlist has an entry that is no address or CIDR: "10.0.0.1,10.0.0.2"',
    ],
    [
      { ip_whitelist: '10.0.0.1 example.com' },
      'the allowlist has an entry that is no address or CIDR: "example.com"',
    ],
    [{ ip_allowlist: '010.0.0.1' }, 'the allowlist has an entry that is no address or CIDR: "010.0.0.1"'],
    [{ ip_allowlist: '10.0.0.0/33' }, 'the allowlist has an entry that is no address or CIDR: "10.0.0.0/33"'],
    [
      { 'pod-concurrent-connections': '5' },
      'this router does not know the limit of haproxy.router.openshift.io/pod-concurrent-connections',
    ],
    [
      { 'rate-limit-connections': 'true', 'rate-limit-connections.rate-http': 'ten' },
      'rate-limit-connections.rate-http is no whole number: "ten"',
    ],
  ])('for %j', (annotations, message) => {
    expect(restrictionProblem(of(annotations))).toBe(message);
  });

  test.each([
    [{}],
    [{ ip_allowlist: '10.0.0.1 fd00::/8' }],
    [{ balance: 'leastconn', 'set-forwarded-headers': 'append' }],
    // Off.
    [{ 'rate-limit-connections': 'false', 'rate-limit-connections.rate-http': 'ten' }],
  ])('but not for %j', (annotations) => {
    expect(restrictionProblem(of(annotations))).toBeUndefined();
  });
});

test('annotations without effect are named, and no others', () => {
  const annotations = {
    ...of({ timeout: '5s', balance: 'source', ip_allowlist: '', disable_cookies: 'true' }),
    other: 'x',
  };
  expect(ignoredRouteAnnotations(annotations)).toEqual(['haproxy.router.openshift.io/balance']);
});

test.each([
  ['5s', 5000],
  ['2', 2],
  ['1500us', 2],
  ['3m', 180_000],
  ['1h', 3_600_000],
  ['1000d', 2 ** 31 - 1],
  ['0s', undefined],
  ['5 s', undefined],
  ['soon', undefined],
])('the timeout %s', (text, milliseconds) => {
  expect(routeSettings(of({ timeout: text }), undefined).timeoutMs).toBe(milliseconds);
});

test('a timeout is that of a passed through tunnel too, where it has none of its own', () => {
  const both = of({ timeout: '5s', 'timeout-tunnel': '9s' });
  expect(routeSettings(of({ timeout: '5s' }), 'passthrough').tunnelTimeoutMs).toBe(5000);
  expect(routeSettings(both, 'passthrough').tunnelTimeoutMs).toBe(9000);
  expect(routeSettings(of({ timeout: '5s' }), 'edge').tunnelTimeoutMs).toBeUndefined();
});

test.each([
  ['max-age=31536000;includeSubDomains;preload', 'edge', true],
  ['max-age=31536000; preload', 'reencrypt', true],
  ['max-age=31536000', 'passthrough', false],
  ['max-age=31536000', undefined, false],
  ['max-age=x', 'edge', false],
  ["max-age=1' evil", 'edge', false],
] as const)('Strict-Transport-Security: %s where TLS is %s', (value, termination, isSent) => {
  expect(routeSettings(of({ hsts_header: value }), termination).hsts).toBe(isSent ? value : undefined);
});
