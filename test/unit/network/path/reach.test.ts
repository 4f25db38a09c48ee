import { destinationText, type ReachQuestion } from '../../../../src/network/path/reach-ends.ts';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { addressesOfPod, ClusterView } from '../../../../src/network/path/cluster-view.ts';
import { type Reach, reachSteps, type ReachVerdict } from '../../../../src/network/path/reach.ts';
import { reachPlanSteps } from '../../../../src/network/path/reach-plan.ts';
import { tracePath, type TraceSource } from '../../../../src/network/path/trace.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import type { Node, Pod, Service } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import type { NetworkPolicy } from '../../../../src/objects/types/networking.generated.ts';
import type { EgressFirewall } from '../../../../src/objects/types/openshift.ts';
import { randomNamespaces, randomPod, randomPolicy } from '../../../support/random-policies.ts';
import { runs } from '../../../support/runs.ts';
import { runInSlices } from '../../../../src/telemetry/time-slice.ts';
import { options } from '../forwarding/fixtures.ts';

/** A Pod of a ReplicaSet that a Deployment has made; without `of`, of its own. */
function pod(name: string, last: number, of?: string, labels: Record<string, string> = {}): Pod {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${of}-5d4f`, uid: 'u', controller: true };
  const hash: Record<string, string> = of === undefined ? {} : { 'pod-template-hash': '5d4f' };
  return {
    metadata: {
      namespace: 'shop',
      name,
      labels: { ...labels, ...hash },
      ...(of === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec: { nodeName: 'node-1', containers: [{ name: 'main' }] },
    status: { phase: 'Running', podIP: `10.1.1.${last}`, podIPs: [{ ip: `10.1.1.${last}` }] },
  };
}

const elsewhere = pod('db', 5);
const pods = [
  pod('web-5d4f-a', 1, 'web', { app: 'web' }),
  pod('web-5d4f-b', 2, 'web', { app: 'web', canary: 'yes' }),
  pod('cart', 3),
  pod('idle', 4),
  { ...elsewhere, metadata: { ...elsewhere.metadata, namespace: 'data' } },
];
const slice = (name: string, port: number, addresses: readonly string[]): EndpointSlice => ({
  metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  ports: [{ name: '', protocol: 'TCP', port }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
});
const slices = [slice('web', 8080, ['10.1.1.1', '10.1.1.2']), slice('cart', 9000, ['10.1.1.3'])];
const node = (number: number): Node => ({
  metadata: { name: `node-${number}` },
  spec: { podCIDRs: [`10.1.${number}.0/24`] },
  status: { addresses: [{ type: 'InternalIP', address: `192.0.2.${number}` }] },
});

async function reach(
  policies: readonly NetworkPolicy[],
  question: Partial<ReachQuestion> = {},
): Promise<Reach> {
  const namespaces = ['shop', 'data'].map((name) => ({ metadata: { name }, spec: {}, status: {} }));
  const objects = { namespaces, nodes: [node(1)], pods, services: [], slices, policies, firewalls: [] };
  const view = new ClusterView(objects, options());
  return await runInSlices(
    reachSteps(view, { namespace: 'shop', protocol: 'TCP', by: 'workload', ...question }),
  );
}

const isolated = (labels: Record<string, string>): NetworkPolicy => ({
  metadata: { namespace: 'shop', name: 'none' },
  spec: { podSelector: { matchLabels: labels }, policyTypes: ['Ingress'] },
});
const namesOf = (list: readonly { readonly name: string; readonly port?: number }[]) =>
  list.map(({ name, port = '' }) => `${name}:${port}`);

describe('who reaches whom', () => {
  it('asks workloads at the ports of their Services, other namespaces as a whole, nodes and a machine outside', async () => {
    const { sources, destinations, cells } = await reach([]);
    expect(sources).toEqual([
      { name: 'deployment/shop/web', count: 2 },
      { name: 'pod/shop/cart', count: 1 },
      { name: 'pod/shop/idle', count: 1 },
      { name: 'namespace/data', count: 1 },
      { name: 'nodes', count: 1 },
    ]);
    expect(namesOf(destinations)).toEqual(['deployment/shop/web:8080', 'pod/shop/cart:9000', 'outside:443']);
    expect(cells.map((row) => row.map(({ verdict }) => verdict))).toEqual([
      ['open', 'open', 'open'],
      ['open', 'open', 'open'],
      ['open', 'open', 'open'],
      ['open', 'open', 'unasked'],
      ['open', 'open', 'unasked'],
    ]);
    expect(cells[1]?.[0]?.deciders).toEqual([
      {
        ...{ verdict: 'open', message: 'no policy isolates the Pod' },
        ...{ from: 'pod/shop/cart', to: 'pod/shop/web-5d4f-a:8080' },
      },
    ]);
  });

  it('tells all Pods of a workload from some and from no one, and who decides', async () => {
    const toWeb = ({ cells }: Reach): readonly (ReachVerdict | undefined)[] =>
      cells.map((row) => row[0]?.verdict);
    const all = await reach([isolated({ app: 'web' })]);
    // A node reaches its own Pods.
    expect(toWeb(all)).toEqual(['denied', 'denied', 'denied', 'denied', 'open']);
    expect(all.cells[1]?.[0]?.deciders).toMatchObject([
      {
        ...{ object: 'NetworkPolicy shop/none', field: 'spec.ingress' },
        message: 'the policy isolates the Pod, and no rule matches',
      },
    ]);
    const some = await reach([isolated({ canary: 'yes' })]);
    expect(toWeb(some)).toEqual(['differs', 'differs', 'differs', 'differs', 'open']);
    expect(some.cells[1]?.[0]?.deciders.map(({ verdict, to }) => [verdict, to])).toEqual([
      ['open', 'pod/shop/web-5d4f-a:8080'],
      ['denied', 'pod/shop/web-5d4f-b:8080'],
    ]);
  });

  it('asks all Pods at a port that is given, and a Pod alone reaches itself', async () => {
    const { destinations, cells } = await reach([isolated({ app: 'web' })], {
      port: 80,
      by: 'pod',
      to: 'pod/',
    });
    expect(namesOf(destinations)).toEqual([
      ...['pod/shop/cart:80', 'pod/shop/idle:80', 'pod/shop/web-5d4f-a:80', 'pod/shop/web-5d4f-b:80'],
    ]);
    expect(cells.slice(0, 4).map((row) => row.map(({ verdict }) => verdict))).toEqual([
      ['open', 'open', 'denied', 'denied'],
      ['open', 'open', 'denied', 'denied'],
      ['open', 'open', 'open', 'denied'],
      ['open', 'open', 'denied', 'open'],
    ]);
  });

  it('shows a part, and says how much there is', async () => {
    const part = await reach([], { from: 'pod/', most: 1 });
    expect([namesOf(part.sources), part.total]).toEqual([
      ['pod/shop/cart:'],
      { sources: 2, destinations: 3 },
    ]);
  });
});

it('asks Pods once that no policy tells apart, in steps', () => {
  const many = Array.from({ length: 200 }, (_, index) =>
    pod(`web-${index}-5d4f-a`, index + 1, `web-${index}`, { app: `web-${index}` }),
  );
  const own = many.map((each) => ({
    ...each,
    spec: { nodeName: 'node-1', containers: [{ name: 'main', ports: [{ containerPort: 80 }] }] },
  }));
  const namespaces = [{ metadata: { name: 'shop' }, spec: {}, status: {} }];
  const policies = [isolated({ app: 'web-7' })];
  const objects = {
    namespaces,
    nodes: [node(1)],
    pods: own,
    services: [],
    slices: [],
    policies,
    firewalls: [],
  };
  const view = new ClusterView(objects, options());
  const work = reachSteps(view, { namespace: 'shop', protocol: 'TCP', by: 'workload' });
  let steps = 0;
  let last = work.next();
  for (; last.done !== true; last = work.next()) steps++;
  expect(last.value.cells.flat().filter(({ verdict }) => verdict === 'denied')).toHaveLength(199);
  // A step each for Pods as sources and as destinations, and for rows, and a few pairs of 40,000.
  expect(steps).toBeLessThan(3 * own.length + 30);
});

const places = [
  { name: 'a', node: 'node-1', addresses: ['10.1.1.1', 'fd00:1::1'] },
  { name: 'b', node: 'node-1', addresses: ['10.1.1.2'] },
  { name: 'c', node: 'node-2', addresses: ['fd00:1::3', '10.1.2.3'] },
  { name: 'd', node: 'node-2', addresses: ['10.1.2.4'] },
  { name: 'e', node: 'nowhere', addresses: ['10.1.2.5'] },
  { name: 'f', node: 'node-1', addresses: ['192.0.2.1'], hostNetwork: true },
  { name: 'g', node: 'node-2', addresses: ['192.0.2.2'], hostNetwork: true },
  // Out of the ranges of Pods.
  { name: 'h', node: 'node-2', addresses: ['198.51.100.8'] },
];
const blocks = {
  '10.1.0.0/16': ['10.1.1.0/24', '10.1.2.4/32'],
  '192.0.2.0/24': ['192.0.2.2/32'],
  'fd00:1::/64': ['fd00:1::1/128'],
  '0.0.0.0/0': ['198.51.100.0/24'],
};
/** Its addresses are those of a Pod and of a node. */
const service: Service = {
  metadata: { namespace: 'x', name: 'web' },
  spec: {
    ...{ type: 'NodePort', clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'], externalIPs: ['10.1.1.2'] },
    ports: [{ name: 'http', protocol: 'TCP', port: 8081, nodePort: 8080 }],
    ...{ externalTrafficPolicy: 'Local' },
  },
  status: {},
};
const ofService: EndpointSlice = {
  metadata: { namespace: 'x', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  endpoints: [{ addresses: ['10.1.1.1'], conditions: { ready: true }, nodeName: 'node-1' }],
};
const firewall: EgressFirewall = {
  metadata: { namespace: 'x', name: 'default' },
  spec: {
    egress: [
      { type: 'Deny', to: { cidrSelector: '198.51.100.0/24' } },
      { type: 'Deny', to: { dnsName: 'a.example' }, ports: [{ protocol: 'TCP', port: 8081 }] },
    ],
  },
};
/** Pods of two workloads in each namespace, one of them not running. */
const clusters = fc
  .record({
    namespaces: randomNamespaces,
    pods: fc.tuple(...places.map((place) => fc.tuple(randomPod(place), fc.nat(1), fc.nat(4)))),
    policies: fc.tuple(...['p', 'q', 'r'].map((name) => randomPolicy(name, blocks))),
    isServed: fc.boolean(),
    isFirewalled: fc.boolean(),
  })
  .map(({ namespaces, pods: drawn, policies, isServed, isFirewalled }) => {
    const owned = drawn.map(([one, of, state]): Pod => {
      const kind = {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        name: `set-${of}`,
        uid: 'u',
        controller: true,
      };
      const phase = state === 0 ? 'Pending' : 'Running';
      return {
        ...one,
        metadata: { ...one.metadata, ownerReferences: [kind] },
        status: { ...one.status, phase },
      };
    });
    const objects = {
      ...{ namespaces, nodes: [node(1), node(2)], pods: owned, policies },
      ...{ services: isServed ? [service] : [], slices: isServed ? [ofService] : [] },
      firewalls: isFirewalled ? [firewall] : [],
    };
    return new ClusterView(objects, options());
  });

type Outcome = boolean | undefined;

function outcome(view: ClusterView, source: TraceSource, destination: Pod, port: number): Outcome {
  const address = addressesOfPod(destination)[0]?.canonical ?? '';
  return tracePath(view, source, { address, protocol: 'TCP', port }).reachable;
}

function shown(verdict: ReachVerdict | undefined): readonly Outcome[] {
  switch (verdict) {
    case 'open':
    case 'allowed':
      return [true];
    case 'denied':
      return [false];
    case 'differs':
      return [true, false];
    default:
      return [undefined];
  }
}

/** What a cell says of such outcomes. */
function together(outcomes: readonly Outcome[]): readonly Outcome[] {
  const all = new Set(outcomes);
  if (all.has(true) && all.has(false)) return [true, false];
  return [all.has(undefined) ? undefined : all.has(true)];
}

test('a plan is made for half a thousand workloads with a port each, and not for more', async () => {
  const viewOf = (count: number): ClusterView => {
    const many = Array.from({ length: count }, (_, index) => ({
      metadata: { namespace: 'shop', name: `pod-${index}` },
      spec: { containers: [{ name: 'main', ports: [{ containerPort: 8080 }] }] },
      status: { phase: 'Running', podIP: `10.1.${index >> 8}.${index & 255}` },
    }));
    const namespaces = [{ metadata: { name: 'shop' }, spec: {}, status: {} }];
    const none = { nodes: [], services: [], slices: [], policies: [], firewalls: [] };
    return new ClusterView({ ...none, namespaces, pods: many }, options());
  };
  const planOf = async (count: number): Promise<unknown> =>
    runInSlices(reachPlanSteps(viewOf(count), [], ['shop'], { protocol: 'TCP', by: 'workload' }));
  expect(await planOf(498)).toEqual([]);
  await expect(planOf(501)).rejects.toThrow(
    'namespace shop has 502 workloads, and 502 to connect to: a plan compares 250000 pairs at most',
  );
});

describe('of random clusters', () => {
  const question = { protocol: 'TCP', port: 8080, namespace: 'x' } as const;
  const sourceOf = (view: ClusterView, { metadata }: Pod): TraceSource => ({
    ...{ kind: 'pod', pod: view.pod(`x/${metadata.name ?? ''}`) ?? pod('none', 9) },
  });

  it('says of each pair of Pods what trace says', async () => {
    await fc.assert(
      fc.asyncProperty(clusters, fc.constantFrom(8080, 8081), async (view, port) => {
        const own = view.objects.pods.filter(({ metadata }) => metadata.namespace === 'x');
        const { sources, destinations, cells } = await runInSlices(
          reachSteps(view, { ...question, port, by: 'pod' }),
        );
        for (const from of own) {
          for (const to of own) {
            const row = sources.findIndex(({ name }) => name === `pod/${keyOf(from)}`);
            const column = destinations.findIndex(({ name }) => name === `pod/${keyOf(to)}`);
            const expected = outcome(view, sourceOf(view, from), to, port);
            expect(shown(cells[row]?.[column]?.verdict), `${keyOf(from)} → ${keyOf(to)}`).toEqual([expected]);
          }
        }
      }),
      { numRuns: runs(100, 5000) },
    );
  });

  it('says of each pair of workloads, namespaces and nodes what trace says of their Pods', async () => {
    await fc.assert(
      fc.asyncProperty(clusters, async (view) => {
        const found = await runInSlices(reachSteps(view, { ...question, by: 'workload' }));
        const membersOf = (name: string): readonly Pod[] =>
          view.objects.pods.filter(({ metadata }) => {
            const { namespace = '', ownerReferences: [owner] = [] } = metadata;
            return [`namespace/${namespace}`, `statefulset/${namespace}/${owner?.name ?? ''}`].includes(name);
          });
        const sourcesOf = (name: string): readonly TraceSource[] =>
          name === 'nodes'
            ? view.objects.nodes.map((each) => ({ kind: 'node', node: each }))
            : membersOf(name).map((each) => ({ kind: 'pod', pod: each }));
        for (const [row, { name: from }] of found.sources.entries()) {
          for (const [column, { name: to }] of found.destinations.entries()) {
            const cell = found.cells[row]?.[column];
            if (to === 'outside' || cell?.verdict === 'unasked') continue;
            const pairs = sourcesOf(from).flatMap((source) =>
              membersOf(to).map((destination) => ({ source, destination })),
            );
            const others = pairs.filter(
              ({ source, destination }) => source.kind !== 'pod' || keyOf(source.pod) !== keyOf(destination),
            );
            const outcomes = (others.length === 0 ? pairs : others).map(({ source, destination }) =>
              outcome(view, source, destination, 8080),
            );
            expect(shown(cell?.verdict), `${from} → ${to}`).toEqual(together(outcomes));
          }
        }
      }),
      { numRuns: runs(100, 5000) },
    );
  });

  it('plans the difference between before and after', async () => {
    const edits = fc.record({
      policy: randomPolicy('q', blocks),
      isDeletion: fc.boolean(),
      by: fc.constantFrom('pod', 'workload'),
    });
    await fc.assert(
      fc.asyncProperty(clusters, edits, async (view, { policy, isDeletion, by }) => {
        const others = view.objects.policies.filter(({ metadata }) => metadata.name !== 'q');
        const policies = isDeletion ? others : [...others, policy];
        const asked = { protocol: 'TCP', port: 8080, by } as const;
        const changes = await runInSlices(reachPlanSteps(view, policies, ['x'], asked));
        const after = new ClusterView({ ...view.objects, policies }, view.options);
        const whole = { ...asked, namespace: 'x' };
        const was = await runInSlices(reachSteps(view, whole));
        const is = await runInSlices(reachSteps(after, whole));
        for (const [row, { name: source }] of was.sources.entries()) {
          for (const [column, destination] of was.destinations.entries()) {
            const [before, then] = [was, is].map((each) => each.cells[row]?.[column]);
            const name = destinationText(destination);
            const change = changes.find((each) => each.source === source && each.destination === name);
            if (change === undefined) expect(then?.verdict).toBe(before?.verdict);
            else expect([change.before, change.after]).toEqual([before, then]);
          }
        }
        // By trace itself, without classes.
        const own = view.objects.pods.filter(({ metadata }) => metadata.namespace === 'x');
        for (const from of by === 'pod' ? own : []) {
          for (const to of own) {
            const pair = [view, after].map((each) => outcome(each, sourceOf(each, from), to, 8080));
            const isChanged = changes.some(
              ({ source, destination, before, after: then }) =>
                source === `pod/${keyOf(from)}` &&
                destination === `pod/${keyOf(to)}:8080` &&
                !Object.is(shown(before.verdict)[0], shown(then.verdict)[0]),
            );
            expect(isChanged, `${keyOf(from)} → ${keyOf(to)}`).toBe(pair[0] !== pair[1]);
          }
        }
      }),
      { numRuns: runs(70, 3000) },
    );
  });
});
