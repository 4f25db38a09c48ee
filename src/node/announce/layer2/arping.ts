import { type Host, ProgramMissingError } from '../../../host/host.ts';

/** Why neighbours do not hear of addresses: a reason word, and what to do. */
export interface ArpingProblem {
  readonly reason: 'NoArping' | 'ReannounceRefused';
  readonly message: string;
  readonly error: unknown;
}

/** Programs at once: each sends at its start, and then waits for a second. */
const atOnce = 250;

/**
 * Announces addresses of interfaces to neighbours with the program arping. The kernel itself announces those of
 * IPv6 when they are added (`arpingSysctls`). Needs the right NET_RAW.
 */
export class Arping {
  readonly #host: Host;
  readonly #failed: (name: string, problem: ArpingProblem) => void;
  /** Ends the programs, by interface. */
  readonly #running = new Map<string, AbortController>();

  constructor(host: Host, failed: (name: string, problem: ArpingProblem) => void) {
    this.#host = host;
    this.#failed = failed;
  }

  /** Begins, and does not wait: it takes a second at least, in which lifetimes are to be refreshed. */
  announce(name: string, addresses: readonly string[]): void {
    this.#running.get(name)?.abort();
    const running = new AbortController();
    this.#running.set(name, running);
    void arpingAll(this.#host, name, addresses, running.signal).then((problem) => {
      if (problem !== undefined) this.#failed(name, problem);
    });
  }

  end(): void {
    for (const running of this.#running.values()) running.abort();
  }
}

/** @returns the first problem; undefined: all are out. */
async function arpingAll(
  host: Host,
  name: string,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<ArpingProblem | undefined> {
  const ofIPv4 = addresses.filter((one) => !one.includes(':'));
  for (let begin = 0; begin < ofIPv4.length && !signal.aborted; begin += atOnce) {
    const some = ofIPv4.slice(begin, begin + atOnce);
    const problems = await Promise.all(some.map((address) => arping(host, name, address, signal)));
    const problem = problems.find((one) => one !== undefined);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

async function arping(
  host: Host,
  name: string,
  address: string,
  signal: AbortSignal,
): Promise<ArpingProblem | undefined> {
  try {
    const { exitCode, stderr } = await host.exec('arping', ['-U', '-c', '1', '-I', name, address], {
      signal,
    });
    if (exitCode !== 0 && stderr !== '') throw new Error(stderr.trim());
    return undefined;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (error instanceof ProgramMissingError) {
      const message =
        'there is no program arping: install the package iputils-arping, or do without --arping';
      return { reason: 'NoArping', message, error };
    }
    return { reason: 'ReannounceRefused', message: 'arping fails: it needs the right NET_RAW', error };
  }
}
