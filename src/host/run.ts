import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { type ExecOptions, type ExecResult, ProgramMissingError } from './host.ts';

/**
 * Runs a program of this process's own machine to its end: {@link Host.exec} there. Also what implementations of Host
 * for namespaces begin with.
 */
export function run(
  program: string,
  args: readonly string[],
  { input = '', signal }: ExecOptions = {},
): Promise<ExecResult> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const end = (): boolean => child.kill('SIGKILL');
    signal?.addEventListener('abort', end, { once: true });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    // A program that ends without having read all of its input says why by its exit code.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    child.on('error', (error: NodeJS.ErrnoException) => {
      signal?.removeEventListener('abort', end);
      // EACCES is what a folder of PATH that may not be read makes of a program that is nowhere.
      const isMissing = error.code === 'ENOENT' || error.code === 'EACCES';
      reject(isMissing ? new ProgramMissingError(program) : error);
    });
    child.on('close', (code, endedBy) => {
      signal?.removeEventListener('abort', end);
      if (signal?.aborted === true) {
        reject(asError(signal.reason));
        return;
      }
      resolve({
        exitCode: code ?? (endedBy === null ? 1 : 128 + constants.signals[endedBy]),
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      });
    });
  });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
