import { setImmediate } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import type { LogLine, ExecStreams, TerminalSize } from '../../controllers/kubelet/container-runtime.ts';
import { parseTime } from '../../objects/time.ts';
import type { ContainerStatus, Pod } from '../../objects/types/core.generated.ts';
import { PassThrough, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { isRecord } from '../../objects/json.ts';
import { writeTo } from '../containers/sandbox-runtime.ts';
import { errorMessage } from '../../objects/status.ts';

/** Messages that wait for what comes before them; behind so many, no more are read. */
const maxWaiting = 16;
/** Messages, or frames in them, that are handled in one turn of the event loop: clients may send thousands at once. */
export const maxInTurn = 256;

/**
 * Passes the messages of a connection to `handle`, one after the other, and reads at its pace. A failure closes the
 * connection and is passed to `failed`.
 */
export function onMessages(
  socket: WebSocket,
  handle: (message: Buffer) => Promise<void>,
  failed: (error: unknown) => void,
): void {
  let waiting = 0;
  let handled = 0;
  let last = Promise.resolve();
  socket.on('message', (data) => {
    const message = Buffer.isBuffer(data)
      ? data
      : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]);
    if (++waiting >= maxWaiting) socket.pause();
    last = last
      .then(async () => {
        if (++handled % maxInTurn === 0) await setImmediate();
        await handle(message);
      })
      .then(
        () => {
          if (--waiting < maxWaiting && socket.isPaused) socket.resume();
        },
        (error: unknown) => {
          failed(error);
          socket.close(protocolError);
        },
      );
  });
}

/** The close code of RFC 6455, 7.4.1. */
const protocolError = 1002;

/** Sends a message. Resolves when it is on its way; rejects where the connection is closed. */
export async function send(socket: WebSocket, message: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.send(message, (error) => {
      if (error instanceof Error) reject(error);
      else resolve();
    });
  });
}

/** Sends bytes on a channel of `*.channel.k8s.io`: the channel is the first byte. */
export async function sendOn(socket: WebSocket, channel: number, bytes: Buffer): Promise<void> {
  await send(socket, Buffer.concat([Buffer.from([channel]), bytes]));
}

/** The requested part of a log (`PodLogOptions`, as kube-apiserver has validated it). */
export interface PodLogOptions {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  /** Of the end of what is there; undefined: all. */
  readonly tailLines: number | undefined;
  /** Milliseconds since the epoch; undefined: from the beginning. */
  readonly sinceMs: number | undefined;
  /** Undefined: no limit. */
  readonly limitBytes: number | undefined;
  /** Undefined: both. */
  readonly stream: LogLine['stream'] | undefined;
}

/** Reads the query of `/containerLogs`. @param nowMs milliseconds since the epoch. */
export function logOptions(query: URLSearchParams, nowMs: number): PodLogOptions {
  const number = (name: string): number | undefined => {
    const text = query.get(name) ?? '';
    return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  };
  const is = (name: string): boolean => ['1', 'true'].includes(query.get(name) ?? '');
  const sinceSeconds = number('sinceSeconds');
  const sinceTime = parseTime(query.get('sinceTime') ?? '');
  const stream = (query.get('stream') ?? '').toLowerCase();
  return {
    ...{ follow: is('follow'), previous: is('previous'), timestamps: is('timestamps') },
    tailLines: number('tailLines'),
    sinceMs: sinceSeconds === undefined ? sinceTime : nowMs - sinceSeconds * 1000,
    limitBytes: number('limitBytes'),
    stream: stream === 'stdout' || stream === 'stderr' ? stream : undefined,
  };
}

/** The status of a container of any kind; undefined: the Pod has none of this name. */
function findContainerStatus({ status }: Pod, name: string): ContainerStatus | undefined {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses].find(
    (each) => each.name === name,
  );
}

/** Why a container has no log, in the kubelet's words (`validateContainerLogStatus`); undefined: it has one. */
export function logRefusal(pod: Pod, name: string, previous: boolean): string | undefined {
  const what = `container ${JSON.stringify(name)} in pod ${JSON.stringify(pod.metadata.name ?? '')}`;
  const status = findContainerStatus(pod, name);
  if (status === undefined) return `${what} is not available`;
  const { state, lastState } = status;
  if (previous)
    return lastState?.terminated === undefined ? `previous terminated ${what} not found` : undefined;
  if ([state?.running, state?.terminated, lastState?.terminated].some((each) => each !== undefined))
    return undefined;
  const reason = state?.waiting?.reason;
  if (reason === undefined) return `${what} is waiting to start - no logs yet`;
  return `${what} is waiting to start: ${pullProblems.get(reason) ?? reason}`;
}

const pullProblems: ReadonlyMap<string, string> = new Map([
  ['ErrImagePull', "image can't be pulled"],
  ['ImagePullBackOff', 'trying and failing to pull image'],
]);

/**
 * A log as bytes, as the kubelet writes it.
 *
 * @param lines of the log from the first that `tailLines` wants, following it or not; many at once.
 */
export async function* logBytes(
  lines: AsyncIterable<readonly LogLine[]>,
  { timestamps, sinceMs = -Infinity, limitBytes = Infinity, stream }: PodLogOptions,
): AsyncGenerator<Buffer> {
  let left = limitBytes;
  let isStart = true;
  // Lines are in the order of their times.
  let isSince = false;
  for await (const some of lines) {
    const parts: Buffer[] = [];
    for (const line of some) {
      const begins = isStart;
      isStart = line.isWhole;
      if (stream !== undefined && line.stream !== stream) continue;
      isSince ||= (parseTime(line.time) ?? Infinity) >= sinceMs;
      if (!isSince) continue;
      if (timestamps && begins) parts.push(Buffer.from(`${line.time} `));
      parts.push(line.text);
      if (line.isWhole) parts.push(lineEnd);
    }
    if (parts.length === 0) continue;
    const bytes = Buffer.concat(parts).subarray(0, left);
    yield bytes;
    left -= bytes.length;
    if (left <= 0) return;
  }
}

const lineEnd = Buffer.from('\n');

/**
 * The protocols of exec and attach over WebSocket, the newest first (apimachinery `util/remotecommand`, kubelet
 * `cri/streaming/remotecommand`). v5 can end standard input.
 */
export const remoteCommandProtocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const;

const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** The streams that a client requests. */
export interface RemoteCommand {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** Connects a client to a program, and reports its exit. @param run resolves with the exit code. */
export async function serveRemoteCommand(
  socket: WebSocket,
  wanted: RemoteCommand,
  run: (streams: ExecStreams) => Promise<number>,
): Promise<void> {
  const gone = new AbortController();
  const stdin = wanted.stdin ? new PassThrough() : undefined;
  let size: TerminalSize | undefined;
  let resized: ((size: TerminalSize) => void) | undefined;
  socket.on('close', () => {
    gone.abort(new Error('the client is gone'));
    stdin?.destroy();
  });
  onMessages(
    socket,
    async (message) => {
      const payload = message.subarray(1);
      switch (message[0]) {
        case channels.stdin:
          if (stdin !== undefined) await writeTo(stdin, payload);
          break;
        case channels.resize: {
          const read = terminalSize(payload);
          if (read === undefined) break;
          size = read;
          resized?.(read);
          break;
        }
        case channels.close:
          if (payload[0] === channels.stdin) stdin?.end();
          break;
        default:
        // Only the server writes to the other channels.
      }
    },
    () => gone.abort(new Error('the client is gone')),
  );
  const output = (channel: number, isWanted: boolean): Writable =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (!isWanted) done();
        else sendOn(socket, channel, chunk).then(() => done(), done);
      },
    });
  const stdout = output(channels.stdout, wanted.stdout);
  const stderr = output(channels.stderr, wanted.stderr);
  // They break when the client is gone; the signal then ends the program.
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  // Shows the client that the connection is open, also when the program prints nothing.
  await sendOn(socket, wanted.stdout ? channels.stdout : channels.error, Buffer.alloc(0));
  const status = await statusOf(
    socket.protocol,
    run({
      ...(stdin === undefined ? {} : { stdin }),
      ...{ stdout, stderr, signal: gone.signal },
      ...(wanted.tty
        ? {
            terminal: {
              onResize: (listener) => {
                resized = listener;
                if (size !== undefined) listener(size);
              },
            },
          }
        : {}),
    }),
  );
  for (const stream of [stdout, stderr]) {
    stream.end();
    await finished(stream).catch(() => undefined);
  }
  if (gone.signal.aborted) return;
  await sendOn(socket, channels.error, Buffer.from(JSON.stringify(status)));
  socket.close(1000);
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

/**
 * How the program ended, as a Status (`remotecommand.NonZeroExitCodeReason`). With v5 a kube-apiserver stands between
 * client and kubelet, and wraps what the kubelet says (`streamtranslator.go`).
 */
async function statusOf(protocol: string, ended: Promise<number>): Promise<object> {
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
    const failure = internalError(`error executing command in container: ${why}`);
    return protocol === remoteCommandProtocols[0] ? internalError(failure.message) : failure;
  }
}

/** As `apierrors.NewInternalError` makes it. */
function internalError(cause: string): { readonly message: string } {
  const message = `Internal error occurred: ${cause}`;
  const details = { causes: [{ message: cause }] };
  return {
    ...{ metadata: {}, status: 'Failure', message, reason: 'InternalError' },
    ...{ details, code: 500 },
  };
}

/** `{"Width":80,"Height":24}`; undefined for anything else, which is passed over. */
function terminalSize(payload: Buffer): TerminalSize | undefined {
  let size: unknown;
  try {
    size = JSON.parse(payload.toString());
  } catch {
    return undefined;
  }
  if (!isRecord(size)) return undefined;
  const { Width: columns, Height: rows } = size;
  const isCount = (value: unknown): value is number =>
    typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff;
  return isCount(columns) && isCount(rows) ? { columns, rows } : undefined;
}
