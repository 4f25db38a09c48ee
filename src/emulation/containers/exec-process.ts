/** Programs that run beside those of a container: `kubectl exec`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { pipeline } from 'node:stream/promises';
import type { ExecStreams } from '../../controllers/kubelet/container-runtime.ts';
import { openTerminal } from './terminal.ts';

/** Runs words to their end, in a terminal of their own. @returns the exit code. @throws why the signal aborted. */
export async function runInTerminal(
  words: readonly string[],
  { stdin, stdout, terminal: wanted, signal }: ExecStreams,
): Promise<number> {
  signal?.throwIfAborted();
  const terminal = openTerminal();
  const { programEnd, stream } = terminal;
  // Reading fails with EIO once no program has the terminal open.
  stream.on('error', () => stream.destroy());
  const child = spawn('setsid', ['--ctty', '--wait', ...words], {
    stdio: [programEnd, programEnd, programEnd],
  });
  closeSync(programEnd);
  const end = (): boolean => child.kill('SIGKILL');
  signal?.addEventListener('abort', end, { once: true });
  wanted?.onResize((size) => terminal.resize(size));
  try {
    stdin?.pipe(stream);
    const printed = pipeline(stream, stdout, { end: false }).catch(() => undefined);
    const code = await exitOf(child);
    await printed;
    signal?.throwIfAborted();
    return code;
  } finally {
    signal?.removeEventListener('abort', end);
    stdin?.unpipe();
    stream.destroy();
  }
}

async function exitOf(child: ChildProcess): Promise<number> {
  const ended = Promise.withResolvers<number>();
  child.once('error', ended.reject);
  child.once('exit', (code, by) => ended.resolve(code ?? (by === null ? 1 : 128 + constants.signals[by])));
  return await ended.promise;
}

/** Runs words to their end, between streams. @returns the exit code. @throws why the signal aborted. */
export async function runWords(
  [program = '', ...args]: readonly string[],
  { stdin, stdout, stderr, signal }: ExecStreams,
): Promise<number> {
  signal?.throwIfAborted();
  const child = spawn(program, args, { stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  const end = (): boolean => child.kill('SIGKILL');
  signal?.addEventListener('abort', end, { once: true });
  const ended = exitOf(child);
  try {
    // A program need not read its input.
    if (stdin !== undefined && child.stdin !== null) pipeline(stdin, child.stdin).catch(() => undefined);
    // An output breaks when its client goes away, maybe long before the program ends by that.
    const outputs = [
      ...(child.stdout === null ? [] : [pipeline(child.stdout, stdout, { end: false })]),
      ...(child.stderr === null ? [] : [pipeline(child.stderr, stderr, { end: false })]),
    ].map((output) => output.catch(() => undefined));
    const code = await ended;
    await Promise.all(outputs);
    signal?.throwIfAborted();
    return code;
  } finally {
    signal?.removeEventListener('abort', end);
  }
}
