import { PassThrough, type Readable, Writable } from 'node:stream';
import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { WebSocket } from 'ws';
import type { ExecStreams, TerminalSize } from '../../controllers/kubelet/container-runtime.ts';
import { isRecord } from '../../objects/json.ts';
import { errorMessage } from '../../objects/status.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { writeTo } from '../containers/remote-command.ts';
import { type ChannelProtocol, ChannelSocket, commandProtocols } from './channels.ts';
import { findContainerStatus } from './logs.ts';
import { SpdyConnection, type SpdyStream } from './spdy-session.ts';

const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** The streams that a client requests. */
export interface RemoteCommand {
  /** Of a program that runs already: its failures have other words. */
  readonly isAttach?: boolean;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** Runs the program. Resolves with the exit code. */
type RunCommand = (streams: ExecStreams) => Promise<number>;

/** The sizes of a terminal: a listener that comes late gets the last one. */
class TerminalSizes {
  #last: TerminalSize | undefined;
  #listener: ((size: TerminalSize) => void) | undefined;

  readonly terminal = {
    onResize: (listener: (size: TerminalSize) => void): void => {
      this.#listener = listener;
      if (this.#last !== undefined) listener(this.#last);
    },
  };

  /** Takes what the client sent; what is no size is passed over. */
  take(text: string): void {
    const size = terminalSize(text);
    if (size === undefined) return;
    this.#last = size;
    this.#listener?.(size);
  }
}

/** A client, as far as a program sees it. */
interface CommandClient {
  readonly stdin: Readable | undefined;
  readonly sizes: TerminalSizes | undefined;
  readonly signal: AbortSignal;
  readonly hasStatus: boolean;
  /** Sends output. Rejects where the connection is closed. */
  output(stream: 'stdout' | 'stderr', bytes: Buffer): Promise<void>;
  /** Reports how the program ended, and ends the connection. @param report empty: nothing is to be said. */
  finish(report: string): Promise<void>;
}

/** Connects a program to its client, and reports its exit. */
async function runFor(
  client: CommandClient,
  wanted: RemoteCommand,
  run: RunCommand,
  isV5: boolean,
): Promise<void> {
  const output = (stream: 'stdout' | 'stderr'): Writable =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (!wanted[stream]) done();
        else client.output(stream, chunk).then(() => done(), done);
      },
    });
  const stdout = output('stdout');
  const stderr = output('stderr');
  // They break when the client is gone.
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  const { stdin, sizes, signal } = client;
  const status = await statusOf(
    isV5,
    wanted.isAttach === true ? 'error attaching to container' : 'error executing command in container',
    run({
      ...(stdin === undefined ? {} : { stdin }),
      ...{ stdout, stderr, signal },
      ...(sizes === undefined ? {} : { terminal: sizes.terminal }),
    }),
  );
  for (const stream of [stdout, stderr]) {
    stream.end();
    await finished(stream).catch(() => undefined);
  }
  if (signal.aborted) return;
  // Clients before v4 hear of failures alone, in words.
  await client.finish(client.hasStatus ? JSON.stringify(status) : (status.message ?? ''));
}

/** Serves exec or attach over WebSocket. */
export async function serveRemoteCommand(
  socket: WebSocket,
  wanted: RemoteCommand,
  run: RunCommand,
): Promise<void> {
  const protocol: ChannelProtocol = commandProtocols.get(socket.protocol) ?? {
    isBase64: false,
    hasStatus: true,
  };
  const channelSocket = new ChannelSocket(socket, protocol);
  const gone = new AbortController();
  const stdin = wanted.stdin ? new PassThrough() : undefined;
  const sizes = wanted.tty ? new TerminalSizes() : undefined;
  const handled = channelSocket.onMessages(
    async (channel, payload) => {
      switch (channel) {
        case channels.stdin:
          if (stdin !== undefined) await writeTo(stdin, payload);
          break;
        case channels.resize:
          sizes?.take(payload.toString());
          break;
        case channels.close:
          if (payload[0] === channels.stdin) stdin?.end();
          break;
        default:
        // Only the server writes to the other channels.
      }
    },
    () => gone.abort(new Error('the client is gone')),
  );
  socket.on('close', () => {
    gone.abort(new Error('the client is gone'));
    // A program that outlives its client gets all that came, and then the end.
    void handled().then(() => stdin?.end());
  });
  // Shows the client that the connection is open, also when the program prints nothing.
  const lowest = wanted.stdout ? channels.stdout : wanted.stderr ? channels.stderr : channels.error;
  await channelSocket.send(lowest, Buffer.alloc(0));
  const client: CommandClient = {
    ...{ stdin, sizes, signal: gone.signal, hasStatus: protocol.hasStatus },
    output: async (stream, bytes) => channelSocket.send(channels[stream], bytes),
    async finish(report) {
      if (report !== '') await channelSocket.send(channels.error, Buffer.from(report));
      socket.close(1000);
    },
  };
  await runFor(client, wanted, run, socket.protocol === latestProtocol);
}

const latestProtocol = 'v5.channel.k8s.io';

/** The protocols of exec and attach over SPDY, and what each has (kubelet `cri/streaming/remotecommand/httpstream.go`). */
export const spdyCommandProtocols: ReadonlyMap<
  string,
  Pick<ChannelProtocol, 'hasStatus'> & { readonly canResize: boolean }
> = new Map([
  ['v4.channel.k8s.io', { hasStatus: true, canResize: true }],
  ['v3.channel.k8s.io', { hasStatus: false, canResize: true }],
  ['v2.channel.k8s.io', { hasStatus: false, canResize: false }],
  ['channel.k8s.io', { hasStatus: false, canResize: false }],
]);

/** Milliseconds in which a client has to open its streams (`DefaultStreamCreationTimeout`). */
const streamCreationTimeoutMs = 30_000;
/** Characters of a size that has not ended. */
const maxSizeText = 1024;

/**
 * Serves exec or attach over SPDY: the client opens a stream for each that it wants, and one for the error.
 *
 * @param connection speaks SPDY from here on.
 * @param head what the client has sent already.
 * @param protocol one of {@link spdyCommandProtocols}.
 */
export async function serveSpdyCommand(
  connection: Duplex,
  head: Buffer,
  protocol: string,
  wanted: RemoteCommand,
  run: RunCommand,
): Promise<void> {
  const { hasStatus = false, canResize = false } = spdyCommandProtocols.get(protocol) ?? {};
  const types = ['error', 'stdin', 'stdout', 'stderr', 'resize'] as const;
  const isWanted = { ...wanted, error: true, resize: wanted.tty && canResize };
  const expected: ReadonlySet<string> = new Set(types.filter((type) => isWanted[type]));
  const streams = new Map<string, SpdyStream>();
  const complete = Promise.withResolvers<boolean>();
  const spdy = new SpdyConnection(connection, head, (stream) => {
    // What becomes of a stream shows where it is used; a client may reset it at any time.
    stream.on('error', () => undefined);
    const type = stream.headers.get('streamtype') ?? '';
    if (!expected.has(type) || streams.has(type)) {
      stream.destroy(new Error('a stream that was not asked for'));
      return;
    }
    streams.set(type, stream);
    if (streams.size === expected.size) complete.resolve(true);
  });
  const late = setTimeout(() => complete.resolve(false), streamCreationTimeoutMs);
  spdy.signal.addEventListener('abort', () => complete.resolve(false), { once: true });
  const isComplete = await complete.promise;
  clearTimeout(late);
  if (!isComplete) {
    connection.destroy();
    return;
  }
  const sizes = wanted.tty ? new TerminalSizes() : undefined;
  const resize = streams.get('resize');
  let text = '';
  resize?.on('data', (chunk: Buffer) => {
    const parts = (text + chunk.toString()).split('}');
    text = (parts.pop() ?? '').slice(-maxSizeText);
    for (const part of parts) sizes?.take(`${part}}`);
  });
  const client: CommandClient = {
    ...{ stdin: inputOf(streams.get('stdin'), spdy.signal), sizes, signal: spdy.signal, hasStatus },
    async output(name, bytes) {
      const stream = streams.get(name);
      // The client has closed it: nobody reads this.
      if (stream === undefined || stream.destroyed) return;
      await stream.send(bytes);
    },
    async finish(report) {
      for (const name of ['stdout', 'stderr']) streams.get(name)?.end();
      streams.get('error')?.end(report);
      await spdy.finish([...streams.values()]);
    },
  };
  await runFor(client, wanted, run, false);
}

/** All that came of a stream, and then its end, also where the client has gone: its streams are destroyed then. */
function inputOf(stream: SpdyStream | undefined, gone: AbortSignal): Readable | undefined {
  if (stream === undefined) return undefined;
  const input = new PassThrough();
  stream.pipe(input);
  stream.once('close', () => input.end());
  gone.addEventListener('abort', () => {
    const rest: unknown = stream.unpipe(input).read();
    if (Buffer.isBuffer(rest) && input.writable) input.write(rest);
    input.end();
  });
  return input;
}

/** Whom a client wants to be connected to. */
interface Connection {
  /** `exec` or `attach`. */
  readonly verb: string;
  readonly pod: Pod;
  readonly container: string;
}

/** There is nothing to connect to: kubelets refuse the upgrade with these words. */
class NotConnectedError extends Error {
  override readonly name = 'NotConnectedError';
}

/** @throws {NotConnectedError} where the container does not run. */
export function checkRunning({ verb, pod, container }: Connection): void {
  if (findContainerStatus(pod, container)?.state?.running !== undefined) return;
  const { name = '', namespace = '' } = pod.metadata;
  throw new NotConnectedError(
    verb === 'attach'
      ? `container ${container} not found in pod ${name}_${namespace}`
      : `container not found (${JSON.stringify(container)})`,
  );
}

/** A Status. */
interface ExitStatus {
  readonly status: string;
  readonly message?: string;
  readonly [field: string]: unknown;
}

/**
 * How the program ended, as a Status (`remotecommand.NonZeroExitCodeReason`). With v5 a kube-apiserver stands between
 * client and kubelet, and wraps what the kubelet says (`streamtranslator.go`).
 */
async function statusOf(isV5: boolean, words: string, ended: Promise<number>): Promise<ExitStatus> {
  try {
    const code = await ended;
    if (code === 0) return { metadata: {}, status: 'Success' };
    return {
      metadata: {},
      status: 'Failure',
      message: `command terminated with non-zero exit code: exit status ${code}`,
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
    };
  } catch (error) {
    const why = errorMessage(error);
    if (error instanceof NotConnectedError) return internalError(`unable to upgrade connection: ${why}`);
    const failure = internalError(`${words}: ${why}`);
    return isV5 ? internalError(failure.message) : failure;
  }
}

/** As `apierrors.NewInternalError` makes it. */
function internalError(cause: string): ExitStatus & { readonly message: string } {
  const message = `Internal error occurred: ${cause}`;
  const details = { causes: [{ message: cause }] };
  return {
    ...{ metadata: {}, status: 'Failure', message, reason: 'InternalError' },
    ...{ details, code: 500 },
  };
}

/** `{"Width":80,"Height":24}`; undefined for anything else, which is passed over. */
function terminalSize(text: string): TerminalSize | undefined {
  let size: unknown;
  try {
    size = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(size)) return undefined;
  const { Width: columns, Height: rows } = size;
  const isCount = (value: unknown): value is number =>
    typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff;
  return isCount(columns) && isCount(rows) ? { columns, rows } : undefined;
}
