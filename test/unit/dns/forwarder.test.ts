import fc from 'fast-check';
import { expect, test } from 'vitest';
import { localHost } from '../../../src/host/local-host.ts';
import { systemClock } from '../../../src/client/clock.ts';
import { Forwarder, framed, MessageFrames } from '../../../src/dns/forwarder.ts';

test('messages come out as they went in, wherever the stream is cut', () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 });
  fc.assert(
    fc.property(messages, fc.integer({ min: 1, max: 700 }), (sent, step) => {
      const stream = Buffer.concat(sent.map((message) => framed(Buffer.from(message))));
      const frames = new MessageFrames();
      const got: Buffer[] = [];
      for (let at = 0; at < stream.length; at += step)
        got.push(...frames.push(stream.subarray(at, at + step)));
      expect(got).toEqual(sent.map((message) => Buffer.from(message)));
    }),
  );
});

test('an upstream that the kernel refuses to send to is a problem of its question alone', async () => {
  const upstreams = [{ address: '255.255.255.255', port: 53 }];
  const forwarder = new Forwarder({ host: localHost, clock: systemClock, upstreams });
  const question = { questionBytes: Buffer.alloc(5), checkingDisabled: false, edns: undefined, udpSize: 512 };
  const asked = forwarder.ask(question, 'udp', new AbortController().signal);
  await expect(asked).rejects.toThrow('255.255.255.255: ');
});
