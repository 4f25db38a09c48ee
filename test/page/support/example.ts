import type {
  AddressRow,
  EventRow,
  FlowGroupRow,
  FlowRow,
  HttpRuleRow,
  NodeRow,
  PodRow,
  PodState,
  ServiceDetailRow,
  ServiceRow,
  SliceRow,
} from '../../../src/view/rows/rows.ts';
import { worstFirst } from '../../../src/objects/flows/outcomes.ts';
import type { ReachAnswer, ReachPlanAnswer, TraceAnswer } from '../../../src/page/messages.ts';
import type { StandIn } from './stand-in.ts';

/** Rows of a shop that is partly broken: every state that the page knows. */

const created = '2026-11-27T20:00:00Z';
const minutesAgo = (minutes: number): string =>
  new Date(Date.parse(exampleNow) - minutes * 60_000).toISOString();

/** The clock of a test that draws the example. */
export const exampleNow = '2026-11-27T20:48:00Z';

/** A Service, its slice and Pods, from a few words. */
export interface ExampleService {
  readonly name: string;
  readonly namespace?: string;
  readonly type?: string;
  readonly clusterIP: string;
  readonly external?: string;
  readonly ports?: string;
  readonly pods: readonly PodState[];
  readonly service?: Partial<ServiceRow>;
}

export function exampleRows({ name, namespace = 'shop', type = 'ClusterIP', pods, ...rest }: ExampleService) {
  const key = `${namespace}/${name}`;
  const ready = pods.filter((state) => state === 'ready').length;
  const podRows = pods.map((state, index): PodRow => {
    const id = `${name}-57f45455-${hash(`${name}${index}`)}`;
    const trouble =
      state === 'not ready'
        ? {
            trouble: {
              reason: 'Unhealthy',
              message: 'Readiness probe failed: HTTP probe failed with statuscode: 503',
            },
          }
        : {};
    return {
      ...{
        key: `${namespace}/${id}`,
        namespace,
        name: id,
        workload: `deployment/${namespace}/${name}`,
        state,
      },
      ...{
        addresses: [`10.244.${(index + name.length) % 3}.${20 + ((name.length * 31 + index * 57) % 200)}`],
      },
      ...{
        node: `node-${((index + name.length) % 3) + 1}`,
        hostNetwork: false,
        services: [key],
        restarts: 0,
      },
      ...{ labels: { app: name }, created, ...trouble },
    };
  });
  const slice: SliceRow = {
    ...{ key: `${key}-x7k2p`, namespace, name: `${name}-x7k2p`, service: key, addressType: 'IPv4' },
    ...{ ports: ['http 8080/TCP'], managedBy: 'endpointslice-controller.k8s.io' },
    endpoints: podRows.map((pod, index) => ({
      ...{
        address: pod.addresses[0] ?? '',
        pod: pod.key,
        node: pod.node ?? '',
        zone: `zone-${(index % 3) + 1}`,
      },
      ...{
        ready: pod.state === 'ready',
        serving: pod.state === 'ready',
        terminating: pod.state === 'terminating',
      },
    })),
  };
  const service: ServiceRow = {
    ...{ key, namespace, name, type, clusterIP: rest.clusterIP, external: rest.external ?? '<none>' },
    ...{ ports: rest.ports ?? '80/TCP', endpoints: { ready, total: pods.length } },
    ...{ labels: { 'app.kubernetes.io/part-of': 'shop' }, selector: { app: name }, created, ...rest.service },
  };
  return { service, slice, pods: podRows };
}

function hash(text: string): string {
  let value = 7;
  for (const sign of text) value = (value * 31 + (sign.codePointAt(0) ?? 0)) % 60_466_176;
  return value.toString(36).padStart(5, 'b');
}

const whyPay = {
  reason: 'PodsNotReady',
  message:
    'none of them is ready: pay-57f45455-a (Readiness probe failed: HTTP probe failed with statuscode: 503)',
  checks: [
    { isMet: true, message: 'the selector app=pay matches 2 Pods' },
    { isMet: true, message: '2 of them run' },
    {
      isMet: false,
      message:
        'none of them is ready: pay-57f45455-a (Readiness probe failed: HTTP probe failed with statuscode: 503)',
    },
  ],
};

const whyApi = {
  reason: 'PoolExhausted',
  message: 'pool small has no free address',
  checks: [
    { isMet: true, message: 'the Service asks this load balancer' },
    { isMet: true, message: 'pool small may serve it' },
    { isMet: false, message: 'pool small has no free address' },
  ],
};

const services: readonly ExampleService[] = [
  {
    name: 'cart',
    type: 'NodePort',
    clusterIP: '10.96.250.77',
    ports: '80:31288/TCP',
    pods: ['ready', 'ready'],
  },
  { name: 'catalog', clusterIP: '10.96.170.238', pods: ['ready', 'ready', 'ready'] },
  {
    ...{ name: 'storefront', type: 'LoadBalancer', clusterIP: '10.96.248.64', external: '192.0.2.1' },
    ...{
      ports: '80:30479/TCP,443:31867/TCP',
      pods: ['ready', 'ready', 'starting'],
      service: { pools: ['default'] },
    },
  },
  {
    ...{ name: 'pay', clusterIP: '10.96.7.1', pods: ['not ready', 'not ready'] },
    service: { trouble: whyPay, whyNoEndpoint: whyPay },
  },
  {
    ...{
      name: 'api',
      type: 'LoadBalancer',
      clusterIP: '10.96.31.9',
      external: '<pending>',
      ports: '443:30001/TCP',
      pods: ['ready'],
    },
    service: { trouble: whyApi, whyNoAddress: whyApi },
  },
  {
    ...{ name: 'web', type: 'NodePort', clusterIP: '10.96.55.242', ports: '80:32292/TCP' },
    pods: [...Array<PodState>(9).fill('ready'), 'starting', 'starting', 'terminating'],
  },
  {
    name: 'kube-dns',
    namespace: 'kube-system',
    clusterIP: '10.96.0.10',
    ports: '53/UDP,53/TCP',
    pods: ['ready', 'ready'],
  },
];

/** The traced way from `cart` to `catalog`. */
export const exampleTrace: TraceAnswer = {
  proxyOptions: ['cluster CIDR 10.244.0.0/16, of the Nodes'],
  reachable: true,
  stages: [],
  traces: [
    {
      ...{ destination: 'TCP 10.96.170.238 port 80', reachable: true },
      stages: [
        {
          ...{ stage: 'service', verdict: 'allow', object: 'Service shop/catalog' },
          message: 'the cluster IP TCP 10.96.170.238:80 leads to one of 2 endpoints',
        },
      ],
      endpoints: ['10.244.2.77', '10.244.1.31'].map((address, index) => ({
        ...{
          address,
          port: 8080,
          object: `Pod shop/catalog-57f45455-${index}`,
          via: 'node-1',
          seenAs: '10.244.0.39',
        },
        ...{ reachable: true, stages: [] },
      })),
      hops: ['10.244.2.77', '10.244.1.31'].map((address, index) => [
        {
          ...{ at: 'Pod shop/cart-57f45455-jd5fp', stages: [] },
          sends: { source: '10.244.0.39', destination: '10.96.170.238:80', changed: [] },
        },
        {
          at: 'node node-1',
          stages: [
            {
              ...({ stage: 'service', verdict: 'allow', object: 'Service shop/catalog' } as const),
              message: 'the cluster IP TCP 10.96.170.238:80 leads to one of 2 endpoints',
            },
            {
              ...({
                stage: 'egress NetworkPolicy',
                verdict: 'pass',
                message: 'no policy isolates the Pod',
              } as const),
            },
          ],
          sends: { source: '10.244.0.39', destination: `${address}:8080`, changed: ['destination'] },
        },
        {
          at: 'node node-3',
          stages: [
            {
              ...({
                stage: 'ingress NetworkPolicy',
                verdict: 'allow',
                object: 'NetworkPolicy shop/catalog',
              } as const),
              ...{ field: 'spec.ingress[0].from[0]', message: 'a rule matches, by ports[0]' },
            },
          ],
          sends: { source: '10.244.0.39', destination: `${address}:8080`, changed: [] },
        },
        {
          at: `Pod shop/catalog-57f45455-${index}`,
          stages: [
            {
              ...({
                stage: 'target port',
                verdict: 'pass',
                message: 'a container declares 8080/TCP',
              } as const),
            },
          ],
        },
      ]),
      packet: {
        outcome: 'connected',
        agrees: true,
        differsAt: undefined,
        message: 'a real connection was opened',
        milliseconds: 4,
      },
    },
  ],
};

/** The same way, ended by the policy. */
export const exampleDenial: TraceAnswer = {
  proxyOptions: [],
  reachable: false,
  stages: [],
  traces: exampleTrace.traces.map(({ packet: _, ...traced }) => ({
    ...{ ...traced, reachable: false },
    endpoints: traced.endpoints.slice(0, 1).map((endpoint) => ({ ...endpoint, reachable: false })),
    hops: traced.hops.slice(0, 1).map((way) => [
      ...way.slice(0, 2),
      {
        at: 'node node-3',
        stages: [
          {
            ...({
              stage: 'ingress NetworkPolicy',
              verdict: 'deny',
              object: 'NetworkPolicy shop/catalog',
            } as const),
            ...{ field: 'spec.ingress', message: 'the policy isolates the Pod, and no rule matches' },
          },
        ],
      },
    ]),
  })),
};

const examplePolicy = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: catalog
  namespace: shop
spec:
  podSelector:
    matchLabels:
      app: catalog
  ingress:
    - from:
        - podSelector:
            matchLabels:
              app: storefront
      ports:
        - port: http
`;

export const examplePool = `apiVersion: servicenet.dev/v1alpha1
kind: AddressPool
metadata:
  name: default
spec:
  addresses:
    - 192.0.2.128/25
`;

function detailOf({ service, slice }: ReturnType<typeof exampleRows>): ServiceDetailRow {
  const { key, namespace, name, type } = service;
  return {
    ...{ key, dnsNames: [`${name}.${namespace}.svc.cluster.local`] },
    ports: [
      {
        ...{ name: 'http', protocol: 'TCP', port: 80, targetPort: 'http' },
        targets: [{ port: 8080, endpoints: slice.endpoints.length }],
      },
    ],
    endpoints: slice.endpoints.map((endpoint) => ({
      ...{ ...endpoint, slice: slice.key },
      ...(endpoint.ready
        ? {}
        : {
            trouble: {
              reason: 'Unhealthy',
              message: 'Readiness probe failed: HTTP probe failed with statuscode: 503',
            },
          }),
    })),
    settings: type === 'LoadBalancer' ? [{ field: 'spec.externalTrafficPolicy', value: 'Local' }] : [],
    conditions:
      type === 'LoadBalancer'
        ? [
            {
              ...{ type: 'servicenet.dev/LoadBalancerReady', status: 'True', reason: 'Assigned' },
              ...{ message: `${service.external} from pool default`, since: minutesAgo(17) },
            },
          ]
        : [],
    ...(type === 'LoadBalancer'
      ? {
          pools: [
            { pool: 'default', isFit: true, message: 'serves every Service' },
            { pool: 'small', isFit: false, message: 'its serviceSelector does not select the Service' },
          ],
        }
      : {}),
    ledToBy: ['Ingress/shop/shop/0', 'Ingress/shop/shop/1'],
  };
}

const nodes = [1, 2, 3].map((number): NodeRow => {
  const isReady = number !== 3;
  return {
    ...{ key: `node-${number}`, name: `node-${number}`, isReady, isCordoned: number === 2 },
    ...{ since: minutesAgo(isReady ? 48 : 2), addresses: [`172.18.244.${number}`], zone: `zone-${number}` },
    ...{ podCIDRs: [`10.244.${number - 1}.0/24`], pods: 8 - number, created },
    ...(isReady
      ? {}
      : { trouble: { reason: 'NodeNotReady', message: 'the kubelet has not renewed its Lease' } }),
  };
});

const events: readonly EventRow[] = [
  ...([
    [
      1,
      true,
      'Unhealthy',
      'Pod',
      'pay-57f45455-a',
      'Readiness probe failed: HTTP probe failed with statuscode: 503',
      12,
    ],
    [2, true, 'NodeNotReady', 'Node', 'node-3', 'Node node-3 status is now: NodeNotReady', 1],
    [3, true, 'PoolExhausted', 'Service', 'api', 'pool small has no free address', 3],
    [
      9,
      false,
      'Scheduled',
      'Pod',
      'web-57f45455-c',
      'Successfully assigned shop/web-57f45455-c to node-2',
      1,
    ],
    [17, false, 'Assigned', 'Service', 'storefront', '192.0.2.1 from pool default', 1],
    [17, false, 'Announced', 'Service', 'storefront', '192.0.2.1 is announced by node-2 on eth0', 1],
  ] as const),
].map(([minutes, warning, reason, kind, name, message, count], index) => ({
  ...{
    key: `shop/event-${index}`,
    time: minutesAgo(minutes),
    count,
    warning,
    reason,
    message,
    source: 'kubelet',
  },
  about: { kind, namespace: kind === 'Node' ? '' : 'shop', name },
}));

const httpRules: readonly HttpRuleRow[] = [
  {
    ...{
      key: 'Ingress/shop/shop/0',
      host: 'shop.example.com',
      path: '/',
      match: 'Prefix',
      insecure: 'Redirect',
    },
    ...{
      source: { kind: 'Ingress', namespace: 'shop', name: 'shop' },
      tls: { termination: 'edge', secret: 'shop-tls' },
    },
    backends: [{ service: 'shop/storefront', port: 'http', weight: 1, ready: 2, total: 3 }],
  },
  {
    ...{
      key: 'Ingress/shop/shop/1',
      host: 'shop.example.com',
      path: '/pay',
      match: 'Prefix',
      insecure: 'Redirect',
    },
    ...{
      source: { kind: 'Ingress', namespace: 'shop', name: 'shop' },
      tls: { termination: 'edge', secret: 'shop-tls' },
    },
    backends: [
      {
        ...{ service: 'shop/pay', port: 'http', weight: 1, ready: 0, total: 2 },
        trouble: { reason: 'NoEndpoints', message: 'no ready endpoint' },
      },
    ],
  },
  {
    ...{ key: 'Route/b/shop', host: 'shop.example.com', path: '/old', match: 'Prefix', insecure: 'Allow' },
    ...{ source: { kind: 'Route', namespace: 'b', name: 'shop' }, backends: [] },
    trouble: { reason: 'HostAlreadyClaimed', message: 'Ingress shop/shop of another namespace has the host' },
  },
  {
    ...{
      key: 'HTTPRoute/shop/web/0',
      host: 'web.example.com',
      path: '/cart',
      match: 'Prefix',
      insecure: 'Allow',
    },
    ...{ source: { kind: 'HTTPRoute', namespace: 'shop', name: 'web' }, tls: { termination: 'edge' } },
    only: ['POST', 'x-canary: a-long-value-without-any-place-to-break-it-'.repeat(3), '?version=2'],
    backends: [{ service: 'shop/storefront', port: '80', weight: 1, ready: 2, total: 3 }],
  },
  {
    ...{ key: 'HTTPRoute/shop/web/1', host: 'web.example.com', path: '', match: 'Prefix', insecure: 'Allow' },
    ...{
      source: { kind: 'HTTPRoute', namespace: 'shop', name: 'web' },
      backends: [],
      answer: 'redirect, 301',
    },
  },
];

const addresses: readonly AddressRow[] = [
  ['192.0.2.1', 'shop/storefront', ['80/TCP', '443/TCP'], 'node-2 on eth0 by layer 2'],
  ['192.0.2.2', 'kube-system/servicenet-router', ['80/TCP', '443/TCP'], 'node-1 on eth0 by layer 2'],
  ['198.51.100.1', 'shop/old', ['80/TCP'], 'AnnouncingOff'],
].map(([address, service, ports, announced]) => ({
  ...{ key: String(address), address: String(address), family: 'IPv4' as const },
  pool: String(address).startsWith('192') ? 'default' : 'small',
  holders: [
    {
      service: String(service),
      ports: [ports].flat() as string[],
      announced: String(announced),
    },
  ] as AddressRow['holders'],
}));

/** One of each outcome, as a group. */
export const exampleGroups: readonly FlowGroupRow[] = worstFirst.map((outcome, index) => {
  const isName = outcome === 'NXDOMAIN';
  const way = { from: 'deploy/shop/cart', to: 'svc/shop/catalog:80', protocol: 'TCP' } as const;
  return {
    ...{ key: outcome, time: minutesAgo(index), from: 'deploy/shop/cart', protocol: 'TCP', outcome },
    ...{ service: isName ? 'dns/catalog.shopp' : 'svc/shop/catalog:80' },
    ...{ to: isName ? '' : 'pod/shop/catalog-57f45455-drd2n', outcomeText: outcome },
    decidedBy: {
      dropped: 'NetworkPolicy shop/catalog spec.ingress: the policy isolates the Pod, and no rule matches',
      refused: 'the destination has reset the connection: nothing listens at its port',
      NXDOMAIN: 'there is no namespace shopp, and the cluster has no other names',
      ...{ opened: '', connected: '' },
    }[outcome],
    ...{ count: 60 - index, perSecond: index / 2, way },
    cells: { from: ['deployment/shop/cart', 'namespace/shop'], to: ['deployment/shop/catalog:8080'] },
    history: Array.from({ length: 60 }, (_, column) => (column * (index + 3)) % 11),
  };
});

/** The same, each by itself. */
const exampleFlows: readonly FlowRow[] = exampleGroups.map(
  ({ count: _, perSecond: __, history: ___, cells: ____, ...words }, index) => ({
    ...{ ...words, key: String(index + 1), from: 'pod/shop/cart-57f45455-jd5fp' },
    ...(words.outcome === 'dropped' ? { packets: 3 } : {}),
  }),
);

/** Puts all of it into a server. */
export function putExample(server: StandIn): void {
  const all = services.map(exampleRows);
  server.put('namespace', [
    { key: 'default', name: 'default', services: 0, pods: 0 },
    { key: 'kube-system', name: 'kube-system', services: 1, pods: 2 },
    { key: 'shop', name: 'shop', services: 6, pods: 23 },
  ]);
  server.put(
    'service',
    all.map(({ service }) => service),
  );
  server.put('serviceDetail', all.map(detailOf));
  server.put(
    'slice',
    all.map(({ slice }) => slice),
  );
  server.put(
    'pod',
    all.flatMap(({ pods }) => pods),
  );
  server.put('node', nodes);
  server.put(
    'workload',
    services.map(({ name, namespace = 'shop', pods }) => ({
      ...{ key: `deployment/${namespace}/${name}`, kind: 'Deployment', namespace, name },
      ...{ pods: pods.length, ready: pods.filter((state) => state === 'ready').length },
    })),
  );
  server.put('event', events);
  server.put('httpRule', httpRules);
  server.put('address', addresses);
  server.put('waiting', [
    {
      key: 'shop/api',
      service: 'shop/api',
      reason: 'PoolExhausted',
      message: 'pool small has no free address',
    },
  ]);
  server.put('pool', [
    {
      ...{ key: 'default', name: 'default', addresses: ['192.0.2.0/24'], problems: [] },
      families: [
        {
          ...{ family: 'IPv4', total: 254, used: 2, free: 251, quarantined: 1 },
          squares: Array.from({ length: 254 }, (_, index) => ({
            address: `192.0.2.${index + 1}`,
            state: index < 2 ? 'used' : index === 2 ? 'quarantined' : index === 9 ? 'reserved' : 'free',
            ...(index === 2 ? { until: minutesAgo(-4) } : {}),
          })),
        },
      ],
    },
    {
      ...{
        key: 'small',
        name: 'small',
        addresses: ['198.51.100.1-198.51.100.1', '2001:db8:1::/112'],
        problems: [],
      },
      families: [
        {
          ...{ family: 'IPv4', total: 1, used: 1, free: 0, quarantined: 0 },
          squares: [{ address: '198.51.100.1', state: 'used' }],
        },
        { family: 'IPv6', total: 65_536, used: 12, free: 65_524, quarantined: 0 },
      ],
    },
  ]);
  server.put(
    'announcer',
    nodes.map(({ name, isReady }) => ({
      ...{
        key: name,
        node: name,
        isAlive: isReady,
        interfaces: [{ name: 'eth0', subnets: ['192.0.2.0/24'] }],
      },
      ...{
        sessions: [],
        announced: name === 'node-2' ? ['192.0.2.1'] : name === 'node-1' ? ['192.0.2.2'] : [],
      },
      refused:
        name === 'node-1'
          ? [
              {
                address: '192.0.2.9',
                holder: '52:54:00:12:34:56',
                reason: 'AddressConflict',
                message: 'a machine that is no node answers for it',
              },
            ]
          : [],
    })),
  );
  server.put('egressAddress', [
    { key: 'out 192.0.2.200', address: '192.0.2.200', egressIP: 'out', node: 'node-1' },
  ]);
  server.put('problem', [
    {
      ...{ key: 'PodsNotReady Service shop/pay', about: { kind: 'Service', namespace: 'shop', name: 'pay' } },
      ...{ reason: whyPay.reason, message: whyPay.message, since: minutesAgo(7) },
    },
    {
      ...{
        key: 'PoolExhausted Service shop/api',
        about: { kind: 'Service', namespace: 'shop', name: 'api' },
      },
      ...{ reason: whyApi.reason, message: whyApi.message, since: minutesAgo(3) },
    },
    {
      ...{ key: 'NodeNotReady Node node-3', about: { kind: 'Node', namespace: '', name: 'node-3' } },
      ...{ reason: 'NodeNotReady', message: 'the kubelet has not renewed its Lease', since: minutesAgo(2) },
    },
  ]);
  server.put('journal', [
    {
      ...{ key: 'journal', knownSince: minutesAgo(17) },
      buckets: [
        { time: minutesAgo(12), changes: 4, warnings: 0 },
        { time: minutesAgo(7), changes: 9, warnings: 2 },
        { time: minutesAgo(3), changes: 0, warnings: 1 },
      ],
    },
  ]);
  const pay = { kind: 'Pod', namespace: 'shop', name: 'pay-5c9d-x2' };
  server.journal = {
    knownSince: minutesAgo(17),
    changes: [
      {
        ...{ ...pay, time: minutesAgo(7), change: 'modified', text: 'not ready' },
        cause: { reason: 'Unhealthy', message: 'readiness probe failed: 503' },
      },
      { ...pay, time: minutesAgo(12), change: 'added', text: '' },
    ],
  };
  server.put('flowWatch', [
    {
      ...{ key: 'flows', state: 'watching', total: exampleGroups.length },
      trouble: { reason: 'FlowsSampled', message: '12 flows are not shown: more came than are told.' },
    },
  ]);
  server.put('flowGroup', exampleGroups);
  server.put('flow', exampleFlows);
  server.trace = exampleTrace;
  server.policy = examplePolicy;
  server.yaml = examplePolicy;
  server.pools = {
    ipPools: [
      {
        ...{ name: '10.20.0.0-24', range: '10.20.0.0/24', total: 254, used: 2, free: 252 },
        addresses: [
          { address: '10.20.0.1', pod: 'shop/cart-57f45455-vjckp', interface: 'net1' },
          { address: '10.20.0.2', pod: 'shop/cart-57f45455-vjckq', interface: 'net1' },
        ],
      },
    ],
    bgpPeers: [
      {
        ...{ name: 'router', peerAddress: '192.168.1.1', myASN: 64512, peerASN: 64513 },
        sessions: [
          { node: 'node-1', reason: 'Established', message: '', since: '2026-11-24T09:00:00Z' },
          {
            node: 'node-2',
            reason: 'ConnectionRefused',
            message: 'connect ECONNREFUSED 192.168.1.1:179',
            since: '2026-11-24T09:00:00Z',
          },
        ],
      },
    ],
  };
  server.reach = exampleReach;
  server.reachPlan = exampleReachPlan;
  server.plan = {
    problems: [],
    effects: [
      { service: 'shop/storefront', family: 'IPv4', effect: 'moves', from: '192.0.2.1', to: '192.0.2.129' },
      { service: 'shop/api', family: 'IPv4', effect: 'gains', to: '192.0.2.130' },
      { service: 'shop/old', family: 'IPv4', effect: 'loses', from: '198.51.100.1' },
    ],
  };
}

/** A cell of two long names, decided by one object. */
function exampleCell(
  verdict: 'open' | 'allowed' | 'denied' | 'unknown',
): ReachAnswer['cells'][number][number] {
  const object =
    verdict === 'open' ? {} : { object: 'NetworkPolicy shop/catalog', field: 'spec.ingress[0].from[0]' };
  const message =
    verdict === 'open' ? 'no policy isolates the Pod' : 'the policy isolates the Pod, and no rule matches';
  return {
    verdict,
    deciders: [
      { verdict, ...object, message, from: 'pod/shop/cart-57f45455-jd5fp', to: 'pod/shop/catalog-0:8080' },
    ],
  };
}

const differing = {
  verdict: 'differs',
  deciders: [...exampleCell('open').deciders, ...exampleCell('denied').deciders],
} as const;
const unasked = { verdict: 'unasked', deciders: [] } as const;

const exampleReach: ReachAnswer = {
  ...{ namespace: 'shop', protocol: 'TCP' },
  sources: [
    { name: 'deployment/shop/cart', count: 2 },
    { name: 'deployment/shop/catalog', count: 3 },
    { name: 'statefulset/shop/a-database-with-a-name-that-is-as-long-as-names-of-workloads-are', count: 1 },
    { name: 'namespace/kube-system', count: 4 },
    { name: 'nodes', count: 3 },
  ],
  destinations: [
    { name: 'deployment/shop/cart', port: 8080, count: 2 },
    { name: 'deployment/shop/catalog', port: 8080, count: 3 },
    {
      name: 'statefulset/shop/a-database-with-a-name-that-is-as-long-as-names-of-workloads-are',
      port: 5432,
      count: 1,
    },
    { name: 'namespace/kube-system', count: 4 },
    { name: 'outside', port: 443, count: 1 },
  ],
  cells: [
    ['open', 'allowed', 'open', 'unknown', 'open'] as const,
    ['open', 'denied', 'denied', 'unknown', 'allowed'] as const,
    ['open', 'denied', 'open', 'unknown', 'denied'] as const,
  ]
    .map((row): ReachAnswer['cells'][number] => row.map(exampleCell))
    .concat([
      [exampleCell('open'), exampleCell('denied'), exampleCell('open'), unasked, unasked],
      [exampleCell('open'), differing, exampleCell('open'), unasked, unasked],
    ]),
  total: { sources: 5, destinations: 5 },
};

const exampleReachPlan: ReachPlanAnswer = {
  problems: ['NetworkPolicy shop/other: spec.podSelector selects no Pod that is there'],
  changes: [
    {
      ...{ namespace: 'shop', source: 'deployment/shop/cart', destination: 'deployment/shop/cart:8080' },
      ...{ before: exampleCell('open'), after: exampleCell('denied') },
    },
    {
      ...{ namespace: 'shop', source: 'nodes', destination: 'deployment/shop/catalog:8080' },
      ...{ before: differing, after: differing },
    },
  ],
};
