import { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';
import type { Clock } from '../client/clock.ts';

/** The result of reading the first bytes of a connection. */
type ClientHello =
  /** More bytes are needed. */
  | { readonly kind: 'incomplete' }
  /** A ClientHello; `serverName` is undefined where it names no host. */
  | { readonly kind: 'hello'; readonly serverName: string | undefined }
  /** No TLS. */
  | { readonly kind: 'other' };

/** The most bytes that a ClientHello may take, over all its records: with post-quantum keys some take 2 KiB. */
const maxHello = 16 * 1024;

const handshakeRecord = 22;
const clientHello = 1;
const serverNameExtension = 0;
const hostName = 0;

/** Reads the host name of a TLS ClientHello (RFC 8446, 4.1.2; RFC 6066, 3), which may be split over records. */
export function readClientHello(bytes: Buffer): ClientHello {
  const message: Buffer[] = [];
  let size = 0;
  for (let at = 0; ;) {
    if (bytes.length > at && bytes[at] !== handshakeRecord) return { kind: 'other' };
    if (bytes.length < at + 5) break;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0) return { kind: 'other' };
    const piece = bytes.subarray(at + 5, at + 5 + length);
    message.push(piece);
    size += piece.length;
    at += 5 + length;
    if (at >= bytes.length) break;
  }
  const [first] = message;
  if (first === undefined || size < 4) return { kind: 'incomplete' };
  const whole = message.length === 1 ? first : Buffer.concat(message, size);
  if (whole[0] !== clientHello) return { kind: 'other' };
  const length = whole.readUIntBE(1, 3);
  if (length > maxHello) return { kind: 'other' };
  if (size < 4 + length) return { kind: 'incomplete' };
  try {
    return { kind: 'hello', serverName: serverNameOf(whole.subarray(4, 4 + length)) };
  } catch (error) {
    if (error instanceof RangeError) return { kind: 'other' };
    throw error;
  }
}

/** @throws {RangeError} where a length leads beyond the end. */
function serverNameOf(hello: Buffer): string | undefined {
  let at = 2 + 32;
  at += 1 + hello.readUInt8(at); // session
  at += 2 + hello.readUInt16BE(at); // cipher suites
  at += 1 + hello.readUInt8(at); // compression
  if (at >= hello.length) return undefined;
  const end = at + 2 + hello.readUInt16BE(at);
  if (end > hello.length) throw new RangeError('the extensions are cut');
  for (at += 2; at < end;) {
    const type = hello.readUInt16BE(at);
    const length = hello.readUInt16BE(at + 2);
    at += 4;
    if (at + length > end) throw new RangeError('an extension is cut');
    if (type === serverNameExtension && length >= 5 && hello.readUInt8(at + 2) === hostName) {
      const size = hello.readUInt16BE(at + 3);
      if (size + 5 > length) throw new RangeError('the name is cut');
      return hello.toString('latin1', at + 5, at + 5 + size).toLowerCase();
    }
    at += length;
  }
  return undefined;
}

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
