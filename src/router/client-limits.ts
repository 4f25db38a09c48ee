import type { Clock } from '../client/clock.ts';
import { isAllowed } from '../network/http/route-annotations.ts';
import type { HttpRule } from '../network/http/rules.ts';
import { parseAddress } from '../objects/address.ts';

/** What one client address takes of a Route with limits. */
interface RouteUse {
  /** Requests by connection. */
  readonly open: Map<object, number>;
  readonly known: WeakSet<object>;
  readonly connections: Rate;
  readonly requests: Rate;
  usedAt: number;
}

/** The periods of the router of OpenShift's limits, and how long a client is remembered. */
const connectionPeriodMs = 3000;
const requestPeriodMs = 10_000;
const rememberedMs = 30_000;

/**
 * Bounds what one client takes of the router at a time: each of its requests may hold a connection to a backend. A client
 * is an IPv4 address, or the 64 bits of an IPv6 address that one site has.
 */
export class ClientLimits {
  readonly #most: number;
  readonly #clock: Clock;
  readonly #running = new Map<string, number>();
  readonly #uses = new Map<string, RouteUse>();
  #sweptAt = 0;

  /** @param most requests and tunnels of a client at a time; 0: any number. */
  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#clock = clock;
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

  /**
   * Whether a Route's own limits let a client in.
   *
   * @param connection of the client: its requests at a time count as one.
   * @returns what ends the request, to be called once; else why it is refused.
   */
  enterRoute(
    { settings, source }: HttpRule,
    address: string,
    connection: object,
  ): (() => void) | 'NotAllowed' | 'TooManyRequests' {
    const { allowed, rates } = settings ?? {};
    if (allowed !== undefined && !isAllowed(address, allowed)) return 'NotAllowed';
    if (rates === undefined) return () => undefined;
    const now = this.#clock.monotonic();
    const use = this.#useOf(`${source.uid} ${address}`, now);
    const { open, known, connections, requests } = use;
    const isNew = !known.has(connection);
    const isOver =
      (rates.connections !== undefined && !open.has(connection) && open.size >= rates.connections) ||
      (rates.connectionRate !== undefined && isNew && connections.at(now) + 1 > rates.connectionRate) ||
      (rates.requestRate !== undefined && requests.at(now) + 1 > rates.requestRate);
    if (isOver) return 'TooManyRequests';
    if (isNew) connections.add();
    known.add(connection);
    requests.add();
    open.set(connection, (open.get(connection) ?? 0) + 1);
    return () => {
      const left = (open.get(connection) ?? 1) - 1;
      if (left === 0) open.delete(connection);
      else open.set(connection, left);
      use.usedAt = this.#clock.monotonic();
    };
  }

  #useOf(id: string, now: number): RouteUse {
    if (now - this.#sweptAt > rememberedMs) {
      this.#sweptAt = now;
      for (const [key, { open, usedAt }] of this.#uses) {
        if (open.size === 0 && now - usedAt > rememberedMs) this.#uses.delete(key);
      }
    }
    let use = this.#uses.get(id);
    if (use === undefined) {
      const rates = { connections: new Rate(connectionPeriodMs), requests: new Rate(requestPeriodMs) };
      use = { open: new Map(), known: new WeakSet(), ...rates, usedAt: now };
      this.#uses.set(id, use);
    }
    use.usedAt = now;
    return use;
  }
}

/** Events in a period that moves: those of the last whole period count by what of it is still in it. */
class Rate {
  readonly #periodMs: number;
  #began = 0;
  #now = 0;
  #before = 0;

  constructor(periodMs: number) {
    this.#periodMs = periodMs;
  }

  at(time: number): number {
    const periods = Math.floor((time - this.#began) / this.#periodMs);
    if (periods > 0) {
      this.#before = periods === 1 ? this.#now : 0;
      this.#now = 0;
      this.#began += periods * this.#periodMs;
    }
    return this.#now + this.#before * (1 - (time - this.#began) / this.#periodMs);
  }

  add(): void {
    this.#now++;
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
