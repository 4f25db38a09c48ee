import { describe, expect, test } from 'vitest';
import {
  publishedAddresses,
  type RouterIdentity,
  routeStatus,
} from '../../../../src/network/http/ingress.ts';
import type { RouteAdmission, RouteRefusal } from '../../../../src/network/http/route-claims.ts';
import type { ServiceSpec, ServiceStatus } from '../../../../src/objects/types/core.generated.ts';
import type { RouteIngress } from '../../../../src/objects/types/route.generated.ts';

const [before, now] = ['2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z'];
const router: RouterIdentity = { name: 'own', canonicalHostname: 'router.test' };
const refusal: RouteRefusal = { reason: 'HostAlreadyClaimed', message: 'taken' };

type Said = RouteAdmission & { readonly wildcardPolicy: string };

const admitted: Said = { host: 'x.test', wildcardPolicy: 'None', refusal: undefined };

/** What a router says of a Route. */
function entry(said: Said, at: string, { name, canonicalHostname }: RouterIdentity = router): RouteIngress {
  const condition = said.refusal === undefined ? { status: 'True' } : { status: 'False', ...said.refusal };
  return {
    ...{ host: said.host, routerName: name, wildcardPolicy: said.wildcardPolicy },
    ...(canonicalHostname === '' ? {} : { routerCanonicalHostname: canonicalHostname }),
    conditions: [{ type: 'Admitted', ...condition, lastTransitionTime: at }],
  };
}

/** The facts of `status_test.go` of OpenShift's router: the time moves with every change, and with nothing else. */
describe('the entry of a Route', () => {
  test.each<[string, Said, Said]>([
    ['of another host', { ...admitted, host: 'y.test' }, admitted],
    ['of another wildcard policy', { ...admitted, wildcardPolicy: 'Subdomain' }, admitted],
    ['that was refused', { ...admitted, refusal }, admitted],
    ['that was admitted', admitted, { ...admitted, refusal }],
    [
      'with another reason',
      { ...admitted, refusal },
      { ...admitted, refusal: { ...refusal, reason: 'InvalidHost' } },
    ],
    [
      'with another message',
      { ...admitted, refusal },
      { ...admitted, refusal: { ...refusal, message: 'm' } },
    ],
    [
      'of another host, refused as before',
      { ...admitted, host: 'y.test', refusal },
      { ...admitted, refusal },
    ],
  ])('%s is written anew', (_, old, said) => {
    const status = { ingress: [entry(old, before)] };
    expect(routeStatus(status, router, said, now)).toEqual({ ingress: [entry(said, now)] });
  });

  test.each<[string, Said]>([
    ['admitted', admitted],
    ['refused', { ...admitted, refusal }],
  ])('that says the same, %s, keeps its time', (_, said) => {
    const status = { ingress: [entry(said, before)] };
    expect(routeStatus(status, router, said, now)).toEqual(status);
  });

  test('follows the name that DNS points to', () => {
    const nameless = { ...router, canonicalHostname: '' };
    const status = { ingress: [entry(admitted, before)] };
    expect(routeStatus(status, nameless, admitted, now)).toEqual({
      ingress: [entry(admitted, now, nameless)],
    });
  });

  test('stands beside those of other routers, which stay as they are, and goes alone', () => {
    const other = entry({ ...admitted, host: 'y.test', refusal }, before, { ...router, name: 'other' });
    const both = { ingress: [other, entry(admitted, now)] };
    expect(routeStatus({}, router, admitted, now)).toEqual({ ingress: [entry(admitted, now)] });
    expect(routeStatus({ ingress: [other] }, router, admitted, now)).toEqual(both);
    expect(routeStatus(both, router, undefined, now)).toEqual({ ingress: [other] });
    expect(routeStatus({ ingress: [other] }, router, undefined, now)).toEqual({ ingress: [other] });
  });

  test('without a condition is written anew', () => {
    const status = { ingress: [{ ...entry(admitted, before), conditions: [] }] };
    expect(routeStatus(status, router, admitted, now)).toEqual({ ingress: [entry(admitted, now)] });
  });
});

/** What ingress-nginx publishes of its Service. */
describe('the addresses of Ingresses', () => {
  const balanced: ServiceStatus = {
    loadBalancer: { ingress: [{ ip: '192.0.2.2' }, { hostname: 'lb.test' }, { ip: '192.0.2.1' }] },
  };
  test.each<[string, ServiceSpec, ServiceStatus, object[]]>([
    ['a ClusterIP', { clusterIP: '10.0.0.1' }, {}, [{ ip: '10.0.0.1' }]],
    ['a headless Service', { clusterIP: 'None' }, {}, []],
    ['a NodePort', { type: 'NodePort', clusterIP: '10.0.0.1' }, {}, [{ ip: '10.0.0.1' }]],
    [
      'a NodePort with external addresses',
      { type: 'NodePort', clusterIP: '10.0.0.1', externalIPs: ['192.0.2.9', '192.0.2.8', '192.0.2.9'] },
      {},
      [{ ip: '192.0.2.8' }, { ip: '192.0.2.9' }],
    ],
    ['a LoadBalancer that waits', { type: 'LoadBalancer', clusterIP: '10.0.0.1' }, {}, []],
    [
      'a LoadBalancer',
      { type: 'LoadBalancer', clusterIP: '10.0.0.1', externalIPs: ['192.0.2.9', '192.0.2.1'] },
      balanced,
      [{ hostname: 'lb.test' }, { ip: '192.0.2.1' }, { ip: '192.0.2.2' }, { ip: '192.0.2.9' }],
    ],
    ['an ExternalName', { type: 'ExternalName', externalName: 'x.test' }, {}, [{ hostname: 'x.test' }]],
  ])('of %s', (_, spec, status, expected) => {
    expect(publishedAddresses({ spec, status })).toEqual(expected);
  });
});
