import type { Clock, Random } from '../client/clock.ts';
import { backendEndpoints } from '../network/http/backend-endpoints.ts';
import type { HttpRule } from '../network/http/rule.ts';
import { endpointWeights } from '../network/http/weights.ts';
import { joinKey, type ObjectKey } from '../objects/key.ts';
import type { Service } from '../objects/types/core.generated.ts';
import type { EndpointSlice } from '../objects/types/discovery.generated.ts';
import type { ForwardTarget } from './connections.ts';

/** The known Services. */
export interface ServiceReader {
  service(key: ObjectKey): Service | undefined;
  slices(key: ObjectKey): readonly EndpointSlice[];
}

/** Why no endpoint can get a rule's requests. */
export type TargetProblem = 'NoService' | 'NoPort' | 'NoEndpoints' | 'NoWeight';

interface Targets {
  readonly list: readonly ForwardTarget[];
  /** The sum of the weights up to each target, itself included. */
  readonly sums: readonly number[];
  readonly problem: TargetProblem;
}

/** Milliseconds that a target is avoided after it could not be connected to, while there are others. */
const avoided = 5000;
/** The number of other targets that are tried before one that failed. */
const tries = 8;

/** Chooses the endpoint of each request: at random, by the weights of Services. */
export class TargetChoice {
  readonly #reader: ServiceReader;
  readonly #clock: Clock;
  readonly #random: Random;
  #known = new WeakMap<HttpRule, Targets>();
  readonly #failed = new Map<string, number>();

  constructor(reader: ServiceReader, clock: Clock, random: Random) {
    this.#reader = reader;
    this.#clock = clock;
    this.#random = random;
  }

  /** To be called when a Service or slice changed: targets are found anew when they are asked for. */
  changed(): void {
    this.#known = new WeakMap();
  }

  /** @param tried targets of the same request, which are avoided as failed ones are. */
  choose(rule: HttpRule, tried: readonly ForwardTarget[] = []): ForwardTarget | TargetProblem {
    let targets = this.#known.get(rule);
    if (targets === undefined) {
      targets = this.#targetsOf(rule);
      this.#known.set(rule, targets);
    }
    const { list, sums, problem } = targets;
    const total = sums.at(-1) ?? 0;
    if (total === 0) return problem;
    let chosen: ForwardTarget | undefined;
    for (let i = 0; i < tries; i++) {
      chosen = list[firstAbove(sums, this.#random() * total)];
      if (chosen !== undefined && !tried.includes(chosen) && !this.#hasFailed(chosen)) break;
    }
    return chosen ?? problem;
  }

  /** To be called when a target could not be connected to. */
  failed(target: ForwardTarget): void {
    const now = this.#clock.monotonic();
    for (const [name, until] of this.#failed) if (until <= now) this.#failed.delete(name);
    this.#failed.set(nameOf(target), now + avoided);
  }

  #hasFailed(target: ForwardTarget): boolean {
    return this.#failed.size > 0 && (this.#failed.get(nameOf(target)) ?? 0) > this.#clock.monotonic();
  }

  #targetsOf(rule: HttpRule): Targets {
    const { kind } = rule.source;
    const found = rule.backends.map((backend) => {
      const key = joinKey(backend.namespace, backend.service);
      const reached = backendEndpoints(backend, kind, this.#reader.service(key), this.#reader.slices(key));
      return { backend, ...reached };
    });
    const weights = endpointWeights(
      found.map(({ backend, endpoints }) => ({ weight: backend.weight, endpoints: endpoints.length })),
    );
    const list: ForwardTarget[] = [];
    const sums: number[] = [];
    found.forEach(({ backend, endpoints, isH2c }, i) => {
      const weight = weights[i] ?? 0;
      for (const { address, port } of weight === 0 ? [] : endpoints) {
        const protocol = rule.termination === 'reencrypt' ? 'https' : isH2c ? 'h2c' : 'http';
        const serverName = `${backend.service}.${backend.namespace}.svc`;
        list.push({ address, port, protocol, serverName, ca: rule.destinationCA });
        sums.push((sums.at(-1) ?? 0) + weight);
      }
    });
    const problems = found.map(({ problem }) => problem).filter((problem) => problem !== undefined);
    return { list, sums, problem: problems[0] ?? 'NoWeight' };
  }
}

function nameOf({ address, port }: ForwardTarget): string {
  return `${address} ${port}`;
}

/** The index of the first sum above a number. */
function firstAbove(sums: readonly number[], number: number): number {
  let low = 0;
  let high = sums.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sums[middle] ?? 0) > number) high = middle;
    else low = middle + 1;
  }
  return low;
}
