import { describe, expect, test } from 'vitest';
import { Backends } from '../../../../src/network/gateway/routes.ts';
import type { RuleSource } from '../../../../src/network/http/rules.ts';
import type { AnyRoute } from '../../../../src/network/gateway/plan.ts';
import { Policies } from '../../../../src/network/gateway/policies.ts';
import { References } from '../../../../src/network/gateway/references.ts';
import {
  grant,
  grpcRoute,
  httpRoute,
  objectsOf,
  plan,
  policy,
  service,
  streamRoute,
  toGateway,
  words,
} from './objects.ts';

describe('backends', () => {
  const kinds = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const;
  const routeOf = (kind: AnyRoute['kind'], backend: object): AnyRoute => {
    const options = { backends: [{ name: 'web', port: kind === 'UDPRoute' ? 53 : 80, ...backend }] };
    if (kind === 'HTTPRoute') return httpRoute('shop/r', options);
    return kind === 'GRPCRoute' ? grpcRoute('shop/r', options) : streamRoute(kind, 'shop/r', options);
  };
  const good = 'Accepted ResolvedRefs';
  const bad = (reason: string): string => `Accepted !ResolvedRefs=${reason}`;
  const ofOther = { namespace: 'other' };

  describe.each(kinds)('of a %s', (kind) => {
    const permitted = grant('other', `${kind} shop`, 'Service web');
    test.each([
      ['a Service', {}, [], good],
      ['none', { name: 'none' }, [], bad('BackendNotFound')],
      ['no such port', { port: 1 }, [], bad('BackendNotFound')],
      ['a port of the other transport', { port: kind === 'UDPRoute' ? 80 : 53 }, [], bad('BackendNotFound')],
      ['another kind', { group: 'x.y', kind: 'Z' }, [], bad('InvalidKind')],
      ['a name outside', { name: 'outside' }, [], bad('InvalidKind')],
      ['another namespace', ofOther, [], bad('RefNotPermitted')],
      ['another namespace with a grant', ofOther, [permitted], good],
      ['none of another namespace', { ...ofOther, name: 'none' }, [permitted], bad('RefNotPermitted')],
      [
        'another namespace with a grant for others',
        ofOther,
        [grant('other', 'Gateway shop', 'Service')],
        bad('RefNotPermitted'),
      ],
    ])('%s', (_, backend, grants, expected) => {
      const found = plan(['http 80', 'tls 443', 'tcp 9000', 'udp 53'], {
        ...{ grants, routes: [routeOf(kind, backend)] },
        services: [
          ...[service('shop/web'), service('other/web')],
          service('shop/outside', { type: 'ExternalName', externalName: 'a.test' }),
        ],
      });
      expect(words(found.routes[0]?.conditions)).toBe(expected);
      const backends = found.ports
        .flatMap(({ listeners }) => listeners)
        .flatMap(({ matches, streams }) => [
          ...matches.flatMap(({ rule }) => rule.backends),
          ...streams.flatMap((one) => one.backends),
        ]);
      expect(backends.map(({ rule }) => rule === undefined)).toEqual([expected !== good]);
      if (expected !== good) return;
      const namespace = backend === ofOther ? 'other' : 'shop';
      const port = kind === 'UDPRoute' ? 53 : 80;
      expect(backends[0]?.rule).toMatchObject({
        source: { kind, namespace: 'shop', name: 'r' },
        backends: [{ namespace, service: 'web', port, weight: 1 }],
      });
    });
  });

  test.each([
    ['kubernetes.io/h2c', good],
    ['kubernetes.io/ws', good],
    ['kubernetes.io/wss', bad('UnsupportedProtocol')],
    ['kubernetes.io/other', bad('UnsupportedProtocol')],
    ['HTTPS', good],
  ])('appProtocol %s', (appProtocol, expected) => {
    const services = [service('shop/web', { ports: [{ port: 80, appProtocol }] })];
    expect(words(plan(['http 80'], { services, routes: [httpRoute('shop/r')] }).routes[0]?.conditions)).toBe(
      expected,
    );
    const tcp = { services, routes: [streamRoute('TCPRoute', 'shop/r')] };
    expect(words(plan(['tcp 80'], tcp).routes[0]?.conditions)).toBe(good);
  });

  test('are resolved for Routes that are not accepted, too; the first problem is the reason', () => {
    const backends = [
      { name: 'none', port: 80 },
      { name: 'web', port: 80, namespace: 'other' },
    ];
    const [route] = plan(['http 80'], {
      routes: [httpRoute('shop/r', { parents: [toGateway({ sectionName: 'x' })], backends })],
    }).routes;
    expect(words(route?.conditions)).toBe('!Accepted=NoMatchingParent !ResolvedRefs=BackendNotFound');
    expect(route?.conditions[1]?.message).toBe(
      'Service shop/none does not exist; No ReferenceGrant of namespace other lets a HTTPRoute of namespace shop refer to Service web',
    );
  });

  test('have their weights, 1 if none is given', () => {
    const backends = [
      { name: 'web', port: 80, weight: 0 },
      { name: 'web', port: 80 },
      { name: 'x', port: 1, weight: 9 },
    ];
    const routes = [httpRoute('shop/r', { backends }), streamRoute('TCPRoute', 'shop/r', { backends })];
    const [http, tcp] = plan(['http 80', 'tcp 81'], { routes }).ports;
    expect(http?.listeners[0]?.matches[0]?.rule.backends.map(({ weight }) => weight)).toEqual([0, 1, 9]);
    expect(tcp?.listeners[0]?.streams[0]?.backends.map(({ weight }) => weight)).toEqual([0, 1, 9]);
  });
});

test('of a Route are collected with their problems, by the Services whose policies count', () => {
  const references = new References(objectsOf({ policies: [policy('shop/p')] }));
  const source: RuleSource = { kind: 'TLSRoute', namespace: 'shop', name: 'r', uid: '', created: '' };
  const newBackends = (): Backends => new Backends(source, references, new Policies(references, undefined));
  const web = { name: 'web', port: 80 };

  const plain = newBackends();
  expect(plain.resolve(web, 'none')?.backendTls).toBeUndefined();
  expect([...plain.services]).toEqual([]);

  const secured = newBackends();
  expect(secured.resolve(web, 'tls')?.backendTls?.serverName).toBe('backend.test');
  expect([...secured.services]).toEqual(['shop/web']);
  expect(secured.problems).toEqual([]);

  expect(secured.resolve({ name: 'none', port: 80 }, 'tls')).toBeUndefined();
  expect(secured.resolve({ name: 'web' }, 'tls')).toBeUndefined();
  expect(secured.problems.map(({ message }) => message)).toEqual([
    'Service shop/none does not exist',
    'Service shop/web has no TCP port (none is named)',
  ]);
});
