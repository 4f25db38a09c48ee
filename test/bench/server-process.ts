import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { parse } from 'yaml';
import { listAt, recordAt, textAt } from '../../src/objects/read.ts';
import type { Target } from './connection.ts';

/** The kernel counts CPU time in these (`getconf CLK_TCK`). */
const microsecondsPerTick = 10_000;

/** `servicenet up` in a process of its own, seen from outside. Linux only: it is read from /proc. */
export class ServerProcess {
  readonly target: Target;
  /** Milliseconds from spawn to the line that says that it is ready. */
  readonly startMs: number;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(child: ChildProcess, folder: string, target: Target, startMs: number) {
    this.#child = child;
    this.#folder = folder;
    this.target = target;
    this.startMs = startMs;
  }

  /** Starts `servicenet up` as its users do, and reads its kubeconfig. `nodeFlags` are for profiling. */
  static async start(flags: readonly string[], nodeFlags: readonly string[]): Promise<ServerProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-bench-'));
    const kubeconfig = join(folder, 'kubeconfig');
    const main = new URL('../../src/start.js', import.meta.url).pathname;
    const started = performance.now();
    const child = spawn(
      process.execPath,
      [...nodeFlags, main, 'up', '--port', '0', '--write-kubeconfig', kubeconfig, ...flags],
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
    // behind the name, which may hold spaces: utime and stime are fields 14 and 15 (proc_pid_stat(5))
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick;
  }

  /** Resident memory in MiB. */
  async residentMiB(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill('SIGTERM');
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
