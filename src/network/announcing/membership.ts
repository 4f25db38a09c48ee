/**
 * Whether agents are alive, by their Leases: a Lease is valid for some time after a renewal of it was seen. Neither
 * the clocks of nodes nor the times in Leases are used, so that a wrong clock decides nothing.
 */
export class Liveness {
  readonly #lastsMs: number;
  /** `seenAtMs`: the last renewal; `fromMs`: from when its time counts, which is not earlier. */
  readonly #seen = new Map<string, { renewal: string; seenAtMs: number; fromMs: number; lastsMs: number }>();

  /** @param lastsMs milliseconds for which an agent counts as alive after a renewal was seen. */
  constructor(lastsMs: number) {
    this.#lastsMs = lastsMs;
  }

  /**
   * A Lease as it was read.
   *
   * @param renewal differs for each renewal; undefined: the Lease was given back.
   * @param nowMs milliseconds of a monotonic clock.
   * @param longerMs how much longer it lives than others.
   */
  observe(node: string, renewal: string | undefined, nowMs: number, longerMs = 0): void {
    if (renewal === undefined) this.#seen.delete(node);
    else if (this.#seen.get(node)?.renewal !== renewal) {
      this.#seen.set(node, { renewal, seenAtMs: nowMs, fromMs: nowMs, lastsMs: this.#lastsMs + longerMs });
    }
  }

  /** Forgets an agent whose Lease is gone. */
  forget(node: string): void {
    this.#seen.delete(node);
  }

  /** Leases are seen again after an interruption: all timers restart. */
  resume(nowMs: number): void {
    for (const seen of this.#seen.values()) seen.fromMs = Math.max(seen.fromMs, nowMs);
  }

  /**
   * Promises that an agent counts as alive from now on as after a renewal.
   *
   * @returns false: it has given its Lease back, and gets no promise.
   */
  promise(node: string, nowMs: number): boolean {
    const seen = this.#seen.get(node);
    if (seen !== undefined) seen.fromMs = Math.max(seen.fromMs, nowMs);
    return seen !== undefined;
  }

  /** Whether an agent may have addresses. */
  isAlive(node: string, nowMs: number): boolean {
    const seen = this.#seen.get(node);
    return seen !== undefined && nowMs < seen.fromMs + seen.lastsMs;
  }

  /** Whether an agent has renewed its Lease just now: it has the API server. */
  isFresh(node: string, nowMs: number): boolean {
    const seen = this.#seen.get(node);
    return seen !== undefined && nowMs < seen.seenAtMs + seen.lastsMs;
  }

  /** When the next agent counts as dead without a renewal; infinite: none is alive. */
  nextEnd(nowMs: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { fromMs, lastsMs } of this.#seen.values()) {
      if (nowMs < fromMs + lastsMs) next = Math.min(next, fromMs + lastsMs);
    }
    return next;
  }
}

/**
 * Which of several nodes has an address, by rendezvous hashing: the one with the highest hash of both. Every node
 * finds the same without asking, and a node that comes or goes moves only the addresses that it gets or had: 1/N of
 * them.
 *
 * @param nodes in any order.
 * @returns undefined without nodes.
 */
export function ownerOf(address: string, nodes: Iterable<string>): string | undefined {
  let owner: string | undefined;
  let highest = -1;
  for (const node of nodes) {
    const weight = weightOf(`${node} ${address}`);
    // The name decides between equal ones, so that the order of nodes does not matter.
    if (weight > highest || (weight === highest && owner !== undefined && node < owner)) {
      owner = node;
      highest = weight;
    }
  }
  return owner;
}

/** FNV-1a of 32 bits, with the finalizer of MurmurHash3: the last characters must change all bits. */
function weightOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** An agent that has not given its Lease back. */
export interface Member {
  /** `spec.acquireTime` of its Lease, only compared: it differs when the agent has given the Lease back in between. */
  readonly acquired: string;
  /** The agents without whose consent it does not keep addresses when it loses the API server, with their `acquired`. */
  readonly voters: ReadonlyMap<string, string>;
}

/**
 * Whether an agent may take addresses. Every other one that has not given its Lease back must name it, and so needs its
 * consent: one that does not may have lost the API server, and keep addresses without asking.
 */
export function isAdmitted(node: string, members: ReadonlyMap<string, Member>): boolean {
  const own = members.get(node);
  if (own === undefined) return false;
  for (const [other, { voters }] of members) {
    if (other !== node && voters.get(node) !== own.acquired) return false;
  }
  return true;
}

/** The agents that a Lease must name: all others. */
export function votersOf(node: string, members: ReadonlyMap<string, Member>): ReadonlyMap<string, string> {
  return new Map([...members].flatMap(([name, { acquired }]) => (name === node ? [] : [[name, acquired]])));
}

/**
 * The agents that have died, and whose Leases this one may give back for them: they name it, so that none of them can
 * keep addresses without its consent. The Lease is to be given back only as it was read.
 */
export function expiredMembers(
  node: string,
  members: ReadonlyMap<string, Member>,
  isAlive: (node: string) => boolean,
): readonly string[] {
  return [...members].flatMap(([name, { voters }]) =>
    name !== node && voters.has(node) && !isAlive(name) ? [name] : [],
  );
}

/**
 * Whether an agent keeps an address that another one is to have: until that one announces it. Of two that both wait for
 * a third, one does.
 *
 * @param announcing the other agents that announce the address, and renew their Leases.
 */
export function keepsInMove(
  address: string,
  node: string,
  next: string,
  announcing: readonly string[],
): boolean {
  return !announcing.includes(next) && ownerOf(address, [node, ...announcing]) === node;
}
