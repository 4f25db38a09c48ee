import type { Socket } from 'node:net';
import type { Clock } from '../client/clock.ts';
import { maxHello, readClientHello } from '../network/http/client-hello.ts';

/** Milliseconds for the first bytes of a connection. */
const firstBytesMs = 10_000;

/**
 * Reads the first bytes of a connection until they tell something. The socket is then paused, and has no listener of this.
 *
 * @param read undefined: more bytes are needed.
 * @param done gets the bytes, which are not put back.
 */
function readFirst<T>(
  socket: Socket,
  clock: Clock,
  read: (bytes: Buffer) => { readonly found: T } | undefined,
  done: (found: T, bytes: Buffer) => void,
): void {
  let bytes: Buffer = Buffer.alloc(0);
  const late = clock.after(firstBytesMs, () => socket.destroy());
  const end = (): void => {
    late.cancel();
    socket.off('data', take);
    socket.off('end', fail);
    socket.off('error', fail);
    socket.off('close', end);
    socket.pause();
  };
  const fail = (): void => {
    socket.destroy();
  };
  const take = (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const result = read(bytes);
    if (result === undefined) return;
    end();
    done(result.found, bytes);
  };
  socket.on('data', take);
  // One that may be half open would stay.
  socket.on('end', fail);
  socket.on('error', fail);
  socket.on('close', end);
}

/** Reads the server name of TLS; undefined: there is none, or no TLS. */
export function readServerName(
  socket: Socket,
  clock: Clock,
  done: (serverName: string | undefined, bytes: Buffer) => void,
): void {
  const read = (bytes: Buffer): { readonly found: string | undefined } | undefined => {
    const hello = readClientHello(bytes);
    if (hello.kind === 'incomplete' && bytes.length < maxHello) return undefined;
    return { found: hello.kind === 'hello' ? hello.serverName : undefined };
  };
  readFirst(socket, clock, read, done);
}

/** How HTTP/2 begins without TLS (RFC 9113, 3.4); no method of HTTP/1.1 is called so. */
const preface = Buffer.from('PRI * HTTP/2.0\r\n');

/** Reads whether a client speaks HTTP/2 without having asked. */
export function readIsHttp2(
  socket: Socket,
  clock: Clock,
  done: (isHttp2: boolean, bytes: Buffer) => void,
): void {
  const read = (bytes: Buffer): { readonly found: boolean } | undefined => {
    const length = Math.min(bytes.length, preface.length);
    if (!bytes.subarray(0, length).equals(preface.subarray(0, length))) return { found: false };
    return bytes.length < preface.length ? undefined : { found: true };
  };
  readFirst(socket, clock, read, done);
}
