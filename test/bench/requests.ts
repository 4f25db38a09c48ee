import { type Call, Connection } from './connection.ts';
import type { Row } from './report.ts';
import type { ServerProcess } from './server-process.ts';

/** Room for a million Services. The API server is measured without the process of the cluster network beside it. */
export const network = ['--service-cluster-ip-range', '10.0.0.0/12', '--network', 'off'];
/** The server without its controllers, as kube-apiserver is measured: each of them would write for every Service. */
export const serverAlone = [
  ...network,
  '--nodes',
  '0',
  '--default-pool',
  '',
  '--controllers=-load-balancer-controller',
];

/** What many calls came to. */
export interface Rate {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p99: number;
  /** Server CPU for one call, in µs. */
  readonly cpu: number;
}

/** Sends `count` calls, one at a time on each connection. */
export async function measure(
  server: ServerProcess,
  connections: readonly Connection[],
  count: number,
  call: (i: number) => Call,
): Promise<Rate> {
  const times = new Float64Array(count);
  let next = 0;
  const cpuBefore = await server.cpu();
  const started = performance.now();
  await Promise.all(
    connections.map(async (connection) => {
      for (let i = next++; i < count; i = next++) {
        const before = performance.now();
        await connection.request(call(i));
        times[i] = performance.now() - before;
      }
    }),
  );
  const perSecond = (count / (performance.now() - started)) * 1000;
  const cpu = ((await server.cpu()) - cpuBefore) / count;
  times.sort();
  return { perSecond, p99: times[Math.floor(count * 0.99)] ?? 0, cpu };
}

export async function connect(server: ServerProcess, count: number): Promise<Connection[]> {
  return Promise.all(Array.from({ length: count }, async () => Connection.open(server.target)));
}

/** A rate as a line of the report. */
export function rateRow(name: string, { perSecond, cpu }: Rate, budget?: string): Row {
  return { name, value: perSecond, unit: '/s', cpu, ...(budget === undefined ? {} : { budget }) };
}

export const services = '/api/v1/namespaces/default/services';

/** The body of a Service. */
export function service(name: string, annotations?: Record<string, string>): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, labels: { app: name }, ...(annotations === undefined ? {} : { annotations }) },
    spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  });
}
