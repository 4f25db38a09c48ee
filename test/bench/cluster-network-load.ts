/** A program in a Pod, for `cluster-network.ts`: says what it measures as lines of JSON, and waits at marks for a line. */
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { systemClock } from '../../src/client/clock.ts';
import { createTransport } from '../../src/client/connect.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import { pods as podsResource } from '../../src/client/resources.ts';
import type { Pod } from '../../src/objects/types/core.generated.ts';
import { textAt } from '../../src/objects/json.ts';
import { call } from '../support/test-server.ts';
import type { Row } from './report.ts';

/** One line. */
export type Load = { readonly row: Row } | { readonly mark: 'idle' | 'pods' };

const many = Number(process.argv[2] ?? 200);
/** Pods that are started one after the other. */
const singles = 30;
const connections = 16;
/** Milliseconds of each load. */
const duration = 5000;
const creates = 50;

const { KUBECONFIG: path = '' } = process.env;
const api = await createTransport({ kind: 'kubeconfig', path });
const answers = createInterface({ input: process.stdin });
const log = pino({ enabled: false });
const informers = new InformerFactory({ transport: api, clock: systemClock, random: Math.random, log });
const pods = informers.informer(podsResource);
const stopping = new AbortController();
/** Milliseconds of `performance.now()`, by the Pod's name. */
const boundAt = new Map<string, number>();
const answeredAt = new Map<string, number>();
let changed = Promise.withResolvers<undefined>();
const look = (pod: Pod): void => {
  const { name = '' } = pod.metadata;
  if (pod.spec.nodeName !== undefined && !boundAt.has(name)) {
    boundAt.set(name, performance.now());
  }
  const { podIP } = pod.status;
  if (podIP !== undefined && boundAt.has(name) && !answeredAt.has(name)) {
    answeredAt.set(name, Infinity);
    void untilAnswered(name, podIP);
  }
};
pods.addHandler({ added: look, updated: look });
informers.start(stopping.signal);
await pods.synced(stopping.signal);

await createPod('warm');
await answered((name) => name === 'warm', 1);
const took: number[] = [];
for (let i = 0; i < singles; i++) {
  await createPod(`single-${i}`);
  await answered((name) => name === `single-${i}`, 1);
  took.push((answeredAt.get(`single-${i}`) ?? 0) - (boundAt.get(`single-${i}`) ?? 0));
}
tellTimes('a Pod, from binding to its first answer', took, '≤ 300 ms');

await mark('idle');
const begun = performance.now();
await create('/apis/apps/v1/namespaces/default/deployments', {
  metadata: { name: 'many' },
  spec: { replicas: many, selector: { matchLabels: { app: 'many' } }, template: template('many') },
});
await answered((name) => name.startsWith('many-'), many);
tell({
  name: `${many} Pods on 3 nodes, until all have answered`,
  value: (performance.now() - begun) / 1000,
  unit: 's',
  budget: '≤ 30 s',
});
await mark('pods');

// Not the Pod that is asked directly: it remembers closed connections by addresses and ports, and drops the first packet
// of one that comes by the Service from the same port.
const service = await create('/api/v1/namespaces/default/services', {
  metadata: { name: 'warm' },
  spec: { selector: { app: 'single-0' }, ports: [{ port: 80 }] },
});
const clusterIP = textAt(service, 'spec', 'clusterIP');
await untilAnswered('service', clusterIP);
const podIP = pods.cache.get('default/warm')?.status.podIP ?? '';
for (const keepAlive of [true, false]) {
  const kind = keepAlive ? 'kept-alive connections' : 'new connections';
  // In turns: what the machine does besides changes from second to second.
  const direct = await requests(podIP, keepAlive);
  const byService = await requests(clusterIP, keepAlive);
  tellRate(`requests on ${connections} ${kind}, to the Pod`, direct);
  tellRate(`requests on ${connections} ${kind}, by the cluster IP`, byService);
}
const resolver = new Resolver();
tellRate('DNS queries from a Pod, 64 at a time', await queries());
const resolved: number[] = [];
for (let i = 0; i < creates; i++) {
  await create('/api/v1/namespaces/default/services', {
    metadata: { name: `new-${i}` },
    spec: { ports: [{ port: 80 }] },
  });
  const created = performance.now();
  while (!(await isResolved(`new-${i}.default.svc.cluster.local`))) await delay(1);
  resolved.push(performance.now() - created);
}
tellTimes('a Service is created → a Pod resolves its name', resolved, '≤ 50 ms');
stopping.abort();
await informers.finished();
await api.close();
answers.close();
process.exit();

function template(app: string): object {
  return {
    metadata: { labels: { app } },
    spec: { containers: [{ name: 'main', image: 'web', ports: [{ containerPort: 80 }] }] },
  };
}

async function createPod(name: string): Promise<void> {
  const { spec } = template(name) as { spec: object };
  await create('/api/v1/namespaces/default/pods', { metadata: { name, labels: { app: name } }, spec });
}

async function create(path: string, body: object): Promise<object> {
  const answer = await call(api, 'POST', path, { body });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

async function untilAnswered(name: string, address: string): Promise<void> {
  const agent = new Agent();
  for (;;) {
    try {
      await request(agent, address);
      break;
    } catch {
      await delay(1);
    }
  }
  answeredAt.set(name, performance.now());
  changed.resolve(undefined);
}

async function answered(isMeant: (name: string) => boolean, count: number): Promise<void> {
  const answeredNow = (): number =>
    [...answeredAt].filter(([name, at]) => at !== Infinity && isMeant(name)).length;
  while (answeredNow() < count) {
    changed = Promise.withResolvers();
    await changed.promise;
  }
}

/** Resolves when the body is read. */
async function request(agent: Agent, host: string): Promise<void> {
  const response = Promise.withResolvers<undefined>();
  const sent = get({ host, path: '/hostname', agent, timeout: 1000 }, (message) => {
    message.resume();
    message.on('error', response.reject);
    message.once('end', () => response.resolve(undefined));
  });
  sent.on('error', response.reject);
  sent.once('timeout', () => sent.destroy());
  await response.promise;
}

interface Rate {
  readonly perSecond: number;
  /** Sorted; milliseconds. */
  readonly times: readonly number[];
}

async function requests(host: string, keepAlive: boolean): Promise<Rate> {
  // With `maxSockets`, an agent keeps connections alive that it is told not to keep.
  const agent = new Agent({ keepAlive });
  const rate = await repeat(connections, () => request(agent, host));
  agent.destroy();
  return rate;
}

async function queries(): Promise<Rate> {
  return await repeat(64, async () => {
    await resolver.resolve4('warm.default.svc.cluster.local');
  });
}

async function repeat(atOnce: number, work: () => Promise<void>): Promise<Rate> {
  const times: number[] = [];
  const started = performance.now();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let now = started; now - started < duration;) {
        await work();
        const then = performance.now();
        times.push(then - now);
        now = then;
      }
    }),
  );
  const perSecond = (times.length / (performance.now() - started)) * 1000;
  return { perSecond, times: times.sort((a, b) => a - b) };
}

async function isResolved(name: string): Promise<boolean> {
  try {
    return (await resolver.resolve4(name)).length > 0;
  } catch {
    return false;
  }
}

async function mark(name: 'idle' | 'pods'): Promise<void> {
  const goOn = once(answers, 'line');
  say({ mark: name });
  await goOn;
}

function tellTimes(name: string, times: readonly number[], budget: string): void {
  const sorted = [...times].sort((a, b) => a - b);
  tell({ name: `${name}, p50`, value: at(sorted, 0.5), unit: 'ms', budget });
  tell({ name: `${name}, p99`, value: at(sorted, 0.99), unit: 'ms' });
}

function tellRate(name: string, { perSecond, times }: Rate): void {
  tell({ name, value: perSecond, unit: '/s' });
  tell({ name: `${name}, p99`, value: at(times, 0.99), unit: 'ms' });
}

function at(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

function tell(row: Row): void {
  say({ row });
}

function say(line: Load): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
