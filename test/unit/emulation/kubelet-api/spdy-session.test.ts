import { describe, expect, test } from 'vitest';
import {
  dataFrame,
  HeaderBlocks,
  resetFrame,
  SpdyError,
  SpdyReader,
} from '../../../../src/emulation/kubelet-api/spdy-frames.ts';
import { SpdySession, type SpdyStream } from '../../../../src/emulation/kubelet-api/spdy-session.ts';
import { TurnWatchdog } from '../../../support/watchdog/turns.ts';

/** A SYN_STREAM as moby/spdystream writes it. */
function synStream(id: number, block: Buffer, flags = 0): Buffer {
  const frame = Buffer.alloc(18);
  frame.writeUInt32BE(0x8003_0001, 0);
  frame.writeUInt32BE((flags << 24) + 10 + block.length, 4);
  frame.writeUInt32BE(id, 8);
  return Buffer.concat([frame, block]);
}

/** A connection of one client, with what the server sent. */
function connection() {
  const sent: Buffer[] = [];
  const streams: SpdyStream[] = [];
  const client = new HeaderBlocks();
  const session = new SpdySession(
    async (bytes) => {
      sent.push(bytes);
      await Promise.resolve();
    },
    (stream) => streams.push(stream),
  );
  const open = async (id: number, headers: Record<string, string>): Promise<SpdyStream> => {
    await session.receive(synStream(id, await client.write(new Map(Object.entries(headers)))));
    return streams.at(-1) ?? expect.unreachable();
  };
  return { session, open, client, sent };
}

async function textOf(stream: SpdyStream): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}

describe('a SPDY connection', () => {
  test('has streams with headers, of which many share one compression', async () => {
    const { open, sent, client } = connection();
    const first = await open(1, { streamType: 'error', port: '80', requestID: '0' });
    const second = await open(3, { streamType: 'data', port: '80', requestID: '0' });
    expect([...first.headers]).toEqual([
      ['streamtype', 'error'],
      ['port', '80'],
      ['requestid', '0'],
    ]);
    expect(second.headers.get('streamtype')).toBe('data');
    for (const [index, id] of [1, 3].entries()) {
      const reply = sent[index] ?? expect.unreachable();
      expect([reply.readUInt32BE(0), reply.readUInt32BE(8)]).toEqual([0x8003_0002, id]);
      expect(await client.read(reply.subarray(12))).toEqual(new Map());
    }
  });

  test('carries data both ways, and each side ends by itself', async () => {
    const { open, session, sent } = connection();
    const stream = await open(1, { streamtype: 'data' });
    const bytes = Buffer.concat([
      dataFrame(1, Buffer.from('he'), false),
      dataFrame(1, Buffer.from('llo'), true),
    ]);
    // However the bytes are cut.
    const received = textOf(stream);
    for (const byte of bytes) await session.receive(Buffer.from([byte]));
    expect(await received).toBe('hello');
    sent.length = 0;
    await new Promise<void>((resolve) => stream.end('bye', () => resolve()));
    expect(Buffer.concat(sent)).toEqual(
      Buffer.concat([dataFrame(1, Buffer.from('bye'), false), dataFrame(1, Buffer.alloc(0), true)]),
    );
  });

  test('answers pings, forgets streams that are reset, and leaves others aside', async () => {
    const { open, session, sent } = connection();
    const stream = await open(1, { streamtype: 'data' });
    sent.length = 0;
    const ping = Buffer.from('800300060000000400000007', 'hex');
    const settings = Buffer.from('800300040000000400000000', 'hex');
    await session.receive(
      Buffer.concat([settings, ping, resetFrame(1, 5), dataFrame(9, Buffer.from('x'), true)]),
    );
    expect(sent).toEqual([ping]);
    expect(stream.destroyed).toBe(true);
  });

  test('waits for a stream that is not read', async () => {
    const { open, session } = connection();
    const stream = await open(1, { streamtype: 'data' });
    let isRead = false;
    const received = session.receive(dataFrame(1, Buffer.alloc(1024 * 1024), false)).then(() => isRead);
    await new Promise((resolve) => setImmediate(resolve));
    isRead = true;
    stream.resume();
    expect(await received).toBe(true);
  });

  test.each([
    ['another version', '800200010000000a00000000000000000000'],
    ['a long control frame', '8003000100ffffff'],
    ['a short frame', '80030006000000020000'],
    ['headers that do not decompress', '800300010000000e000000010000000000000bad0bad'],
  ])('is refused for %s', async (_what, hex) => {
    const { session } = connection();
    await expect(session.receive(Buffer.from(hex, 'hex'))).rejects.toThrow(SpdyError);
  });

  test('is refused for headers that decompress to too much', async () => {
    const { session, client } = connection();
    const block = await client.write(new Map([['a', 'b'.repeat(1_000_000)]]));
    expect(block.length).toBeLessThan(10_000);
    await expect(session.receive(synStream(1, block))).rejects.toThrow('headers are too long');
  });

  test('takes many frames at once, and one in many pieces, in short turns', async () => {
    const { session, open, sent } = connection();
    const stream = await open(1, { streamType: 'data', port: '80', requestID: '0' });
    const bytes = 1024 * 1024;
    stream.resume();
    const watchdog = new TurnWatchdog();
    const ping = Buffer.from('800300060000000400000007', 'hex');
    const pings = 300_000;
    await session.receive(Buffer.alloc(pings * ping.length, ping));
    const frame = dataFrame(1, Buffer.alloc(bytes), false);
    let received = 0;
    stream.on('data', (chunk: Buffer) => (received += chunk.length));
    for (let at = 0; at < frame.length; at += 64) await session.receive(frame.subarray(at, at + 64));
    const longest = watchdog.longest();
    watchdog.stop();
    expect(sent.filter((each) => each.equals(ping))).toHaveLength(pings);
    expect(received).toBe(bytes);
    // Milliseconds of CPU.
    expect(longest).toBeLessThan(200);
  });

  test('compresses with the dictionary of the specification', async () => {
    // The zlib header names a dictionary by its Adler-32 (draft-mbelshe-httpbis-spdy-00, 2.6.10.1).
    const block = await new HeaderBlocks().write(new Map([['a', 'b']]));
    expect(block.subarray(2, 6).toString('hex')).toBe('e3c6a7c2');
  });
});

test('a reader keeps nothing of what it has given out', () => {
  const reader = new SpdyReader();
  const frames = (bytes: Buffer) => [...reader.push(bytes)];
  expect(frames(dataFrame(1, Buffer.from('a'), false).subarray(0, 5))).toEqual([]);
  expect(frames(dataFrame(1, Buffer.from('a'), false).subarray(5))).toHaveLength(1);
  expect(frames(Buffer.alloc(0))).toEqual([]);
});
