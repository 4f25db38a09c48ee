import { decodeMessageBody } from './decode.ts';
import { errorCode, maxMessageLength, type BGPMessage, ProtocolError } from './message.ts';

const markerLength = 16;
const headerLength = 19;

/** Bytes of the shortest message of each type (RFC 4271 §4), by its number; ROUTE-REFRESH is RFC 2918. */
const minLengths: Readonly<Record<number, number>> = { 1: 29, 2: 23, 3: 21, 4: 19, 5: 23 };

/** Cuts the stream of a TCP connection into messages. */
export class MessageStream {
  /** Whether AS paths have 4-byte numbers, which the OPEN messages of both sides decide. */
  fourByteAs = false;
  #rest: Uint8Array = new Uint8Array();

  /**
   * The messages that are complete with these bytes, in order; one at a time, so that those before a broken one are seen.
   *
   * @throws {ProtocolError} for what is no message; the stream cannot be read any further.
   */
  *push(chunk: Uint8Array): Generator<BGPMessage, void> {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= headerLength) {
      const length = checkHeader(bytes);
      if (bytes.length < length) break;
      const body = bytes.subarray(headerLength, length);
      const type = bytes[18] ?? 0;
      bytes = bytes.subarray(length);
      this.#rest = bytes;
      yield decodeMessageBody(type, body, this.fourByteAs);
    }
    // A copy: the chunk's memory is the socket's, and usually much larger.
    this.#rest = Uint8Array.from(bytes);
  }
}

/** The length in a header. @throws {ProtocolError} RFC 4271 §6.1. */
function checkHeader(bytes: Uint8Array): number {
  for (let i = 0; i < markerLength; i++) {
    if (bytes[i] !== 0xff) throw new ProtocolError('the marker is not all ones', errorCode.messageHeader, 1);
  }
  const length = ((bytes[16] ?? 0) << 8) | (bytes[17] ?? 0);
  const type = bytes[18] ?? 0;
  const minLength = minLengths[type];
  if (minLength === undefined) {
    throw new ProtocolError(
      `there is no message type ${type}`,
      errorCode.messageHeader,
      3,
      Uint8Array.of(type),
    );
  }
  const isExact = type === 4 || type === 5;
  if (length < minLength || length > maxMessageLength || (isExact && length !== minLength)) {
    const said = bytes.slice(16, 18);
    throw type === 5 && length > minLength && length <= maxMessageLength
      ? new ProtocolError(
          'a ROUTE-REFRESH of a wrong length',
          errorCode.routeRefresh,
          1,
          bytes.slice(0, headerLength),
        )
      : new ProtocolError(`a message of type ${type} with ${length} bytes`, errorCode.messageHeader, 2, said);
  }
  return length;
}
