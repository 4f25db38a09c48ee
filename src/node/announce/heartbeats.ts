import type { Socket } from 'node:dgram';
import type { Logger } from 'pino';
import type { Host } from '../../host/host.ts';
import { parseAddress } from '../../objects/address.ts';
import { isRecord } from '../../objects/json.ts';

/** What another agent says. */
export interface Heartbeat {
  readonly node: string;
  readonly hasLostAPI: boolean;
}

/** Bytes of a heartbeat, at most: a node's name has 253. */
const maxLength = 512;

/**
 * Heartbeats of agents to each other over UDP, by which they know that the others live while the API server is away. A
 * heartbeat counts only from an address of the node that it names.
 */
export class Heartbeats {
  readonly #host: Host;
  readonly #port: number;
  readonly #log: Logger;
  #sockets: readonly Socket[] = [];

  /** @param port the same on all nodes. */
  constructor(host: Host, port: number, log: Logger) {
    this.#host = host;
    this.#port = port;
    this.#log = log;
  }

  /**
   * Listens on addresses of the node.
   *
   * @throws the system's error where the port is taken.
   */
  async open(
    addresses: readonly string[],
    heard: (heartbeat: Heartbeat, from: string) => void,
  ): Promise<void> {
    const sockets: Socket[] = [];
    this.#sockets = sockets;
    for (const address of addresses) {
      const socket = await this.#host.datagram(address, this.#port);
      sockets.push(socket);
      socket.on('message', (bytes, { address: from }) => {
        const heartbeat = readHeartbeat(bytes);
        if (heartbeat !== undefined) heard(heartbeat, parseAddress(from)?.canonical ?? from);
      });
      // A node that is gone answers with ICMP errors, which are of no use.
      socket.on('error', (error) => this.#log.debug({ err: error }, 'heartbeat not sent'));
    }
  }

  /** Sends one to each address. */
  send({ node, hasLostAPI }: Heartbeat, addresses: Iterable<string>): void {
    const bytes = JSON.stringify({ node, hasLostAPI });
    for (const address of addresses) {
      const socket = this.#sockets.find((one) => one.address().family === familyOf(address));
      socket?.send(bytes, this.#port, address, (error) => {
        if (error !== null) this.#log.debug({ address, err: error }, 'heartbeat not sent');
      });
    }
  }

  close(): void {
    for (const socket of this.#sockets) socket.close();
    this.#sockets = [];
  }
}

function familyOf(address: string): string {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}

function readHeartbeat(bytes: Buffer): Heartbeat | undefined {
  if (bytes.length > maxLength) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString());
    if (!isRecord(value)) return undefined;
    const { node, hasLostAPI } = value;
    if (typeof node !== 'string' || typeof hasLostAPI !== 'boolean') return undefined;
    return { node, hasLostAPI };
  } catch {
    return undefined;
  }
}
