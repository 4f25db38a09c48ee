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
