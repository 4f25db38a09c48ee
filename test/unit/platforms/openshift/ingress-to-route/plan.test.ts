import { describe, expect, it, test } from 'vitest';
import {
  ingressOf,
  isManaged,
  planRoutes,
  type RoutePlan,
} from '../../../../../src/platforms/openshift/ingress-to-route/plan.ts';
import type { Secret } from '../../../../../src/objects/types/core.generated.ts';
import type { Ingress } from '../../../../../src/objects/types/networking.generated.ts';
import type { Route, RouteSpec } from '../../../../../src/objects/types/route.generated.ts';

const backend = (name = 'web', port: object = { name: 'http' }) => ({ service: { name, port } });
const path = (more: object = {}) => ({ path: '/', pathType: 'Prefix', backend: backend(), ...more });
const rule = (host: string, ...paths: object[]) => ({
  host,
  http: { paths: paths.length === 0 ? [path()] : paths },
});

function ingress(
  spec: object,
  metadata: Partial<Ingress['metadata']> = {},
  status: Ingress['status'] = {},
): Ingress {
  return {
    metadata: { name: 'shop', namespace: 'ns', uid: 'u1', ...metadata },
    spec,
    status,
  };
}

const services = new Map([
  [
    'web',
    {
      spec: {
        ports: [
          { name: 'http', port: 80 },
          { name: 'admin', port: 81 },
        ],
      },
    },
  ],
  ['plain', { spec: { ports: [{ port: 80 }] } }],
]);
const base64 = (text: string) => Buffer.from(text).toString('base64');
const data = { 'tls.crt': base64('CERT'), 'tls.key': base64('KEY') };
const secrets = new Map<string, Pick<Secret, 'type' | 'data'>>([
  ['good', { type: 'kubernetes.io/tls', data }],
  ['opaque', { type: 'Opaque', data }],
  ['no-key', { type: 'kubernetes.io/tls', data: { 'tls.crt': base64('CERT') } }],
]);
const objects = {
  service: (name: string) => services.get(name),
  secrets: (name: string) => secrets.get(name),
};
const plan = (of: Ingress, owned: readonly Route[] = []): RoutePlan => planRoutes(of, owned, objects);
const specsOf = (of: Ingress) => plan(of).creates.map(({ spec }) => spec);

/** What the API server makes of a planned Route. */
function stored(route: Omit<Route, 'status'>, name = 'shop-abcde', spec: Partial<RouteSpec> = {}): Route {
  const { generateName: _, ...metadata } = route.metadata;
  return {
    ...route,
    metadata: { ...metadata, name, resourceVersion: '1' },
    spec: { ...route.spec, ...spec },
    status: {},
  };
}

/** The only Route of an Ingress, as it is stored, with what a user changed. */
function present(of: Ingress, spec: Partial<RouteSpec> = {}): Route {
  const [route] = plan(of).creates;
  if (route === undefined) throw new Error('there is none');
  return stored(route, undefined, spec);
}

describe('the class', () => {
  const classes = new Map([
    ['own', { metadata: {}, spec: { controller: 'openshift.io/ingress-to-route' } }],
    ['nginx', { metadata: {}, spec: { controller: 'k8s.io/ingress-nginx' } }],
  ]);
  const annotated = (name: string) => ({ annotations: { 'kubernetes.io/ingress.class': name } });

  it.each<[string, object, object, boolean]>([
    ['no class', {}, {}, true],
    ['the class', { ingressClassName: 'own' }, {}, true],
    ['the class of others', { ingressClassName: 'nginx' }, {}, false],
    ['a class that is not there', { ingressClassName: 'gone' }, {}, false],
    ['the annotation', {}, annotated('own'), true],
    ['the annotation of others', {}, annotated('nginx'), false],
    ['an annotation before the field', { ingressClassName: 'nginx' }, annotated('own'), true],
    ['an annotation of others before the field', { ingressClassName: 'own' }, annotated('nginx'), false],
  ])('%s', (_, spec, metadata, managed) => {
    expect(isManaged(ingress(spec, metadata), (name) => classes.get(name))).toBe(managed);
  });
});

test('a Route for each path, with a name to be made, an owner, labels and annotations', () => {
  const metadata = { labels: { a: 'b' }, annotations: { c: 'd' } };
  const { creates, updates, deletes, incomplete } = plan(
    ingress(
      { rules: [rule('x.test', path(), path({ path: '/admin', backend: backend('web', { number: 81 }) }))] },
      metadata,
    ),
  );
  expect([updates, deletes, incomplete]).toEqual([[], [], []]);
  expect(creates.map(({ metadata: { generateName } }) => generateName)).toEqual(['shop-', 'shop-']);
  expect(creates[0]).toEqual({
    apiVersion: 'route.openshift.io/v1',
    kind: 'Route',
    metadata: {
      generateName: 'shop-',
      namespace: 'ns',
      ...metadata,
      ownerReferences: [
        { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'shop', uid: 'u1', controller: true },
      ],
    },
    spec: {
      host: 'x.test',
      path: '/',
      to: { kind: 'Service', name: 'web', weight: 100 },
      port: { targetPort: 'http' },
      wildcardPolicy: 'None',
    },
  });
  expect(creates[1]?.spec).toMatchObject({ path: '/admin', port: { targetPort: 'admin' } });
});

test('a wildcard is a host with a policy; a port without a name is none', () => {
  expect(
    specsOf(ingress({ rules: [rule('*.x.test', path({ backend: backend('plain', { number: 80 }) }))] })),
  ).toEqual([
    {
      host: 'wildcard.x.test',
      path: '/',
      to: { kind: 'Service', name: 'plain', weight: 100 },
      wildcardPolicy: 'Subdomain',
    },
  ]);
});

test.each([
  ['of no type', { pathType: undefined }, '/'],
  ['that the implementation reads', { pathType: 'ImplementationSpecific' }, '/'],
  ['that is none', { path: undefined }, undefined],
])('a path %s is a prefix', (_, more, expected) => {
  const [spec] = specsOf(ingress({ rules: [rule('x.test', path(more))] }));
  expect(spec?.host).toBe('x.test');
  expect(spec?.path).toBe(expected);
});

test('a host without paths has no Route, and nothing to say', () => {
  const { creates, incomplete } = plan(ingress({ rules: [{ host: 'x.test', http: { paths: [] } }] }));
  expect([creates, incomplete]).toEqual([[], []]);
});

describe('rules without a Route', () => {
  it.each([
    [{ host: 'x.test' }, 'no http (rule 0)'],
    [rule(''), 'no host (rule 0)'],
    [rule('x.test', path({ pathType: 'Exact' })), 'Routes have no exact paths (rule 0, path 0)'],
    [rule('x.test', path({ backend: { resource: {} } })), 'the backend is no Service (rule 0, path 0)'],
    [rule('x.test', path({ backend: backend('gone') })), 'the Service gone is not there (rule 0, path 0)'],
    [
      rule('x.test', path(), path({ path: '/b', backend: backend('web', { number: 99 }) })),
      'the Service web has no port 99 (rule 0, path 1)',
    ],
    [
      rule('x.test', path({ backend: backend('web', { name: 'grpc' }) })),
      'the Service web has no port grpc (rule 0, path 0)',
    ],
  ])('%j: %s', (one, reason) => {
    expect(plan(ingress({ rules: [one] })).incomplete).toEqual([reason]);
  });

  it('do not keep others from theirs, and the default backend has none', () => {
    const spec = { defaultBackend: backend(), rules: [rule(''), rule('x.test')] };
    expect(specsOf(ingress(spec)).map(({ host }) => host)).toEqual(['x.test']);
  });

  it('lose the Route that they had', () => {
    const before = present(ingress({ rules: [rule('x.test')] }));
    const { creates, deletes, updates } = plan(
      ingress({ rules: [rule('x.test', path({ backend: backend('gone') }))] }),
      [before],
    );
    expect([creates, updates, deletes]).toEqual([[], [], [before]]);
  });
});

describe('TLS', () => {
  const of = (tls: object[], annotations: Record<string, string> = {}) =>
    ingress({ rules: [rule('x.test')], tls }, { annotations });
  const edge = { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect' };
  const pair = { certificate: 'CERT', key: 'KEY' };
  const ends = (termination: string) => ({ 'route.openshift.io/termination': termination });

  it.each<[string, object[], Record<string, string>, object | undefined]>([
    ['none', [], {}, undefined],
    ['of another host', [{ hosts: ['y.test'], secretName: 'good' }], {}, undefined],
    ['with its Secret', [{ hosts: ['x.test'], secretName: 'good' }], {}, { ...edge, ...pair }],
    ['with an empty entry', [{}], {}, edge],
    ['by the annotation', [], ends('edge'), edge],
    ['reencrypt', [], ends('reencrypt'), { ...edge, termination: 'reencrypt' }],
    [
      'passthrough, which has no certificate',
      [{ hosts: ['x.test'], secretName: 'good' }],
      ends('passthrough'),
      { ...edge, termination: 'passthrough' },
    ],
    ['by an annotation that says nothing', [], ends('Edge'), undefined],
    [
      'reencrypt with an authority',
      [],
      { ...ends('reencrypt'), 'route.openshift.io/destination-ca-certificate-secret': 'opaque' },
      { ...edge, termination: 'reencrypt', destinationCACertificate: 'CERT' },
    ],
    [
      'edge, which has no authority',
      [],
      { ...ends('edge'), 'route.openshift.io/destination-ca-certificate-secret': 'opaque' },
      edge,
    ],
  ])('%s', (_, tls, annotations, expected) => {
    expect(specsOf(of(tls, annotations)).map((spec) => spec.tls)).toEqual([expected]);
  });

  it('of a wildcard is that of its own entry', () => {
    const wildcard = ingress({
      rules: [rule('*.x.test')],
      tls: [{ hosts: ['*.x.test'], secretName: 'good' }],
    });
    expect(specsOf(wildcard)).toMatchObject([{ host: 'wildcard.x.test', tls: { ...edge, ...pair } }]);
  });

  it('by an annotation that says nothing is that of the entry', () => {
    const [spec] = specsOf(of([{ hosts: ['x.test'], secretName: 'good' }], ends('Passthrough')));
    expect(spec?.tls).toEqual({ ...edge, ...pair });
  });

  /** What becomes of the TLS of a Route when its Ingress changes. */
  it.each<[string, Ingress, Ingress, object | undefined]>([
    ['comes', of([]), of([{ hosts: ['x.test'], secretName: 'good' }]), { ...edge, ...pair }],
    [
      'goes with the host of its entry',
      of([{ hosts: ['x.test'], secretName: 'good' }]),
      of([{ hosts: ['y.test'], secretName: 'good' }]),
      undefined,
    ],
    [
      'has no certificate with passthrough',
      of([{ hosts: ['x.test'], secretName: 'good' }]),
      of([{ hosts: ['x.test'], secretName: 'good' }], ends('passthrough')),
      { ...edge, termination: 'passthrough' },
    ],
    [
      'keeps its certificate with reencrypt',
      of([{ hosts: ['x.test'], secretName: 'good' }]),
      of([{ hosts: ['x.test'], secretName: 'good' }], ends('reencrypt')),
      { ...edge, ...pair, termination: 'reencrypt' },
    ],
    [
      'loses its certificate without the entry',
      of([{ hosts: ['x.test'], secretName: 'good' }]),
      of([], ends('reencrypt')),
      { ...edge, termination: 'reencrypt' },
    ],
    [
      'loses the authority of reencrypt with edge',
      of([], { ...ends('reencrypt'), 'route.openshift.io/destination-ca-certificate-secret': 'opaque' }),
      of([], ends('edge')),
      edge,
    ],
    ['goes with an annotation that says nothing', of([], ends('edge')), of([], ends('Edge')), undefined],
  ])('%s', (_, before, after, expected) => {
    const [update] = plan(after, [present(before)]).updates;
    expect(update?.metadata.name).toBe('shop-abcde');
    expect(update?.spec.tls).toEqual(expected);
  });

  it.each(['gone', 'opaque', 'no-key', undefined])('with the Secret %s there is no Route', (secretName) => {
    const { creates, incomplete } = plan(of([{ hosts: ['x.test'], ...(secretName && { secretName }) }]));
    expect(creates).toEqual([]);
    expect(incomplete).toEqual([
      `the Secret "${secretName ?? ''}" with the certificate of x.test is missing, or of another type (rule 0, path 0)`,
    ]);
  });
});

describe('Routes that are there', () => {
  const own = ingress({ rules: [rule('x.test')] }, { annotations: { a: 'b' }, labels: { l: '1' } });
  const secure = ingress({ rules: [rule('x.test')], tls: [{}] });
  const reencrypt = ingress(
    { rules: [rule('x.test')] },
    { annotations: { 'route.openshift.io/termination': 'reencrypt' } },
  );

  it('stay as they are', () => {
    const before = present(own);
    expect(plan(own, [before])).toMatchObject({ creates: [], updates: [], deletes: [], incomplete: [] });
    const wildcard = ingress({ rules: [rule('*.x.test')] });
    expect(plan(wildcard, [present(wildcard)]).updates).toEqual([]);
  });

  it.each<[string, Ingress, Partial<RouteSpec>]>([
    ['weight', own, { to: { kind: 'Service', name: 'web', weight: 7 } }],
    ['header actions', own, { httpHeaders: { actions: { request: [] } } }],
    [
      'insecure policy and authority',
      secure,
      { tls: { termination: 'edge', insecureEdgeTerminationPolicy: 'Allow', caCertificate: 'CA' } },
    ],
    [
      'authority of reencrypt',
      reencrypt,
      {
        tls: {
          ...{ termination: 'reencrypt', insecureEdgeTerminationPolicy: 'Redirect' },
          destinationCACertificate: 'CA',
        },
      },
    ],
  ])('keep their %s', (_, of, spec) => {
    expect(plan(of, [present(of, spec)]).updates).toEqual([]);
  });

  it('keep what users changed when something else changes', () => {
    const before = present(secure, {
      to: { kind: 'Service', name: 'web', weight: 7 },
      tls: { termination: 'edge', insecureEdgeTerminationPolicy: 'None', caCertificate: 'CA' },
    });
    const next = ingress({
      rules: [rule('x.test', path({ backend: backend('plain', { number: 80 }) }))],
      tls: [{}],
    });
    const [update] = plan(next, [before]).updates;
    expect(update?.metadata).toMatchObject({ name: 'shop-abcde', resourceVersion: '1' });
    expect(update?.spec).toEqual({
      host: 'x.test',
      path: '/',
      to: { kind: 'Service', name: 'plain', weight: 7 },
      tls: { termination: 'edge', insecureEdgeTerminationPolicy: 'None', caCertificate: 'CA' },
      wildcardPolicy: 'None',
    });
  });

  it.each<[string, Partial<RouteSpec>]>([
    ['other backends', { alternateBackends: [{ kind: 'Service', name: 'b', weight: 1 }] }],
    ['another Service', { to: { kind: 'Service', name: 'b', weight: 100 } }],
    ['another port', { port: { targetPort: 'admin' } }],
    ['TLS', { tls: { termination: 'edge' } }],
  ])('lose %s', (_, spec) => {
    const [update] = plan(own, [present(own, spec)]).updates;
    expect(update?.spec).toEqual(present(own).spec);
  });

  it('follow annotations, and labels where the annotation wants it', () => {
    const before = present(own);
    const metadata = { annotations: { a: 'c' }, labels: { l: '2' } };
    const [update] = plan(ingress({ rules: [rule('x.test')] }, metadata), [before]).updates;
    expect(update?.metadata).toMatchObject({ annotations: { a: 'c' }, labels: { l: '1' } });
    const annotations = { 'route.openshift.io/reconcile-labels': 'true' };
    const [labelled] = plan(ingress({ rules: [rule('x.test')] }, { annotations, labels: { l: '2' } }), [
      before,
    ]).updates;
    expect(labelled?.metadata).toMatchObject({ annotations, labels: { l: '2' } });
    const [bare] = plan(ingress({ rules: [rule('x.test')] }, { annotations }), [before]).updates;
    expect(bare?.metadata).not.toHaveProperty('labels');
    const unread = { annotations: { 'route.openshift.io/reconcile-labels': 'NotTrue' }, labels: { l: '2' } };
    const [kept] = plan(ingress({ rules: [rule('x.test')] }, unread), [before]).updates;
    expect(kept?.metadata.labels).toEqual({ l: '1' });
  });

  it('of an Ingress of an older API get the present one as their owner', () => {
    const before = present(own);
    const [owner] = before.metadata.ownerReferences ?? [];
    if (owner === undefined) throw new Error('there is none');
    const older = { ...owner, apiVersion: 'extensions.k8s.io/v1beta1' };
    const old: Route = { ...before, metadata: { ...before.metadata, ownerReferences: [older] } };
    expect(ingressOf(old)).toBe('shop');
    expect(plan(own, [old]).updates.map(({ metadata }) => metadata.ownerReferences)).toEqual([[owner]]);
  });

  it('go with their path, and with a second one for a path', () => {
    const before = present(own);
    const second: Route = { ...before, metadata: { ...before.metadata, name: 'shop-fghij' } };
    expect(plan(own, [before, second]).deletes).toEqual([second]);
    expect(plan(ingress({ defaultBackend: backend() }), [before]).deletes).toEqual([before]);
  });

  it('are known by the Ingress that controls them', () => {
    expect(ingressOf(present(own))).toBe('shop');
    const owner = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'shop', uid: 'u1' };
    expect(ingressOf({ metadata: { ownerReferences: [owner] } })).toBeUndefined();
    expect(ingressOf({ metadata: {} })).toBeUndefined();
  });
});

describe('the status of the Ingress', () => {
  const of = (...entries: object[]) =>
    ingress({ rules: [rule('x.test')] }, {}, { loadBalancer: { ingress: entries } });
  const admitted = (name: string, status = 'True'): Route['status'] => ({
    ingress: [{ routerCanonicalHostname: name, conditions: [{ type: 'Admitted', status }] }],
  });
  const balancer = (own: Ingress, status: Route['status']) =>
    plan(own, [{ ...present(own), status }]).loadBalancer;

  it('names routers that admitted the Route, beside what others wrote', () => {
    expect(balancer(of(), admitted('router.test'))).toEqual([{ hostname: 'router.test' }]);
    expect(balancer(of(), admitted('router.test', 'False'))).toEqual([]);
    expect(balancer(of({ ip: '192.0.2.1' }, { hostname: 'a' }), admitted('router.test'))).toEqual([
      ...[{ ip: '192.0.2.1' }, { hostname: 'a' }],
      { hostname: 'router.test' },
    ]);
    expect(balancer(of({ hostname: 'router.test' }), admitted('router.test'))).toEqual([
      { hostname: 'router.test' },
    ]);
  });

  it('forgets them with the last Route', () => {
    const gone: Route = { ...present(of()), status: admitted('router.test') };
    const empty = ingress(
      { defaultBackend: backend() },
      {},
      {
        loadBalancer: { ingress: [{ hostname: 'router.test' }, { hostname: 'a' }, { ip: '192.0.2.1' }] },
      },
    );
    expect(plan(empty, [gone]).loadBalancer).toEqual([{ hostname: 'a' }, { ip: '192.0.2.1' }]);
  });
});

describe('what is said of an Ingress beside its rules', () => {
  const rules = [rule('x.test')];
  const annotated = (value: string) => ({ annotations: { 'route.openshift.io/reconcile-labels': value } });

  it.each(['', 'true', 'FALSE', 't', '1', '0'])('a boolean is right: %j', (value) => {
    expect(plan(ingress({ rules }, annotated(value)))).not.toHaveProperty('invalidReconcileLabels');
  });
  it.each(['yes', 'no', '2', ' true'])('what is no boolean counts as false, and is named: %j', (value) => {
    const labelled = ingress({ rules }, { ...annotated(value), labels: { a: 'new' } });
    const before = present(ingress({ rules }, { ...annotated(value), labels: { a: 'old' } }));
    expect(plan(labelled, [before])).toMatchObject({ updates: [], invalidReconcileLabels: value });
  });

  it('a Route whose target port alone is another one is corrected and named', () => {
    const of = ingress({ rules });
    const { updates, otherPorts } = plan(of, [present(of, { port: { targetPort: 'admin' } })]);
    expect(updates.map(({ spec }) => spec.port)).toEqual([{ targetPort: 'http' }]);
    expect(otherPorts).toEqual(['the Service web (rule 0, path 0)']);
    expect(plan(of, [present(of)]).otherPorts).toEqual([]);
  });
  it('a Route that follows another backend or another annotation is not', () => {
    const before = present(
      ingress({ rules: [rule('x.test', path({ backend: backend('plain', { number: 80 }) }))] }),
    );
    expect(plan(ingress({ rules }), [before])).toMatchObject({ updates: [{}], otherPorts: [] });
    const other = ingress({ rules }, { annotations: { a: 'b' } });
    expect(plan(other, [present(ingress({ rules }), { port: { targetPort: 'admin' } })]).otherPorts).toEqual(
      [],
    );
  });
});
