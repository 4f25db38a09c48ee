import { execFileSync, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Runs a program, and gives what it printed. @throws {Error} for an exit code but 0, with what it said. */
export function run(program: string, words: readonly string[], input = ''): string {
  return execFileSync(program, words, { encoding: 'utf8', input, stdio: 'pipe', maxBuffer: 2 ** 28 });
}

/** The words before a program that runs in the network of a machine. */
export function onMachine(name: string): readonly [string, ...string[]] {
  return ['nsenter', `--net=/run/netns/${name}`];
}

/**
 * Starts a program that stays, with its output in `NAME.log` of a folder. It ends with the process namespace of the rig.
 *
 * @returns its process ID.
 */
export function start(logs: string, name: string, words: readonly string[]): number {
  const log = openSync(join(logs, `${name}.log`), 'a');
  const [program = '', ...rest] = words;
  const child = spawn(program, rest, { stdio: ['ignore', log, log], detached: true });
  child.on('error', (error) => {
    console.error(`${name}: ${error.message}`);
  });
  child.on('exit', (code, signal) => {
    console.error(`${name} ended (${code ?? signal}): see ${logs}/${name}.log`);
  });
  if (child.pid === undefined) throw new Error(`${name} did not start`);
  return child.pid;
}

/** Waits until `done` is true, for which errors count as not yet. @throws {Error} after `seconds`, with the last error. */
export async function until(what: string, seconds: number, done: () => boolean): Promise<void> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    let problem: unknown;
    try {
      if (done()) return;
    } catch (error) {
      problem = error;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`, { cause: problem });
    await sleep(300);
  }
}
