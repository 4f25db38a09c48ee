import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Signal, untilSignal } from './signals.ts';
import type { RunConfig } from '../flags/run.ts';
import { askControl } from '../emulation/control-socket.ts';
import { controlSocketPath } from '../host/control-client.ts';
import { createLog } from '../telemetry/log.ts';
import { localChoices } from './choices.ts';

/** Exit codes of shells for a program that does not exist, and for one that cannot be run. */
const notFound = 127;
const notRunnable = 126;

/**
 * Says where a program cannot be found in PATH, before anything is started for it.
 * @returns the exit code of shells for that; undefined where there is one.
 */
export function programMissing(file: string): number | undefined {
  const folders = file.includes('/') ? [''] : (process.env['PATH'] ?? '').split(delimiter);
  if (folders.some((folder) => localChoices.isExecutable(join(folder, file)))) return undefined;
  process.stderr.write(`servicenet: cannot run ${file}: there is no such program\n`);
  return notFound;
}

export interface ProgramRun {
  /** The program, looked up in PATH, and its arguments. */
  readonly program: readonly string[];
  /** The value of its KUBECONFIG. */
  readonly kubeconfig: string;
  /** A signal to this process, which is passed on. */
  readonly interrupted: Promise<Signal>;
  /** Rejects when the API server ends; the program is then ended. */
  readonly failure: Promise<never>;
}

/**
 * Runs a program until it ends, with the input and output of this process.
 * @returns its exit code as shells have it: 128 and the number of the signal that ended it.
 * @throws what `failure` rejects with, when the program has ended.
 */
export async function runProgram({ program, kubeconfig, interrupted, failure }: ProgramRun): Promise<number> {
  const [file = '', ...args] = program;
  const child = spawn(file, args, { stdio: 'inherit', env: { ...process.env, KUBECONFIG: kubeconfig } });
  const ended = new Promise<number>((resolve) => {
    child.once('error', (error) => {
      process.stderr.write(`servicenet: cannot run ${file}: ${error.message}\n`);
      resolve('code' in error && error.code === 'ENOENT' ? notFound : notRunnable);
    });
    child.once('exit', (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  });
  void interrupted.then((signal) => {
    // Ctrl-C on a terminal has reached the program, too; many take a second one as the order to end at once.
    if (!(signal === 'SIGINT' && process.stdin.isTTY)) child.kill(signal);
  });
  try {
    return await Promise.race([ended, failure]);
  } finally {
    child.kill();
    await ended;
  }
}

/**
 * Runs a program of this machine in the cluster network of an `up`, with the input and output of this process.
 *
 * @returns its exit code.
 * @throws {Error} where there is no such `up`, or no such place in its network.
 */
export async function runProgramInside({ kubeconfigPath, where, program }: RunConfig): Promise<number> {
  const place = await askControl(controlSocketPath(kubeconfigPath), where);
  const signal = untilSignal(createLog({ level: 'silent', format: 'json' }));
  try {
    return await runProgram({
      program: [...place.argv, ...program],
      kubeconfig: kubeconfigPath,
      interrupted: signal.received,
      failure: new Promise<never>(() => undefined),
    });
  } finally {
    signal.release();
    place.end();
  }
}
