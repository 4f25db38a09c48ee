import { describe, expect, it } from 'vitest';
import { parseDecider, parsePlace } from '../../../../src/objects/flows/places.ts';

describe('the place of a flow', () => {
  it.each([
    ['cart-1', { kind: 'Pod', namespace: 'shop', name: 'cart-1' }],
    ['cart-1:8080', { kind: 'Pod', namespace: 'shop', name: 'cart-1', port: 8080 }],
    ['deploy/web/cart', { kind: 'Deployment', namespace: 'web', name: 'cart' }],
    ['svc/catalog:80', { kind: 'Service', namespace: 'shop', name: 'catalog', port: 80 }],
    ['node/node-1', { kind: 'Node', name: 'node-1' }],
    ['outside', { kind: 'outside' }],
    ['control-plane:443', { kind: 'control-plane', port: 443 }],
    ['10.0.0.1', { kind: 'address', address: '10.0.0.1' }],
    ['10.0.0.1:80', { kind: 'address', address: '10.0.0.1', port: 80 }],
    ['fd00:0::1', { kind: 'address', address: 'fd00::1', port: undefined }],
    ['[fd00::1]:80', { kind: 'address', address: 'fd00::1', port: 80 }],
    ['dns/A.b.', { kind: 'dns', name: 'a.b' }],
  ])('is %s', (text, place) => {
    expect(parsePlace(text, 'shop')).toMatchObject(place);
  });

  it.each(['', 'a/b/c/d', 'outside:x', 'pod/', 'svc/a:0', 'svc/a:65536', 'dns/', 'cart:'])(
    'is not %j',
    (text) => {
      expect(parsePlace(text, 'default')).toBeUndefined();
    },
  );
});

describe('an object that decides flows', () => {
  it.each([
    ['netpol/deny-in', 'NetworkPolicy shop/deny-in'],
    ['networkpolicies.networking.k8s.io/web/deny-in', 'NetworkPolicy web/deny-in'],
    ['NetworkPolicy/web/deny-in', 'NetworkPolicy web/deny-in'],
    ['egressfirewall/web/default', 'EgressFirewall web/default'],
    ['svc/catalog', 'Service shop/catalog'],
    ['ing/web/site', 'Ingress web/site'],
    ['httproute/web/site', 'HTTPRoute web/site'],
  ])('is %s', (text, object) => {
    expect(parseDecider(text, 'shop')).toBe(object);
  });

  it.each([
    '',
    'deny-in',
    'pod/shop/web',
    'netpol',
    'netpol/',
    'netpol//deny-in',
    'netpol/a/',
    'netpol/a/b/c',
  ])('is not %j', (text) => {
    expect(parseDecider(text, 'default')).toBeUndefined();
  });
});
