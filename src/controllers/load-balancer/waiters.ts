import type { ObjectKey } from '../../objects/key.ts';
import { Heap } from '../../runtime/heap.ts';
import type { AddressRequest } from './request.ts';

/**
 * Services that wait for something, in the order of their creation. A Service waits in several lines at once (each
 * pool that could serve it) and leaves all of them when it is taken from one. A line's entries are dropped lazily:
 * an entry counts only while its Service still waits with that very ticket.
 */
export class Waiters {
  readonly #tickets = new Map<ObjectKey, Ticket>();
  readonly #lines = new Map<string, Heap<Ticket>>(); // line -> tickets, oldest Service on top

  get size(): number {
    return this.#tickets.size;
  }

  has(service: ObjectKey): boolean {
    return this.#tickets.has(service);
  }

  /** False when nobody waits in a line. It may be true of one that all have left. */
  awaits(line: string): boolean {
    return this.#lines.has(line);
  }

  /** Puts a Service into lines, out of all others. One that waits there already keeps its place. */
  wait(request: AddressRequest, lines: ReadonlySet<string>): void {
    const present = this.#tickets.get(request.service);
    if (present?.request.createdAt === request.createdAt && sameLines(present.lines, lines)) {
      present.request = request;
      return;
    }
    const ticket: Ticket = { request, lines };
    this.#tickets.set(request.service, ticket);
    for (const line of lines) {
      let heap = this.#lines.get(line);
      if (heap === undefined) {
        heap = new Heap(isOlder);
        this.#lines.set(line, heap);
      }
      heap.push(ticket);
      if (heap.size > 2 * this.#tickets.size + SLACK) this.#lines.set(line, this.#compacted(heap, line));
    }
  }

  leave(service: ObjectKey): void {
    this.#tickets.delete(service);
  }

  /** Takes the oldest Service of a line out of all lines. */
  take(line: string): AddressRequest | undefined {
    const heap = this.#lines.get(line);
    if (heap === undefined) return undefined;
    for (let ticket = heap.pop(); ticket !== undefined; ticket = heap.pop()) {
      const { request } = ticket;
      if (this.#tickets.get(request.service) !== ticket) continue;
      this.#tickets.delete(request.service);
      return request;
    }
    this.#lines.delete(line);
    return undefined;
  }

  /** A line without the entries of those that left it. */
  #compacted(heap: Heap<Ticket>, line: string): Heap<Ticket> {
    const rest = new Heap<Ticket>(isOlder);
    for (let ticket = heap.pop(); ticket !== undefined; ticket = heap.pop()) {
      const present = this.#tickets.get(ticket.request.service) === ticket;
      if (present && ticket.lines.has(line)) rest.push(ticket);
    }
    return rest;
  }

  /** Takes everybody, oldest first. */
  takeAll(): AddressRequest[] {
    const all = [...this.#tickets.values()].sort((a, b) => (isOlder(a, b) ? -1 : 1));
    this.#tickets.clear();
    this.#lines.clear();
    return all.map(({ request }) => request);
  }
}

/** Entries of those that left, that a line may hold before it is swept. */
const SLACK = 64;

interface Ticket {
  request: AddressRequest;
  readonly lines: ReadonlySet<string>;
}

function isOlder({ request: a }: Ticket, { request: b }: Ticket): boolean {
  return a.createdAt - b.createdAt < 0 || (a.createdAt === b.createdAt && a.service < b.service);
}

function sameLines(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((line) => b.has(line));
}
