import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecStreams } from '../../controllers/kubelet/container-runtime.ts';
import { asError } from '../../host/host.ts';
import { checkStreams } from '../../host/local-host.ts';
import type { BesideProgram, ContainerProgram } from '../program.ts';
import { builtInCommandLine, type CommandPlace, refusal } from './built-in-commands.ts';
import type { ContainerLog } from './container-log.ts';
import { openTerminal } from './process-container.ts';

/** What a client sees of a container's programs: exec and attach, between streams and in terminals. */

/**
 * Bytes that wait for a client that is attached and does not read. Processes are held back long before; programs of ours
 * go on, and what they print from then on is in their log alone.
 */
const maxUnread = 1024 * 1024;

/**
 * Runs a program beside that of a container (`kubectl exec`) to its end.
 *
 * @returns the exit code.
 * @throws why the signal aborted.
 */
export async function execBeside(
  { exec, place, ended }: ContainerProgram,
  command: readonly string[],
  streams: ExecStreams,
): Promise<number> {
  if (exec === undefined) return await runBuiltIn(command, place, streams, ended);
  const beside = await exec(command);
  return await (streams.terminal === undefined
    ? runBetweenStreams(beside, streams)
    : runInTerminal(beside, streams));
}

/**
 * Connects a client with the program of a container (`kubectl attach`) until it ends.
 *
 * @param isOnce the first client that is attached ends the input (`stdinOnce`).
 * @throws why the signal aborted.
 */
export async function attachTo(
  program: ContainerProgram,
  log: ContainerLog,
  { stdin, stdout, stderr, terminal, signal }: ExecStreams,
  isOnce: boolean,
): Promise<void> {
  const detach = log.onWrite((stream, chunk) =>
    writeTo(stream === 'stdout' ? stdout : stderr, chunk, maxUnread),
  );
  const gone = Promise.withResolvers<never>();
  signal?.addEventListener('abort', () => gone.reject(asError(signal.reason)), { once: true });
  // The container's input outlives the client, but for `stdinOnce`.
  const endsInput = stdin !== undefined && isOnce;
  const input = program.stdin;
  if (input !== undefined) stdin?.pipe(input, { end: endsInput && program.resize === undefined });
  terminal?.onResize((size) => program.resize?.(size));
  try {
    await Promise.race([program.ended, gone.promise]);
  } finally {
    detach();
    stdin?.unpipe();
    if (endsInput && program.resize === undefined) input?.end();
  }
}

/**
 * Writes to a stream that may have ended.
 *
 * @param most bytes that may wait in the stream: behind them, the chunk is lost.
 * @returns a promise that resolves when there is room for more, or the stream has ended; undefined: there is room.
 */
export function writeTo(stream: Writable, chunk: Buffer, most = Infinity): Promise<void> | undefined {
  if (stream.destroyed || stream.writableEnded || chunk.length === 0) return undefined;
  if (stream.writableLength < most && stream.write(chunk)) return undefined;
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('close', done);
      resolve();
    };
    stream.once('drain', done).once('close', done);
  });
}

/** Bytes that a program may print when its client has gone: behind them it is held back, as with containerd. */
const maxLost = 1024 * 1024;

/** Copies what a program prints. @param ended resolves when the program has ended. */
async function copy(from: Readable | null, to: Writable, ended: Promise<unknown>): Promise<void> {
  let lost = 0;
  for await (const chunk of from ?? []) {
    if (!Buffer.isBuffer(chunk)) continue;
    if (to.destroyed) lost += chunk.length;
    else await writeTo(to, chunk);
    if (lost > maxLost) await ended;
  }
}

/** Runs it in a terminal of the container. @returns the exit code. @throws why the signal aborted. */
async function runInTerminal(
  { argv, ptmx, began }: BesideProgram,
  { stdin, stdout, terminal: wanted, signal }: ExecStreams,
): Promise<number> {
  signal?.throwIfAborted();
  const terminal = openTerminal(ptmx);
  const { programEnd, stream } = terminal;
  // Reading fails with EIO once no program has the terminal open.
  stream.on('error', () => stream.destroy());
  const child = spawn('setsid', ['--ctty', '--wait', ...argv], {
    stdio: [programEnd, programEnd, programEnd],
  });
  closeSync(programEnd);
  const end = (): boolean => child.kill('SIGKILL');
  signal?.addEventListener('abort', end, { once: true });
  try {
    checkStreams(child);
    began(child);
    wanted?.onResize((size) => terminal.resize(size));
    // The end of the input is not that of the terminal: a program that lost its client goes on.
    stdin?.pipe(stream, { end: false });
    const ended = exitOf(child);
    const printed = copy(stream, stdout, ended).catch(() => undefined);
    const code = await ended;
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

/** The same between streams. @returns the exit code. @throws why the signal aborted. */
async function runBetweenStreams(
  { argv: [program = '', ...args], began }: BesideProgram,
  { stdin, stdout, stderr, signal }: ExecStreams,
): Promise<number> {
  signal?.throwIfAborted();
  const child = spawn(program, args, { stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  checkStreams(child);
  began(child);
  const end = (): boolean => child.kill('SIGKILL');
  signal?.addEventListener('abort', end, { once: true });
  const ended = exitOf(child);
  try {
    // A program need not read its input.
    if (stdin !== undefined && child.stdin !== null) pipeline(stdin, child.stdin).catch(() => undefined);
    const outputs = [copy(child.stdout, stdout, ended), copy(child.stderr, stderr, ended)];
    const code = await ended;
    await Promise.allSettled(outputs);
    signal?.throwIfAborted();
    return code;
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

const streamsMs = 20;

/** Runs a command that is built in, until the container ends. @returns its exit code. */
async function runBuiltIn(
  command: readonly string[],
  place: CommandPlace | undefined,
  { stdout, stderr, terminal, signal }: ExecStreams,
  ended: Promise<unknown>,
): Promise<number> {
  const errors = terminal === undefined ? stderr : stdout;
  const run = place && builtInCommandLine(command, place.environment);
  const print = (to: Writable, text: string | Buffer): void =>
    void writeTo(
      to,
      terminal === undefined ? Buffer.from(text) : Buffer.from(String(text).replaceAll('\n', '\r\n')),
      maxUnread,
    );
  // A client of a WebSocket makes its streams once the connection is there, and loses what comes before
  // (client-go's remotecommand/websocket.go): containers take longer to run a program.
  await delay(streamsMs);
  if (place === undefined || run === undefined) {
    print(errors, `${refusal(command)}\n`);
    return 127;
  }
  const ending = new AbortController();
  void ended.then(() => ending.abort(new Error('the container has ended')));
  const output = {
    stdout: (text: string | Buffer) => print(stdout, text),
    stderr: (text: string) => print(errors, text),
  };
  const until = signal === undefined ? ending.signal : AbortSignal.any([signal, ending.signal]);
  return await run(place, output, until);
}
