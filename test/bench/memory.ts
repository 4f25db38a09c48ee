/**
 * What an empty `servicenet up` costs: resident memory once all controllers are settled, and the start.
 *
 * Run: node test/bench/memory.ts [--runs 5] [-- flags of node, e.g. --max-semi-space-size=1]
 *
 * Each run starts `up` as `npm start` does, waits for its introduction and then until it has used no more than a
 * hundredth of a processor for a second, and reads /proc. The table shows the median of the runs.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { report, type Row } from './report.ts';

const { values, positionals: nodeFlags } = parseArgs({
  options: { runs: { type: 'string', default: '5' } },
  allowPositionals: true,
});
const runs = Number(values.runs);
const main = new URL('../../src/start.js', import.meta.url).pathname;

/** The server without what its controllers need, as in the bench of the server. */
const serverAlone = ['--nodes', '0', '--default-pool', '', '--controllers=-load-balancer-controller'];

interface Cost {
  readonly readyMs: number;
  /** Processor time, user and system, from the start until it is settled. */
  readonly cpuMs: number;
  readonly residentMiB: number;
  readonly highestMiB: number;
}

/** Milliseconds of processor time that a process has used. */
async function processorMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name, in parentheses, may hold spaces; user and system time are the 14th and 15th field, in hundredths.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function mebibytes(pid: number, field: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
}

/** Waits until a second passes in which the process did next to nothing; half a minute at most. */
async function untilIdle(pid: number): Promise<void> {
  let before = await processorMs(pid);
  for (let second = 0; second < 30; second++) {
    await sleep(1000);
    const now = await processorMs(pid);
    if (now - before <= 10) return;
    before = now;
  }
  throw new Error('the process does not come to rest');
}

async function introduced(child: ChildProcess): Promise<void> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    if (text.includes('Stop it with Ctrl-C')) return;
  }
  throw new Error(`it ended early: ${text}`);
}

async function run(folder: string, flags: readonly string[]): Promise<Cost> {
  const started = performance.now();
  const command = [...nodeFlags, main, 'up', '--port', '0', '--write-kubeconfig', join(folder, 'kubeconfig')];
  const child = spawn(process.execPath, [...command, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  try {
    await once(child.stdout, 'readable');
    const readyMs = performance.now() - started;
    await introduced(child);
    const pid = child.pid ?? 0;
    await untilIdle(pid);
    return {
      readyMs,
      cpuMs: await processorMs(pid),
      residentMiB: await mebibytes(pid, 'VmRSS'),
      highestMiB: await mebibytes(pid, 'VmHWM'),
    };
  } finally {
    child.kill('SIGTERM');
    await exit;
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

const cases = [
  { name: 'all controllers', flags: [], budgets: { ready: '≤ 500', resident: '≤ 120' } },
  { name: 'server alone', flags: serverAlone, budgets: {} },
];
const folder = await mkdtemp(join(tmpdir(), 'servicenet-memory-'));
const rows: Row[] = [];
try {
  for (const { name, flags, budgets } of cases) {
    await run(folder, flags); // fills the compile cache
    const costs: Cost[] = [];
    for (let i = 0; i < runs; i++) costs.push(await run(folder, flags));
    const of = (figure: (cost: Cost) => number): number => median(costs.map(figure));
    rows.push(
      { name: `${name}: spawn to ready`, value: of((c) => c.readyMs), unit: 'ms', ...budget(budgets.ready) },
      { name: `${name}: processor time until settled`, value: of((c) => c.cpuMs), unit: 'ms' },
      { name: `${name}: resident`, value: of((c) => c.residentMiB), unit: 'MiB', ...budget(budgets.resident) },
      { name: `${name}: highest resident`, value: of((c) => c.highestMiB), unit: 'MiB' },
    );
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
await report('memory', rows);

function budget(text: string | undefined): { budget?: string } {
  return text === undefined ? {} : { budget: text };
}
