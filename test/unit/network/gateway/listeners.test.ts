import { describe, expect, test } from 'vitest';
import { gateway, listener, listenerSet, pairOf, plan, words } from './objects.ts';

/** What the listeners of a Gateway are told. */
function told(...args: Parameters<typeof plan>): string[] {
  return plan(...args).listeners.map(({ conditions }) => words(conditions));
}

const good = 'Accepted ResolvedRefs Programmed !Conflicted=NoConflicts';
const conflict = (reason: string): string =>
  `!Accepted=${reason} ResolvedRefs !Programmed=${reason} Conflicted=${reason}`;
const protocol = conflict('ProtocolConflict');
const hostname = conflict('HostnameConflict');
const overlapping = `${good} OverlappingTLSConfig=OverlappingHostnames`;
const passthrough = 'tls/Passthrough 443';

describe('listeners of a Gateway', () => {
  test.each([
    ['one', ['http 80'], [good]],
    ['ports', ['http 80', 'http 81'], [good, good]],
    ['hostnames', ['http 80', 'http 80 a.test', 'http 80 *.test'], [good, good, good]],
    ['equal hostnames', ['http 80 a.test', 'http 80 A.test'], [hostname, hostname]],
    [
      'three of which two conflict',
      ['http 80 a.test', 'http 80 b.test', 'http 80 a.test'],
      [hostname, good, hostname],
    ],
    ['no hostnames', ['https 443', 'https 443'], [hostname, hostname]],
    ['HTTP and HTTPS', ['http 80', 'https 80'], [protocol, protocol]],
    ['HTTP and TLS', ['http 443 a.test', `${passthrough} b.test`], [protocol, protocol]],
    ['HTTP and TCP', ['http 80', 'tcp 80'], [protocol, protocol]],
    ['TLS and TCP', [passthrough, 'tcp 443'], [protocol, protocol]],
    ['TCP twice', ['tcp 80', 'tcp 80'], [protocol, protocol]],
    ['UDP twice', ['udp 53', 'udp 53'], [protocol, protocol]],
    ['TCP and UDP', ['tcp 53', 'udp 53'], [good, good]],
    ['HTTP and UDP', ['http 80', 'udp 80'], [good, good]],
    ['HTTPS and passthrough', ['https 443 a.test', `${passthrough} b.test`], [good, good]],
    [
      'HTTPS and passthrough of one hostname',
      ['https 443 a.test', `${passthrough} a.test`],
      [protocol, protocol],
    ],
    ['both modes of TLS', ['tls 443 a.test', `${passthrough} b.test`], [good, good]],
    [
      'overlapping hostnames',
      ['https 443 *.test', 'https 443 a.test', 'https 443 a.b'],
      [overlapping, overlapping, good],
    ],
    ['the hostname of all', ['https 443', 'https 443 a.test'], [overlapping, overlapping]],
    ['overlapping hostnames of two ports', ['https 443', 'https 8443 a.test'], [good, good]],
    ['a wildcard of passthrough', [`${passthrough} *.test`, 'https 443 a.test'], [good, good]],
  ])('%s: %j', (_, listeners, expected) => {
    expect(told(listeners)).toEqual(expected);
  });

  test('of a protocol that is not supported serves nothing', () => {
    const plans = plan([listener('http 80', { protocol: 'example.com/quic' }), 'http 81']);
    expect(plans.listeners[0]).toMatchObject({ supportedKinds: [], attachedRoutes: 0 });
    expect(words(plans.listeners[0]?.conditions)).toBe(
      '!Accepted=UnsupportedProtocol ResolvedRefs !Programmed=Invalid !Conflicted=NoConflicts',
    );
    expect(plans.ports.map(({ port }) => port)).toEqual([81]);
  });

  test.each([
    ['http 80', undefined, 'HTTPRoute GRPCRoute', good],
    ['https 443', undefined, 'HTTPRoute GRPCRoute', good],
    ['tls 443', undefined, 'TLSRoute', good],
    [passthrough, undefined, 'TLSRoute', good],
    ['tcp 80', undefined, 'TCPRoute', good],
    ['udp 80', undefined, 'UDPRoute', good],
    ['http 80', ['HTTPRoute'], 'HTTPRoute', good],
    [
      'http 80',
      ['HTTPRoute', 'Other'],
      'HTTPRoute',
      good.replace('ResolvedRefs', '!ResolvedRefs=InvalidRouteKinds'),
    ],
    [
      passthrough,
      ['TCPRoute', 'TLSRoute'],
      'TLSRoute',
      good.replace('ResolvedRefs', '!ResolvedRefs=InvalidRouteKinds'),
    ],
    [
      'http 80',
      ['TCPRoute'],
      '',
      'Accepted !ResolvedRefs=InvalidRouteKinds !Programmed=Invalid !Conflicted=NoConflicts',
    ],
  ])('%s that allows %j serves %j', (text, allowed, kinds, expected) => {
    const spec = allowed === undefined ? {} : { allowedRoutes: { kinds: allowed.map((kind) => ({ kind })) } };
    const [status] = plan([listener(text, spec)]).listeners;
    expect(status?.supportedKinds?.map(({ kind }) => kind).join(' ')).toBe(kinds);
    expect(words(status?.conditions)).toBe(expected);
  });

  test('a kind of another group is another kind', () => {
    const kinds = [{ group: 'example.com', kind: 'HTTPRoute' }];
    expect(plan([listener('http 80', { allowedRoutes: { kinds } })]).listeners[0]?.supportedKinds).toEqual(
      [],
    );
  });

  test.each([
    ['namespaces', { namespaces: { from: 'Other' } }],
    [
      'selectors',
      { namespaces: { from: 'Selector', selector: { matchExpressions: [{ key: 'a', operator: '?' }] } } },
    ],
  ])('with unknown %s is not accepted', (_, allowedRoutes) => {
    expect(told([listener('http 80', { allowedRoutes })])).toEqual([
      '!Accepted=UnsupportedValue ResolvedRefs !Programmed=Invalid !Conflicted=NoConflicts',
    ]);
  });
});

describe('certificates', () => {
  const invalid = (reason: string): string =>
    `Accepted !ResolvedRefs=${reason} !Programmed=Invalid !Conflicted=NoConflicts`;
  const with_ = (...certificateRefs: object[]) => [
    listener('https 443', {
      tls: { certificateRefs: certificateRefs.map((ref) => ({ name: 'cert', ...ref })) },
    }),
  ];

  test.each([
    ['is there', [{}], {}, good],
    ['does not exist', [{ name: 'none' }], {}, invalid('InvalidCertificateRef')],
    [
      'is broken',
      [{ name: 'bad' }],
      { secrets: { 'shop/bad': 'it is no PEM' } },
      invalid('InvalidCertificateRef'),
    ],
    ['is of another kind', [{ kind: 'Other' }], {}, invalid('InvalidCertificateRef')],
    ['is of another group', [{ group: 'example.com' }], {}, invalid('InvalidCertificateRef')],
    ['is in another namespace', [{ namespace: 'other' }], {}, invalid('RefNotPermitted')],
  ])('one that %s', (_, refs, cluster, expected) => {
    expect(told(with_(...refs), cluster)).toEqual([expected]);
  });

  test('those that can be used are, even beside others', () => {
    const plans = plan(with_({}, { name: 'none' }, { name: 'second' }), {
      secrets: { 'shop/second': undefined },
    });
    expect(words(plans.listeners[0]?.conditions)).toBe(
      'Accepted !ResolvedRefs=InvalidCertificateRef Programmed !Conflicted=NoConflicts',
    );
    expect(plans.ports[0]?.listeners[0]?.tls).toEqual({
      mode: 'Terminate',
      certificates: [pairOf('shop/cert'), pairOf('shop/second')],
      clients: undefined,
    });
    expect([...plans.lookups]).toEqual(['Secret shop/cert', 'Secret shop/none', 'Secret shop/second']);
  });

  test.each([
    ['an unknown mode', listener('tls/Other 443')],
    ['HTTPS with Passthrough', listener('https/Passthrough 443')],
    [
      'options',
      listener('https 443', { tls: { certificateRefs: [{ name: 'cert' }], options: { 'a.test/b': 'c' } } }),
    ],
    ['no certificate', listener('https 443', { tls: {} })],
  ])('%s: not accepted', (_, spec) => {
    expect(told([spec])[0]).toMatch(/^!Accepted=UnsupportedValue ResolvedRefs !Programmed=Invalid/);
  });
});

describe('certificates of clients', () => {
  const validation = (...caCertificateRefs: object[]) => ({
    validation: {
      caCertificateRefs: caCertificateRefs.map((ref) => ({ kind: 'ConfigMap', name: 'ca', ...ref })),
    },
  });
  const invalid = (reason: string): string =>
    `!Accepted=NoValidCACertificate !ResolvedRefs=${reason} !Programmed=Invalid !Conflicted=NoConflicts`;

  test.each([
    ['is there', [{}], good],
    ['does not exist', [{ name: 'none' }], invalid('InvalidCACertificateRef')],
    ['is broken', [{ name: 'bad' }], invalid('InvalidCACertificateRef')],
    ['is of another kind', [{ kind: 'Service' }], invalid('InvalidCACertificateKind')],
    ['is in another namespace', [{ namespace: 'other' }], invalid('RefNotPermitted')],
    [
      'is one of two',
      [{}, { name: 'none' }],
      good.replace('ResolvedRefs', '!ResolvedRefs=InvalidCACertificateRef'),
    ],
  ])('an authority that %s', (_, refs, expected) => {
    const frontend = { default: validation(...refs) };
    const of = gateway(['https 443', 'http 80', 'tls 8443'], { tls: { frontend } });
    expect(told(of, { configMaps: { 'shop/bad': 'no PEM' } })).toEqual([expected, good, good]);
  });

  test('a port has its own, or none, instead of the default', () => {
    const frontend = {
      default: validation({}),
      perPort: [
        {
          port: 444,
          tls: {
            validation: { ...validation({ name: 'second' }).validation, mode: 'AllowInsecureFallback' },
          },
        },
        { port: 445, tls: {} },
      ],
    };
    const of = gateway(['https 443', 'https 444', 'https 445'], { tls: { frontend } });
    const { ports, conditions } = plan(of, { configMaps: { 'shop/second': undefined } });
    expect(ports.map(({ listeners }) => listeners[0]?.tls?.clients)).toEqual([
      { ca: 'authority of shop/ca', mode: 'AllowValidOnly' },
      { ca: 'authority of shop/second', mode: 'AllowInsecureFallback' },
      undefined,
    ]);
    expect(words(conditions)).toBe(
      'Accepted Programmed ResolvedRefs InsecureFrontendValidationMode=ConfigurationChanged',
    );
  });

  test('an unknown mode is not accepted', () => {
    const frontend = { default: { validation: { ...validation({}).validation, mode: 'Other' } } };
    expect(told(gateway(['https 443'], { tls: { frontend } }))[0]).toMatch(/^!Accepted=UnsupportedValue /);
  });
});

describe('ListenerSets', () => {
  const all = { allowedListeners: { namespaces: { from: 'All' } } };
  const setsOf = (...args: Parameters<typeof plan>): string[][] =>
    plan(...args).listenerSets.map(({ conditions, listeners }) => [
      words(conditions),
      ...listeners.map((one) => words(one.conditions)),
    ]);

  test('come after the Gateway, the older first; the later of two that conflict loses alone', () => {
    const sets = [
      listenerSet('shop/c', ['http 80 c.test', 'http 80 c.test'], 2),
      listenerSet('shop/b', ['http 80 b.test', 'http 80 a.test'], 1),
      listenerSet('shop/a', ['http 80 c.test', 'tcp 80', 'http 80'], 1),
    ];
    const of = gateway(['http 80 a.test'], all);
    expect(setsOf(of, { sets })).toEqual([
      ['Accepted=ListenersNotValid Programmed', good, protocol, good],
      ['Accepted=ListenersNotValid Programmed', good, hostname],
      ['!Accepted=ListenersNotValid !Programmed=ListenersNotValid', hostname, hostname],
    ]);
    const { listeners, attachedListenerSets, ports } = plan(of, { sets });
    expect(words(listeners[0]?.conditions)).toBe(good);
    expect(attachedListenerSets).toBe(2);
    expect(ports.map((port) => port.listeners.map(({ id }) => id))).toEqual([
      [
        'Gateway shop/web http',
        'ListenerSet shop/a http',
        'ListenerSet shop/b http',
        'ListenerSet shop/a http-2',
      ],
    ]);
  });

  const refused = [
    '!Accepted=NotAllowed !Programmed=NotAllowed',
    '!Accepted=NotAllowed !Programmed=NotAllowed',
  ];
  const accepted = ['Accepted Programmed', good];
  test.each([
    ['nothing', undefined, [refused, refused]],
    ['None', { from: 'None' }, [refused, refused]],
    ['Same', { from: 'Same' }, [accepted, refused]],
    ['All', { from: 'All' }, [accepted, accepted]],
    [
      'a selector',
      { from: 'Selector', selector: { matchLabels: { team: 'a' } } },
      [accepted, refused].reverse(),
    ],
  ])('by allowedListeners of %s', (_, namespaces, expected) => {
    const sets = [listenerSet('shop/a', ['http 81']), listenerSet('other/a', ['http 82'])];
    const of = gateway(['http 80'], namespaces === undefined ? {} : { allowedListeners: { namespaces } });
    const found = new Map(
      plan(of, { sets, namespaces: { other: { team: 'a' } } }).listenerSets.map((set) => [
        set.key,
        [words(set.conditions), words(set.listeners[0]?.conditions)],
      ]),
    );
    expect([found.get('shop/a'), found.get('other/a')]).toEqual(expected);
  });

  test('need a certificate that may be referred to by a ListenerSet', () => {
    const spec = listener('https 443', { tls: { certificateRefs: [{ name: 'cert', namespace: 'shop' }] } });
    const sets = [listenerSet('other/a', [spec])];
    expect(setsOf(gateway(['http 80'], all), { sets })).toEqual([
      [
        '!Accepted=ListenersNotValid !Programmed=ListenersNotValid',
        'Accepted !ResolvedRefs=RefNotPermitted !Programmed=Invalid !Conflicted=NoConflicts',
      ],
    ]);
  });

  test('wait for their Gateway', () => {
    const sets = [listenerSet('shop/a', ['http 81'])];
    const state = { addresses: [], addressProblem: undefined };
    expect(setsOf(gateway(['http 80'], all), { sets }, state)[0]?.[0]).toBe(
      'Accepted !Programmed=ParentNotProgrammed',
    );
    const broken = gateway([listener('http 80', { protocol: 'X' })], all);
    expect(setsOf(broken, { sets })[0]?.[0]).toBe(
      '!Accepted=ParentNotAccepted !Programmed=ParentNotProgrammed',
    );
    expect(plan(broken, { sets })).toMatchObject({ ports: [], attachedListenerSets: 0 });
  });
});
