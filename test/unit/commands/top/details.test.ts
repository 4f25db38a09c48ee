import { expect, test } from 'vitest';
import { detailsOf } from '../../../../src/commands/top/details.ts';
import type { Content } from '../../../../src/commands/top/lists.ts';
import type { Tab } from '../../../../src/commands/top/state.ts';
import { contentOf, servicesOf } from './rows-of-top.ts';

const rows = servicesOf(
  { name: 'cart', clusterIP: '10.96.0.1', pods: ['ready', 'not ready'] },
  { name: 'pay', clusterIP: '10.96.0.2', pods: [] },
);
const [ready, unready] = rows.pod;
if (ready === undefined || unready === undefined) throw new Error('the example has no Pods');

const content: Content = contentOf({
  ...rows,
  node: [
    {
      ...{
        key: 'node-1',
        name: 'node-1',
        isReady: false,
        isCordoned: true,
        addresses: ['172.18.0.2'],
        podCIDRs: [],
      },
      ...{ pods: 2, created: '', since: '2026-01-01T12:00:00Z' },
      trouble: { reason: 'NodeNotReady', message: 'the node is lost' },
    },
  ],
  pod: rows.pod.map((pod) => ({ ...pod, node: 'node-1' })),
  policy: [
    {
      ...{ key: 'shop/deny', namespace: 'shop', name: 'deny', selector: '', created: '' },
      isolates: [
        { direction: 'ingress', rules: 0 },
        { direction: 'egress', rules: 1 },
      ],
    },
  ],
  pool: [
    {
      ...{
        key: 'small',
        name: 'small',
        addresses: ['192.0.2.0/30'],
        problems: ['it overlaps the pool default'],
      },
      families: [{ family: 'IPv4', total: 4, used: 1, free: 2, quarantined: 1 }],
    },
  ],
  address: [
    {
      ...{ key: '192.0.2.1', address: '192.0.2.1', family: 'IPv4', pool: 'small' },
      holders: [{ service: 'shop/pay', ports: ['80/TCP'], announced: 'node-1 on eth0 by layer 2' }],
    },
  ],
  waiting: [
    { key: 'shop/cart', service: 'shop/cart', reason: 'PoolExhausted', message: 'no address is free' },
  ],
  egressAddress: [{ key: 'out 192.0.2.9', address: '192.0.2.9', egressIP: 'out' }],
  problem: [
    {
      ...{
        key: 'HostAlreadyClaimed Ingress shop/web',
        about: { kind: 'Ingress', namespace: 'shop', name: 'web' },
      },
      ...{ reason: 'HostAlreadyClaimed', message: 'host a: an older Ingress has it' },
    },
  ],
  event: [
    {
      ...{ key: 'shop/e', time: '2026-01-01T12:34:56Z', count: 3, warning: true, reason: 'Unhealthy' },
      ...{
        message: 'probe failed',
        about: { kind: 'Pod', namespace: 'shop', name: unready.name },
        source: 'kubelet',
      },
    },
  ],
});

const about = (tab: Tab, key: string, of: Content = content): readonly string[] =>
  detailsOf(of, { tab }, key).map(({ text }) => text);

const event = `  12:34:56  Pod ${unready.key}  Unhealthy  probe failed (×3)`;

test('a Service has the checks of each thing that is missing, its parts, and Events of its Pods', () => {
  const why = (reason: string) => ({
    ...{ reason, message: 'no' },
    checks: [
      { isMet: true, message: 'one' },
      { isMet: false, message: 'no' },
    ],
  });
  const service = rows.service.map((row) => ({
    ...row,
    ...{ whyNoEndpoint: why('PodsNotReady'), whyNoAddress: why('PoolExhausted') },
  }));
  const of = contentOf(
    { service, pod: rows.pod, event: [...content.tables.event.values()].map(({ row }) => row) },
    {
      detailOf: (key) => ({
        ...{
          key,
          dnsNames: ['cart.shop.svc.cluster.local'],
          settings: [],
          conditions: [],
          ledToBy: ['Ingress/shop/web/0'],
        },
        ports: [
          {
            ...{ name: 'http', protocol: 'TCP', port: 80, nodePort: 30080, targetPort: 'web' },
            targets: [{ port: 8080, endpoints: 2 }],
          },
        ],
        endpoints: [
          {
            ...{ address: '10.244.0.1', pod: unready.key, node: 'node-1', slice: 'shop/s' },
            ...{ ready: false, serving: false, terminating: false },
            trouble: { reason: 'Unhealthy', message: 'probe failed' },
          },
        ],
        pools: [{ pool: 'small', isFit: false, message: 'no address is free' }],
      }),
    },
  );
  const lines = about('services', 'shop/cart', of);
  expect(lines.slice(0, 10)).toEqual([
    'Service shop/cart',
    '',
    'Why no endpoint: PodsNotReady',
    '  ✓ one',
    '  ✗ no',
    '',
    'Why no address: PoolExhausted',
    '  ✓ one',
    '  ✗ no',
    '',
  ]);
  expect(lines).toEqual(
    expect.arrayContaining([
      '  80/TCP http → web: 8080 of 2 endpoints, node port 30080',
      `  ○  10.244.0.1  ${unready.key}  node-1  not ready: Unhealthy: probe failed`,
      '  ✗ small: no address is free',
      '  cart.shop.svc.cluster.local',
      '  Ingress/shop/web/0',
      event,
      '  kubectl -n shop describe service cart',
    ]),
  );
});

test('a Pod says why it is not ready, and its Events', () => {
  const lines = about('pods', unready.key);
  expect(lines).toEqual(
    expect.arrayContaining([
      `Pod ${unready.key}`,
      'Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503',
      event,
    ]),
  );
  expect(about('pods', ready.key)).not.toContain(event);
});

test('a node has its Pods, those with problems first', () => {
  const lines = about('nodes', 'node-1');
  expect(lines).toEqual(
    expect.arrayContaining([
      'NodeNotReady: the node is lost',
      'State         NotReady, cordoned, since 2026-01-01T12:00:00Z',
    ]),
  );
  const pods = lines.filter((line) => line.startsWith('  shop/'));
  expect(pods.map((line) => line.trim().split(' ')[0])).toEqual([unready.key, ready.key]);
});

test('a policy says which Pods it isolates, and what is allowed', () => {
  expect(about('policies', 'shop/deny')).toEqual(
    expect.arrayContaining([
      'Pods          all of the namespace',
      'Ingress       nothing is allowed',
      'Egress        what 1 rule of spec.egress allows',
    ]),
  );
});

test('each kind of address has its own', () => {
  expect(about('addresses', 'pool small')).toEqual(
    expect.arrayContaining([
      'it overlaps the pool default',
      'IPv4          1 of 4 used, 2 free, 1 quarantined',
    ]),
  );
  expect(about('addresses', 'address 192.0.2.1')).toContain('  shop/pay  80/TCP  node-1 on eth0 by layer 2');
  expect(about('addresses', 'waiting shop/cart')).toContain('Service shop/cart');
  expect(about('addresses', 'egress out 192.0.2.9')).toContain('Node          none');
});

test('a problem has the details of its object, where that is in a list', () => {
  const [first] = content.tables.problem.keys();
  expect(about('problems', first ?? '')).toEqual([
    'HostAlreadyClaimed  Ingress shop/web',
    '',
    'host a: an older Ingress has it',
  ]);
});

test('an Event is whole', () => {
  expect(about('events', 'shop/e')).toEqual(expect.arrayContaining(['probe failed', 'Times         3']));
});

test.each<Tab>(['services', 'pods', 'nodes', 'policies', 'addresses', 'problems', 'events'])(
  'what is gone is said of %s',
  (tab) => {
    expect(about(tab, 'no/such')).toEqual(['This is not there any more.']);
  },
);
