/**
 * What the agents of a large cluster ask of its API server: what one event takes for each watch, measured with some
 * hundred watches on a server of ours, and what that comes to with as many agents as nodes.
 *
 * Run: node test/bench/agents.ts [--watches 200] [--nodes 5000]
 */
import { parseArgs } from 'node:util';
import { recordAt, textAt } from '../../src/objects/json.ts';
import { type Connection, openWatch } from './connection.ts';
import { each, post } from './many-objects.ts';
import { figure, printTable, save } from './report.ts';
import { connect, serverAlone } from './requests.ts';
import { ServerProcess } from './server-process.ts';

const { values } = parseArgs({
  options: { watches: { type: 'string', default: '200' }, nodes: { type: 'string', default: '5000' } },
});
const watches = Number(values.watches);
const nodeCount = Number(values.nodes);
/** Writes of each object that are measured. */
const writes = 100;
const listed = 500;

interface Kind {
  readonly name: string;
  /** Of the collection. */
  readonly path: string;
  /** Where its status is written. */
  readonly subresource?: string;
  object(name: string): object;
  /** What changes with a write. */
  patch(i: number): object;
}

const meta = (name: string) => ({ name, labels: { 'app.kubernetes.io/name': 'web' } });
const time = (i: number) => new Date(Date.UTC(2026, 0, 1) + i * 1000).toISOString().replace('.000Z', 'Z');

/** As their usual writers make them. */
const kinds: readonly Kind[] = [
  {
    name: 'EndpointSlice with 100 endpoints',
    path: '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
    object: (name) => ({
      metadata: {
        name,
        labels: {
          'kubernetes.io/service-name': 'web',
          'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        },
      },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: Array.from({ length: 100 }, (_, i) => ({
        addresses: [`10.1.0.${i}`],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: `node-${i}.example.com`,
        targetRef: {
          kind: 'Pod',
          namespace: 'default',
          name: `web-5d9f8b7c66-${i}`,
          uid: crypto.randomUUID(),
        },
        zone: 'zone-a',
      })),
    }),
    patch: (i) => ({
      metadata: { annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': time(i) } },
    }),
  },
  {
    name: 'Node with 50 images',
    path: '/api/v1/nodes',
    subresource: '/status',
    object: (name) => ({
      metadata: meta(name),
      spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] },
      status: {
        addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
        capacity: { cpu: '8', memory: '32Gi', pods: '110' },
        images: Array.from({ length: 50 }, (_, i) => ({
          names: [
            `registry.example.com/team/image-${i}@sha256:${'0'.repeat(64)}`,
            `registry.example.com/team/image-${i}:1`,
          ],
          sizeBytes: 100_000_000,
        })),
      },
    }),
    patch: (i) => ({
      status: {
        conditions: ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
          ...{ type, status: type === 'Ready' ? 'True' : 'False', lastHeartbeatTime: time(i) },
          ...{ lastTransitionTime: time(0), reason: 'Kubelet', message: 'as the kubelet says' },
        })),
      },
    }),
  },
  {
    name: 'Pod',
    path: '/api/v1/namespaces/default/pods',
    subresource: '/status',
    object: (name) => ({
      metadata: meta(name),
      spec: {
        nodeName: 'elsewhere',
        containers: [{ name: 'web', image: 'nginx:1.29', ports: [{ containerPort: 8080 }] }],
      },
    }),
    patch: (i) => ({
      status: {
        phase: 'Running',
        podIP: '10.1.0.1',
        podIPs: [{ ip: '10.1.0.1' }],
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: time(i) }],
      },
    }),
  },
  {
    name: 'Lease',
    path: '/apis/coordination.k8s.io/v1/namespaces/default/leases',
    object: (name) => ({ metadata: meta(name), spec: { holderIdentity: name, leaseDurationSeconds: 2 } }),
    patch: (i) => ({ spec: { renewTime: time(i).replace('Z', '.000000Z') } }),
  },
];

interface Cost {
  readonly name: string;
  /** Of one event. */
  readonly bytes: number;
  /** CPU of the server, in µs: of a write without a watch, and of each event. */
  readonly write: number;
  readonly delivery: number;
  /** CPU of the server, in µs, for each object of a list. */
  readonly list: number;
}

async function measureKind(
  server: ServerProcess,
  connections: readonly Connection[],
  kind: Kind,
): Promise<Cost> {
  const [connection] = connections;
  if (connection === undefined) throw new Error('no connection');
  const ask = (method: string, path: string, body = ''): Promise<Buffer> =>
    connection.request({ method, path, body, contentType: 'application/merge-patch+json' });
  await each(connections, listed, (each, i) => post(each, kind.path, kind.object(`web-${i}`)));
  const item = `${kind.path}/web-0`;
  let changes = 0;
  const write = async (): Promise<void> => {
    await ask('PATCH', `${item}${kind.subresource ?? ''}`, JSON.stringify(kind.patch(++changes)));
  };
  /** CPU of the server until all watches have every event, in µs for each write. */
  const writeAll = async (): Promise<number> => {
    const before = await server.cpu();
    let arrived = 0;
    const done = Promise.withResolvers<undefined>();
    onEvents = (count) => {
      arrived += count;
      if (arrived >= writes * ends.length) done.resolve(undefined);
    };
    for (let i = 0; i < writes; i++) await write();
    if (ends.length > 0) await done.promise;
    return ((await server.cpu()) - before) / writes;
  };
  let onEvents: (count: number) => void = () => undefined;
  const ends: (() => void)[] = [];
  // The first ones compile.
  await writeAll();
  const alone = await writeAll();
  const now = textAt(recordAt(JSON.parse(String(await ask('GET', item))), 'metadata'), 'resourceVersion');
  for (let i = 0; i < watches; i++) {
    ends.push(
      await openWatch(server.target, `${kind.path}?watch=true&resourceVersion=${now}`, (count) =>
        onEvents(count),
      ),
    );
  }
  await writeAll();
  const watched = await writeAll();
  for (const end of ends) end();
  const bytes = (await ask('GET', item)).length + '{"type":"MODIFIED","object":}'.length;
  const beforeLists = await server.cpu();
  for (let i = 0; i < 20; i++) await ask('GET', kind.path);
  const list = ((await server.cpu()) - beforeLists) / 20 / listed;
  return { name: kind.name, bytes, write: alone, delivery: (watched - alone) / watches, list };
}

const server = await ServerProcess.start(serverAlone, []);
const costs: Cost[] = [];
try {
  const connections = await connect(server, 4);
  for (const kind of kinds) costs.push(await measureKind(server, connections, kind));
  for (const connection of connections) connection.close();
} finally {
  await server.stop();
}

printTable([
  ['an event', 'bytes', 'µs of a write', 'µs for each watch', 'µs of an object in a list', ''],
  ...costs.map(({ name, bytes, write, delivery, list }) => [
    name,
    ...[bytes, write, delivery, list].map(figure),
    '',
  ]),
]);

/** @param perSecond writes. @param watchers of each. */
function line(what: string, cost: Cost | undefined, perSecond: number, watchers: number): string[] {
  if (cost === undefined) throw new Error('not measured');
  const deliveries = perSecond * watchers;
  return [
    what,
    `${figure(perSecond)}/s`,
    `${figure(deliveries)}/s`,
    `${figure((deliveries * cost.bytes) / 1e6)} MB/s`,
    `${figure((perSecond * cost.write + deliveries * cost.delivery) / 1e6)} cores`,
    '',
  ];
}

const [slice, node, pod, lease] = costs;
process.stdout.write(`\n${nodeCount} nodes, with an agent on each:\n`);
printTable([
  ['', 'writes', 'events', 'sent', 'CPU of a server of ours', ''],
  line('one change of a slice each second', slice, 1, nodeCount),
  line('Nodes, each every 5 minutes (nodeStatusReportFrequency)', node, nodeCount / 300, nodeCount),
  line('one Pod that starts each second (3 writes), policies', pod, 3, nodeCount),
  line('Leases of kubelets, every 10 s, watched by none', lease, nodeCount / 10, 0),
  ...[10, 50, nodeCount].map((announcers) =>
    line(
      `Leases of ${announcers} announcers with addresses, 1.9/s each`,
      lease,
      announcers * 1.9,
      announcers,
    ),
  ),
  line(`Leases of ${nodeCount} announcers while there is no address`, lease, nodeCount / 10, nodeCount),
]);
process.stdout.write(
  `lists at the start of an agent: ${figure(((node?.bytes ?? 0) * nodeCount) / 1e6)} MB of Nodes, ` +
    `${figure(((node?.list ?? 0) * nodeCount) / 1000)} ms of CPU\n`,
);
await save('agents', costs);
