import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { askFlows, controlSocketPath } from '../../src/host/control-client.ts';
import { readFlowLine } from '../../src/network/flows/flow.ts';
import { numberAt } from '../../src/objects/json.ts';
import { familyOf } from '../network/support/up-process.ts';
import type { Row } from './report.ts';

const main = new URL('../../src/main.js', import.meta.url).pathname;
const load = new URL('flow-cost-load.ts', import.meta.url).pathname;
/** Times with a viewer, and as many without, in turns: what the machine does besides changes from second to second. */
const pairs = 4;
/** As `flow-cost-load.ts` has it, and until all of it has been read. */
const loadSeconds = 5;
const measuredSeconds = 7;
/** Of /proc/PID/stat: `getconf CLK_TCK`, which is 100 on every Linux. */
const ticksPerSecond = 100;

/** What flows cost the connections of a network of `up` that has as many as it can. Needs nft and conntrack. */
export async function measureFlows(): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-flows-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const up = spawn(
    process.execPath,
    [
      ...[
        main,
        'up',
        '--port',
        '0',
        '--network',
        'on',
        '--nodes',
        '2',
        '--page',
        'off',
        '--log-level',
        'error',
      ],
      ...['--write-kubeconfig', kubeconfig, '--inside', '--', process.execPath, load],
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  try {
    const lines = createInterface({ input: up.stdout })[Symbol.asyncIterator]();
    const next = async (): Promise<number> =>
      numberAt(JSON.parse((await lines.next()).value ?? ''), 'requests');
    await next();
    /** What a viewer costs anyway, each second: sets of the kernel are read. */
    const restedCpu = async (): Promise<number> => {
      const before = await cpuOf(up);
      await sleep(5000);
      return ((await cpuOf(up)) - before) / 5;
    };
    const measure = async (kind = '') => {
      const before = await cpuOf(up);
      up.stdin.write(`${kind}\n`);
      const requests = await next();
      // Ends of connections come later.
      await sleep((measuredSeconds - loadSeconds) * 1000);
      return { requests, cpu: (await cpuOf(up)) - before };
    };
    // What is compiled is not measured.
    await measure();
    const sum = { with: { requests: 0, cpu: 0, rest: 0 }, without: { requests: 0, cpu: 0, rest: 0 } };
    for (let pair = 0; pair < pairs; pair++) {
      const { end } = await look(kubeconfig);
      const watched = { ...(await measure()), rest: await restedCpu() };
      await end();
      const unwatched = { ...(await measure()), rest: await restedCpu() };
      for (const [name, one] of [['with', watched] as const, ['without', unwatched] as const]) {
        sum[name].requests += one.requests;
        sum[name].cpu += one.cpu - one.rest * measuredSeconds;
        sum[name].rest += one.rest / pairs;
      }
    }
    const [watched, without] = [sum.with, sum.without];
    const viewer = await look(kubeconfig);
    const flooded = await measure('flood');
    await viewer.end();
    const unseen = await measure('flood');
    const seconds = loadSeconds * pairs;
    const each = watched.cpu / watched.requests - without.cpu / without.requests;
    return [
      { name: 'flows: new connections without a viewer', value: without.requests / seconds, unit: '/s' },
      {
        ...{ name: 'flows: the same with one', value: (watched.requests / without.requests) * 100 },
        ...{ unit: '%', budget: '≥ 90 %' },
      },
      { name: 'flows: CPU of one', value: each * 1e6, unit: 'µs', budget: '≤ 120 µs' },
      {
        name: 'flows: CPU of a viewer while nothing comes, on two nodes',
        value: (watched.rest - without.rest) * 100,
        unit: '%',
      },
      { name: 'a flood: new connections', value: flooded.requests / loadSeconds, unit: '/s' },
      { name: 'the same: told', value: (viewer.told() / flooded.requests) * 100, unit: '%' },
      {
        name: 'the same: CPU of the viewer, for five seconds of it',
        value: flooded.cpu - unseen.cpu,
        unit: 's',
      },
    ];
  } finally {
    up.kill();
    if (up.exitCode === null && up.signalCode === null) await once(up, 'exit');
    await rm(folder, { recursive: true });
  }
}

/** Follows flows; resolves once they come. @returns what ends that, and how many were told. */
async function look(
  kubeconfig: string,
): Promise<{ readonly end: () => Promise<void>; readonly told: () => number }> {
  const looking = new AbortController();
  const told = new Set<number>();
  const lines = askFlows(controlSocketPath(kubeconfig), { last: 0 }, looking.signal);
  const begun = Promise.withResolvers<undefined>();
  const reading = (async () => {
    for await (const line of lines) {
      for (const { id } of readFlowLine(line).flows) told.add(id);
      begun.resolve(undefined);
    }
  })();
  reading.catch((error: unknown) => begun.reject(error));
  await begun.promise;
  const end = async (): Promise<void> => {
    looking.abort(new Error('enough'));
    await reading.catch(() => undefined);
    // The table and the program are gone then.
    await sleep(1000);
  };
  return { end, told: () => told.size };
}

/** Seconds of `up`, of all that it has begun, and of those of them that have ended; without the load itself. */
async function cpuOf(up: ChildProcess): Promise<number> {
  let seconds = 0;
  for (const pid of [String(up.pid), ...familyOf(up)]) {
    // One that has ended meanwhile is counted by its parent.
    const [command, stat] = await Promise.all(
      ['cmdline', 'stat'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => undefined)),
    );
    if (command === undefined || stat === undefined || command.includes(load)) continue;
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    for (const field of [11, 12, 13, 14]) seconds += Number(fields[field]) / ticksPerSecond;
  }
  return seconds;
}
