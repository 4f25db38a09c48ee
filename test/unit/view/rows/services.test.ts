import { describe, expect, test } from 'vitest';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import type { Endpoint, EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import { serviceColumns, serviceDetailRow, serviceRow } from '../../../../src/view/rows/services.ts';

function service(spec: Service['spec'], status: Service['status'] = {}): Service {
  return {
    metadata: { namespace: 'shop', name: 'web' },
    spec: { type: 'ClusterIP', clusterIPs: ['10.96.0.1'], ipFamilies: ['IPv4'], ...spec },
    status,
  };
}

const condition = (type: string, status: 'True' | 'False', reason: string, message: string) => ({
  ...{ type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z' },
});

function slice(ready: boolean, port = 8080, family = 'IPv4'): EndpointSlice {
  const endpoints = [
    {
      addresses: ['10.0.0.1'],
      conditions: { ready },
      targetRef: { kind: 'Pod', namespace: 'shop', name: 'p' },
    },
  ];
  return {
    metadata: { namespace: 'shop', name: 's' },
    addressType: family,
    endpoints,
    ports: [{ name: 'http', port }],
  };
}

const http = [{ name: 'http', port: 80, targetPort: 'web' }];

describe('columns', () => {
  const withEndpoints = (
    family: string,
    ...conditions: NonNullable<Endpoint['conditions']>[]
  ): EndpointSlice => ({
    ...slice(true, 8080, family),
    endpoints: conditions.map((each, i) => ({ addresses: [`10.0.0.${i}`], conditions: each })),
  });

  test('ready endpoints of the primary family are counted; those that are leaving are not', () => {
    const slices = [
      withEndpoints('IPv4', { ready: true }, { ready: false }, { ready: false, terminating: true }, {}),
      withEndpoints('IPv6', { ready: true }),
    ];
    expect(serviceColumns(service({ ports: [{ port: 80 }] }), slices)).toEqual({
      ...{ namespace: 'shop', name: 'web', type: 'ClusterIP', clusterIP: '10.96.0.1', external: '<none>' },
      ...{ ports: '80/TCP', endpoints: { ready: 2, total: 3 } },
    });
  });

  test('what is special is shown', () => {
    const balanced = service({ type: 'LoadBalancer' });
    expect(serviceColumns(balanced, []).external).toBe('<pending>');
    const served = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }] } };
    expect(serviceColumns(service({ type: 'LoadBalancer' }, served), []).external).toBe(
      '192.0.2.1,2001:db8::1',
    );
    expect(serviceColumns(service({ clusterIPs: ['None'] }), []).type).toBe('Headless');
    const name = service({ type: 'ExternalName', externalName: 'example.com', clusterIPs: [] });
    expect(serviceColumns(name, [])).toMatchObject({ external: 'example.com', endpoints: undefined });
  });
});

describe('why', () => {
  test('is not said before Pods and slices are known', () => {
    const row = serviceRow(service({ selector: { a: 'b' }, ports: http }), [], undefined);
    expect([row.whyNoEndpoint, row.trouble, row.endpoints]).toEqual([
      undefined,
      undefined,
      { ready: 0, total: 0 },
    ]);
  });

  test('no Pod is asked for where an endpoint is ready', () => {
    const never = (): never => {
      throw new Error('asked');
    };
    const row = serviceRow(service({ selector: { a: 'b' }, ports: http }), [slice(true)], never);
    expect([row.whyNoEndpoint, row.trouble]).toEqual([undefined, undefined]);
    // A name outside has none by design.
    expect(
      serviceRow(service({ type: 'ExternalName', externalName: 'e' }), [], never).trouble,
    ).toBeUndefined();
  });

  test('a Service without an endpoint has the checks of the planner', () => {
    const row = serviceRow(service({ selector: { a: 'b' }, ports: http }), [slice(false)], () => []);
    expect(row.trouble).toEqual({ reason: 'SelectorMatchesNothing', message: 'no Pod has the labels a=b' });
    expect(row.whyNoEndpoint?.checks).toEqual([{ isMet: false, message: 'no Pod has the labels a=b' }]);
  });

  test('one that waits for an address has the words of its condition, or waits for a controller', () => {
    const waiting = { type: 'LoadBalancer', selector: { a: 'b' }, ports: http };
    const refused = condition(
      'servicenet.dev/LoadBalancerReady',
      'False',
      'PoolExhausted',
      'no free address',
    );
    const row = serviceRow(service(waiting, { conditions: [refused] }), [slice(true)], () => []);
    expect(row.trouble).toEqual({ reason: 'PoolExhausted', message: 'no free address' });
    expect(row.whyNoAddress?.checks.map(({ isMet }) => isMet)).toEqual([true, true, false]);
    expect(serviceRow(service(waiting), [slice(true)], () => []).whyNoAddress).toMatchObject({
      reason: 'Pending',
    });
  });

  test.each([
    ['OtherAnnouncer', true],
    ['NoAgent', false],
    ['AnnouncingOff', false],
    ['Pending', false],
  ])('an address that nobody announces, by reason %s, is a trouble: %s', (reason, isTrouble) => {
    const status = {
      loadBalancer: { ingress: [{ ip: '192.0.2.1' }] },
      conditions: [
        condition('servicenet.dev/LoadBalancerReady', 'True', 'Assigned', '192.0.2.1 from pool lan'),
        condition('servicenet.dev/Announced', 'False', reason, 'words'),
      ],
    };
    const row = serviceRow(service({ type: 'LoadBalancer', ports: http }, status), [slice(true)], () => []);
    expect(row.trouble?.reason).toBe(isTrouble ? reason : undefined);
    expect(row.pools).toEqual(['lan']);
  });
});

test('details: ports of endpoints, those that are not ready first, and what is not the default', () => {
  const given = service({
    ...{
      ports: [...http, { port: 53, protocol: 'UDP' }],
      externalTrafficPolicy: 'Local',
      sessionAffinity: 'None',
    },
    ...{ loadBalancerSourceRanges: ['192.0.2.0/24'], publishNotReadyAddresses: true },
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } },
  });
  const trouble = { reason: 'Unhealthy', message: 'm' };
  const row = serviceDetailRow(given, [slice(true), slice(false, 9090)], {
    ...{ clusterDomain: 'cluster.local', pools: [], ledToBy: ['Ingress/shop/a/0'], troubleOf: () => trouble },
  });
  expect(row.ports).toEqual([
    {
      ...{ name: 'http', protocol: 'TCP', port: 80, targetPort: 'web' },
      targets: [
        { port: 8080, endpoints: 1 },
        { port: 9090, endpoints: 1 },
      ],
    },
    { name: '', protocol: 'UDP', port: 53, targetPort: '53', targets: [] },
  ]);
  expect(row.endpoints.map((each) => [each.ready, each.trouble])).toEqual([
    [false, trouble],
    [true, undefined],
  ]);
  expect(row.settings).toEqual([
    { field: 'spec.externalTrafficPolicy', value: 'Local' },
    { field: 'spec.publishNotReadyAddresses', value: 'true' },
    { field: 'spec.loadBalancerSourceRanges', value: '192.0.2.0/24' },
    { field: 'spec.sessionAffinityConfig.clientIP.timeoutSeconds', value: '5' },
  ]);
  expect(row.dnsNames).toEqual(['web.shop.svc.cluster.local']);
  expect(row.pools).toBeUndefined();
});

test('a headless Service has the names of its endpoints', () => {
  const named = slice(true);
  const endpoints = (named.endpoints ?? []).map((endpoint) => ({ ...endpoint, hostname: 'db-0' }));
  const sources = { clusterDomain: 'cluster.local', pools: [], ledToBy: [], troubleOf: () => undefined };
  const row = serviceDetailRow(
    service({ clusterIP: 'None', clusterIPs: ['None'] }),
    [{ ...named, endpoints }],
    sources,
  );
  expect(row.dnsNames).toEqual(['web.shop.svc.cluster.local', 'db-0.web.shop.svc.cluster.local']);
});
