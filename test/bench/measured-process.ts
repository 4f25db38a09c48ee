import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
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

/** A program seen from outside, by /proc. */
export class MeasuredProcess {
  readonly #child: ChildProcess;

  constructor(file: string, args: readonly string[]) {
    this.#child = spawn(file, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  }

  /** User and system time of all threads. */
  async cpuSeconds(): Promise<number> {
    return cpuSecondsIn(await this.#read('stat'));
  }

  /** Its id, and those of the processes that it has started. */
  async pids(): Promise<readonly number[]> {
    const pid = this.#child.pid ?? 0;
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return [pid, ...children.split(' ').flatMap((word) => (word === '' ? [] : [Number(word)]))];
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
    return readFile(`/proc/${this.#child.pid ?? 0}/${file}`, 'utf8');
  }
}
