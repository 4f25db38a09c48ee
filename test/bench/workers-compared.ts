import { freePort } from '../support/free-port.ts';
import { type Group, makeGroup } from './cgroups.ts';
import { askByDnsperf } from './dnsperf.ts';
import { load, median } from './http-load.ts';
import { cpuSecondsOf, pssMiBOf } from './measured-process.ts';
import { type OwnProcess, startOwn, untilReady } from './own-commands.ts';
import { host, openRouting, type Routing, startMeasuredRouter } from './routing.ts';

const services = 1000;

/** What one server came to. */
export interface WorkersLoad {
  readonly perSecond: number;
  readonly perCpuSecond: number;
  /** MiB of each worker, with its part of what processes share. */
  readonly pss: number;
}

/** One worker and two, in turns. */
export interface WorkersCompared {
  readonly one: WorkersLoad;
  readonly two: WorkersLoad;
}

/** How workers are compared. */
interface Comparing {
  readonly rounds: number;
  readonly seconds: number;
  /** Of a core, that each worker may have; undefined: as much as there is. */
  readonly share: number | undefined;
}

type Command = 'dns' | 'router';

/** `--workers 1` against `--workers 2`, in a network namespace of its own: medians of rounds. */
export async function compareWorkers(
  comparing: Comparing,
): Promise<Readonly<Record<Command, WorkersCompared>>> {
  const routing = await openRouting(services);
  try {
    const of = async (command: Command): Promise<WorkersCompared> => {
      const [one, two]: [WorkersLoad[], WorkersLoad[]] = [[], []];
      for (let round = 0; round < comparing.rounds; round++) {
        one.push(await measure(command, 1, routing, comparing));
        two.push(await measure(command, 2, routing, comparing));
      }
      return { one: medians(one), two: medians(two) };
    };
    return { dns: await of('dns'), router: await of('router') };
  } finally {
    await routing.close();
  }
}

function medians(loads: readonly WorkersLoad[]): WorkersLoad {
  const of = (member: keyof WorkersLoad): number => median(loads.map((one) => one[member]));
  return { perSecond: of('perSecond'), perCpuSecond: of('perCpuSecond'), pss: of('pss') };
}

/** One server from its start to its end. */
async function measure(
  command: Command,
  workers: number,
  routing: Routing,
  { seconds, share }: Comparing,
): Promise<WorkersLoad> {
  const port = await freePort();
  const server = await start(command, port, workers, routing);
  const work = async (forSeconds: number): Promise<number> =>
    command === 'router'
      ? (await load(port, host, forSeconds)).perSecond
      : (await askByDnsperf({ port, names: routing.names, seconds: forSeconds })).perSecond;
  const held: Group[] = [];
  try {
    // Compiled by then.
    await work(2 * seconds);
    const pids = await server.process.pids();
    if (pids.length !== workers) throw new Error(`${pids.length} processes for ${workers} workers`);
    for (const pid of share === undefined ? [] : pids) {
      const group = await makeGroup(String(pid), share);
      held.push(group);
      await group.add(pid);
    }
    await work(1);
    const before = await cpuSecondsOf(pids);
    const perSecond = await work(seconds);
    const cpu = (await cpuSecondsOf(pids)) - before;
    const pss = (await pssMiBOf(pids)) / pids.length;
    return { perSecond, perCpuSecond: (perSecond * seconds) / cpu, pss };
  } finally {
    await server.process.stop();
    for (const group of held) await group.remove();
  }
}

async function start(
  command: Command,
  port: number,
  workers: number,
  { kubeconfig }: Routing,
): Promise<OwnProcess> {
  const flags = ['--workers', String(workers)];
  if (command === 'router') return startMeasuredRouter(port, kubeconfig, flags);
  const own = ['--port', String(port), '--upstream', '', '--kubeconfig', kubeconfig];
  const server = await startOwn('dns', [...own, ...flags]);
  await untilReady(server);
  return server;
}
