import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { server as url, startApiServer } from '../../cluster/control-plane.ts';
import { Connection, type Target } from '../connection.ts';
import { Http2Client } from '../http2-client.ts';
import { cpuSecondsOf, MeasuredProcess } from '../measured-process.ts';
import { connect, createAndGet, getOf, type Measured, measure, network, type Rate } from '../requests.ts';
import { serverAlone, service, services as path, settled } from '../requests.ts';
import { ServerProcess } from '../server-process.ts';
import { atLeast, atLeastOfPeer, atMost, type Compared, type Part, progress } from './compared.ts';
import { until } from '../until.ts';

const creates = 10_000;
/** kube-apiserver takes minutes for as many as ours. */
const peerCreates = 2000;
const gets = 20_000;
const atOnce = 16;

/** The API server with its controllers beside kube-apiserver and etcd, which have none. */
export const api: Part = {
  needs: [],
  peers: ['kube-apiserver', 'etcd'],
  async measure(isAlone) {
    const ours = await measureOurs();
    return [...rowsOf(ours, isAlone ? undefined : await measurePeer()), await memoryOfServices()];
  },
};

interface Rates {
  readonly creates: Rate;
  /** Right after them. */
  readonly early: Rate;
  /** When controllers have nothing to do any more. */
  readonly rested: Rate;
  readonly http2: Rate;
  /** Over HTTP/1.1, while a connection over HTTP/2 is open. */
  readonly beside: Rate;
}

async function measureOurs(): Promise<Rates> {
  progress(`api: ${creates} creates and gets, all controllers on`);
  const server = await ServerProcess.start(network, []);
  try {
    return await measureServer(server, creates, () => settled(server));
  } finally {
    await server.stop();
  }
}

async function measureServer(server: Measured, count: number, rest: () => Promise<void>): Promise<Rates> {
  const { creates: created, gets: early } = await createAndGet(server, count, gets);
  await rest();
  const overHttp1 = async (): Promise<Rate> => {
    const connections = await connect(server, atOnce);
    const rate = await measure(server, connections, gets, getOf(count));
    for (const connection of connections) connection.close();
    return rate;
  };
  const rested = await overHttp1();
  const client = await Http2Client.open(server.target);
  const streams = Array.from({ length: atOnce }, () => client);
  const http2 = await measure(server, streams, gets, getOf(count));
  const beside = await overHttp1();
  client.close();
  return { creates: created, early, rested, http2, beside };
}

async function measurePeer(): Promise<Rates> {
  progress(`api: ${peerCreates} creates and ${gets} gets of kube-apiserver and etcd`);
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-kube-apiserver-'));
  const running: MeasuredProcess[] = [];
  try {
    const { directory: pki } = startApiServer(folder, (name, [file, ...words]) => {
      running.push(new MeasuredProcess(file, words, { log: join(folder, `${name}.log`) }));
    });
    const read = (name: string): Promise<string> => readFile(join(pki, name), 'utf8');
    const identity = { cert: await read('admin.crt'), key: await read('admin.key') };
    const target: Target = { url, ca: await read('ca.crt'), token: '', identity };
    await untilReady(target, running);
    const pids = running.map(({ pid }) => pid);
    const server = { target, cpu: async () => (await cpuSecondsOf(pids)) * 1e6 };
    return await measureServer(server, peerCreates, () => delay(5000));
  } finally {
    // kube-apiserver first: it ends slowly without etcd.
    for (const one of running.toReversed()) await one.stop();
    await rm(folder, { recursive: true });
  }
}

async function untilReady(target: Target, running: readonly MeasuredProcess[]): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    const connection = await Connection.open(target);
    // The namespace comes a moment after the server.
    for (const path of ['/readyz', '/api/v1/namespaces/default']) {
      await connection.request({ method: 'GET', path });
    }
    connection.close();
    return true;
  };
  await until('kube-apiserver', async () => {
    for (const one of running) await one.cpuSeconds(); // throws where it has ended
    return await isReady().catch(() => false);
  });
}

function rowsOf(ours: Rates, peer: Rates | undefined): readonly Compared[] {
  const name = 'kube-apiserver + etcd';
  const row = (
    what: string,
    unit: string,
    of: (rates: Rates) => number,
    goal: Pick<Compared, 'goal'> = {},
  ): Compared => ({
    ...{ name: `api: ${what}`, unit, ours: of(ours), ...goal },
    peer: peer && { name, value: of(peer) },
  });
  const threefold = { goal: atLeastOfPeer(3) };
  return [
    row('creates, 16 at a time', '/s', (rates) => rates.creates.perSecond),
    row('creates, p99', 'ms', (rates) => rates.creates.p99, { goal: atMost(20) }),
    row('gets while controllers catch up', '/s', (rates) => rates.early.perSecond, threefold),
    row('gets at rest, HTTP/1.1', '/s', (rates) => rates.rested.perSecond, threefold),
    row('gets at rest, HTTP/2', '/s', (rates) => rates.http2.perSecond, threefold),
    row('CPU of a get, HTTP/1.1', 'µs', (rates) => rates.rested.cpu),
    row('CPU of a get, HTTP/2', 'µs', (rates) => rates.http2.cpu),
    row(
      'HTTP/1.1 while an HTTP/2 connection is open, of before',
      '',
      (rates) => rates.beside.perSecond / rates.rested.perSecond,
      { goal: atLeast(0.95) },
    ),
  ];
}

/** Of a server without controllers: theirs would be counted, too. */
async function memoryOfServices(): Promise<Compared> {
  progress(`api: memory of ${creates} Services`);
  const server = await ServerProcess.start(serverAlone, []);
  try {
    const connections = await connect(server, atOnce);
    const create = async (from: number, count: number): Promise<number> => {
      const call = (i: number) => ({ method: 'POST', path, body: service(`m${from + i}`) });
      await measure(server, connections, count, call);
      return count;
    };
    // Code is compiled, and the heap is as large as it is at this work.
    const warming = await create(0, creates / 2);
    await settled(server);
    const before = await server.residentMiB();
    for (const connection of connections) connection.close();
    connections.splice(0, atOnce, ...(await connect(server, atOnce)));
    await create(warming, creates);
    await settled(server);
    const each = (((await server.residentMiB()) - before) / creates) * 1024;
    for (const connection of connections) connection.close();
    return { name: 'api: memory of a stored Service', unit: 'KiB', ours: each, goal: atMost(6) };
  } finally {
    await server.stop();
  }
}
