import { describe, expect, test } from 'vitest';
import {
  type IngressSettings,
  readAnnotations,
} from '../../../../../src/network/gateway/import/annotations.ts';

function read(annotations: Readonly<Record<string, string>>): { settings: IngressSettings; notes: string[] } {
  const notes: string[] = [];
  const settings = readAnnotations(annotations, (sentence) => notes.push(sentence));
  return { settings, notes };
}

/** Of ingress-nginx, without their prefix. */
const nginx = (annotations: Readonly<Record<string, string>>): ReturnType<typeof read> =>
  read(
    Object.fromEntries(
      Object.entries(annotations).map(([name, value]) => [`nginx.ingress.kubernetes.io/${name}`, value]),
    ),
  );

const redirect = (requestRedirect: object): object => ({
  redirect: { type: 'RequestRedirect', requestRedirect },
});

describe('annotations with a counterpart', () => {
  test.each<[string, Record<string, string>, object]>([
    ['none', {}, { isRedirected: true, isForced: false, isClosed: false, protocol: 'HTTP', aliases: [] }],
    ['ssl-redirect', { 'ssl-redirect': 'false' }, { isRedirected: false }],
    ['force-ssl-redirect', { 'force-ssl-redirect': 'true' }, { isForced: true }],
    ['rewrite-target', { 'rewrite-target': '/$2' }, { rewriteTarget: '/$2', isExpression: true }],
    ['use-regex', { 'use-regex': 'true' }, { rewriteTarget: undefined, isExpression: true }],
    ['app-root', { 'app-root': '/shop' }, { appRoot: '/shop' }],
    ['upstream-vhost', { 'upstream-vhost': 'In.Example.com' }, { rewriteHost: 'in.example.com' }],
    [
      'server-alias',
      { 'server-alias': 'a.example.com, *.b.example.com' },
      { aliases: ['a.example.com', '*.b.example.com'] },
    ],
    ['ssl-passthrough', { 'ssl-passthrough': 'true' }, { isPassthrough: true }],
    ['backend-protocol', { 'backend-protocol': 'grpc' }, { protocol: 'GRPC' }],
    [
      'x-forwarded-prefix',
      { 'x-forwarded-prefix': '/a' },
      {
        requestHeaders: {
          type: 'RequestHeaderModifier',
          requestHeaderModifier: { set: [{ name: 'X-Forwarded-Prefix', value: '/a' }] },
        },
      },
    ],
    [
      'permanent-redirect',
      { 'permanent-redirect': 'https://New.example.com:8443/a' },
      redirect({
        ...{ scheme: 'https', hostname: 'new.example.com', port: 8443, statusCode: 301 },
        path: { type: 'ReplaceFullPath', replaceFullPath: '/a' },
      }),
    ],
    [
      'permanent-redirect with the path of the request',
      { 'permanent-redirect': 'https://new.example.com$request_uri', 'permanent-redirect-code': '308' },
      redirect({ scheme: 'https', hostname: 'new.example.com', statusCode: 308 }),
    ],
    [
      'temporal-redirect before permanent-redirect',
      {
        'temporal-redirect': 'http://a.example.com$request_uri',
        'permanent-redirect': 'http://b.example.com',
      },
      redirect({ scheme: 'http', hostname: 'a.example.com', statusCode: 302 }),
    ],
  ])('%s', (_name, annotations, expected) => {
    const { settings, notes } = nginx(annotations);
    expect(settings).toMatchObject(expected);
    expect(notes.filter((note) => !note.startsWith('permanent-redirect not'))).toEqual([]);
  });

  test('ssl-redirect of our router', () => {
    expect(read({ 'servicenet.dev/ssl-redirect': 'false' })).toMatchObject({
      ...{ settings: { isRedirected: false }, notes: [] },
    });
  });

  test.each([
    [{ 'proxy-read-timeout': '120', 'proxy-send-timeout': '60' }, '120s'],
    [{ 'proxy-send-timeout': '7s' }, '7s'],
    [{ 'proxy-read-timeout': '360000' }, '100h'],
  ])('the limit of %j is %s, and no longer one of silence', (annotations, backendRequest) => {
    const { settings, notes } = nginx(annotations);
    expect(settings.timeouts).toEqual({ backendRequest });
    expect(notes).toEqual([expect.stringContaining(`timeouts.backendRequest ${backendRequest}`)]);
  });

  test('CORS, with the defaults of ingress-nginx; any origin goes without credentials', () => {
    const { settings, notes } = nginx({ 'enable-cors': 'true' });
    expect(notes).toEqual([]);
    expect(settings.cors?.cors).toMatchObject({ allowOrigins: ['*'], maxAge: 1_728_000 });
    expect(settings.cors?.cors).not.toHaveProperty('allowCredentials');
    expect(settings.cors?.cors?.allowMethods).toEqual(['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS']);
    expect(settings.cors?.cors?.allowHeaders).toContain('Authorization');
  });

  test('CORS as annotated', () => {
    const { settings, notes } = nginx({
      'enable-cors': 'true',
      'cors-allow-origin': 'https://a.example.com:8443, https://*.example.org, ftp://x',
      'cors-allow-methods': 'GET, PUT',
      'cors-allow-headers': '*, X-A',
      'cors-expose-headers': 'X-B',
      'cors-max-age': '600',
    });
    expect(settings.cors?.cors).toEqual({
      allowOrigins: ['https://a.example.com:8443', 'https://*.example.org'],
      allowCredentials: true,
      allowMethods: ['GET', 'PUT'],
      allowHeaders: ['*'],
      exposeHeaders: ['X-B'],
      maxAge: 600,
    });
    expect(notes).toEqual([
      'cors-allow-origin: ftp://x not imported: Gateway API takes no such value',
      'cors-allow-origin: https://*.example.org: the wildcard was for one label, and is for any depth now',
    ]);
  });

  test.each<[Record<string, string>, object]>([
    [{ 'canary-weight': '10' }, { header: undefined, value: undefined, weight: 10, weightTotal: 100 }],
    [
      { 'canary-weight': '300', 'canary-weight-total': '200' },
      { weight: 200, weightTotal: 200 },
    ],
    [
      { 'canary-weight': '1', 'canary-weight-total': '4000000' },
      { weight: 1, weightTotal: 1_000_000 },
    ],
    [{ 'canary-by-header': 'X-C' }, { header: 'X-C', value: undefined, weight: 0 }],
    [
      { 'canary-by-header': 'X-C', 'canary-by-header-value': 'yes', 'canary-by-header-pattern': 'no' },
      { header: 'X-C', value: { text: 'yes', isExpression: false } },
    ],
    [
      { 'canary-by-header': 'X-C', 'canary-by-header-pattern': '^a' },
      { header: 'X-C', value: { text: '.*(?:^a).*', isExpression: true } },
    ],
  ])('canary %j', (annotations, canary) => {
    const { settings, notes } = nginx({ canary: 'true', ...annotations });
    expect(settings.canary).toMatchObject(canary);
    expect(notes.filter((note) => !note.startsWith('canary-by-header-pattern '))).toEqual([]);
  });
});

describe('what is left out is named', () => {
  test.each<[Record<string, string>, string]>([
    [
      { affinity: 'cookie', 'session-cookie-name': 'a' },
      'affinity, session-cookie-name not imported: each request',
    ],
    [
      { 'limit-rps': '5', 'limit-connections': '1' },
      'limit-connections, limit-rps not imported: a Route has no',
    ],
    [{ 'configuration-snippet': 'deny all;' }, 'configuration-snippet not imported: configuration of nginx'],
    [{ 'proxy-body-size': '8m' }, 'proxy-body-size not imported: it has no counterpart'],
    [{ 'proxy-ssl-secret': 'a/b' }, 'proxy-ssl-secret not imported: a BackendTLSPolicy'],
    [{ 'from-to-www-redirect': 'true' }, 'from-to-www-redirect not imported: write an HTTPRoute'],
    [{ 'cors-max-age': '5' }, 'cors-max-age not imported: it has no effect without enable-cors'],
    [{ 'permanent-redirect-code': '308' }, 'permanent-redirect-code not imported'],
    [{ 'canary-weight': '5' }, 'canary-weight not imported: it has no effect without canary'],
    [{ 'app-root': '/a?b' }, 'app-root "/a?b" not imported'],
    [{ 'upstream-vhost': 'a:80' }, 'upstream-vhost "a:80" not imported'],
    [{ 'x-forwarded-prefix': '/$1' }, 'x-forwarded-prefix "/$1" not imported'],
    [{ 'proxy-read-timeout': 'a' }, 'proxy-read-timeout "a" not imported'],
    [{ 'server-alias': '~^a' }, 'server-alias: ~^a not imported'],
    [
      { 'permanent-redirect': 'https://a.example.com', 'permanent-redirect-code': '300' },
      'permanent-redirect-code 300',
    ],
    [{ canary: 'true', 'canary-by-cookie': 'a' }, 'canary-by-cookie not imported: a Route knows no cookies'],
    [
      { canary: 'true', 'canary-by-header': 'a', 'canary-by-header-pattern': '(' },
      'canary-by-header-pattern not',
    ],
    [{ canary: 'true', 'rewrite-target': '/' }, 'rewrite-target not imported: the Ingress beside a canary'],
    [{ 'something-new': 'x' }, 'something-new not imported: it has no counterpart'],
    [
      { 'enable-cors': 'true', 'cors-allow-credentials': 'true' },
      'cors-allow-credentials not imported: with cors-allow-origin "*"',
    ],
    [{ 'enable-cors': 'true', 'cors-allow-origin': 'x' }, 'enable-cors not imported: it allows no origin'],
  ])('%j', (annotations, sentence) => {
    expect(nginx(annotations).notes).toContainEqual(expect.stringContaining(sentence));
  });

  test('of other controllers and tools, but not what tools keep for themselves', () => {
    const { notes } = read({
      'cert-manager.io/cluster-issuer': 'a',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'kubernetes.io/ingress.class': 'nginx',
      'meta.helm.sh/release-name': 'a',
      'traefik.ingress.kubernetes.io/router.middlewares': 'auth',
    });
    expect(notes).toEqual([
      expect.stringMatching(/^cert-manager\.io\/cluster-issuer not imported: annotate the Gateway/),
      'traefik.ingress.kubernetes.io/router.middlewares not imported',
    ]);
  });

  test('but switches that are off', () => {
    expect(nginx({ 'from-to-www-redirect': 'false', 'enable-cors': 'false', canary: 'false' }).notes).toEqual(
      [],
    );
  });

  test.each<Record<string, string>>([
    { 'auth-url': 'https://auth.example.com' },
    { 'auth-type': 'basic', 'auth-secret': 'users' },
    { 'auth-tls-secret': 'a/b' },
    { 'whitelist-source-range': '10.0.0.0/8' },
    { 'denylist-source-range': '10.0.0.0/8' },
  ])('%j keeps clients out, so that the Route lets none in', (annotations) => {
    const { settings, notes } = nginx(annotations);
    expect(settings.isClosed).toBe(true);
    for (const name of Object.keys(annotations)) expect(notes.join('\n')).toContain(name);
  });

  test.each([
    'https://a.example.com/?b=c',
    'https://$host/',
    'ftp://a.example.com',
    '/a',
    'https://a/b$request_uri',
  ])('a redirect to %s, which no Route makes: backends get no requests in its place', (address) => {
    const { settings, notes } = nginx({ 'permanent-redirect': address });
    expect(settings).toMatchObject({ redirect: undefined, isClosed: true });
    expect(notes).toEqual([expect.stringContaining('permanent-redirect "')]);
  });
});
