import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { encode } from 'dns-packet';

const inFlight = 64;

/** Asks a DNS server of 127.0.0.1 over UDP, without EDNS. */
export class DnsClient {
  readonly #socket: Socket;
  readonly #port: number;

  private constructor(socket: Socket, port: number) {
    this.#socket = socket;
    this.#port = port;
  }

  static async open(port: number): Promise<DnsClient> {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return new DnsClient(socket, port);
  }

  /** Asks for the addresses of the Services in turn, so many times, some at once; what gets lost is asked again. */
  async ask(services: readonly string[], count: number): Promise<void> {
    const packets = services.map(query);
    let sent = 0;
    let answered = 0;
    const send = (): void => this.#send(packets[sent++ % packets.length] ?? Buffer.alloc(0));
    const next = (): void => {
      if (sent < count) send();
    };
    await new Promise<void>((resolve) => {
      const lost = setInterval(send, 1000);
      this.#socket.on('message', () => {
        answered++;
        if (answered >= count) {
          clearInterval(lost);
          resolve();
        } else next();
      });
      for (let i = 0; i < inFlight; i++) next();
    });
    this.#socket.removeAllListeners('message');
  }

  /** Until the name of a Service has an address. */
  async untilResolved(service: string): Promise<void> {
    const packet = query(service);
    await new Promise<void>((resolve) => {
      const send = (): void => this.#send(packet);
      // Before the server listens, nothing answers.
      const again = setInterval(send, 100);
      this.#socket.on('message', (bytes: Buffer) => {
        if (bytes.readUInt16BE(6) === 0) {
          setTimeout(send, 1);
          return;
        }
        clearInterval(again);
        resolve();
      });
      send();
    });
    this.#socket.removeAllListeners('message');
  }

  close(): void {
    this.#socket.close();
  }

  #send(packet: Buffer): void {
    this.#socket.send(packet, this.#port, '127.0.0.1');
  }
}

/** A query for the A records of a Service in the namespace `shop`. */
function query(service: string): Buffer {
  const questions = [{ name: `${service}.shop.svc.cluster.local`, type: 'A' as const }];
  return encode({ type: 'query', id: 1, flags: 0x0100, questions });
}
