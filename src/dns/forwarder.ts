import { randomInt } from 'node:crypto';
import type { Socket as DatagramSocket } from 'node:dgram';
import { isIPv6, type Socket } from 'node:net';
import type { Clock } from '../client/clock.ts';
import { asError, type Host } from '../host/host.ts';
import { sendDatagram } from '../host/sockets.ts';
import { headerLength, maxUdpSize, type DnsQuery } from './message.ts';
import { errorMessage } from '../objects/status.ts';

/** Bytes before each message of a TCP connection: its length (RFC 1035, 4.2.2). */
const prefixLength = 2;

/** Cuts the bytes of a TCP connection into messages, of which many may come at once (RFC 7766, 6.2.1.1). */
export class MessageFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** @returns the messages that `chunk` completes. */
  push(chunk: Buffer): Buffer[] {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const messages: Buffer[] = [];
    while (rest.length >= prefixLength) {
      const end = prefixLength + rest.readUInt16BE(0);
      if (rest.length < end) break;
      messages.push(rest.subarray(prefixLength, end));
      rest = rest.subarray(end);
    }
    this.#rest = rest;
    return messages;
  }
}

/** A message with its length before it. */
export function framed(message: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(prefixLength + message.length);
  bytes.writeUInt16BE(message.length, 0);
  message.copy(bytes, prefixLength);
  return bytes;
}

/** A DNS server for names outside the cluster. */
export interface Upstream {
  readonly address: string;
  readonly port: number;
}

export interface ForwarderOptions {
  readonly host: Host;
  readonly clock: Clock;
  /** Queried in this order; one that failed within the last {@link avoidForMs} milliseconds comes last. */
  readonly upstreams: readonly Upstream[];
}

/** Milliseconds that an upstream has for an answer. */
const answerTimeoutMs = 2000;
/** Milliseconds for all upstreams together: libc repeats a query after 5 s. */
const totalTimeoutMs = 4500;
/** Milliseconds. */
const avoidForMs = 10_000;
/** Questions at one time, as kubeadm's Corefile has it (`max_concurrent`): it also ends a circle of servers. */
const maxConcurrent = 1000;

/** Why there is no answer: one line for the log. */
export class ForwardError extends Error {
  override readonly name = 'ForwardError';
}

/** Queries other servers, each time from a new socket: port and id are random (RFC 5452). */
export class Forwarder {
  readonly #options: ForwarderOptions;
  /** Monotonic milliseconds. */
  readonly #failedAt = new Map<Upstream, number>();
  #asking = 0;

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /**
   * @param question name, type and class in wire form.
   * @param protocol that of the client: what does not fit UDP comes back truncated, and the client repeats it by TCP.
   * @returns the upstream's answer with the id 0.
   * @throws {ForwardError} where none answers in time.
   */
  async ask(
    question: Pick<DnsQuery, 'questionBytes' | 'checkingDisabled' | 'edns' | 'udpSize'>,
    protocol: 'udp' | 'tcp',
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { upstreams } = this.#options;
    if (upstreams.length === 0) throw new ForwardError('there is no upstream: --upstream names one');
    if (this.#asking >= maxConcurrent)
      throw new ForwardError(`more than ${maxConcurrent} questions wait for upstreams`);
    this.#asking++;
    try {
      return await this.#askEach(upstreamQuery(question), protocol, signal);
    } finally {
      this.#asking--;
    }
  }

  async #askEach(query: Buffer, protocol: 'udp' | 'tcp', signal: AbortSignal): Promise<Buffer> {
    const { clock } = this.#options;
    const end = clock.monotonic() + totalTimeoutMs;
    const problems: string[] = [];
    for (const upstream of this.#inOrder()) {
      const timeout = Math.min(answerTimeoutMs, end - clock.monotonic());
      if (timeout <= 0 || signal.aborted) break;
      const expired = new AbortController();
      const timer = clock.after(timeout, () =>
        expired.abort(new Error(`no answer in ${Math.round(timeout)} ms`)),
      );
      const ended = AbortSignal.any([expired.signal, signal]);
      query.writeUInt16BE(randomInt(0x10000), 0);
      try {
        const answer =
          protocol === 'udp'
            ? await this.#askByUdp(upstream, query, ended)
            : await this.#askByTcp(upstream, query, ended);
        this.#failedAt.delete(upstream);
        return answer;
      } catch (error) {
        this.#failedAt.set(upstream, clock.monotonic());
        problems.push(`${upstream.address}: ${errorMessage(error)}`);
      } finally {
        timer.cancel();
      }
    }
    throw new ForwardError(problems.join('; '));
  }

  #inOrder(): Upstream[] {
    const since = this.#options.clock.monotonic() - avoidForMs;
    const failed = (upstream: Upstream): boolean => (this.#failedAt.get(upstream) ?? -Infinity) > since;
    const { upstreams } = this.#options;
    return [...upstreams.filter((each) => !failed(each)), ...upstreams.filter((each) => failed(each))];
  }

  async #askByUdp({ address, port }: Upstream, query: Buffer, signal: AbortSignal): Promise<Buffer> {
    const socket = await this.#options.host.datagram(isIPv6(address) ? '::' : '0.0.0.0', 0);
    try {
      return await udpAnswer(socket, { address, port }, query, signal);
    } finally {
      socket.close();
    }
  }

  async #askByTcp({ address, port }: Upstream, query: Buffer, signal: AbortSignal): Promise<Buffer> {
    const socket = await this.#options.host.connect(address, port, { signal });
    try {
      return await tcpAnswer(socket, query, signal);
    } finally {
      socket.destroy();
    }
  }
}

/**
 * A query with the client's question and the parts of its EDNS that matter for the answer; the caller writes the
 * id.
 */
function upstreamQuery({
  questionBytes,
  checkingDisabled,
  edns,
  udpSize,
}: Pick<DnsQuery, 'questionBytes' | 'checkingDisabled' | 'edns' | 'udpSize'>): Buffer {
  const header = Buffer.alloc(headerLength);
  header.writeUInt16BE(0x0100 | (checkingDisabled ? 0x0010 : 0), 2);
  header.writeUInt16BE(1, 4);
  if (edns === undefined) return Buffer.concat([header, questionBytes]);
  header.writeUInt16BE(1, 10);
  const size = Math.min(udpSize, maxUdpSize);
  const opt = [0, 0, 41, size >> 8, size & 255, 0, 0, edns.dnssecOk ? 0x80 : 0, 0, 0, 0];
  return Buffer.concat([header, questionBytes, Buffer.from(opt)]);
}

function udpAnswer(
  socket: DatagramSocket,
  { address, port }: Upstream,
  query: Buffer,
  signal: AbortSignal,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(asError(signal.reason));
    if (signal.aborted) {
      onAbort();
      return;
    }
    signal.addEventListener('abort', onAbort, { once: true });
    const finish = (): void => signal.removeEventListener('abort', onAbort);
    socket.on('error', (error) => {
      finish();
      reject(error);
    });
    socket.on('message', (bytes) => {
      // Anything else is not from the upstream, or not about this question: the true answer may still come.
      if (!answers(query, bytes)) return;
      finish();
      resolve(answerTo(query, bytes));
    });
    // Connected: the kernel takes packets of this upstream alone, and reports that its port is closed.
    socket.once('connect', () => sendDatagram(socket, query, undefined));
    socket.connect(port, address);
  });
}

function tcpAnswer(socket: Socket, query: Buffer, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(asError(signal.reason));
    signal.addEventListener('abort', onAbort, { once: true });
    const finish = (): void => signal.removeEventListener('abort', onAbort);
    const fail = (error: Error): void => {
      finish();
      reject(error);
    };
    const frames = new MessageFrames();
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('the connection was closed')));
    socket.on('data', (chunk) => {
      for (const bytes of frames.push(chunk)) {
        if (!answers(query, bytes)) continue;
        finish();
        resolve(answerTo(query, bytes));
      }
    });
    socket.write(framed(query));
    if (signal.aborted) onAbort();
  });
}

/** True for a packet with the id and the question of a query: names are compared without their case (RFC 4343). */
function answers(query: Buffer, bytes: Buffer): boolean {
  if (bytes.length < headerLength || bytes.readUInt16BE(0) !== query.readUInt16BE(0)) return false;
  if ((bytes.readUInt16BE(2) & 0x8000) === 0 || bytes.readUInt16BE(4) > 1) return false;
  // A server that cannot read the question repeats none.
  if (bytes.readUInt16BE(4) === 0) return (bytes.readUInt16BE(2) & 15) !== 0;
  const end = questionEnd(query);
  if (bytes.length < end) return false;
  for (let at = headerLength; at < end; at++) {
    const isName = at < end - typeAndClassLength;
    const [asked = 0, repeated = 0] = [query[at], bytes[at]];
    if (asked !== repeated && !(isName && lowerCase(asked) === lowerCase(repeated))) return false;
  }
  return true;
}

/** A byte of a name; lengths of labels are below all letters. */
function lowerCase(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}

/** Bytes of a question behind its name. */
const typeAndClassLength = 4;

function questionEnd(query: Buffer): number {
  let at = headerLength;
  for (let length = query[at] ?? 0; length !== 0; length = query[at] ?? 0) at += length + 1;
  return at + 1 + typeAndClassLength;
}

/** The answer with the id 0, and with the question as it was asked: clients may compare its case. */
function answerTo(query: Buffer, bytes: Buffer): Buffer {
  const answer = Buffer.from(bytes);
  answer.writeUInt16BE(0, 0);
  if (answer.readUInt16BE(4) === 1) query.copy(answer, headerLength, headerLength, questionEnd(query));
  return answer;
}
