import { makeGroup, missingGroups } from '../cgroups.ts';
import { compareRouters } from '../routing.ts';
import { compareWorkers } from '../workers-compared.ts';
import { atLeastOfPeer, atMostOfPeer, type Compared, type Part, progress } from './compared.ts';

/** Of each measurement, in seconds. */
const seconds = 3;
const rounds = 2;

/** The router beside haproxy, and two workers beside one. */
export const router: Part = {
  needs: ['dnsperf'],
  peers: ['haproxy'],
  measure: async (isAlone) => [...(await besideHaproxy(isAlone)), ...(await workers())],
};

async function besideHaproxy(isAlone: boolean): Promise<readonly Compared[]> {
  progress('router: requests beside haproxy with one thread');
  const loads = await compareRouters(isAlone ? ['router'] : ['haproxy', 'router'], rounds, seconds);
  const ours = loads.get('router');
  const peer = loads.get('haproxy');
  if (ours === undefined) return [];
  const beside = (value: number | undefined): Pick<Compared, 'peer'> =>
    value === undefined ? {} : { peer: { name: 'haproxy, 1 thread', value } };
  return [
    {
      ...{ name: 'router: requests', unit: '/s', ours: ours.perSecond },
      ...{ ...beside(peer?.perSecond), goal: atLeastOfPeer(0.8) },
    },
    {
      ...{ name: 'router: requests, p99', unit: 'ms', ours: ours.p99 },
      ...{ ...beside(peer?.p99), goal: atMostOfPeer(2) },
    },
    {
      ...{ name: 'router: requests for each second of CPU', unit: '', ours: ours.perCpuSecond },
      ...beside(peer?.perCpuSecond),
    },
    {
      ...{ name: 'router: memory after them', unit: 'MiB', ours: ours.residentMiB },
      ...beside(peer?.residentMiB),
    },
  ];
}

async function workers(): Promise<readonly Compared[]> {
  const missing = await missingGroups();
  if (missing !== '') {
    progress(`missing: ${missing}: workers are not held to half a core`);
    return workerRows(undefined);
  }
  const clients = await makeGroup(`clients-${process.pid}`);
  await clients.add(process.pid);
  try {
    // On two cores, clients and the backend want more than the core that is left by two halves.
    return [...(await workerRows(0.5)), ...(await workerRows(0.25))];
  } finally {
    await clients.remove();
  }
}

async function workerRows(share: number | undefined): Promise<readonly Compared[]> {
  const held = share === undefined ? 'not held' : `${share} of a core each`;
  progress(`router: two workers beside one, ${held}`);
  const results = await compareWorkers({ rounds, seconds, share });
  return Object.entries(results).flatMap(([command, { one, two }]) => {
    const name = `${command} --workers 2, ${held}`;
    const beside = { name: 'one worker' };
    const rate = {
      ...{ name: `${name}: answers`, unit: '/s', ours: two.perSecond },
      ...{ peer: { ...beside, value: one.perSecond }, goal: atLeastOfPeer(1.6) },
    };
    return [
      ...(share === undefined ? [] : [rate]),
      {
        ...{ name: `${name}: answers for each second of CPU`, unit: '', ours: two.perCpuSecond },
        ...{ peer: { ...beside, value: one.perCpuSecond }, goal: atLeastOfPeer(0.9) },
      },
    ];
  });
}
