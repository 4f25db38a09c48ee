import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  lineMessages,
  type MessageFraming,
  pieceMessages,
  prefixedMessages,
} from '../../../../src/apiserver/http/web-socket-reply.ts';

/** The messages that a client of all these chunks reads. */
function read(framing: MessageFraming, chunks: readonly Buffer[]): Buffer[] {
  const messages: Buffer[] = [];
  let parts: Buffer[] = [];
  for (const chunk of chunks) {
    for (const { bytes, isLast } of framing.next(chunk)) {
      parts.push(Buffer.from(bytes));
      if (!isLast) continue;
      messages.push(Buffer.concat(parts));
      parts = [];
    }
  }
  expect(parts).toEqual([]);
  return messages;
}

/** Bytes, cut anywhere. */
const cutUp = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, i) => bytes.subarray(at[i] ?? 0, end));
};
const someCuts = fc.array(fc.nat(1000), { maxLength: 8 });

describe('messages of a WebSocket', () => {
  test('each have one line, wherever the bytes are cut', () => {
    const line = fc.string({ unit: 'grapheme' }).map((text) => `${text.replaceAll('\n', '')}\n`);
    fc.assert(
      fc.property(fc.array(line), someCuts, (lines, cuts) => {
        const messages = read(lineMessages(), cutUp(Buffer.from(lines.join('')), cuts));
        expect(messages.map(String)).toEqual(lines);
      }),
    );
  });

  test('each have one event of protobuf, without its length', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 })), someCuts, (events, cuts) => {
        const bytes = Buffer.concat(
          events.flatMap((event) => {
            const length = Buffer.alloc(4);
            length.writeUInt32BE(event.length);
            return [length, event];
          }),
        );
        const messages = read(prefixedMessages(), cutUp(bytes, cuts));
        expect(messages).toEqual(events.map((event) => Buffer.from(event)));
      }),
    );
  });

  test('of a log have what was read at once, as it is or in base64', () => {
    const pieces = [Buffer.from('first'), Buffer.from([0xff, 0x00])];
    expect(read(pieceMessages('binary'), pieces)).toEqual(pieces);
    expect(read(pieceMessages('base64'), pieces).map(String)).toEqual(['Zmlyc3Q=', '/wA=']);
  });
});
