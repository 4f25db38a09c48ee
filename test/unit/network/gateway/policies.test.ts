import { describe, expect, test } from 'vitest';
import type { BackendTls } from '../../../../src/network/http/rules.ts';
import type { GatewayPlan, GatewayState } from '../../../../src/network/gateway/plan.ts';
import type { BackendTLSPolicy } from '../../../../src/objects/types/gateway.ts';
import { gateway, httpRoute, pairOf, plan, policy, ready, streamRoute, words } from './objects.ts';

const good = 'Accepted ResolvedRefs';

function planWith(
  policies: readonly BackendTLSPolicy[],
  port = 80,
  state: GatewayState = ready,
): GatewayPlan {
  const routes = [httpRoute('shop/r', { backends: [{ name: 'web', port }] })];
  return plan(['http 80'], { policies, routes, configMaps: { 'shop/bad': 'no PEM' } }, state);
}

/** The server name of TLS to the backend; `none` for plain connections, `500` for none at all. */
function tlsOf({ ports }: GatewayPlan): string {
  const backend = ports[0]?.listeners[0]?.matches[0]?.rule.backends[0];
  return backend?.rule === undefined ? '500' : (backend.rule.backendTls?.serverName ?? 'none');
}

function told({ policies }: GatewayPlan): Record<string, string> {
  return Object.fromEntries(policies.map(({ key, conditions }) => [key, words(conditions)]));
}

describe('a policy', () => {
  const rejected = (reason: string, resolved = 'ResolvedRefs'): string => `!Accepted=${reason} ${resolved}`;
  const ofCa = (...refs: object[]): { validation: Partial<BackendTLSPolicy['spec']['validation']> } => ({
    validation: {
      caCertificateRefs: refs.map((ref) => ({ group: '', kind: 'ConfigMap', name: 'ca', ...ref })),
    },
  });
  const noCa = (reason: string): string => rejected('NoValidCACertificate', `!ResolvedRefs=${reason}`);

  test.each<[string, Parameters<typeof policy>[1], string, string]>([
    ['for all ports', {}, 'backend.test', good],
    ['for the port', { target: { sectionName: 'http' } }, 'backend.test', good],
    ['for another port', { target: { sectionName: 'other' } }, 'none', good],
    ['for a port that there is not', { target: { sectionName: 'x' } }, 'none', rejected('TargetNotFound')],
    ['with an authority that does not exist', ofCa({ name: 'none' }), '500', noCa('InvalidCACertificateRef')],
    ['with an authority that is broken', ofCa({ name: 'bad' }), '500', noCa('InvalidCACertificateRef')],
    ['with an authority of another kind', ofCa({ group: 'x.y', kind: 'Z' }), '500', noCa('InvalidKind')],
    [
      'with one of two authorities',
      ofCa({ name: 'none' }, {}),
      'backend.test',
      'Accepted !ResolvedRefs=InvalidCACertificateRef',
    ],
    [
      'with the authorities of the system',
      { validation: { wellKnownCACertificates: 'System' } },
      'backend.test',
      good,
    ],
    [
      'with other authorities',
      { validation: { wellKnownCACertificates: 'Other' } },
      '500',
      rejected('Invalid'),
    ],
    ['without authorities', { validation: { caCertificateRefs: [] } }, '500', rejected('Invalid')],
    [
      'with names of another type',
      { validation: { subjectAltNames: [{ type: 'Email' }] } },
      '500',
      rejected('Invalid'),
    ],
    ['with options', { options: { 'a.test/b': 'c' } }, '500', rejected('Invalid')],
  ])('%s', (_, options, tls, expected) => {
    const found = planWith([policy('shop/p', options)]);
    expect(tlsOf(found)).toBe(tls);
    expect(told(found)).toEqual({ 'shop/p': expected });
  });

  test('says whom to trust, as whom, and the Gateway what it shows', () => {
    const subjectAltNames = [
      { type: 'Hostname', hostname: 'b.test' },
      { type: 'URI', uri: 'spiffe://a/b' },
    ];
    const ca = { kind: 'ConfigMap', group: '' };
    const caCertificateRefs = [
      { ...ca, name: 'ca' },
      { ...ca, name: 'second' },
    ];
    const cluster = {
      policies: [policy('shop/p', { validation: { subjectAltNames, caCertificateRefs } })],
      routes: [httpRoute('shop/r')],
      configMaps: { 'shop/second': undefined },
    };
    const backend = { clientCertificateRef: { name: 'cert' } };
    const { ports, conditions } = plan(gateway(['http 80'], { tls: { backend } }), cluster);
    const expected: BackendTls = {
      serverName: 'backend.test',
      ca: 'authority of shop/ca\nauthority of shop/second',
      names: [
        { type: 'Hostname', value: 'b.test' },
        { type: 'URI', value: 'spiffe://a/b' },
      ],
      client: pairOf('shop/cert'),
    };
    expect(ports[0]?.listeners[0]?.matches[0]?.rule.backends[0]?.rule?.backendTls).toEqual(expected);
    expect(words(conditions)).toBe('Accepted Programmed ResolvedRefs');
  });
});

describe('several policies of a Service', () => {
  const named = (key: string, serverName: string, age: number, sectionName?: string): BackendTLSPolicy =>
    policy(key, {
      ...{ age, validation: { hostname: serverName } },
      target: sectionName === undefined ? {} : { sectionName },
    });
  const conflicted = '!Accepted=Conflicted ResolvedRefs';

  test('of one target: the oldest, then the first by its name', () => {
    const found = planWith([named('shop/c', 'c', 1), named('shop/b', 'b', 2), named('shop/a', 'a', 2)]);
    expect(tlsOf(found)).toBe('c');
    expect(told(found)).toEqual({ 'shop/c': good, 'shop/a': conflicted, 'shop/b': conflicted });
    expect(tlsOf(planWith([named('shop/b', 'b', 2), named('shop/a', 'a', 2)]))).toBe('a');
  });

  test('of a port and of all: the port goes first, both are accepted', () => {
    const policies = [named('shop/all', 'all', 0), named('shop/http', 'http', 1, 'http')];
    expect(tlsOf(planWith(policies))).toBe('http');
    expect(tlsOf(planWith(policies, 81))).toBe('all');
    expect(tlsOf(planWith(policies, 82))).toBe('all');
    expect(told(planWith(policies))).toEqual({ 'shop/all': good, 'shop/http': good });
  });

  test('the one that counts is not valid: the next one does not count', () => {
    const broken = policy('shop/a', { validation: { wellKnownCACertificates: 'Other' } });
    expect(tlsOf(planWith([broken, named('shop/b', 'b', 1)]))).toBe('500');
  });
});

describe('the Gateway is the ancestor', () => {
  test('of policies of Services that its Routes lead to', () => {
    const policies = [policy('shop/p')];
    const mirror = { type: 'RequestMirror', requestMirror: { backendRef: { name: 'web', port: 80 } } };
    expect(told(plan(['http 80'], { policies }))).toEqual({});
    expect(told(plan(['http 80'], { policies, routes: [httpRoute('other/r')] }))).toEqual({});
    const routes = [httpRoute('shop/r', { rules: [{ filters: [mirror] }] })];
    expect(told(plan(['http 80'], { policies, routes }))).toEqual({ 'shop/p': good });
  });

  test('where the connection of TLS ends; not where it is passed through, nor of TCP', () => {
    const policies = [policy('shop/p')];
    const tls = (text: string, kind: 'TLSRoute' | 'TCPRoute'): [string | undefined, object] => {
      const found = plan([text], { policies, routes: [streamRoute(kind, 'shop/r')] });
      const backend = found.ports[0]?.listeners[0]?.streams[0]?.backends[0];
      return [backend?.rule?.backendTls?.serverName, told(found)];
    };
    expect(tls('tls 443', 'TLSRoute')).toEqual(['backend.test', { 'shop/p': good }]);
    expect(tls('tls/Passthrough 443', 'TLSRoute')).toEqual([undefined, {}]);
    expect(tls('tcp 443', 'TCPRoute')).toEqual([undefined, {}]);
  });
});
