import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import {
  changedTarget,
  chosenBackend,
  redirectLocation,
} from '../../../../../src/network/gateway/filters.ts';
import { importIngresses } from '../../../../../src/network/gateway/import/ingresses.ts';
import { listenerFor, matchRequest } from '../../../../../src/network/gateway/matching.ts';
import type { AnyRoute, GatewayPlan } from '../../../../../src/network/gateway/plan.ts';
import { plainHost } from '../../../../../src/network/http/rules.ts';
import type { ImportedObject } from '../../../../../src/network/gateway/import/ingresses.ts';
import type {
  Gateway,
  HTTPRoute,
  ListenerSet,
  ReferenceGrant,
  TLSRoute,
} from '../../../../../src/objects/types/gateway.ts';
import type { Ingress } from '../../../../../src/objects/types/networking.generated.ts';
import { plan, service, words } from '../objects.ts';

/** What is printed is planned as the router plans it, and asked. */

const ingresses = parseAllDocuments(`
metadata:
  name: web
  namespace: shop
  annotations: { nginx.ingress.kubernetes.io/server-alias: www.a.test }
spec:
  ingressClassName: nginx
  tls: [{ hosts: [a.test], secretName: cert }]
  rules:
    - host: a.test
      http:
        paths:
          - { path: /, pathType: Prefix, backend: { service: { name: web, port: { name: http } } } }
          - { path: /exact, pathType: Exact, backend: { service: { name: api, port: { number: 81 } } } }
---
metadata: { name: api, namespace: shop, annotations: { nginx.ingress.kubernetes.io/rewrite-target: /v1/$2 } }
spec:
  ingressClassName: nginx
  rules:
    - host: a.test
      http:
        paths:
          - { path: "/api(/|$)(.*)", pathType: ImplementationSpecific, backend: { service: { name: api, port: { number: 80 } } } }
---
metadata: { name: numbers, namespace: shop, annotations: { nginx.ingress.kubernetes.io/use-regex: "true" } }
spec:
  ingressClassName: nginx
  rules:
    - host: b.test
      http:
        paths:
          - { path: "/[0-9]+/x", pathType: ImplementationSpecific, backend: { service: { name: api, port: { number: 80 } } } }
---
metadata:
  name: canary
  namespace: shop
  annotations: { nginx.ingress.kubernetes.io/canary: "true", nginx.ingress.kubernetes.io/canary-by-header: X-Canary }
spec:
  ingressClassName: nginx
  rules:
    - host: a.test
      http:
        paths: [{ path: /, pathType: Prefix, backend: { service: { name: next, port: { name: http } } } }]
---
metadata: { name: admin, namespace: blog, annotations: { nginx.ingress.kubernetes.io/auth-url: "http://auth" } }
spec:
  ingressClassName: nginx
  tls: [{ hosts: ["*.blog.test"], secretName: cert }]
  rules:
    - host: x.blog.test
      http:
        paths: [{ path: /admin, pathType: Prefix, backend: { service: { name: web, port: { number: 80 } } } }]
---
metadata: { name: blog, namespace: blog, annotations: { nginx.ingress.kubernetes.io/app-root: /posts } }
spec:
  ingressClassName: nginx
  defaultBackend: { service: { name: other, port: { number: 80 } } }
  rules:
    - host: x.blog.test
      http:
        paths: [{ path: /posts, pathType: Prefix, backend: { service: { name: web, port: { number: 80 } } } }]
---
metadata:
  name: moved
  namespace: blog
  annotations: { nginx.ingress.kubernetes.io/permanent-redirect: "https://new.test:8443/here" }
spec:
  ingressClassName: nginx
  rules:
    - host: old.test
      http:
        paths: [{ path: /, pathType: Prefix, backend: { service: { name: web, port: { number: 80 } } } }]
---
metadata: { name: through, namespace: shop, annotations: { nginx.ingress.kubernetes.io/ssl-passthrough: "true" } }
spec:
  ingressClassName: nginx
  rules:
    - host: tls.test
      http:
        paths: [{ path: /, pathType: Prefix, backend: { service: { name: api, port: { number: 80 } } } }]
`).map((document): Ingress => {
  const { metadata, spec } = document.toJS() as Pick<Ingress, 'metadata' | 'spec'>;
  return { metadata, spec, status: {} };
});

const services = ['shop/web', 'shop/api', 'shop/next', 'blog/web', 'blog/other'].map((key) => service(key));
const classes = [{ metadata: { name: 'nginx' }, spec: { controller: 'k8s.io/ingress-nginx' } }];
const { objects } = importIngresses({ ingresses, classes, services }, 'servicenet', undefined);

function planned(): GatewayPlan {
  const ofKind = <T extends ImportedObject>(kind: string): T[] =>
    objects.filter((one): one is T => one.kind === kind);
  const [gateway, ...others] = ofKind<Gateway>('Gateway');
  if (gateway === undefined || others.length > 0) throw new Error('there is not one Gateway');
  const routes = [
    ...ofKind<HTTPRoute>('HTTPRoute').map((object): AnyRoute => ({ kind: 'HTTPRoute', object })),
    ...ofKind<TLSRoute>('TLSRoute').map((object): AnyRoute => ({ kind: 'TLSRoute', object })),
  ];
  return plan(gateway, {
    routes,
    services,
    sets: ofKind<ListenerSet>('ListenerSet'),
    grants: ofKind<ReferenceGrant>('ReferenceGrant'),
    namespaces: {
      shop: { 'kubernetes.io/metadata.name': 'shop' },
      blog: { 'kubernetes.io/metadata.name': 'blog' },
    },
    secrets: { 'shop/cert': undefined, 'blog/cert': undefined },
  });
}

const serving = planned();

/** `shop/web:http/rest` for what a backend gets, `301 https://…`, or a status. */
function ask(url: string, headers: Readonly<Record<string, string>>): string {
  const { protocol, host, pathname: path } = new URL(url);
  const scheme = protocol === 'https:' ? 'https' : 'http';
  const listeners =
    serving.ports.find(({ port }) => port === (scheme === 'https' ? 443 : 80))?.listeners ?? [];
  const header = (name: string): string | undefined => headers[name];
  const decision = matchRequest(listeners, {
    ...{ host: plainHost(host), path, query: '', method: 'GET', isGrpc: false, header },
    tls: scheme === 'https' ? { listener: listenerFor(listeners, plainHost(host)) } : undefined,
  });
  if (decision.kind === 'refuse') return String(decision.status);
  const { rule, path: matched } = decision.match;
  const { redirect, rewrite } = rule.filters;
  if (redirect !== undefined) {
    const request = { scheme, host, target: path, listenerPort: scheme === 'https' ? 443 : 80 } as const;
    return `${redirect.status} ${redirectLocation(redirect, request, matched)}`;
  }
  const [backend] = chosenBackend(rule.backends, 0)?.rule?.backends ?? [];
  if (backend === undefined) return '500';
  return `${backend.namespace}/${backend.service}:${String(backend.port)}${changedTarget(rewrite?.path, path, matched)}`;
}

test('our Gateways take all of it', () => {
  const { listeners, routes } = serving;
  expect(listeners.map(({ name, conditions }) => [name, words(conditions)])).toEqual(
    ['http', 'https-wildcard.blog.test', 'https-a.test', 'tls-tls.test', 'https-www.a.test'].map((name) => [
      name,
      'Accepted ResolvedRefs Programmed !Conflicted=NoConflicts',
    ]),
  );
  expect(words(serving.conditions)).toBe('Accepted Programmed ResolvedRefs');
  expect(routes.map(({ kind, key, conditions }) => [kind, key, words(conditions)])).toEqual(
    routes.map(({ kind, key }) => [kind, key, 'Accepted ResolvedRefs']),
  );
  expect(routes).not.toHaveLength(0);
});

test.each<[string, string, Record<string, string>?]>([
  ['http://a.test/x', '308 https://a.test/x'],
  ['http://a.test/api/x', '308 https://a.test/api/x'],
  ['http://www.a.test/x', '308 https://www.a.test/x'],
  ['https://a.test/x', 'shop/web:80/x'],
  ['https://www.a.test/x', 'shop/web:80/x'],
  ['https://a.test/exact', 'shop/api:81/exact'],
  ['https://a.test/exact/x', 'shop/web:80/exact/x'],
  ['https://a.test/api', 'shop/api:80/v1'],
  ['https://a.test/api/x/y', 'shop/api:80/v1/x/y'],
  ['https://a.test/apis', 'shop/web:80/apis'],
  ['https://a.test/', 'shop/next:80/', { 'x-canary': 'always' }],
  ['https://a.test/', 'shop/web:80/', { 'x-canary': 'never' }],
  ['https://a.test/', 'shop/web:80/', { 'x-canary': 'else' }],
  ['http://b.test/12/x/y', 'shop/api:80/12/x/y'],
  ['http://b.test/12/X', 'shop/api:80/12/X'],
  ['http://b.test/a/x', 'blog/other:80/a/x'],
  // What was closed stays so, also below a path that is open to all.
  ['https://x.blog.test/admin', '500'],
  ['https://x.blog.test/posts/1', 'blog/web:80/posts/1'],
  ['https://x.blog.test/', '302 https://x.blog.test/posts'],
  ['https://x.blog.test/else', 'blog/other:80/else'],
  ['http://x.blog.test/else', '308 https://x.blog.test/else'],
  ['http://old.test/a', '301 https://new.test:8443/here'],
  ['http://tls.test/a', '308 https://tls.test/a'],
  ['http://nobody.test/', 'blog/other:80/'],
  ['https://y.blog.test/', '404'],
])('%s → %s', (url, expected, headers = {}) => {
  expect(ask(url, headers)).toBe(expected);
});
