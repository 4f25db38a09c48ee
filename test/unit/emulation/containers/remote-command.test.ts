import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { writeTo } from '../../../../src/emulation/containers/remote-command.ts';

/** A stream that takes a chunk when it is told to. */
function slowStream() {
  const taken: string[] = [];
  let take: (() => void) | undefined;
  const stream = new Writable({
    highWaterMark: 10,
    write: (chunk: Buffer, _encoding, done) => {
      take = () => {
        taken.push(chunk.toString());
        done();
      };
    },
  });
  return { stream, taken, take: () => take?.() };
}

test('a stream that does not take what is written has no room, and no more than so many bytes wait in it', async () => {
  const { stream, taken, take } = slowStream();
  expect(writeTo(stream, Buffer.from('four'), 20)).toBeUndefined();
  const room = ['eight...', 'other...', 'lost', 'lost'].map((text) => writeTo(stream, Buffer.from(text), 20));
  expect(room.every((each) => each instanceof Promise)).toBe(true);
  expect(stream.writableLength).toBe('foureight...other...'.length);
  for (let i = 0; i < 3; i++) {
    take();
    await Promise.resolve();
  }
  await Promise.all(room.filter((each) => each !== undefined));
  expect(writeTo(stream, Buffer.from('more'), 20)).toBeUndefined();
  take();
  expect(taken).toEqual(['four', 'eight...', 'other...', 'more']);
});

test('a stream that has ended has room, and those who wait for it go on', async () => {
  const { stream } = slowStream();
  const room = writeTo(stream, Buffer.from('0123456789'));
  stream.destroy();
  await room;
  expect(writeTo(stream, Buffer.from('more'))).toBeUndefined();
});
