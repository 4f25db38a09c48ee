import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { parse } from 'yaml';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import type { Target } from './connection.ts';

/** The kernel counts CPU time in these (`getconf CLK_TCK`). */
const microsecondsPerTick = 10_000;

/** What is started: our sources as `npm start` does, or what users install, which `npm run build` makes. */
export type Source = 'src' | 'dist';

const usualSource: Source = process.env['BENCH_DIST'] === '1' ? 'dist' : 'src';

/** `servicenet up` in a process of its own, seen from outside. Linux only: it is read from /proc. */
export class ServerProcess {
  readonly target: Target;
  /** Milliseconds from spawn to the line that says that it is ready. */
  readonly startMs: number;
  readonly kubeconfig: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(child: ChildProcess, folder: string, target: Target, startMs: number) {
    this.#child = child;
    this.#folder = folder;
    this.kubeconfig = join(folder, 'kubeconfig');
    this.target = target;
    this.startMs = startMs;
  }

  /** Starts `servicenet up` as its users do, and reads its kubeconfig. `nodeFlags` win over those of users. */
  static async start(
    flags: readonly string[],
    nodeFlags: readonly string[],
    from = usualSource,
  ): Promise<ServerProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-bench-'));
    const kubeconfig = join(folder, 'kubeconfig');
    const started = performance.now();
    const child = spawn(
      process.execPath,
      [...(await startCommand(nodeFlags, from)), '--port', '0', '--write-kubeconfig', kubeconfig, ...flags],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    await readyLine(child.stdout, nodeFlags.length > 0);
    const startMs = performance.now() - started;
    const config: unknown = parse(await readFile(kubeconfig, 'utf8'));
    const cluster = recordAt(listAt(config, 'clusters')[0])['cluster'];
    const target: Target = {
      url: textAt(cluster, 'server'),
      ca: Buffer.from(textAt(cluster, 'certificate-authority-data'), 'base64').toString(),
      token: textAt(recordAt(listAt(config, 'users')[0])['user'], 'token'),
    };
    return new ServerProcess(child, folder, target, startMs);
  }

  /** CPU time that all its threads have taken so far, in µs, to 10 ms. */
  async cpu(): Promise<number> {
    const stat = await readFile(`/proc/${this.pid}/stat`, 'utf8');
    return ticksIn(stat) * microsecondsPerTick;
  }

  /** Resident memory in MiB. */
  async residentMiB(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  /** The most that was resident so far, in MiB. */
  async highestMiB(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  /** CPU time of its busiest threads so far, in µs: the first is what no second core can shorten. */
  async cpuOfThreads(): Promise<readonly number[]> {
    const folder = `/proc/${this.pid}/task`;
    const threads = await Promise.all(
      (await readdir(folder)).map(async (id) => ticksIn(await readFile(`${folder}/${id}/stat`, 'utf8'))),
    );
    return threads.sort((a, b) => b - a).map((ticks) => ticks * microsecondsPerTick);
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill(signal);
      await once(this.#child, 'exit');
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('the server did not start');
    return pid;
  }
}

/** User and system time from a `stat` of /proc: behind the name, which may hold spaces, fields 14 and 15 (proc_pid_stat(5)). */
function ticksIn(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** What `npm start` starts, down to the word `up`: flags of Node.js and ours, the file and the command. */
async function startCommand(nodeFlags: readonly string[], from: Source): Promise<readonly string[]> {
  const root = new URL('../../', import.meta.url);
  if (from === 'dist') return [...nodeFlags, new URL('dist/main.js', root).pathname, 'up'];
  const manifest: unknown = JSON.parse(await readFile(new URL('package.json', root), 'utf8'));
  const script = textAt(recordAt(recordAt(manifest)['scripts']), 'start').split(' ');
  const words = script.slice(script.indexOf('node') + 1);
  const up = words.indexOf('up');
  const file = new URL(words[up - 1] ?? '', root).pathname;
  return [...words.slice(0, up - 1), ...nodeFlags, file, 'up'];
}

/** Waits for the line that says that the server is ready. `traced`: what Node writes besides is passed on. */
async function readyLine(stdout: Readable, traced: boolean): Promise<void> {
  const ready = Promise.withResolvers<undefined>();
  createInterface(stdout)
    .on('line', (line) => {
      if (line.startsWith('servicenet is ready')) ready.resolve(undefined);
      else if (traced) process.stderr.write(`${line}\n`);
    })
    .once('close', () => ready.reject(new Error('the server ended')));
  await ready.promise;
}
