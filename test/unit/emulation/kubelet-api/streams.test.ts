import { duplexPair, type Duplex } from 'node:stream';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ExecStreams, TerminalSize } from '../../../../src/controllers/kubelet/container-runtime.ts';
import {
  dataFrame,
  HeaderBlocks,
  resetFrame,
  SpdyReader,
} from '../../../../src/emulation/kubelet-api/spdy-frames.ts';
import { drawsOf } from '../../../support/fuzz/hostile-bytes.ts';
import { serveSpdyCommand } from '../../../../src/emulation/kubelet-api/streams.ts';

const goAway = 0x8003_0007;

/** A client of SPDY as client-go is one: it opens a stream for each that it wants, and writes when it has its replies. */
class Client {
  readonly #connection: Duplex;
  readonly #headers = new HeaderBlocks();
  readonly #ids = new Map<string, number>();
  /** What came on each stream, and whether it has ended. */
  readonly heard = new Map<number, { bytes: string; isEnded: boolean }>();
  readonly resets: number[] = [];
  readonly pings: number[] = [];
  /** Types of control frames that the reader of the server has no word for. */
  hasGoneAway = false;

  constructor(connection: Duplex) {
    this.#connection = connection;
  }

  async open(...types: readonly string[]): Promise<void> {
    for (const type of types) {
      const id = 1 + 2 * this.#ids.size;
      this.#ids.set(type, id);
      const block = await this.#headers.write(new Map([['streamtype', type]]));
      const frame = Buffer.alloc(18);
      frame.writeUInt32BE(0x8003_0001, 0);
      frame.writeUInt32BE(10 + block.length, 4);
      frame.writeUInt32BE(id, 8);
      this.#connection.write(Buffer.concat([frame, block]));
    }
  }

  id(type: string): number {
    return this.#ids.get(type) ?? 0;
  }

  send(type: string, bytes: string, isLast = false): void {
    this.raw(dataFrame(this.id(type), Buffer.from(bytes), isLast));
  }

  raw(bytes: Buffer): void {
    this.#connection.write(bytes);
  }

  /** Reads until the server closes. */
  async read(): Promise<void> {
    const reader = new SpdyReader();
    for await (const chunk of this.#connection) {
      if (!Buffer.isBuffer(chunk)) continue;
      this.hasGoneAway ||= chunk.length >= 8 && chunk.readUInt32BE(0) === goAway;
      for (const frame of reader.push(chunk)) {
        if (frame.kind === 'headers') this.heard.set(frame.stream, { bytes: '', isEnded: false });
        if (frame.kind === 'reset') this.resets.push(frame.stream);
        if (frame.kind === 'ping') this.pings.push(frame.id);
        const stream = frame.kind === 'data' ? this.heard.get(frame.stream) : undefined;
        if (frame.kind !== 'data' || stream === undefined) continue;
        stream.bytes += frame.payload.toString();
        stream.isEnded = frame.isLast;
      }
    }
    this.#connection.end();
  }

  of(type: string): { bytes: string; isEnded: boolean } | undefined {
    return this.heard.get(this.id(type));
  }
}

const all = { stdin: true, stdout: true, stderr: true, tty: false };

function serve(
  protocol: string,
  wanted: typeof all,
  run: (streams: ExecStreams) => Promise<number>,
): { client: Client; served: Promise<void>; cut: () => void } {
  const [near, far] = duplexPair();
  const served = serveSpdyCommand(near, Buffer.alloc(0), protocol, wanted, run);
  return { client: new Client(far), served, cut: () => void near.destroy() };
}

const exitOf = (code: number) => ({
  metadata: {},
  status: 'Failure',
  message: `command terminated with non-zero exit code: exit status ${code}`,
  reason: 'NonZeroExitCode',
  details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
});

/** Prints what it reads, and exits with 3. */
const echo = async ({ stdin, stdout, stderr }: ExecStreams): Promise<number> => {
  const read = stdin === undefined ? '' : await text(stdin);
  stdout.write(`out ${read}`);
  stderr.write('err');
  return 3;
};

describe('a program over SPDY', () => {
  test.each([
    ['v4.channel.k8s.io', JSON.stringify(exitOf(3))],
    ['v3.channel.k8s.io', exitOf(3).message],
    ['v2.channel.k8s.io', exitOf(3).message],
    ['channel.k8s.io', exitOf(3).message],
  ])('has its streams, which end, and its exit by %s', async (protocol, report) => {
    const { client, served } = serve(protocol, all, echo);
    await client.open('error', 'stdin', 'stdout', 'stderr');
    client.send('stdin', 'in');
    client.send('stdin', 'put', true);
    await Promise.all([client.read(), served]);
    expect(client.of('stdout')).toEqual({ bytes: 'out input', isEnded: true });
    expect(client.of('stderr')).toEqual({ bytes: 'err', isEnded: true });
    expect(client.of('error')).toEqual({ bytes: report, isEnded: true });
    expect(client.hasGoneAway).toBe(true);
  });

  test.each([
    ['v4.channel.k8s.io', '{"metadata":{},"status":"Success"}'],
    ['channel.k8s.io', ''],
  ])('that succeeds says so by %s', async (protocol, report) => {
    const { client, served } = serve(protocol, { ...all, stdin: false }, async () => Promise.resolve(0));
    await client.open('error', 'stdout', 'stderr');
    await Promise.all([client.read(), served]);
    expect(client.of('error')).toEqual({ bytes: report, isEnded: true });
  });

  test('has a terminal whose sizes come by a stream of their own, in any pieces', async () => {
    const sizes: TerminalSize[] = [];
    const seen = Promise.withResolvers<undefined>();
    const { client, served } = serve(
      'v4.channel.k8s.io',
      { ...all, stderr: false, tty: true },
      async (streams) => {
        streams.terminal?.onResize((size) => {
          if (sizes.push(size) === 2) seen.resolve(undefined);
        });
        await seen.promise;
        return 0;
      },
    );
    await client.open('stdout', 'resize', 'stdin', 'error');
    client.send('resize', '{"Width":80,"Height":24}\n{"Wid');
    client.send('resize', 'th":91,"Height":17}\n{"Width":-1,"Height":1}');
    await Promise.all([client.read(), served]);
    expect(sizes).toEqual([
      { columns: 80, rows: 24 },
      { columns: 91, rows: 17 },
    ]);
  });

  test('has no stream of sizes before v3', async () => {
    const wanted = { ...all, stdin: false, stderr: false, tty: true };
    const { client, served } = serve('v2.channel.k8s.io', wanted, async () => Promise.resolve(0));
    await client.open('error', 'stdout');
    await Promise.all([client.read(), served]);
    expect(client.of('error')).toEqual({ bytes: '', isEnded: true });
  });

  test('gets pings answered, strange streams reset, and goes on where output is not wanted any more', async () => {
    const go = Promise.withResolvers<undefined>();
    const { client, served } = serve('v4.channel.k8s.io', all, async ({ stdout, stderr }) => {
      await go.promise;
      stdout.write('nobody reads this');
      stderr.write('but this');
      return 0;
    });
    await client.open('error', 'stranger', 'stdin', 'stdout', 'stderr');
    client.raw(resetFrame(client.id('stdout'), 5));
    for (const id of ['00000007', '00000008']) client.raw(Buffer.from(`8003000600000004${id}`, 'hex'));
    // WINDOW_UPDATE, SETTINGS and NOOP-like frames say nothing here.
    client.raw(Buffer.from('8003000900000008000000010000ffff', 'hex'));
    client.raw(Buffer.from('800300040000000400000000', 'hex'));
    const read = client.read();
    setImmediate(() => go.resolve(undefined));
    await Promise.all([read, served]);
    expect(client.resets).toEqual([client.id('stranger')]);
    expect(client.pings).toEqual([7]);
    expect(client.of('stdout')).toEqual({ bytes: '', isEnded: false });
    expect(client.of('stderr')?.bytes).toBe('but this');
    expect(client.of('error')?.bytes).toBe('{"metadata":{},"status":"Success"}');
  });

  test('gets all that its client has sent before it went, and then the end', async () => {
    const heard = Promise.withResolvers<string>();
    const { client, served, cut } = serve('v4.channel.k8s.io', all, async ({ stdin, signal }) => {
      await delay(1);
      cut();
      if (signal?.aborted === false) await once(signal, 'abort');
      heard.resolve(stdin === undefined ? '' : await text(stdin));
      return 0;
    });
    await client.open('error', 'stdin', 'stdout', 'stderr');
    client.send('stdin', 'x'.repeat(50_000));
    await served;
    expect((await heard.promise).length).toBe(50_000);
  });

  test('learns that its client is gone', async () => {
    const { client, served, cut } = serve(
      'v4.channel.k8s.io',
      { ...all, stdin: false },
      async ({ signal }) => {
        setImmediate(cut);
        return new Promise((_resolve, reject) =>
          signal?.addEventListener('abort', () => reject(new Error('gone')), { once: true }),
        );
      },
    );
    await client.open('error', 'stdout', 'stderr');
    await served;
    expect(client.heard.size).toBe(0);
  });
});

test('a client that sends what is almost SPDY ends its connection, and nothing else', async () => {
  const draw = drawsOf(31);
  const noise = (most: number): Buffer => Buffer.from(Array.from({ length: draw(most) }, () => draw(256)));
  for (let round = 0; round < 300; round++) {
    const { client, served, cut } = serve('v4.channel.k8s.io', all, echo);
    const read = client.read();
    await client.open('error', 'stdin', ...(draw(2) === 0 ? ['stdout', 'stderr'] : ['stdout']));
    for (let n = draw(6); n > 0; n--) {
      const body = noise(40);
      const header = Buffer.alloc(8);
      // A control frame of any type, or data of any stream.
      header.writeUInt32BE(draw(2) === 0 ? 0x8003_0000 + draw(12) : draw(12));
      header.writeUInt32BE((draw(4) << 24) + (draw(8) === 0 ? draw(0xff_ffff) : body.length), 4);
      client.raw(Buffer.concat([header, body]));
    }
    if (draw(2) === 0) client.raw(noise(20));
    setImmediate(cut);
    await Promise.allSettled([read, served]);
  }
});

test.each([
  [false, 'error executing command in container: the sandbox is gone'],
  [true, 'error attaching to container: the sandbox is gone'],
])('a failure has the words of the kubelet (attach: %s)', async (isAttach, words) => {
  const wanted = { ...all, isAttach, stdin: false };
  const { client, served } = serve('v4.channel.k8s.io', wanted, async () =>
    Promise.reject(new Error('the sandbox is gone')),
  );
  await client.open('error', 'stdout', 'stderr');
  await Promise.all([client.read(), served]);
  expect(JSON.parse(client.of('error')?.bytes ?? '')).toMatchObject({
    ...{ status: 'Failure', reason: 'InternalError', code: 500 },
    message: `Internal error occurred: ${words}`,
  });
});
