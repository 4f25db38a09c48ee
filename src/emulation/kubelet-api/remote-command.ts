/** Exec and attach over WebSocket (apimachinery `util/remotecommand`, kubelet `cri/streaming/remotecommand`). */
import { PassThrough, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { WebSocket } from 'ws';
import type { ExecStreams, TerminalSize } from '../../controllers/kubelet/container-runtime.ts';
import { isRecord } from '../../objects/json.ts';
import { writeTo } from '../write-to.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { onMessages, sendOn } from './channels.ts';
import { findContainerStatus } from './container-logs.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** The protocols that are spoken, the newest first. v5 can end standard input. */
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
