import { describe, expect, test } from 'vitest';
import { type ImportedObject, importIngresses } from '../../../../../src/network/gateway/import/ingresses.ts';
import type { Service } from '../../../../../src/objects/types/core.generated.ts';
import type {
  Gateway,
  HTTPRoute,
  HTTPRouteRule,
  ReferenceGrant,
} from '../../../../../src/objects/types/gateway.ts';
import type {
  Ingress,
  IngressBackend,
  IngressClass,
  IngressSpec,
} from '../../../../../src/objects/types/networking.generated.ts';
import { keyOf } from '../../../../../src/objects/meta.ts';

interface Given {
  readonly name: string;
  readonly namespace?: string;
  readonly className?: string;
  /** Of ingress-nginx, without their prefix. */
  readonly nginx?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly created?: string;
  readonly tls?: IngressSpec['tls'];
  /** Paths of type Prefix by host; the Service is `web` where none is named. */
  readonly hosts?: Readonly<Record<string, readonly (string | readonly [string, string, string?])[]>>;
  readonly defaultBackend?: IngressBackend;
}

const backend = (name: string, port: number | string = 80): IngressBackend => ({
  service: { name, port: typeof port === 'number' ? { number: port } : { name: port } },
});

function ingress({ name, namespace = 'shop', className = 'nginx', ...given }: Given): Ingress {
  const nginx = Object.entries(given.nginx ?? {}).map(([key, value]) => [
    `nginx.ingress.kubernetes.io/${key}`,
    value,
  ]);
  return {
    metadata: {
      ...{ name, namespace },
      ...(given.created === undefined ? {} : { creationTimestamp: given.created }),
      annotations: { ...given.annotations, ...(Object.fromEntries(nginx) as Record<string, string>) },
    },
    spec: {
      ...(className === '' ? {} : { ingressClassName: className }),
      ...(given.tls === undefined ? {} : { tls: given.tls }),
      ...(given.defaultBackend === undefined ? {} : { defaultBackend: given.defaultBackend }),
      rules: Object.entries(given.hosts ?? {}).map(([host, paths]) => ({
        ...(host === '' ? {} : { host }),
        http: {
          paths: paths.map((path) => {
            const [text, service, pathType = 'Prefix'] = typeof path === 'string' ? [path, 'web'] : path;
            return { path: text, pathType, backend: backend(service) };
          }),
        },
      })),
    },
    status: {},
  };
}

const service = (name: string, namespace = 'shop'): Service => ({
  metadata: { name, namespace },
  spec: {
    ports: [
      { name: 'http', port: 80 },
      { name: 'metrics', port: 9090 },
    ],
  },
  status: {},
});
const classes: IngressClass[] = [
  { metadata: { name: 'nginx' }, spec: { controller: 'k8s.io/ingress-nginx' } },
  { metadata: { name: 'servicenet' }, spec: { controller: 'servicenet.dev/router' } },
];
const services = ['web', 'web-v2', 'api'].flatMap((name) => [service(name), service(name, 'blog')]);

function imported(
  given: readonly Given[],
  namespace?: string,
): { objects: readonly ImportedObject[]; notes: readonly string[] } {
  return importIngresses({ ingresses: given.map(ingress), classes, services }, 'servicenet', namespace);
}

const ofKind = (objects: readonly ImportedObject[], kind: string): ImportedObject[] =>
  objects.filter((object) => object.kind === kind);
const isRoute = (object: ImportedObject): object is HTTPRoute => object.kind === 'HTTPRoute';
const isGateway = (object: ImportedObject): object is Gateway => object.kind === 'Gateway';
const isGrant = (object: ImportedObject): object is ReferenceGrant => object.kind === 'ReferenceGrant';

/** HTTPRoutes by namespace and name: hosts, sections of their parents, rules. */
function routes(
  objects: readonly ImportedObject[],
): Record<string, { hosts: string[]; sections: unknown[]; rules: HTTPRouteRule[] }> {
  return Object.fromEntries(
    objects.filter(isRoute).map((route) => [
      keyOf(route),
      {
        hosts: route.spec.hostnames ?? [],
        sections: (route.spec.parentRefs ?? []).map(({ sectionName }) => sectionName),
        rules: route.spec.rules ?? [],
      },
    ]),
  );
}

const sections = (objects: readonly ImportedObject[]): unknown[] =>
  objects
    .filter(isGateway)
    .flatMap(({ spec }) =>
      spec.listeners.map(({ name, hostname = '', tls }) =>
        [name, hostname, tls?.mode ?? (tls?.certificateRefs ?? []).map((ref) => ref.name).join()]
          .join(' ')
          .trim(),
      ),
    );
const to = (name: string, weight?: number): object => ({
  name,
  port: 80,
  ...(weight === undefined ? {} : { weight }),
});
const path = (value: string, type = 'PathPrefix'): object => ({ path: { type, value } });

describe('Gateways of Ingresses', () => {
  test('one for a class, where its Ingresses are; others with the Routes of several namespaces', () => {
    const one = imported([{ name: 'a', hosts: { 'a.example.com': ['/'] } }]);
    expect(ofKind(one.objects, 'Gateway')).toEqual([
      {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'Gateway',
        metadata: { namespace: 'shop', name: 'nginx' },
        spec: { gatewayClassName: 'servicenet', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
      },
    ]);
    const tls = [{ hosts: ['a.example.com'], secretName: 'a' }];
    const two = imported([
      { name: 'a', hosts: { 'a.example.com': ['/'] }, tls },
      { name: 'b', namespace: 'blog', hosts: { 'b.example.com': ['/'] } },
      { name: 'c', className: 'servicenet', hosts: { 'c.example.com': ['/'] } },
    ]);
    expect(two.objects.filter(isGateway).map(keyOf)).toEqual(['default/nginx', 'shop/servicenet']);
    const allowed = (...values: string[]): object => ({
      namespaces: {
        from: 'Selector',
        selector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }] },
      },
    });
    expect(two.objects.find(isGateway)?.spec.listeners).toEqual([
      { name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: allowed('blog', 'shop') },
      {
        ...{ name: 'https-a.example.com', port: 443, protocol: 'HTTPS', hostname: 'a.example.com' },
        tls: { certificateRefs: [{ name: 'a', namespace: 'shop' }] },
        allowedRoutes: allowed('shop'),
      },
    ]);
    expect(two.objects.filter(isGrant)).toEqual([
      {
        apiVersion: 'gateway.networking.k8s.io/v1beta1',
        kind: 'ReferenceGrant',
        metadata: { namespace: 'shop', name: 'nginx-secrets' },
        spec: {
          from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'default' }],
          to: [{ group: '', kind: 'Secret', name: 'a' }],
        },
      },
    ]);
    expect(two.objects.find(isRoute)?.spec.parentRefs).toEqual([
      { name: 'nginx', namespace: 'default', sectionName: 'http' },
    ]);
    expect(
      imported([{ name: 'a', hosts: { x: ['/'] } }], 'edge')
        .objects.filter(isGateway)
        .map(keyOf),
    ).toEqual(['edge/nginx']);
  });

  test('classes by the annotation, none, and one that is not there', () => {
    const { objects, notes } = imported([
      {
        name: 'a',
        className: '',
        annotations: { 'kubernetes.io/ingress.class': 'old' },
        hosts: { a: ['/'] },
      },
      { name: 'b', className: '', hosts: { b: ['/'] } },
      { name: 'c', className: 'gone', hosts: { c: ['/'] } },
    ]);
    expect(objects.filter(isGateway).map(keyOf)).toEqual(['shop/gone', 'shop/ingress', 'shop/old']);
    expect(notes).toEqual([expect.stringMatching(/^IngressClass gone: /)]);
  });

  test.each<[string, Partial<Given>, string[], string[]]>([
    [
      'of a host',
      { tls: [{ hosts: ['A.example.com'], secretName: 's' }] },
      ['https-a.example.com a.example.com s'],
      [],
    ],
    [
      'of a wildcard',
      { tls: [{ hosts: ['*.example.com'], secretName: 's' }] },
      ['https-wildcard.example.com *.example.com s'],
      [],
    ],
    [
      'of all hosts of the Ingress',
      { tls: [{ secretName: 's' }] },
      ['https-a.example.com a.example.com s'],
      ['shop/a: spec.tls names no host: the Secret s is taken for a.example.com'],
    ],
    [
      'without a Secret',
      { tls: [{ hosts: ['a.example.com'] }] },
      [],
      [
        'shop/a: a.example.com without a listener for TLS: spec.tls names no Secret, and a Gateway has no default certificate',
      ],
    ],
    [
      'of an older Ingress',
      {
        tls: [
          { hosts: ['a.example.com'], secretName: 's' },
          { hosts: ['a.example.com'], secretName: 't' },
        ],
      },
      ['https-a.example.com a.example.com s'],
      ['shop/a: t not imported for a.example.com: an older Ingress has shop/s for it'],
    ],
    [
      'of aliases',
      { tls: [{ hosts: ['a.example.com'], secretName: 's' }], nginx: { 'server-alias': 'b.example.com' } },
      ['https-a.example.com a.example.com s', 'https-b.example.com b.example.com s'],
      [],
    ],
  ])('certificates %s', (_name, given, expected, notes) => {
    const found = imported([{ name: 'a', hosts: { 'a.example.com': ['/'] }, ...given }]);
    expect(sections(found.objects)).toEqual(['http', ...expected]);
    expect(found.notes).toEqual(notes);
  });
});

describe('Routes of Ingresses', () => {
  const tls = [{ hosts: ['a.example.com'], secretName: 's' }];
  const host = { 'a.example.com': ['/', ['/api', 'api']] } as const;
  const toHttps = { type: 'RequestRedirect', requestRedirect: { scheme: 'https', statusCode: 308 } };

  test('one for each Ingress and host; one that sends clients to https where there is TLS', () => {
    const { objects, notes } = imported([{ name: 'a', hosts: { ...host, 'b.example.com': ['/b'] }, tls }]);
    expect(notes).toEqual([]);
    expect(routes(objects)).toEqual({
      'shop/a-a.example.com': {
        hosts: ['a.example.com'],
        sections: ['https-a.example.com'],
        rules: [
          { matches: [path('/')], backendRefs: [to('web')] },
          { matches: [path('/api')], backendRefs: [to('api')] },
        ],
      },
      'shop/a-a.example.com-to-https': {
        hosts: ['a.example.com'],
        sections: ['http'],
        rules: [{ matches: [path('/'), path('/api')], filters: [toHttps] }],
      },
      'shop/a-b.example.com': {
        hosts: ['b.example.com'],
        sections: ['http'],
        rules: [{ matches: [path('/b')], backendRefs: [to('web')] }],
      },
    });
  });

  test.each<[string, Partial<Given>, string[], string[]]>([
    [
      'ssl-redirect: "false"',
      { tls, nginx: { 'ssl-redirect': 'false' } },
      ['http', 'https-a.example.com'],
      [],
    ],
    [
      'that of our router',
      { tls, className: 'servicenet', annotations: { 'servicenet.dev/ssl-redirect': 'false' } },
      ['http', 'https-a.example.com'],
      [],
    ],
    [
      'a redirect to elsewhere',
      { tls, nginx: { 'permanent-redirect': 'https://b.example.com$request_uri' } },
      ['http', 'https-a.example.com'],
      [],
    ],
    [
      'force-ssl-redirect without TLS',
      { nginx: { 'force-ssl-redirect': 'true' } },
      ['http'],
      [expect.stringContaining('force-ssl-redirect not imported') as string],
    ],
  ])('no such Route: %s', (_name, given, expected, notes) => {
    const found = imported([{ name: 'a', hosts: host, ...given }]);
    expect(Object.entries(routes(found.objects)).map(([name, { sections: of }]) => [name, of])).toEqual([
      ['shop/a-a.example.com', expected],
    ]);
    expect(found.notes).toEqual(notes);
  });

  test('TLS of another Ingress of the host counts for ingress-nginx, and not for our router', () => {
    for (const [className, expected] of [
      ['nginx', ['https-a.example.com']],
      ['servicenet', ['http', 'https-a.example.com']],
    ] as const) {
      const { objects } = imported([
        { name: 'a', className, hosts: { 'a.example.com': ['/'] }, tls },
        { name: 'b', className, hosts: { 'a.example.com': ['/b'] } },
      ]);
      expect(routes(objects)['shop/b-a.example.com']?.sections).toEqual(expected);
    }
  });

  test('ports by name, those that are not there, and backends that are no Services', () => {
    const given = ingress({ name: 'a' });
    given.spec.rules = [
      {
        http: {
          paths: [
            { path: '/a', pathType: 'Prefix', backend: backend('web', 'metrics') },
            { path: '/b', pathType: 'Prefix', backend: backend('web', 'none') },
            { path: '/c', pathType: 'Prefix', backend: backend('gone', 8080) },
            { path: '/d', pathType: 'Prefix', backend: { resource: { kind: 'Bucket', name: 'x' } } },
            { path: '/e', pathType: 'Prefix', backend: backend('outside') },
          ],
        },
      },
    ];
    const outside: Service = {
      ...{ metadata: { name: 'outside', namespace: 'shop' }, status: {} },
      spec: { type: 'ExternalName', externalName: 'example.com' },
    };
    const cluster = { ingresses: [given], classes, services: [...services, outside] };
    const { objects, notes } = importIngresses(cluster, 'servicenet', undefined);
    expect(routes(objects)['shop/a']?.rules).toEqual([
      { matches: [path('/a')], backendRefs: [{ name: 'web', port: 9090 }] },
      { matches: [path('/b')] },
      { matches: [path('/c')], backendRefs: [{ name: 'gone', port: 8080 }] },
      { matches: [path('/e')], backendRefs: [{ name: 'outside', port: 80 }] },
    ]);
    expect(notes).toEqual([
      'shop/a: the Service web has no port none',
      'shop/a: requests for the Service web get 500: the number of its port none is not known',
      'shop/a: the Service gone is not there',
      'shop/a: /d not imported: its backend is no Service',
      'shop/a: the Service outside is of type ExternalName, which Routes do not follow',
    ]);
  });

  test('types of paths, and what ingress-nginx did otherwise', () => {
    const paths = [
      ['/a', 'web', 'Exact'],
      ['/b', 'web', 'ImplementationSpecific'],
      ['/c|d', 'web'],
    ] as const;
    const hosts = { '*.example.com': paths };
    const { objects, notes } = imported([{ name: 'a', hosts }]);
    expect(routes(objects)['shop/a-wildcard.example.com']?.rules.map(({ matches }) => matches)).toEqual([
      [path('/a', 'Exact')],
      [path('/b')],
    ]);
    expect(notes).toEqual([
      'shop/a: *.example.com is for one label in an Ingress, and for any depth in Gateway API',
      'shop/a: *.example.com/b was a prefix by characters, and is one by elements of the path now',
      'shop/a: *.example.com/c|d not imported: Gateway API takes no such path',
    ]);
    const ours = imported([
      { name: 'a', className: 'servicenet', hosts: { x: [['/b', 'web', 'ImplementationSpecific']] } },
    ]);
    expect(ours.notes).toEqual([]);
  });

  test('default backends take what no Ingress has', () => {
    const { objects, notes } = imported([
      { name: 'a', hosts: { x: ['/a'], y: ['/'] }, defaultBackend: backend('api') },
      { name: 'b', hosts: { z: ['/'] }, defaultBackend: backend('web') },
    ]);
    const other = { matches: [path('/')], backendRefs: [to('api')] };
    expect(routes(objects)).toEqual({
      'shop/a': { hosts: [], sections: ['http'], rules: [other] },
      'shop/a-x': {
        ...{ hosts: ['x'], sections: ['http'] },
        rules: [{ matches: [path('/a')], backendRefs: [to('web')] }, other],
      },
      'shop/a-y': {
        hosts: ['y'],
        sections: ['http'],
        rules: [{ matches: [path('/')], backendRefs: [to('web')] }],
      },
      'shop/b-z': {
        hosts: ['z'],
        sections: ['http'],
        rules: [{ matches: [path('/')], backendRefs: [to('web')] }],
      },
    });
    expect(notes).toEqual(['shop/b: defaultBackend not imported for all hosts: shop/a has it']);
    expect(imported([{ name: 'a' }]).notes).toEqual([
      'shop/a: no Route: it has neither paths nor a default backend',
    ]);
  });

  test('more than 16 rules are several Routes', () => {
    const paths = Array.from({ length: 35 }, (_, i) => `/p${i}`);
    const { objects } = imported([{ name: 'a', hosts: { 'a.example.com': paths }, tls }]);
    const found = routes(objects);
    expect(Object.entries(found).map(([name, { rules }]) => [name, rules.length])).toEqual([
      ['shop/a-a.example.com', 16],
      ['shop/a-a.example.com-2', 16],
      ['shop/a-a.example.com-3', 3],
      ['shop/a-a.example.com-to-https', 5],
    ]);
    expect(found['shop/a-a.example.com-to-https']?.rules.flatMap(({ matches }) => matches)).toHaveLength(35);
  });

  test('filters, timeouts, hosts of an alias and a redirect of /', () => {
    const { objects } = imported([
      {
        name: 'a',
        hosts: { x: ['/a'], y: ['/b'] },
        nginx: {
          'server-alias': 'z',
          'app-root': '/a',
          'rewrite-target': '/in',
          'upstream-vhost': 'in.example.com',
          'x-forwarded-prefix': '/a',
          'enable-cors': 'true',
          'proxy-read-timeout': '5',
        },
      },
    ]);
    const found = routes(objects);
    expect([found['shop/a-x']?.hosts, found['shop/a-y']?.hosts]).toEqual([['x', 'z'], ['y']]);
    expect(found['shop/a-x']?.rules).toMatchObject([
      {
        matches: [path('/', 'Exact')],
        filters: [
          {
            type: 'RequestRedirect',
            requestRedirect: { statusCode: 302, path: { type: 'ReplaceFullPath', replaceFullPath: '/a' } },
          },
        ],
      },
      {
        filters: [
          { type: 'RequestHeaderModifier' },
          {
            type: 'URLRewrite',
            urlRewrite: {
              hostname: 'in.example.com',
              path: { type: 'ReplaceFullPath', replaceFullPath: '/in' },
            },
          },
          { type: 'CORS' },
        ],
        timeouts: { backendRequest: '5s' },
      },
    ]);
    expect(found['shop/a-x']?.rules[0]).not.toHaveProperty('backendRefs');
  });

  test('what keeps clients out closes its Routes', () => {
    const { objects, notes } = imported([
      { name: 'a', hosts: { x: ['/'] }, nginx: { 'auth-url': 'http://auth' } },
    ]);
    expect(routes(objects)['shop/a-x']?.rules).toEqual([
      { matches: [path('/')], backendRefs: [to('web', 0)] },
    ]);
    expect(notes).toContain(
      'shop/a: its backends have weight 0: requests get 500 until you have decided who may make them',
    );
  });

  test('backends that do not speak HTTP/1.1: what to write', () => {
    const of = (protocol: string): string =>
      imported([{ name: 'a', hosts: { x: ['/'] }, nginx: { 'backend-protocol': protocol } }]).notes.join(
        '\n',
      );
    expect(of('HTTP')).toBe('');
    expect(of('GRPC')).toMatch(/appProtocol: kubernetes\.io\/h2c at port 80 of the Service web.*GRPCRoute/);
    expect(of('HTTPS')).toMatch(/BackendTLSPolicy with targetRefs to the Service web/);
    expect(of('GRPCS').split('\n')).toHaveLength(2);
    expect(of('FCGI')).toMatch(/FCGI not imported/);
  });

  test('TLS that passes through', () => {
    const nginx = { 'ssl-passthrough': 'true' };
    const { objects, notes } = imported([
      { name: 'a', hosts: { x: [['/b', 'api'], '/'] }, nginx, tls: [{ hosts: ['x'], secretName: 's' }] },
    ]);
    expect(sections(objects)).toEqual(['http', 'tls-x x Passthrough']);
    expect(ofKind(objects, 'TLSRoute')).toEqual([
      {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'TLSRoute',
        metadata: { namespace: 'shop', name: 'a-x' },
        spec: {
          parentRefs: [{ name: 'nginx', sectionName: 'tls-x' }],
          hostnames: ['x'],
          rules: [{ backendRefs: [to('web')] }],
        },
      },
    ]);
    expect(Object.keys(routes(objects))).toEqual(['shop/a-x-to-https']);
    expect(notes).toEqual([
      'shop/a: s not imported for x: its TLS passes through',
      'shop/a: all TLS of x goes where / does: it has no paths',
    ]);
  });
});

describe('canaries', () => {
  const main: Given = { name: 'a', hosts: { x: ['/'] } };
  const canary = (nginx: Readonly<Record<string, string>>, more: Partial<Given> = {}): Given => ({
    ...{ name: 'b', hosts: { x: [['/', 'web-v2']] }, nginx: { canary: 'true', ...nginx } },
    ...more,
  });
  const header = (value: string, type?: string): object => ({
    ...path('/'),
    headers: [{ ...(type === undefined ? {} : { type }), name: 'X-C', value }],
  });

  test.each<[Record<string, string>, object[]]>([
    [{ 'canary-weight': '10' }, [{ matches: [path('/')], backendRefs: [to('web', 90), to('web-v2', 10)] }]],
    [
      { 'canary-by-header': 'X-C' },
      [
        { matches: [header('always')], backendRefs: [to('web-v2')] },
        { matches: [header('never')], backendRefs: [to('web')] },
        { matches: [path('/')], backendRefs: [to('web')] },
      ],
    ],
    [
      { 'canary-by-header': 'X-C', 'canary-by-header-value': 'y', 'canary-weight': '1' },
      [
        { matches: [header('y')], backendRefs: [to('web-v2')] },
        { matches: [path('/')], backendRefs: [to('web', 99), to('web-v2', 1)] },
      ],
    ],
    [
      { 'canary-by-header': 'X-C', 'canary-by-header-pattern': 'y' },
      [
        { matches: [header('.*(?:y).*', 'RegularExpression')], backendRefs: [to('web-v2')] },
        { matches: [path('/')], backendRefs: [to('web')] },
      ],
    ],
  ])('%j', (nginx, rules) => {
    const { objects, notes } = imported([main, canary(nginx)]);
    expect(routes(objects)).toEqual({ 'shop/a-x': { hosts: ['x'], sections: ['http'], rules } });
    expect(notes).toEqual([]);
  });

  test('without the Ingress that they belong to, and more than one', () => {
    const weight = { 'canary-weight': '1' };
    const { notes } = imported([
      main,
      canary(weight),
      canary(weight, { name: 'c' }),
      canary(weight, { name: 'd', hosts: { y: ['/'] } }),
      canary(weight, { name: 'e', namespace: 'blog' }),
    ]);
    expect(notes).toEqual([
      'blog/e: canary web-v2 not imported: no other Ingress of the namespace has its host and path',
      'shop/c: canary for x/ not imported: an older Ingress is one, too',
      'shop/d: canary web not imported: no other Ingress of the namespace has its host and path',
    ]);
  });
});

test('the order of what is listed does not matter', () => {
  const given: Given[] = [
    { name: 'a', hosts: { x: ['/a'], y: ['/'] }, nginx: { affinity: 'cookie' } },
    { name: 'b', namespace: 'blog', hosts: { x: ['/b'] }, tls: [{ hosts: ['x'], secretName: 's' }] },
    { name: 'c', className: 'servicenet', hosts: { z: ['/'] } },
  ];
  expect(imported(given.toReversed())).toEqual(imported(given));
});
