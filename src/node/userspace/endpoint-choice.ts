import type { Clock, Random } from '../../client/clock.ts';
import type { Candidate, ForwardVerdict } from '../../network/forwarding/verdict.ts';

/** Most clients that are remembered; the one that came longest ago is forgotten. */
const maxClients = 100_000;

/** Chooses the endpoint of a connection as the kernel does: at random, or the client's former one. */
export class EndpointChoice {
  readonly #random: Random;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By Service port and client; in the order of the last connection. */
  readonly #former = new Map<string, { readonly endpoint: string; readonly until: number }>();

  constructor(random: Random, clock: Pick<Clock, 'monotonic'>) {
    this.#random = random;
    this.#clock = clock;
  }

  choose({ candidates, port, affinitySeconds }: ForwardVerdict, client: string): Candidate {
    const drawn = candidates[Math.floor(this.#random() * candidates.length)];
    if (drawn === undefined) throw new RangeError(`${port.id} has no candidates`);
    if (affinitySeconds === undefined) return drawn;
    const key = `${port.id} ${client}`;
    const now = this.#clock.monotonic();
    const former = this.#former.get(key);
    const kept =
      former !== undefined && now < former.until
        ? candidates.find((candidate) => nameOf(candidate) === former.endpoint)
        : undefined;
    const chosen = kept ?? drawn;
    this.#former.delete(key);
    this.#former.set(key, { endpoint: nameOf(chosen), until: now + affinitySeconds * 1000 });
    if (this.#former.size > maxClients) {
      const [oldest] = this.#former.keys();
      if (oldest !== undefined) this.#former.delete(oldest);
    }
    return chosen;
  }
}

function nameOf({ endpoint }: Candidate): string {
  return `${endpoint.address} ${endpoint.port}`;
}
