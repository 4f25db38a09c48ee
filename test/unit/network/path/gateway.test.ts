import { expect, test } from 'vitest';
import { gatewayController } from '../../../../src/network/gateway/plan.ts';
import { ClusterView } from '../../../../src/network/path/cluster-view.ts';
import type { GatewayLists } from '../../../../src/network/path/gateway.ts';
import { parseHttpRequest, planRequest } from '../../../../src/network/path/http.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import type { Gateway, GatewayListener, HTTPRoute, TLSRoute } from '../../../../src/objects/types/gateway.ts';
import { options } from '../forwarding/fixtures.ts';

const named = (name: string) => ({ namespace: 'shop', name });
const service = (name: string, address?: string): Service => ({
  metadata: named(name),
  spec: { type: 'LoadBalancer', clusterIP: 'None', ports: [{ name: 'http', protocol: 'TCP', port: 80 }] },
  status: { loadBalancer: { ingress: address === undefined ? [] : [{ ip: address }] } },
});
const slices = [
  {
    metadata: { ...named('web-1'), labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: [{ addresses: ['10.1.1.2'], conditions: { ready: true } }],
  },
];
const owner = { apiVersion: 'v1', kind: 'Gateway', name: '', uid: '' };
/** The Service of a Gateway. */
const serviceOf = (name: string, address: string): Service => {
  const made = service(`${name}-ours`, address);
  return { ...made, metadata: { ...made.metadata, ownerReferences: [{ ...owner, name, uid: name }] } };
};
const view = new ClusterView(
  {
    namespaces: [{ metadata: { name: 'shop' }, spec: {}, status: {} }],
    ...{ nodes: [], pods: [], policies: [], firewalls: [], slices },
    services: [
      service('web'),
      service('empty'),
      serviceOf('one', '203.0.113.5'),
      serviceOf('two', '203.0.113.6'),
    ],
  },
  options(),
);

const gateway = (name: string, listeners: GatewayListener[], created = name): Gateway => ({
  metadata: { ...named(name), uid: name, creationTimestamp: created },
  spec: { gatewayClassName: 'ours', listeners },
});
const route = (
  name: string,
  parent: string,
  hostnames: string[],
  rules: NonNullable<HTTPRoute['spec']['rules']>,
): HTTPRoute => ({ metadata: named(name), spec: { parentRefs: [{ name: parent }], hostnames, rules } });
const tlsRoute: TLSRoute = {
  metadata: named('secret'),
  spec: {
    parentRefs: [{ name: 'one', sectionName: 'tls' }],
    hostnames: ['secret.test'],
    rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
  },
};
const http = { name: 'http', port: 80, protocol: 'HTTP' };
const certificates = { certificateRefs: [{ name: 'cert' }] };
const lists: GatewayLists = {
  classes: [
    { metadata: { name: 'ours' }, spec: { controllerName: gatewayController } },
    { metadata: { name: 'theirs' }, spec: { controllerName: 'example.com/gateway' } },
  ],
  gateways: [
    gateway('one', [
      http,
      { name: 'https', port: 443, protocol: 'HTTPS', hostname: 'a.test', tls: certificates },
      { name: 'tls', port: 443, protocol: 'TLS', hostname: 'secret.test', tls: { mode: 'Passthrough' } },
    ]),
    gateway('two', [{ ...http, hostname: '*.two.test' }]),
    { ...gateway('other', [http]), spec: { gatewayClassName: 'theirs', listeners: [http] } },
  ],
  listenerSets: [],
  httpRoutes: [
    route(
      'web',
      'one',
      ['a.test'],
      [
        {
          name: 'shop',
          matches: [{ path: { type: 'PathPrefix', value: '/shop' } }],
          backendRefs: [{ name: 'web', port: 80 }],
        },
        {
          matches: [{ path: { type: 'Exact', value: '/empty' } }],
          backendRefs: [{ name: 'empty', port: 80 }],
        },
        { matches: [{ path: { type: 'Exact', value: '/gone' } }], backendRefs: [{ name: 'gone', port: 80 }] },
        {
          matches: [{ path: { type: 'Exact', value: '/moved' } }],
          filters: [{ type: 'RequestRedirect', requestRedirect: { statusCode: 301 } }],
        },
      ],
    ),
    route('two', 'two', ['x.two.test'], [{ backendRefs: [{ name: 'web', port: 80 }] }]),
    route('theirs', 'other', ['theirs.test'], [{ backendRefs: [{ name: 'web', port: 80 }] }]),
  ],
  ...{ grpcRoutes: [], tlsRoutes: [tlsRoute], grants: [] },
};

function planned(url: string, gateways: GatewayLists | 'forbidden' = lists) {
  const request = parseHttpRequest(url);
  if (request === undefined) throw new Error(url);
  const plan = planRequest(view, { ingresses: [], routes: [], classes: [], gateways }, request);
  const [stage] = plan.stages;
  return { ...plan, verdict: stage?.verdict, object: stage?.object, message: stage?.message };
}

test.each([
  [
    'http://a.test/shop/1',
    'allow',
    'HTTPRoute shop/web',
    'listener Gateway shop/one http, rule shop leads to Service shop/web',
  ],
  ['https://a.test/shop', 'allow', 'HTTPRoute shop/web', 'listener Gateway shop/one https'],
  ['http://a.test/empty', 'deny', 'HTTPRoute shop/web', 'answers 503 NoEndpoints'],
  ['http://a.test/gone', 'deny', 'HTTPRoute shop/web', 'answers 500 InvalidBackend'],
  ['http://a.test/moved', 'allow', 'HTTPRoute shop/web', 'redirects with status 301'],
  ['http://a.test/other', 'deny', 'Gateway shop/one', 'answers 404 NoPath'],
  ['http://x.two.test/', 'allow', 'HTTPRoute shop/two', 'listener Gateway shop/two http'],
  [
    'https://secret.test/',
    'allow',
    'TLSRoute shop/secret',
    'listener Gateway shop/one tls leads to Service shop/web',
  ],
  // The catch-all listener of another Gateway has it no more than one of another class.
  ['http://theirs.test/', 'deny', undefined, 'no Ingress and no Route has the host'],
  ['http://a.test:81/shop', 'deny', undefined, 'no Ingress and no Route has the host'],
])('%s', (url, verdict, object, message) => {
  const plan = planned(url);
  expect([plan.verdict, plan.object]).toEqual([verdict, object]);
  expect(plan.message).toContain(message);
});

test('the way goes on to the Service of the Gateway, and behind it to the endpoints', () => {
  const { router, backends } = planned('https://secret.test/');
  expect([router?.service.metadata.name, router?.port]).toEqual(['one-ours', 443]);
  expect(backends).toEqual([{ address: '10.1.1.2', port: 8080 }]);
});

test('a request that the router answers itself has to reach it, and goes no further', () => {
  const { router, backends } = planned('http://a.test/moved');
  expect([router?.service.metadata.name, backends]).toEqual(['one-ours', undefined]);
});

test('who may not read Gateways is told so, where nothing else has the host', () => {
  expect(planned('http://a.test/shop', 'forbidden')).toMatchObject({
    verdict: 'unknown',
    message: 'http://a.test/shop: no Ingress and no Route has the host, and Gateways may not be read',
  });
});
