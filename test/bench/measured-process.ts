import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** Of /proc/PID/stat: `getconf CLK_TCK`, which is 100 on every Linux. */
const ticksPerSecond = 100;

function cpuSecondsIn(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** User and system time of all threads of processes. */
export async function cpuSecondsOf(pids: readonly number[]): Promise<number> {
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8')));
  return stats.reduce((sum, stat) => sum + cpuSecondsIn(stat), 0);
}

/** The same with that of their ended children. */
async function cpuSecondsWithEnded(pids: readonly number[]): Promise<number> {
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8')));
  // Behind the name: utime, stime, cutime and cstime (proc_pid_stat(5)).
  const fields = stats.flatMap((stat) =>
    stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15),
  );
  return fields.reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond;
}

/** Memory of processes in MiB, in which each has its part of what they share. */
export async function pssMiBOf(pids: readonly number[]): Promise<number> {
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8')));
  return texts.reduce((sum, text) => sum + Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) / 1024, 0);
}

/** How a program is started. */
interface Starting {
  /** Beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** A file that gets what it says; by default, standard error does. */
  readonly log?: string;
}

/** A program seen from outside, by /proc. */
export class MeasuredProcess {
  readonly #child: ChildProcess;

  constructor(file: string, args: readonly string[], { env = {}, log }: Starting = {}) {
    const output = log === undefined ? 'inherit' : openSync(log, 'a');
    const stdio = ['ignore', log === undefined ? 'ignore' : output, output] as const;
    this.#child = spawn(file, args, { stdio: [...stdio], env: { ...process.env, ...env } });
  }

  /** 0 before it has one. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** User and system time of all threads. */
  async cpuSeconds(): Promise<number> {
    return cpuSecondsIn(await this.#read('stat'));
  }

  /** With the processes that it has started, also those that have ended. */
  async cpuSecondsOfAll(): Promise<number> {
    return cpuSecondsWithEnded(await this.pids());
  }

  /** Its id, and those of the processes that it has started. */
  async pids(): Promise<readonly number[]> {
    const children = await readFile(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8');
    return [this.pid, ...children.split(' ').flatMap((word) => (word === '' ? [] : [Number(word)]))];
  }

  async residentMiB(): Promise<number> {
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(await this.#read('status'))?.[1] ?? 0) / 1024;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill();
    await once(this.#child, 'exit');
  }

  /** @throws {Error} when the program has ended. */
  async #read(file: 'stat' | 'status'): Promise<string> {
    if (this.#child.exitCode !== null) throw new Error(`the program ended with ${this.#child.exitCode}`);
    return readFile(`/proc/${this.pid}/${file}`, 'utf8');
  }
}
