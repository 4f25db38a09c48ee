/**
 * The cluster network of `up`: when it is ready, what it takes idle and with Pods, how long Pods take to answer, and what
 * Services and DNS cost there. `node test/bench/cluster-network.ts [Pods]`, by default 200 on 3 nodes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { familyOf, insideOf } from '../network/support/up-process.ts';
import type { Load } from './cluster-network-load.ts';
import { pssMiBOf } from './measured-process.ts';
import { report, type Row } from './report.ts';

const pods = Number(process.argv[2] ?? 200);
const starts = 3;
/** Milliseconds after which nothing of a start goes on. */
const settling = 5000;
/** Of /proc/PID/stat: `getconf CLK_TCK`, which is 100 on every Linux. */
const ticksPerSecond = 100;

const main = new URL('../../src/main.js', import.meta.url).pathname;
const load = new URL('cluster-network-load.ts', import.meta.url).pathname;
const folder = await mkdtemp(join(tmpdir(), 'servicenet-cluster-network-'));
const flags = ['--port', '0', '--network', 'on', '--nodes', '3', '--log-level', 'warn'];
const kubeconfig = ['--write-kubeconfig', join(folder, 'kubeconfig')];
try {
  await report('cluster-network', [...(await idleRows()), ...(await loadRows())]);
} finally {
  await rm(folder, { recursive: true });
}

/** Of the last of some starts: the first one compiles. */
async function idleRows(): Promise<readonly Row[]> {
  let rows: readonly Row[] = [];
  for (let start = 0; start < starts; start++) {
    const up = begin([]);
    let ready: string | undefined;
    for await (const line of linesOf(up)) {
      [, ready] = /cluster network is ready \((\d+) ms\)/.exec(line) ?? [];
      if (ready !== undefined) break;
    }
    await delay(settling);
    const [outside, inside] = [await pssMiBOf([up.pid ?? 0]), await pssMiBOf([insideOf(up)])];
    rows = [
      {
        name: 'start of the process → network ready',
        value: Number(ready),
        unit: 'ms',
        budget: '≤ 2,000 ms',
      },
      { name: 'memory (Pss), idle, outside', value: outside, unit: 'MiB' },
      { name: 'memory (Pss), idle, inside', value: inside, unit: 'MiB' },
    ];
    up.kill();
    await once(up, 'exit');
  }
  return rows;
}

async function loadRows(): Promise<readonly Row[]> {
  const up = begin(['--inside', '--', process.execPath, load, String(pods)]);
  const rows: Row[] = [];
  let before = { memory: 0, cpu: 0 };
  for await (const line of linesOf(up)) {
    const said = JSON.parse(line) as Load;
    if ('row' in said) {
      rows.push(said.row);
      continue;
    }
    await delay(settling);
    const now = { memory: await memoryOf(up), cpu: await cpuOf(up) };
    if (said.mark === 'pods') {
      const memory = (now.memory - before.memory) / pods;
      const cpu = ((now.cpu - before.cpu) / pods) * 1000;
      rows.push({
        name: 'memory (Pss) of both processes, a Pod',
        value: memory,
        unit: 'MiB',
        budget: '≤ 4 MiB',
      });
      rows.push({ name: 'CPU of all processes, a Pod', value: cpu, unit: 'ms', budget: '≤ 60 ms' });
    }
    before = now;
    up.stdin?.write('\n');
  }
  if (up.exitCode === null) await once(up, 'exit');
  if (up.exitCode !== 0) throw new Error(`up has ended with ${String(up.exitCode)}`);
  return rows;
}

function begin(more: readonly string[]): ChildProcess {
  const args = [main, 'up', ...flags, ...kubeconfig, ...more];
  return spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
}

async function* linesOf({ stdout }: ChildProcess): AsyncGenerator<string> {
  if (stdout !== null) yield* createInterface({ input: stdout });
}

/** Of `up` and the process inside, in MiB. */
async function memoryOf(up: ChildProcess): Promise<number> {
  return pssMiBOf([up.pid ?? 0, insideOf(up)]);
}

/** Seconds of `up`, of all that it has begun, and of those of them that have ended; without the load itself. */
async function cpuOf(up: ChildProcess): Promise<number> {
  let seconds = 0;
  for (const pid of [String(up.pid), ...familyOf(up)]) {
    if ((await readFile(`/proc/${pid}/cmdline`, 'utf8')).includes(load)) continue;
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    for (const field of [11, 12, 13, 14]) seconds += Number(fields[field]) / ticksPerSecond;
  }
  return seconds;
}
