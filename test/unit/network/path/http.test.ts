import { describe, expect, test } from 'vitest';
import { ClusterView } from '../../../../src/network/path/cluster-view.ts';
import {
  type HttpObjects,
  parseHttpRequest,
  planRequest,
  withBackends,
} from '../../../../src/network/path/http.ts';
import type { EndpointPath, Trace } from '../../../../src/network/path/trace.ts';
import type { Node, Pod, Service } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import type { Ingress, NetworkPolicy } from '../../../../src/objects/types/networking.generated.ts';
import type { Route } from '../../../../src/objects/types/route.generated.ts';
import { options } from '../forwarding/fixtures.ts';

const node: Node = {
  metadata: { name: 'node-1' },
  spec: { podCIDRs: ['10.1.1.0/24'] },
  status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
};
const pod = (name: string, podIP: string): Pod => ({
  metadata: { namespace: 'shop', name, labels: { app: name } },
  spec: { nodeName: 'node-1', containers: [{ name: 'main', ports: [{ containerPort: 8080 }] }] },
  status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }] },
});
const service = (namespace: string, name: string, address?: string): Service => ({
  metadata: { namespace, name },
  spec: { type: 'LoadBalancer', clusterIP: 'None', ports: [{ name: 'http', protocol: 'TCP', port: 80 }] },
  status: { loadBalancer: { ingress: address === undefined ? [] : [{ ip: address }] } },
});
const slice: EndpointSlice = {
  metadata: { namespace: 'shop', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  endpoints: [{ addresses: ['10.1.1.2'], conditions: { ready: true }, nodeName: 'node-1' }],
};
/** Only the Pod `router` comes in to `web`. */
const isolated: NetworkPolicy = {
  metadata: { namespace: 'shop', name: 'web' },
  spec: {
    podSelector: { matchLabels: { app: 'web' } },
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ podSelector: { matchLabels: { app: 'router' } } }] }],
  },
};
const view = (policies: readonly NetworkPolicy[] = []): ClusterView =>
  new ClusterView(
    {
      ...{ namespaces: [{ metadata: { name: 'shop' }, spec: {}, status: {} }], nodes: [node] },
      pods: [pod('web', '10.1.1.2'), pod('router', '10.1.1.3'), pod('other', '10.1.1.4')],
      services: [service('shop', 'web'), service('shop', 'empty'), service('in', 'router', '203.0.113.5')],
      ...{ slices: [slice], policies, firewalls: [] },
    },
    options(),
  );

const ingress = (host: string, path: string, name: string, more: Partial<Ingress['spec']> = {}): Ingress => ({
  metadata: { namespace: 'shop', name: `${name}-${host}` },
  spec: {
    ingressClassName: 'servicenet',
    rules: [
      {
        host,
        http: { paths: [{ path, pathType: 'Prefix', backend: { service: { name, port: { number: 80 } } } }] },
      },
    ],
    ...more,
  },
  status: { loadBalancer: { ingress: [{ ip: '203.0.113.5' }] } },
});
const route = (host: string, canonical: string, status: string, reason = ''): Route => ({
  apiVersion: 'route.openshift.io/v1',
  kind: 'Route',
  metadata: { namespace: 'shop', name: 'route' },
  spec: { host, to: { kind: 'Service', name: 'web', weight: 1 } },
  status: {
    ingress: [
      {
        routerCanonicalHostname: canonical,
        conditions: [{ type: 'Admitted', status, reason, message: 'somebody has it' }],
      },
    ],
  },
});
const objects: HttpObjects = {
  ingresses: [
    ingress('a.test', '/shop', 'web'),
    ingress('empty.test', '/', 'empty'),
    ingress('tls.test', '/', 'web', { tls: [{ hosts: ['tls.test'], secretName: 'x' }] }),
    ingress('nginx.test', '/', 'web', { ingressClassName: 'nginx' }),
  ],
  routes: [route('route.test', 'router.in.svc.cluster.local', 'True')],
  classes: [{ metadata: { name: 'servicenet' }, spec: { controller: 'servicenet.dev/router' } }],
};

function planOf(url: string, given: Partial<HttpObjects> = {}) {
  const request = parseHttpRequest(url);
  if (request === undefined) throw new Error(`no request: ${url}`);
  const { stages, router, backends } = planRequest(view(), { ...objects, ...given }, request);
  const [{ verdict, object, message } = { verdict: '', object: '', message: '' }] = stages;
  return { verdict, object, message, router: router?.service.metadata.name, port: router?.port, backends };
}

test.each([
  ['http://a.test', { scheme: 'http', host: 'a.test', port: 80, path: '/' }],
  ['https://a.test/x/y?z#w', { scheme: 'https', host: 'a.test', port: 443, path: '/x/y' }],
  ['https://a.test:8443?x', { scheme: 'https', host: 'a.test', port: 8443, path: '/' }],
  ['a.test:80', undefined],
  ['svc/shop/web:80', undefined],
  ['http://', undefined],
  ['http://user@a.test/', undefined],
])('%s is read as a request', (text, request) => {
  expect(parseHttpRequest(text)).toEqual(request);
});

describe('a request to a host', () => {
  const backends = [{ address: '10.1.1.2', port: 8080 }];
  test.each([
    ['http://a.test/shop/cart', 'Ingress shop/web-a.test', 80],
    ['http://a.test:8080/shop', 'Ingress shop/web-a.test', 8080],
    ['http://route.test/', 'Route shop/route', 80],
    ['https://tls.test/', 'Ingress shop/web-tls.test', 443],
  ])('%s is of a rule, whose router leads to endpoints', (url, object, port) => {
    const plan = planOf(url);
    expect(plan).toMatchObject({ verdict: 'allow', object, router: 'router', port, backends });
    expect(plan.message).toContain('the router behind Service in/router leads by the rule for host');
    expect(plan.message).toContain('to Service shop/web, to its endpoint');
  });

  test.each([
    ['http://none.test/', undefined, '404 NoHost: no Ingress and no Route has the host'],
    ['http://nginx.test/', undefined, "Ingress shop/web-nginx.test has it, and is not of the router's class"],
    ['http://a.test/other', undefined, '404 NoPath'],
    ['https://route.test/', 'Route shop/route', '503 NotServedSecurely: it is served by http alone'],
    ['http://empty.test/', 'Ingress shop/empty-empty.test', 'answers 503 NoEndpoints'],
  ])('%s is refused, and why', (url, object, words) => {
    const plan = planOf(url);
    expect(plan).toMatchObject({ verdict: 'deny', object, router: undefined });
    expect(plan.message).toContain(words);
  });

  test('is redirected to https', () => {
    const plan = planOf('http://tls.test/');
    expect(plan).toMatchObject({ verdict: 'allow', router: 'router', backends: undefined });
    expect(plan.message).toContain('redirects to https with status 308');
  });

  const edge = (tls: Route['spec']['tls'], status = 'True'): HttpObjects['routes'] => {
    const one = route('edge.test', 'router.in.svc.cluster.local', status, 'HostAlreadyClaimed');
    return [{ ...one, spec: { ...one.spec, ...(tls === undefined ? {} : { tls }) } }];
  };
  const other = (host: string, secretName?: string): HttpObjects['ingresses'] => [
    ingress('other.test', '/', 'web', {
      tls: [{ hosts: [host], ...(secretName === undefined ? {} : { secretName }) }],
    }),
  ];
  test.each([
    ['its own', { routes: edge({ termination: 'edge', certificate: 'x', key: 'y' }) }, 'allow'],
    [
      'one by a Secret',
      { routes: edge({ termination: 'edge', externalCertificate: { name: 'x' } }) },
      'allow',
    ],
    ['none', { routes: edge({ termination: 'edge' }) }, 'unknown'],
    [
      'that of an Ingress',
      { routes: edge({ termination: 'edge' }), ingresses: other('edge.test', 'x') },
      'allow',
    ],
    [
      'a wildcard of an Ingress',
      { routes: edge({ termination: 'edge' }), ingresses: other('*.test', 'x') },
      'allow',
    ],
    [
      'an Ingress without a Secret',
      { routes: edge({ termination: 'edge' }), ingresses: other('edge.test') },
      'unknown',
    ],
  ])('by TLS for a host with a certificate: %s', (_, given, verdict) => {
    const plan = planOf('https://edge.test/', given);
    expect(plan.verdict).toBe(verdict);
    if (verdict === 'unknown') expect(plan.message).toContain('--default-certificate');
  });

  test('a Route that is not admitted says why', () => {
    const routes = [route('route.test', '', 'False', 'HostAlreadyClaimed')];
    const plan = planOf('http://route.test/', { routes });
    expect(plan.verdict).toBe('deny');
    expect(plan.message).toContain('not admitted: HostAlreadyClaimed: somebody has it');
  });

  test('a router that is not known to the cluster is not guessed', () => {
    const routes = [route('route.test', 'router.example', 'True')];
    expect(planOf('http://route.test/', { routes })).toMatchObject({ verdict: 'unknown', router: undefined });
  });
});

describe('the connection from the router to a backend', () => {
  const backends = [{ address: '10.1.1.2', port: 8080 }];
  const at = (address: string): EndpointPath => ({
    ...{ address, port: 8080, object: undefined, via: undefined, seenAs: '', reachable: true, stages: [] },
  });
  /** What has come to routers. */
  const trace = (policies: readonly NetworkPolicy[], ...routers: readonly string[]): Trace =>
    withBackends(
      view(policies),
      { reachable: true, stages: [], endpoints: routers.map((address) => at(address)) },
      backends,
    );
  test.each([
    ['10.1.1.3', [], 'allow'],
    ['10.1.1.3', [isolated], 'allow'],
    ['10.1.1.4', [isolated], 'deny'],
    ['198.51.100.1', [], 'allow'],
    ['198.51.100.1', [isolated], 'deny'],
  ])('from %s, policies %j: %s', (address, policies, verdict) => {
    const { reachable, stages } = trace(policies, address);
    expect(reachable).toBe(verdict === 'allow');
    expect(stages.map((stage) => stage.verdict)).toEqual([verdict]);
    if (verdict === 'deny') expect(stages[0]?.object).toBe('NetworkPolicy shop/web');
  });

  test('of routers that differ is not decided', () => {
    const { reachable, stages } = trace([isolated], '10.1.1.3', '10.1.1.4');
    expect(reachable).toBeUndefined();
    expect(stages[0]?.verdict).toBe('unknown');
  });
});
