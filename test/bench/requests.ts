import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, Connection, type Target } from './connection.ts';
import type { Row } from './report.ts';

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

/** An API server, and what it takes. */
export interface Measured {
  readonly target: Target;
  /** CPU time so far, in µs. */
  cpu(): Promise<number>;
}

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
  server: Measured,
  connections: readonly Pick<Connection, 'request'>[],
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

export async function connect(server: Measured, count: number): Promise<Connection[]> {
  return Promise.all(Array.from({ length: count }, async () => Connection.open(server.target)));
}

/** Creates of Services from the first one on, 16 at a time, and gets right after them. */
export async function createAndGet(
  server: Measured,
  creates: number,
  gets: number,
): Promise<{ readonly creates: Rate; readonly gets: Rate }> {
  const connections = await connect(server, 16);
  const create = (i: number): Call => ({ method: 'POST', path: services, body: service(`s${i}`) });
  const rates = {
    creates: await measure(server, connections, creates, create),
    gets: await measure(server, connections, gets, getOf(creates)),
  };
  for (const connection of connections) connection.close();
  return rates;
}

/** Gets of so many Services in turn. */
export function getOf(count: number): (i: number) => Call {
  return (i) => ({ method: 'GET', path: `${services}/s${i % count}` });
}

/**
 * Waits until a server takes less than a fiftieth of a core for three seconds, at most a minute. In the second of them
 * it collects the garbage of its start.
 */
export async function settled(server: Measured): Promise<void> {
  let before = await server.cpu();
  for (let second = 0, quiet = 0; second < 60 && quiet < 3; second++) {
    await sleep(1000);
    const now = await server.cpu();
    quiet = now - before <= 20_000 ? quiet + 1 : 0;
    before = now;
  }
  // What was freed goes back to the system every five seconds (`src/host/unused-memory.ts`).
  await sleep(10_000);
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
