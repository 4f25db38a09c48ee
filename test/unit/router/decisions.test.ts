import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { gatewayDecisions } from '../../../src/router/decisions.ts';
import type { HTTPRouteRule } from '../../../src/objects/types/gateway.ts';
import { httpRoute, listener } from '../network/gateway/routes.ts';

/** What becomes of a GET of `/old?q` for the host a.test. */
function decided(rule: HTTPRouteRule, rawHeaders: string[] = [], random = 0.5) {
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { method: 'GET', url: '/old?q', rawHeaders });
  const plan = { port: 8080, protocol: 'HTTP', listeners: [listener('', [httpRoute([rule])])] } as const;
  return gatewayDecisions(
    () => plan,
    () => random,
  )(request, { host: 'a.test:9', path: '/old?q' }, 'http');
}

const backendRefs = [{ name: 'web', port: 80 }];

test('a redirect goes before backends, to the port of the Gateway', () => {
  const filters = [{ type: 'RequestRedirect', requestRedirect: { statusCode: 301 } }];
  expect(decided({ filters, backendRefs })).toMatchObject({
    ...{ kind: 'answer', status: 301, isRefusal: false },
    headers: { location: 'http://a.test:8080/old?q' },
  });
});

test('a repeated header is compared joined by commas, whatever its case', () => {
  const rule = { matches: [{ headers: [{ name: 'Color', value: 'red,blue' }] }], backendRefs };
  expect(decided(rule, ['COLOR', 'red', 'color', 'blue']).kind).toBe('forward');
  expect(decided(rule, ['color', 'red'])).toMatchObject({ status: 404, reason: 'NoPath' });
});

test('the share that is mirrored is drawn for each request', () => {
  const mirror = (numerator: number) => ({
    type: 'RequestMirror',
    requestMirror: { backendRef: { name: 'copy' }, fraction: { numerator, denominator: 1000 } },
  });
  const rule = { filters: [mirror(501), mirror(500)], backendRefs };
  expect(decided(rule)).toMatchObject({ gateway: { mirrors: [{ numerator: 501 }] } });
});

test('a filter that is not known is never skipped', () => {
  expect(decided({ filters: [{ type: 'ExtensionRef' }], backendRefs })).toMatchObject({
    ...{ status: 500, reason: 'UnsupportedFilter', isRefusal: true },
  });
});
