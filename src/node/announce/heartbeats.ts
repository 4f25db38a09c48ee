import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:dgram';
import type { Logger } from 'pino';
import type { Host } from '../../host/host.ts';
import { parseAddress } from '../../objects/address.ts';
import { scalarAt, textAt, textsAt } from '../../objects/read.ts';

/** An agent asks whether it may keep addresses. */
export interface KeepQuestion {
  readonly node: string;
  /** Canonical. */
  readonly addresses: readonly string[];
}

/** An agent consents that the one that asked keeps its addresses. */
export interface Consent {
  readonly node: string;
  /** When it was asked, as given to {@link Heartbeats.ask}. */
  readonly askedAt: number;
  /** Those that it is to release: the agent that consents has them. */
  readonly except: readonly string[];
}

/** Messages of other agents. */
export interface HeartbeatHandler {
  /** @returns the addresses to release; undefined: no consent. */
  readonly asked: (question: KeepQuestion, from: string) => readonly string[] | undefined;
  readonly consented: (consent: Consent, from: string) => void;
}

/** Bytes of a datagram, at most: some 3,000 addresses. */
const maxLength = 65_507;

/**
 * Questions of agents without the API server to each other over UDP, and consents. The receiver checks that
 * it came from an address of the node that it names.
 */
export class Heartbeats {
  readonly #host: Host;
  readonly #port: number;
  readonly #log: Logger;
  /** A consent to a question of a former process does not count: that process had another clock. */
  readonly #process = randomUUID();
  #sockets: readonly Socket[] = [];

  /** @param port the same on all nodes. */
  constructor(host: Host, port: number, log: Logger) {
    this.#host = host;
    this.#port = port;
    this.#log = log;
  }

  /**
   * Listens on addresses of the node, and answers as `node`.
   *
   * @throws the system's error where the port is taken.
   */
  async open(node: string, addresses: readonly string[], handler: HeartbeatHandler): Promise<void> {
    const sockets: Socket[] = [];
    this.#sockets = sockets;
    for (const address of addresses) {
      const socket = await this.#host.datagram(address, this.#port);
      sockets.push(socket);
      socket.on('message', (bytes, { address: sender }) => {
        const from = parseAddress(sender)?.canonical ?? sender;
        const message = readMessage(bytes);
        const { ask: ticket, consent } = message;
        if (ticket !== undefined) {
          const except = handler.asked(message, from);
          if (except !== undefined) this.#send({ node, consent: ticket, except }, from);
        }
        const askedAt = this.#askedAt(consent);
        if (askedAt !== undefined) handler.consented({ ...message, askedAt }, from);
      });
      // A node that is gone answers with ICMP errors, which are of no use.
      socket.on('error', (error) => this.#log.debug({ err: error }, 'heartbeat not sent'));
    }
  }

  /** Asks an agent at one of its addresses. @param now milliseconds of a monotonic clock. */
  ask(node: string, addresses: readonly string[], now: number, to: string): void {
    this.#send({ node, ask: `${this.#process} ${now}`, addresses }, to);
  }

  #send(message: object, address: string): void {
    const socket = this.#sockets.find((one) => one.address().family === familyOf(address));
    socket?.send(JSON.stringify(message), this.#port, address, (error) => {
      if (error !== null) this.#log.debug({ address, err: error }, 'heartbeat not sent');
    });
  }

  /** When a question of this process was asked. */
  #askedAt(ticket = ''): number | undefined {
    const [process, askedAt = ''] = ticket.split(' ');
    return process === this.#process && /^\d+(\.\d+)?$/.test(askedAt) ? Number(askedAt) : undefined;
  }

  close(): void {
    for (const socket of this.#sockets) socket.close();
    this.#sockets = [];
  }
}

function familyOf(address: string): string {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}

/** A question where it has `ask`, the ticket of which is in `consent` of the answer. */
interface Message {
  readonly node: string;
  readonly ask: string | undefined;
  readonly consent: string | undefined;
  readonly addresses: readonly string[];
  readonly except: readonly string[];
}

/** Messages that do not parse are ignored. */
function readMessage(bytes: Buffer): Message {
  let value: unknown;
  try {
    value = bytes.length > maxLength ? undefined : JSON.parse(bytes.toString());
  } catch {
    value = undefined;
  }
  return {
    node: textAt(value, 'node'),
    ask: scalarAt(value, 'ask'),
    consent: scalarAt(value, 'consent'),
    addresses: textsAt(value, 'addresses'),
    except: textsAt(value, 'except'),
  };
}
