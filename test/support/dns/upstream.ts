import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { AUTHORITATIVE_ANSWER, decode, encode, TRUNCATED_RESPONSE } from 'dns-packet';
import { MessageFrames } from '../../../src/dns/forwarder.ts';

/**
 * A server of the names outside, which repeats them in lower case. `example.com` has 192.0.2.80; `big.example.com` does
 * not fit UDP, `wide.example.com` does not either, and comes whole; `forged.example.com` is answered with a wrong id, then truly; `silent.example.com` not at all.
 */
export class FakeUpstream {
  readonly asked: string[] = [];
  readonly ids: number[] = [];
  readonly clientPorts: number[] = [];
  readonly #udp: Socket;
  readonly #tcp: Server;

  private constructor(udp: Socket) {
    this.#udp = udp;
    udp.on('message', (bytes, client) => {
      const { id = 0, questions = [] } = decode(bytes);
      const [question] = questions;
      if (question === undefined) return;
      this.asked.push(`${question.type} ${question.name}`);
      this.ids.push(id);
      this.clientPorts.push(client.port);
      if (question.name.startsWith('silent.')) return;
      if (question.name.startsWith('forged.')) {
        udp.send(this.#answer(bytes, { id: id ^ 1, address: '192.0.2.66' }), client.port, client.address);
      }
      const isBig = question.name.startsWith('big.');
      const isWide = question.name.startsWith('wide.');
      udp.send(
        this.#answer(bytes, isBig ? { flags: TRUNCATED_RESPONSE, count: 0 } : isWide ? { count: 50 } : {}),
        client.port,
        client.address,
      );
    });
    this.#tcp = createServer((socket) => {
      const frames = new MessageFrames();
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        for (const bytes of frames.push(chunk)) {
          const framed = Buffer.alloc(2);
          const reply = this.#answer(bytes, { count: 100 });
          framed.writeUInt16BE(reply.length);
          socket.write(Buffer.concat([framed, reply]));
        }
      });
    });
  }

  static async start(): Promise<FakeUpstream> {
    // The port that UDP got may be in use by TCP.
    for (;;) {
      const udp = createSocket('udp4');
      udp.bind(0, '127.0.0.1');
      await once(udp, 'listening');
      const upstream = new FakeUpstream(udp);
      try {
        upstream.#tcp.listen(upstream.port, '127.0.0.1');
        await once(upstream.#tcp, 'listening');
        return upstream;
      } catch {
        udp.close();
      }
    }
  }

  get port(): number {
    return this.#udp.address().port;
  }

  async close(): Promise<void> {
    this.#udp.close();
    this.#tcp.close();
    await once(this.#tcp, 'close');
  }

  #answer(
    bytes: Buffer,
    {
      id,
      address = '192.0.2.80',
      count = 1,
      flags = 0,
    }: { id?: number; address?: string; count?: number; flags?: number },
  ): Buffer {
    const query = decode(bytes);
    const questions = (query.questions ?? []).map((each) => ({ ...each, name: each.name.toLowerCase() }));
    const [question] = questions;
    const name = question?.name ?? '';
    const has = question?.type === 'A' && name.toLowerCase().endsWith('example.com');
    return encode({
      type: 'response',
      id: id ?? query.id ?? 0,
      flags: AUTHORITATIVE_ANSWER | flags,
      questions,
      answers: has
        ? Array.from({ length: count }, (_, i) => ({
            name,
            type: 'A' as const,
            ttl: 60,
            data: i === 0 ? address : `192.0.2.${i}`,
          }))
        : [],
    });
  }
}
