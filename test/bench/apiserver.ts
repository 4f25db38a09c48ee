/**
 * Measures the embedded server as its clients see it: a server process, this process as its clients, HTTPS with
 * keep-alive. The column µs is the CPU time of the server for one operation, which other work on the machine changes
 * far less than it changes the rates; that of a delivery holds its share of the create that made the event. Prints a table and writes bench-results/apiserver.json.
 *
 * Run: node test/bench/apiserver.ts [--services 50000] [--events 10000] [--only idle,controllers,creates,calls,watch]
 * `--node-flag=--cpu-prof --node-flag=--cpu-prof-dir=/tmp/p` profiles the server.
 */
import { parseArgs } from 'node:util';
import { isRecord } from '../../src/objects/json.ts';
import { textAt } from '../../src/objects/json.ts';
import { type Call, openWatch } from './connection.ts';
import { report, type Row } from './report.ts';
import {
  connect,
  createAndGet,
  measure,
  network,
  type Rate,
  rateRow,
  serverAlone,
  service,
  services as path,
  settled,
} from './requests.ts';
import { ServerProcess } from './server-process.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '50000' },
    events: { type: 'string', default: '10000' },
    only: { type: 'string', default: 'idle,controllers,creates,calls,watch' },
    'node-flag': { type: 'string', multiple: true, default: [] },
  },
});
const total = Number(values.services);
const parts = new Set(values.only.split(','));

const rows: Row[] = [];

function rate(name: string, measured: Rate, budget?: string): void {
  rows.push(rateRow(name, measured, budget));
}

/** Start and memory, with all controllers and without. The first start fills the compile cache. */
async function idle(): Promise<void> {
  const first = await ServerProcess.start(network, []);
  await settled(first);
  await first.stop();
  const whole = await ServerProcess.start(network, []);
  const cpuMs = (await whole.cpu()) / 1000;
  rows.push({ name: 'CPU of all threads until ready', value: cpuMs, unit: 'ms', budget: '≤ 1,000' });
  rows.push({ name: 'spawn to ready', value: whole.startMs, unit: 'ms', budget: '≤ 600' });
  await settled(whole);
  const memory = await whole.residentMiB();
  rows.push({ name: 'memory, empty, all controllers', value: memory, unit: 'MiB', budget: '≤ 160' });
  await whole.stop();
  const alone = await ServerProcess.start(serverAlone, []);
  await settled(alone);
  rows.push({ name: 'memory, empty, no controllers', value: await alone.residentMiB(), unit: 'MiB' });
  await alone.stop();
}

/** Creates from the first Service of a new server to the last, 16 at a time, and what they take of memory. */
async function creates(server: ServerProcess): Promise<void> {
  const connections = await connect(server, 16);
  const slice = Math.min(5000, total);
  const rates: Rate[] = [];
  for (let start = 0; start + slice <= total; start += slice) {
    rates.push(
      await measure(server, connections, slice, (i) => ({
        method: 'POST',
        path,
        body: service(`s${start + i}`),
      })),
    );
  }
  const [first] = rates;
  const last = rates.at(-1);
  if (first === undefined || last === undefined) throw new RangeError('--services is at least 1');
  rate(`creates, first ${slice}`, first, '≥ 3000');
  rows.push({ name: `create p99, first ${slice}`, value: first.p99, unit: 'ms', budget: '≤ 20' });
  const [, second] = rates;
  if (second !== undefined) rate(`creates, next ${slice}`, second, '≥ 3000');
  rate(`creates, last ${slice} of ${total}`, last, '> 80% of the first');
  rows.push({ name: `create p99, last ${slice}`, value: last.p99, unit: 'ms', budget: '≤ 20' });
  rows.push({ name: `memory, ${total} Services`, value: await server.residentMiB(), unit: 'MiB' });
  for (const connection of connections) connection.close();
}

/** Creates while all controllers work, and gets right after, when they still catch up. */
async function besideControllers(): Promise<void> {
  const whole = await ServerProcess.start(network, values['node-flag']);
  try {
    const count = Math.min(10_000, total);
    const rates = await createAndGet(whole, count, 20_000);
    rate(`creates beside controllers, ${count}`, rates.creates, '≥ 2000');
    rate('gets right after, 20,000', rates.gets, '≥ 6000');
  } finally {
    await whole.stop();
  }
}

/** Every verb, one and 16 at a time. */
async function calls(server: ServerProcess, concurrency: number): Promise<void> {
  const connections = await connect(server, concurrency);
  const n = concurrency === 1 ? 2000 : 5000;
  const name = (i: number): string => `b${concurrency}-${i}`;
  const each = async (what: string, count: number, call: (i: number) => Call): Promise<void> =>
    rate(`${what}, ${concurrency} at a time`, await measure(server, connections, count, call));
  await each('creates', n, (i) => ({ method: 'POST', path, body: service(name(i)) }));
  await each('gets', n, (i) => ({ method: 'GET', path: `${path}/${name(i)}` }));
  await each('lists of 1,000', 100, () => ({ method: 'GET', path: `${path}?limit=1000` }));
  await each('merge patches', n, (i) => ({
    method: 'PATCH',
    path: `${path}/${name(i)}`,
    contentType: 'application/merge-patch+json',
    body: `{"metadata":{"annotations":{"round":"${i}"}}}`,
  }));
  await each('puts', n, (i) => ({
    method: 'PUT',
    path: `${path}/${name(i)}`,
    body: service(name(i), { round: `put ${i}` }),
  }));
  // the first apply of a manager makes its entry in managedFields, the second is the usual one
  for (const round of ['first applies', 'applies']) {
    await each(round, n, (i) => ({
      method: 'PATCH',
      path: `${path}/${name(i)}?fieldManager=bench-apply&force=true`,
      contentType: 'application/apply-patch+yaml',
      body: service(name(i), { round: `${round} ${i}` }),
    }));
  }
  await each('deletes', n, (i) => ({ method: 'DELETE', path: `${path}/${name(i)}` }));
  for (const connection of connections) connection.close();
}

/** From the first write to the last event at the last watcher. */
async function watchFanOut(server: ServerProcess, watchers: number, events: number): Promise<void> {
  const connections = await connect(server, 16);
  const configMaps = '/api/v1/namespaces/default/configmaps';
  const [connection] = connections;
  const list: unknown = JSON.parse(String(await connection?.request({ method: 'GET', path: configMaps })));
  const version = isRecord(list) ? textAt(list, 'metadata', 'resourceVersion') : '';
  let delivered = 0;
  const finished = Promise.withResolvers<undefined>();
  const ends = await Promise.all(
    Array.from({ length: watchers }, async () =>
      openWatch(server.target, `${configMaps}?watch=true&resourceVersion=${version}`, (count) => {
        delivered += count;
        if (delivered >= watchers * events) finished.resolve(undefined);
      }),
    ),
  );
  const cpuBefore = await server.cpu();
  const started = performance.now();
  const create = (i: number): string =>
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `fan-${i}` }, data: { k: 'v' } });
  await measure(server, connections, events, (i) => ({ method: 'POST', path: configMaps, body: create(i) }));
  await finished.promise;
  const seconds = (performance.now() - started) / 1000;
  const cpu = ((await server.cpu()) - cpuBefore) / (watchers * events);
  for (const end of ends) end();
  for (const each of connections) each.close();
  rows.push({
    name: `watch deliveries, ${watchers} watchers × ${events.toLocaleString('en-US')}`,
    value: (watchers * events) / seconds,
    unit: '/s',
    cpu,
    budget: '≥ 200000',
  });
}

if (parts.has('idle')) await idle();
if (parts.has('controllers')) await besideControllers();
const server = await ServerProcess.start(serverAlone, values['node-flag']);
try {
  if (parts.has('creates')) await creates(server);
  if (parts.has('calls')) {
    await calls(server, 1);
    await calls(server, 16);
  }
  if (parts.has('watch')) await watchFanOut(server, 100, Number(values.events));
} finally {
  await server.stop();
}
await report('apiserver', rows);
