import { expect, test } from 'vitest';
import { gatewayController } from '../../../../src/network/gateway/plan.ts';
import type { GatewayLists } from '../../../../src/network/path/gateway.ts';
import type { Gateway, GRPCRoute, HTTPRoute, TLSRoute } from '../../../../src/objects/types/gateway.ts';
import { gatewayRuleRows } from '../../../../src/view/rows/http.ts';
import type { HttpRuleRow } from '../../../../src/view/rows/rows.ts';

const named = (name: string, namespace = 'shop') => ({ namespace, name, generation: 1 });
const certificates = { certificateRefs: [{ name: 'cert' }] };
const gateway: Gateway = {
  metadata: { ...named('web'), uid: 'web' },
  spec: {
    gatewayClassName: 'ours',
    listeners: [
      { name: 'http', port: 80, protocol: 'HTTP' },
      { name: 'https', port: 443, protocol: 'HTTPS', hostname: '*.test', tls: certificates },
      { name: 'tls', port: 443, protocol: 'TLS', hostname: 'raw.test', tls: { mode: 'Passthrough' } },
    ],
  },
};
const httpRoute = (name: string, spec: HTTPRoute['spec'], namespace = 'shop'): HTTPRoute => ({
  metadata: named(name, namespace),
  spec,
});
const backendRefs = [{ name: 'web', port: 80 }];
const tlsRoute: TLSRoute = {
  metadata: named('raw'),
  spec: { parentRefs: [{ name: 'web' }], hostnames: ['raw.test'], rules: [{ backendRefs }] },
};
const grpcRoute: GRPCRoute = {
  metadata: named('rpc'),
  spec: {
    parentRefs: [{ name: 'web', sectionName: 'https' }],
    hostnames: ['rpc.test'],
    rules: [{ matches: [{ method: { service: 'a.B', method: 'C' } }], backendRefs }],
  },
};

function rowsOf(changes: Partial<GatewayLists>): readonly HttpRuleRow[] {
  const lists: GatewayLists = {
    classes: [{ metadata: { name: 'ours' }, spec: { controllerName: gatewayController } }],
    ...{ gateways: [gateway], listenerSets: [], httpRoutes: [], grpcRoutes: [], tlsRoutes: [], grants: [] },
    ...changes,
  };
  return gatewayRuleRows(lists, {
    service: (key) =>
      key === 'shop/web'
        ? { metadata: named('web'), spec: { ports: [{ port: 80, protocol: 'TCP' }] }, status: {} }
        : undefined,
    slicesOf: () => [],
    namespaceLabels: () => ({}),
  });
}

test('a rule of two listeners is one row, with what else a request needs', () => {
  const shop = httpRoute('shop', {
    parentRefs: [
      { name: 'web', sectionName: 'http' },
      { name: 'web', sectionName: 'https' },
    ],
    hostnames: ['shop.test'],
    rules: [
      {
        matches: [
          {
            path: { type: 'PathPrefix', value: '/pay' },
            method: 'POST',
            headers: [{ name: 'X-Canary', value: 'yes' }],
            queryParams: [{ name: 'v', value: '2' }],
          },
        ],
        backendRefs,
      },
      { filters: [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https', statusCode: 301 } }] },
    ],
  });
  const told = rowsOf({ httpRoutes: [shop] }).map(({ source: _, key: _key, ...row }) => row);
  const backend = { service: 'shop/web', port: '80', weight: 1, ready: 0, total: 0 };
  const noEndpoints = { trouble: { reason: 'NoEndpoints', message: 'the Service has no ready endpoint' } };
  expect(told).toEqual([
    {
      ...{
        host: 'shop.test',
        path: '/pay',
        match: 'Prefix',
        tls: { termination: 'edge' },
        insecure: 'Allow',
      },
      only: ['POST', 'x-canary: yes', '?v=2'],
      backends: [{ ...backend, ...noEndpoints }],
    },
    {
      ...{ host: 'shop.test', path: '', match: 'Prefix', tls: { termination: 'edge' }, insecure: 'Allow' },
      ...{ only: [], backends: [], answer: 'redirect, 301' },
    },
  ]);
});

test('Routes of gRPC and TLS', () => {
  const told = rowsOf({ grpcRoutes: [grpcRoute], tlsRoutes: [tlsRoute] }).map(
    ({ source, host, path, tls, insecure }) => [source.kind, host, path, tls?.termination, insecure],
  );
  expect(told).toEqual(
    expect.arrayContaining([
      ['GRPCRoute', 'rpc.test', '/a.B/C', 'edge', 'None'],
      ['TLSRoute', 'raw.test', '', 'passthrough', 'None'],
    ]),
  );
});

test('Routes that a listener does not take, and backends that lead to nothing', () => {
  const parentRefs = [{ name: 'web', namespace: 'shop' }];
  const told = rowsOf({
    httpRoutes: [
      httpRoute('far', { parentRefs, hostnames: ['far.test'], rules: [{ backendRefs }] }, 'other'),
      httpRoute('lost', {
        parentRefs: [{ name: 'web', sectionName: 'http' }],
        hostnames: ['lost.test'],
        rules: [{ backendRefs: [{ name: 'nothing', port: 80 }] }],
      }),
    ],
  }).map(({ source, host, trouble }) => [`${source.namespace}/${source.name}`, host, trouble?.reason]);
  expect(told).toEqual(
    expect.arrayContaining([
      ['other/far', '', 'NotAllowedByListeners'],
      ['shop/lost', 'lost.test', 'BackendNotFound'],
    ]),
  );
  expect(told).toHaveLength(2);
});

test('Gateways and listeners that are not served, in the words of their status', () => {
  const condition = (type: string, reason: string) => ({
    ...{ type, status: 'False' as const, reason, message: 'why', lastTransitionTime: '2026-01-01T00:00:00Z' },
  });
  const status = {
    conditions: [condition('Programmed', 'AddressNotAssigned')],
    listeners: [
      { name: 'https', attachedRoutes: 0, conditions: [condition('ResolvedRefs', 'InvalidCertificateRef')] },
    ],
  };
  const rows = rowsOf({ gateways: [{ ...gateway, status }] });
  expect(rows.map(({ source, host, trouble }) => [source.kind, host, trouble?.reason])).toEqual([
    ['Gateway', '', 'AddressNotAssigned'],
    ['Gateway', '*.test', 'InvalidCertificateRef'],
  ]);
  expect(new Set(rows.map(({ key }) => key)).size).toBe(2);
});

test('Gateways of other classes are not ours', () => {
  const theirs = { metadata: { name: 'ours' }, spec: { controllerName: 'example.com/gateway' } };
  expect(rowsOf({ classes: [theirs], tlsRoutes: [tlsRoute] })).toEqual([]);
});
