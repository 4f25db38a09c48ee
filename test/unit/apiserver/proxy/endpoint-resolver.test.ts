import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { StatusError } from '../../../../src/objects/status.ts';
import {
  createEndpointResolver,
  type EndpointResolver,
} from '../../../../src/apiserver/proxy/endpoint-resolver.ts';

type Stored = Record<string, Record<string, unknown>>;

function resolver(
  stored: Stored,
  more: { random?: number; addressesWithoutPods?: boolean; primaryFamily?: 'IPv4' | 'IPv6' } = {},
): EndpointResolver {
  return createEndpointResolver({
    get: (_group, plural, namespace, name): KubeObject | undefined => {
      const key = `${plural}/${namespace}/${name}`;
      return Object.hasOwn(stored, key) ? { metadata: { name, namespace }, ...stored[key] } : undefined;
    },
    list: (_group, plural, namespace) =>
      Object.entries(stored).flatMap(([key, object]) => {
        const [kind, where, name = ''] = key.split('/');
        if (kind !== plural || where !== namespace) return [];
        const labels = { 'kubernetes.io/service-name': name.split('-')[0] ?? '' };
        return [{ metadata: { name, namespace, labels }, ...object }];
      }),
    primaryFamily: more.primaryFamily ?? 'IPv4',
    random: () => more.random ?? 0,
    addressesWithoutPods: more.addressesWithoutPods ?? false,
  });
}

const podRef = (name: string) => ({ kind: 'Pod', namespace: 'ns', name });
const web: Stored = {
  'services/ns/web': {
    spec: {
      ports: [
        { name: 'http', port: 80 },
        { name: 'tls', port: 443 },
      ],
    },
  },
  'endpointslices/ns/web-1': {
    addressType: 'IPv4',
    endpoints: [
      { addresses: ['10.1.0.1'], targetRef: podRef('a') },
      { addresses: ['10.1.0.2'], targetRef: podRef('b'), conditions: { ready: true } },
    ],
    ports: [
      { name: 'http', port: 8080 },
      { name: 'tls', port: 8443 },
    ],
  },
  'pods/ns/a': { status: { podIPs: [{ ip: '10.1.0.1' }] } },
  'pods/ns/b': { status: { podIPs: [{ ip: '10.1.0.2' }] } },
};

function failure(call: () => unknown): [number, string] {
  try {
    call();
  } catch (error) {
    if (error instanceof StatusError) return [error.code, error.message];
    throw error;
  }
  throw new Error('it was resolved');
}

describe('services', () => {
  test.each([
    ['web:http', 'http', 8080],
    ['web:80', 'http', 8080],
    ['http:web:tls', 'http', 8443],
    ['https:web:443', 'https', 8443],
  ])('%s', (id, scheme, port) => {
    expect(resolver(web).service('ns', id)).toEqual({ scheme, host: '10.1.0.1', port, isPod: true });
  });

  test('a port without a name is meant when none is given', () => {
    const unnamed: Stored = {
      'endpointslices/ns/x-1': {
        endpoints: [{ addresses: ['10.1.0.1'], targetRef: podRef('a') }],
        ports: [{ name: '' }, { name: '', port: 1 }],
      },
      'pods/ns/a': web['pods/ns/a'] ?? {},
    };
    expect(resolver(unnamed).service('ns', 'x').port).toBe(1);
    expect(failure(() => resolver(web).service('ns', 'web'))).toEqual([
      503,
      'no endpoints available for service "web"',
    ]);
  });

  test('any ready address may be chosen', () => {
    expect(resolver(web, { random: 0.99 }).service('ns', 'web:80').host).toBe('10.1.0.2');
  });

  test.each([
    ['a:b:c:d', 400, 'invalid service request "a:b:c:d"'],
    ['ftp:web:80', 400, 'invalid service request "ftp:web:80"'],
    [':80', 400, 'invalid service request ":80"'],
    ['web:81', 503, 'no service port 81 found for service "web"'],
    ['none:80', 404, 'services "none" not found'],
    ['none', 503, 'no endpoints available for service "none"'],
    ['http:web:other', 503, 'no endpoints available for service "web"'],
  ])('%s is refused with %d', (id, code, message) => {
    expect(failure(() => resolver(web).service('ns', id))).toEqual([code, message]);
  });

  test('nothing ready, nothing to forward to', () => {
    const message = 'no endpoints available for service "web"';
    const of = (endpoints: unknown[]) =>
      resolver({ ...web, 'endpointslices/ns/web-1': { endpoints, ports: [{ name: 'http', port: 80 }] } });
    expect(failure(() => of([]).service('ns', 'web:http'))).toEqual([503, message]);
    const notReady = [{ addresses: ['10.1.0.1'], targetRef: podRef('a'), conditions: { ready: false } }];
    expect(failure(() => of(notReady).service('ns', 'web:http'))).toEqual([503, message]);
  });

  test.each(['IPv4', 'IPv6'] as const)(
    'slices of the family %s come first, if it is the primary one',
    (family) => {
      const both: Stored = {
        ...web,
        'endpointslices/ns/web-2': {
          addressType: 'IPv6',
          endpoints: [{ addresses: ['fd00::1'], targetRef: podRef('six') }],
          ports: [{ name: 'http', port: 8080 }],
        },
        'pods/ns/six': { status: { podIPs: [{ ip: 'fd00::1' }] } },
      };
      for (const random of [0, 0.5, 0.99]) {
        const { host } = resolver(both, { random, primaryFamily: family }).service('ns', 'web:http');
        expect(host.includes(':')).toBe(family === 'IPv6');
      }
      // The other family serves a port that this one lacks.
      expect(resolver(both, { primaryFamily: 'IPv6' }).service('ns', 'web:tls').port).toBe(8443);
    },
  );

  test('an address counts only when a Pod of the namespace has it', () => {
    const with_ = (endpoint: { ip: string; targetRef?: object }): Stored => ({
      ...web,
      'endpointslices/ns/web-1': {
        endpoints: [{ addresses: [endpoint.ip], targetRef: endpoint.targetRef }],
        ports: [{ name: '', port: 80 }],
      },
    });
    const refused: { ip: string; targetRef?: object }[] = [
      { ip: '169.254.169.254' },
      { ip: '64:ff9b::7f00:1' },
      { ip: '10.1.0.9', targetRef: podRef('a') },
      { ip: '10.1.0.1', targetRef: podRef('gone') },
      { ip: '10.1.0.1', targetRef: { kind: 'Pod', namespace: 'other', name: 'a' } },
    ];
    for (const address of refused) {
      expect(failure(() => resolver(with_(address)).service('ns', 'web'))[0]).toBe(503);
    }
    const translated = resolver(with_({ ip: '64:ff9b::7f00:1' }), { addressesWithoutPods: true });
    expect(failure(() => translated.service('ns', 'web'))[0]).toBe(503);
    const open = resolver(with_({ ip: '192.0.2.7' }), { addressesWithoutPods: true });
    expect(open.service('ns', 'web')).toMatchObject({ host: '192.0.2.7', isPod: false });
  });
});

describe('pods', () => {
  const pod = (ip: string, containerPort?: number): EndpointResolver =>
    resolver({
      'pods/ns/p': {
        spec: { containers: [{}, containerPort === undefined ? {} : { ports: [{ containerPort }] }] },
        status: { podIPs: ip === '' ? [] : [{ ip }] },
      },
    });

  test.each([
    ['p', 8080, 'http', 8080],
    ['p', undefined, 'http', 80],
    ['https:p:', undefined, 'https', 443],
    ['p:9090', 8080, 'http', 9090],
  ])('%s', (id, containerPort, scheme, port) => {
    expect(pod('10.1.0.1', containerPort).pod('ns', id)).toEqual({
      scheme,
      host: '10.1.0.1',
      port,
      isPod: true,
    });
  });

  test.each([
    '',
    '127.0.0.1',
    '::1',
    '169.254.169.254',
    'fe80::1',
    '0.0.0.0',
    '::',
    '224.0.0.1',
    '255.255.255.255',
    '::ffff:127.0.0.1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::127.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::169.254.169.254',
    '2002:7f00:1::1',
    '2002:a9fe:a9fe::',
  ])('the address "%s" is not allowed', (ip) =>
    expect(failure(() => pod(ip).pod('ns', 'p'))).toEqual([400, 'address not allowed']),
  );

  test('private addresses are', () => {
    for (const ip of ['10.0.0.1', '192.168.1.1', 'fd00::1', '64:ff9b::10.0.0.1', '2002:a00:1::1'])
      expect(pod(ip).pod('ns', 'p').host).toBe(ip);
  });

  test('unknown pods and odd ports are refused', () => {
    expect(failure(() => pod('10.1.0.1').pod('ns', 'q'))[0]).toBe(404);
    for (const port of ['0', '65536', 'http', '-1']) {
      expect(failure(() => pod('10.1.0.1').pod('ns', `p:${port}`))[0]).toBe(400);
    }
  });
});

describe('nodes', () => {
  const addresses = [
    { type: 'Hostname', address: 'node-1' },
    { type: 'InternalIP', address: '172.18.0.1' },
  ];
  const nodes: Stored = {
    'nodes//node-1': { status: { addresses } },
    'nodes//other': { status: { addresses, daemonEndpoints: { kubeletEndpoint: { Port: 10350 } } } },
    'nodes//bare': { status: {} },
    'nodes//local': { status: { addresses: [{ type: 'InternalIP', address: '127.0.0.1' }] } },
  };

  test.each([
    ['node-1', 'https', 10250],
    ['http:node-1:10250', 'https', 10250],
    ['other', 'https', 10350],
    ['node-1:10256', 'http', 10256],
    ['https:node-1:8443', 'https', 8443],
  ])('%s is asked by %s at port %i', (id, scheme, port) => {
    const kubelet = [10250, 10350].includes(port) ? { isKubelet: true } : {};
    expect(resolver(nodes).node(id)).toEqual({ scheme, host: '172.18.0.1', port, isPod: false, ...kubelet });
  });

  test.each([
    ['ftp:node-1:21', 400, 'invalid node request "ftp:node-1:21"'],
    ['node-1:0', 400, 'invalid node request "node-1:0"'],
    ['local', 400, 'address not allowed'],
    ['none', 404, 'nodes "none" not found'],
    ['bare', 500, 'no preferred addresses found; known addresses: []'],
  ])('%s: %i', (id, code, message) => {
    expect(failure(() => resolver(nodes).node(id))).toEqual([code, message]);
  });
});
