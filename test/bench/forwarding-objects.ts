import { Connection, type Target } from './connection.ts';
import { each, post } from './many-objects.ts';

const nodeCount = 50;
const parallel = 8;

/** Which Services to create. */
interface Which {
  /** The number of the first one. Default: 0. */
  readonly from?: number;
  /** The number behind the last one. */
  readonly to: number;
  readonly endpointsEach: number;
  readonly type?: 'LoadBalancer';
}

/** The cluster that programs of a node are measured in: the namespace `shop`, and the Node `node-0`. */
export async function createShop(target: Target, address: string): Promise<void> {
  const connection = await Connection.open(target);
  await post(connection, '/api/v1/namespaces', { metadata: { name: 'shop' } });
  const status = { addresses: [{ type: 'InternalIP', address }] };
  await post(connection, '/api/v1/nodes', { metadata: { name: 'node-0' }, status });
  connection.close();
}

/** Creates Services `web-0` and on in the namespace `shop`, each with an EndpointSlice. */
export async function createServices(target: Target, which: Which): Promise<void> {
  const { from = 0, to, endpointsEach, type } = which;
  await withConnections(target, to - from, async (connection, i) => {
    await post(connection, '/api/v1/namespaces/shop/services', service(from + i, type));
    if (endpointsEach === 0) return;
    const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';
    await post(connection, slices, slice(from + i, endpointsEach));
  });
}

/** Deletes what {@link createServices} created; its slices stay where no controller deletes them. */
export async function deleteServices(target: Target, { from = 0, to }: Which): Promise<void> {
  await withConnections(target, to - from, async (connection, i) => {
    await connection.request({
      method: 'DELETE',
      path: `/api/v1/namespaces/shop/services/web-${from + i}`,
    });
  });
}

async function withConnections(
  target: Target,
  count: number,
  call: (connection: Connection, i: number) => Promise<void>,
): Promise<void> {
  const connections = await Promise.all(Array.from({ length: parallel }, () => Connection.open(target)));
  await each(connections, count, call);
  for (const connection of connections) connection.close();
}

function service(i: number, type?: 'LoadBalancer'): object {
  return {
    metadata: { name: `web-${i}`, labels: { app: `web-${i}` } },
    spec: {
      ...(type === undefined ? {} : { type, allocateLoadBalancerNodePorts: false }),
      selector: { app: `web-${i}` },
      ports: [{ name: 'http', port: 80, targetPort: 8080 }],
    },
  };
}

/** As the controller of slices writes it. */
function slice(i: number, endpointsEach: number): object {
  return {
    metadata: {
      name: `web-${i}-abcde`,
      generateName: `web-${i}-`,
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z' },
      labels: {
        app: `web-${i}`,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        'kubernetes.io/service-name': `web-${i}`,
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: Array.from({ length: endpointsEach }, (_, j) => {
      const n = i * endpointsEach + j;
      return {
        addresses: [`10.${128 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: `node-${n % nodeCount}`,
        targetRef: {
          ...{ kind: 'Pod', namespace: 'shop', name: `web-${i}-5d4f8c7b9-${j}` },
          uid: `1f0e6f0c-7a55-4b5e-9d9c-${String(n).padStart(12, '0')}`,
        },
        zone: n % 2 === 0 ? 'a' : 'b',
      };
    }),
  };
}
