import { connect, constants } from 'node:http2';
import type { GRPCAction, Pod, Probe } from '../../../objects/types/core.generated.ts';
import type { ContainerRuntime, ProbeResult } from '../container-runtime.ts';
import { joinHostPort } from '../../../objects/address.ts';

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`. */
const statuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];

/** Asks a server by the gRPC health checking protocol (pkg/probe/grpc). */
export async function askGrpc(
  runtime: Pick<ContainerRuntime, 'connect'>,
  pod: Pod,
  address: string,
  { port, service }: GRPCAction,
  { timeoutSeconds = 1 }: Probe,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const at = joinHostPort(address, port);
  const late = {
    success: false,
    output: `timeout: failed to connect service "${at}" within ${timeoutSeconds}s`,
  };
  try {
    const socket = await runtime.connect(pod, address, port, signal);
    const session = connect(`http://${at}`, { createConnection: () => socket });
    try {
      const { status, message } = await check(session, service ?? '', signal);
      if (status !== 0) {
        const what =
          status === 12
            ? 'this server does not implement the grpc health protocol (grpc.health.v1.Health)'
            : message;
        return { success: false, output: `rpc error: code = ${status} desc = ${what}` };
      }
      const serving = statuses[Number(message)] ?? 'UNKNOWN';
      if (serving === 'SERVING') return { success: true, output: '' };
      return { success: false, output: `service unhealthy (responded with "${serving}")` };
    } finally {
      session.destroy();
      socket.destroy();
    }
  } catch {
    return late;
  }
}

/** The status of the call, with its message; of one that succeeded, the number of the serving status. */
function check(
  session: ReturnType<typeof connect>,
  service: string,
  signal: AbortSignal,
): Promise<{ status: number; message: string }> {
  return new Promise((resolve, reject) => {
    session.on('error', reject);
    const name = Buffer.from(service);
    // One field, the first, of text; 127 bytes of it need one byte for their length.
    const length = name.length < 128 ? [name.length] : [(name.length & 0x7f) | 0x80, name.length >> 7];
    const message = name.length === 0 ? Buffer.alloc(0) : Buffer.from([0x0a, ...length, ...name]);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    const call = session.request(
      {
        [constants.HTTP2_HEADER_METHOD]: 'POST',
        [constants.HTTP2_HEADER_PATH]: '/grpc.health.v1.Health/Check',
        [constants.HTTP2_HEADER_CONTENT_TYPE]: 'application/grpc',
        te: 'trailers',
      },
      { signal },
    );
    const chunks: Buffer[] = [];
    let status: { status: number; message: string } | undefined;
    const read = (headers: Readonly<Record<string, unknown>>): void => {
      const { 'grpc-status': code, 'grpc-message': message } = headers;
      if (code === undefined) return;
      status = { status: Number(code), message: typeof message === 'string' ? message : '' };
    };
    call.on('response', read);
    call.on('trailers', read);
    call.on('data', (chunk: Buffer) => chunks.push(chunk));
    call.on('error', reject);
    call.once('close', () => {
      if (status === undefined) reject(new Error('the call ended without a status'));
      else if (status.status !== 0) resolve(status);
      else {
        const body = Buffer.concat(chunks).subarray(5);
        resolve({ status: 0, message: String(body[0] === 0x08 ? (body[1] ?? 0) : 0) });
      }
    });
    call.end(Buffer.concat([head, message]));
  });
}
