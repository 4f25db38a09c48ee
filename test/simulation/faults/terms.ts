import { leases } from '../../../src/client/resources.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { Follower } from './follower.ts';

/** From when on the lease was held, as far as could be seen: not before that. */
interface Term {
  readonly holder: string;
  readonly since: number;
}

interface Write {
  readonly by: string;
  readonly at: number;
  readonly what: string;
}

/** Who held the lease when, and who wrote: an instance may not write whose term has not begun, or when another one's has. */
export class Terms {
  readonly #now: () => number;
  readonly #terms: Term[] = [];
  readonly #writes: Write[] = [];
  readonly #excused = new Set<string>();
  readonly #leases: Follower;

  /** @param name of the Lease, in its namespace. @param now milliseconds of a clock that is never set. */
  constructor({ namespace, name }: { namespace: string; name: string }, now: () => number) {
    this.#now = now;
    this.#leases = new Follower(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, (object) => {
      if (leases.isObject(object) && object.metadata.name === name)
        this.#hold(object.spec.holderIdentity ?? '');
    });
  }

  connect(client: Transport | undefined): void {
    this.#leases.connect(client);
  }

  async close(): Promise<void> {
    await this.#leases.close();
  }

  /** A process sends a write. */
  wrote(by: string, what: string): void {
    this.#writes.push({ by, at: this.#now(), what });
  }

  /** A process is stopped for a while: what it was about to send it sends when it goes on, even if another one leads by then. */
  excuse(stopped: string): void {
    this.#excused.add(stopped);
  }

  /** Writes that were sent by who did not lead. */
  findings(): string[] {
    return this.#writes.flatMap(({ by, at, what }) => {
      if (this.#excused.has(by)) return [];
      const last = this.#terms.findLastIndex(({ holder }) => holder === by);
      if (last === -1) return [`${what}: written by ${by}, which never led`];
      const next = this.#terms.slice(last).find(({ holder }) => holder !== by && holder !== '');
      return next === undefined || at <= next.since
        ? []
        : [`${what}: written by ${by} when ${next.holder} led`];
    });
  }

  #hold(holder: string): void {
    if (this.#terms.at(-1)?.holder !== holder) this.#terms.push({ holder, since: this.#now() });
  }
}
