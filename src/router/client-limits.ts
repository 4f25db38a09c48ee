import { parseAddress } from '../objects/address.ts';

/**
 * Bounds what one client takes of the router at a time: each of its requests may hold a connection to a backend. A client
 * is an IPv4 address, or the 64 bits of an IPv6 address that one site has.
 */
export class ClientLimits {
  readonly #most: number;
  readonly #running = new Map<string, number>();

  /** @param most requests and tunnels of a client at a time; 0: any number. */
  constructor(most: number) {
    this.#most = most;
  }

  /** @returns what ends the request, to be called once; undefined where the client has too many. */
  enter(address: string): (() => void) | undefined {
    const client = clientOf(address);
    const running = this.#running.get(client) ?? 0;
    if (this.#most > 0 && running >= this.#most) return undefined;
    this.#running.set(client, running + 1);
    return () => {
      const left = (this.#running.get(client) ?? 1) - 1;
      if (left === 0) this.#running.delete(client);
      else this.#running.set(client, left);
    };
  }
}

function clientOf(address: string): string {
  const parsed = address.includes(':') ? parseAddress(address) : undefined;
  return parsed?.family === 'IPv6' ? `${(parsed.value >> 64n).toString(16)}::/64` : address;
}

/** The address of a connection's other end: an IPv4 one as such on sockets of both families. */
export function clientAddress(socket: { readonly remoteAddress?: string | undefined }): string {
  const { remoteAddress = '' } = socket;
  return remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress;
}
