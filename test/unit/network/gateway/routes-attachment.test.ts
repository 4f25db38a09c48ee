import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attach } from '../../../../src/network/gateway/routes.ts';
import { planListeners } from '../../../../src/network/gateway/listeners.ts';
import type { AnyRoute, RouteKind } from '../../../../src/network/gateway/plan.ts';
import { References } from '../../../../src/network/gateway/references.ts';
import type { GatewayListener, ParentReference } from '../../../../src/objects/types/gateway.ts';
import {
  gateway,
  grpcRoute,
  httpRoute,
  listener,
  listenerSet,
  objectsOf,
  plan,
  streamRoute,
  toGateway,
  words,
} from './objects.ts';

/** What the references of Routes are told, without ResolvedRefs, and the attached Routes of each listener. */
function attachment(
  listeners: readonly (GatewayListener | string)[],
  route: AnyRoute,
  namespaces: Readonly<Record<string, Readonly<Record<string, string>>>> = {},
): [string[], number[]] {
  const found = plan(listeners, { routes: [route], namespaces });
  return [
    found.routes.map(({ conditions }) => words(conditions.filter(({ type }) => type === 'Accepted'))),
    found.listeners.map(({ attachedRoutes }) => attachedRoutes),
  ];
}

const parents = (...refs: Partial<ParentReference>[]): { parents: ParentReference[] } => ({
  parents: refs.map(toGateway),
});
const from = (namespaces: object): GatewayListener => listener('http 80', { allowedRoutes: { namespaces } });
const ofTeam = from({ from: 'Selector', selector: { matchLabels: { team: 'a' } } });
const refuse = (reason: string): string => `!Accepted=${reason}`;

describe('a parentRef', () => {
  test.each<[string, (GatewayListener | string)[], AnyRoute, string, number[]]>([
    ['to all listeners', ['http 80', 'http 81'], httpRoute('shop/r'), 'Accepted', [1, 1]],
    [
      'by name',
      ['http 80', 'http 81'],
      httpRoute('shop/r', parents({ sectionName: 'http-2' })),
      'Accepted',
      [0, 1],
    ],
    ['by port', ['http 80', 'http 81'], httpRoute('shop/r', parents({ port: 80 })), 'Accepted', [1, 0]],
    [
      'by both',
      ['http 80'],
      httpRoute('shop/r', parents({ port: 80, sectionName: 'http' })),
      'Accepted',
      [1],
    ],
    [
      'by both, of two listeners',
      ['http 80', 'http 81'],
      httpRoute('shop/r', parents({ port: 81, sectionName: 'http' })),
      refuse('NoMatchingParent'),
      [0, 0],
    ],
    [
      'to no name',
      ['http 80'],
      httpRoute('shop/r', parents({ sectionName: 'x' })),
      refuse('NoMatchingParent'),
      [0],
    ],
    ['to no port', ['http 80'], httpRoute('shop/r', parents({ port: 81 })), refuse('NoMatchingParent'), [0]],
    ['of another namespace', ['http 80'], httpRoute('a/r'), refuse('NotAllowedByListeners'), [0]],
    ['of all namespaces', [from({ from: 'All' })], httpRoute('a/r'), 'Accepted', [1]],
    ['of a selected namespace', [ofTeam], httpRoute('a/r'), 'Accepted', [1]],
    ['of a namespace that is not selected', [ofTeam], httpRoute('b/r'), refuse('NotAllowedByListeners'), [0]],
    ['to TCP', ['tcp 80'], httpRoute('shop/r'), refuse('NotAllowedByListeners'), [0]],
    ['of gRPC', ['http 80'], grpcRoute('shop/r'), 'Accepted', [1]],
    [
      'of gRPC where it is not allowed',
      [listener('http 80', { allowedRoutes: { kinds: [{ kind: 'HTTPRoute' }] } })],
      grpcRoute('shop/r'),
      refuse('NotAllowedByListeners'),
      [0],
    ],
    [
      'of TLS',
      ['https 443', 'http 80', 'tls 8443', 'tls/Passthrough 8444'],
      streamRoute('TLSRoute', 'shop/r'),
      'Accepted',
      [0, 0, 1, 1],
    ],
    [
      'of TLS to HTTPS',
      ['https 443'],
      streamRoute('TLSRoute', 'shop/r'),
      refuse('NotAllowedByListeners'),
      [0],
    ],
    [
      'of TCP',
      ['tcp 80', 'http 81', 'udp 80', 'tcp 82'],
      streamRoute('TCPRoute', 'shop/r'),
      'Accepted',
      [1, 0, 0, 1],
    ],
    ['of UDP', ['tcp 80', 'udp 80'], streamRoute('UDPRoute', 'shop/r'), 'Accepted', [0, 1]],
    [
      'of UDP to TCP by port',
      ['tcp 80', 'udp 81'],
      streamRoute('UDPRoute', 'shop/r', parents({ port: 80 })),
      refuse('NotAllowedByListeners'),
      [0, 0],
    ],
    [
      'of a common hostname',
      ['http 80 *.test', 'http 80 b.test'],
      httpRoute('shop/r', { hostnames: ['a.test', 'x.y'] }),
      'Accepted',
      [1, 0],
    ],
    [
      'of no common hostname',
      ['http 80 b.test'],
      httpRoute('shop/r', { hostnames: ['a.test'] }),
      refuse('NoMatchingListenerHostname'),
      [0],
    ],
    [
      'of no common hostname of TLS',
      ['tls 443 b.test'],
      streamRoute('TLSRoute', 'shop/r'),
      refuse('NoMatchingListenerHostname'),
      [0],
    ],
    ['to a listener that is not accepted', ['http 80', 'http 80'], httpRoute('shop/r'), 'Accepted', [1, 1]],
    [
      'to a listener without a certificate',
      [listener('https 443', { tls: { certificateRefs: [{ name: 'none' }] } })],
      httpRoute('shop/r'),
      'Accepted',
      [1],
    ],
    [
      'of a Route that asks what is not done',
      ['http 80'],
      httpRoute('shop/r', { rules: [{ filters: [{ type: 'Other' }] }] }),
      refuse('UnsupportedValue'),
      [0],
    ],
    [
      'of a Route that redirects and rewrites',
      ['http 80'],
      httpRoute('shop/r', {
        rules: [
          {
            filters: [
              { type: 'RequestRedirect', requestRedirect: {} },
              { type: 'URLRewrite', urlRewrite: {} },
            ],
          },
        ],
      }),
      refuse('IncompatibleFilters'),
      [0],
    ],
  ])('%s', (_, listeners, route, told, attached) => {
    expect(attachment(listeners, route, { a: { team: 'a' } })).toEqual([[told], attached]);
  });

  test('has a status of its own, as it is written; a Route counts once', () => {
    const refs = [toGateway({ sectionName: 'http' }), toGateway({ port: 81 }), toGateway()];
    const others = [{ name: 'other' }, { name: 'web', kind: 'Service', group: '' }];
    const found = plan(['http 80', 'http 81'], {
      routes: [httpRoute('shop/r', { parents: [...refs, ...others] })],
    });
    expect(found.routes.map(({ parentRef }) => parentRef)).toEqual(refs);
    expect(found.listeners.map(({ attachedRoutes }) => attachedRoutes)).toEqual([1, 1]);
    expect(found.ports.map(({ listeners }) => listeners[0]?.matches.length)).toEqual([1, 1]);
  });
});

describe('ListenerSets as parents', () => {
  const of = gateway(['http 80'], { allowedListeners: { namespaces: { from: 'All' } } });
  const toSet = (more: Partial<ParentReference> = {}): ParentReference => ({
    ...{ group: 'gateway.networking.k8s.io', kind: 'ListenerSet', name: 'set', namespace: 'other' },
    ...more,
  });
  const told = (of_: typeof of, ...refs: ParentReference[]): unknown => {
    const found = plan(of_, {
      sets: [listenerSet('other/set', [listener('http 81', { name: 'extra' })])],
      routes: [httpRoute('other/r', { parents: refs }), httpRoute('shop/r', { parents: [toSet()] })],
    });
    return [
      ...found.routes.map(({ key, conditions }) => `${key} ${words(conditions.slice(0, 1))}`),
      ...found.listenerSets.flatMap((set) => set.listeners.map(({ attachedRoutes }) => attachedRoutes)),
    ];
  };

  test('take the Routes that name them, of their own namespace by default', () => {
    const ofOther = 'shop/r !Accepted=NotAllowedByListeners';
    expect(told(of, toSet())).toEqual(['other/r Accepted', ofOther, 1]);
    expect(told(of, toSet({ sectionName: 'extra' }), toSet({ sectionName: 'http' }))).toEqual([
      'other/r Accepted',
      'other/r !Accepted=NoMatchingParent',
      ofOther,
      1,
    ]);
  });

  test('are not reached by the Gateway', () => {
    expect(told(of, toGateway({ sectionName: 'extra' }), toGateway())).toEqual([
      'other/r !Accepted=NoMatchingParent',
      'other/r !Accepted=NotAllowedByListeners',
      'shop/r !Accepted=NotAllowedByListeners',
      0,
    ]);
  });

  test('that the Gateway does not allow take none', () => {
    expect(told(gateway(['http 80']), toSet())).toEqual([
      'other/r !Accepted=NoMatchingParent',
      'shop/r !Accepted=NoMatchingParent',
      0,
    ]);
  });
});

const streamKinds = new Set<RouteKind>(['TCPRoute', 'UDPRoute']);

describe('the model', () => {
  const protocols: Readonly<Record<RouteKind, string>> = {
    ...{ HTTPRoute: 'http', GRPCRoute: 'http', TLSRoute: 'tls', TCPRoute: 'tcp', UDPRoute: 'udp' },
  };
  const hosts = fc.constantFrom('', 'a.test', 'b.test', '*.test', '*.b.test', 'c.b.test');
  const someListener = fc.record({
    protocol: fc.constantFrom('http', 'tls', 'tcp', 'udp'),
    port: fc.constantFrom(80, 81),
    host: hosts,
    from: fc.constantFrom('Same', 'All'),
  });
  const someRoute = fc.record({
    kind: fc.constantFrom<RouteKind[]>('HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'),
    namespace: fc.constantFrom('shop', 'other'),
    hostnames: fc.array(
      hosts.filter((host) => host !== ''),
      { maxLength: 2 },
    ),
  });
  const someRef = fc.record({ section: fc.nat({ max: 9 }), port: fc.constantFrom(80, 81, 82, 83) });

  /** Hosts of the names used here, by which hostnames are compared without knowing how. */
  const universe = ['a.test', 'b.test', 'c.b.test', 'd.c.b.test', 'x.test', 'test', 'x'];
  const has = (hostname: string, host: string): boolean =>
    hostname === '' || hostname === host || (hostname.startsWith('*.') && host.endsWith(hostname.slice(1)));

  test('says which listeners a parentRef attaches to, and why to none', () => {
    const drawn = fc.tuple(fc.array(someListener, { minLength: 1, maxLength: 4 }), someRoute, someRef);
    const seen = new Set<string>();
    fc.assert(
      fc.property(drawn, ([models, route, { section, port }]) => {
        const specs = models.map(({ protocol, port: own, host, from: namespaces }, i) =>
          listener(`${protocol} ${own} ${host}`, {
            name: `l${i}`,
            allowedRoutes: { namespaces: { from: namespaces } },
          }),
        );
        const ref = {
          ...(section < 4 ? { sectionName: `l${section}` } : {}),
          ...(port < 83 ? { port } : {}),
        };
        const { own } = planListeners(gateway(specs), [], new References(objectsOf({})));
        const found = attach(
          { ...route, hostnames: streamKinds.has(route.kind) ? [] : route.hostnames },
          ref,
          own,
        );

        const hasRefs = models.map(
          (model, i) => (section >= 4 || section === i) && (port === 83 || port === model.port),
        );
        const isAllowed = models.map(
          ({ protocol, from: namespaces }) =>
            protocol === protocols[route.kind] && (route.namespace === 'shop' || namespaces === 'All'),
        );
        const hasHost = models.map(({ host }) => {
          if (streamKinds.has(route.kind) || route.hostnames.length === 0) return true;
          return universe.some((one) => has(host, one) && route.hostnames.some((other) => has(other, one)));
        });
        const named = models.map((_, i) => hasRefs[i] === true);
        const allowed = named.map((isNamed, i) => isNamed && isAllowed[i] === true);
        const attached = allowed.map((is, i) => is && hasHost[i] === true);
        const told = !named.includes(true)
          ? 'NoMatchingParent'
          : !allowed.includes(true)
            ? 'NotAllowedByListeners'
            : !attached.includes(true)
              ? 'NoMatchingListenerHostname'
              : 'Accepted';
        seen.add(told);
        if (told === 'Accepted') {
          const names = attached.flatMap((is, i) => (is ? [`l${i}`] : []));
          expect('reason' in found ? found : found.map(({ spec }) => spec.name)).toEqual(names);
        } else {
          expect(found).toMatchObject({ reason: told });
        }
      }),
      { numRuns: 1000 },
    );
    expect(seen.size).toBe(4);
  });
});
