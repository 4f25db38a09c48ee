import { scalarAt } from '../objects/json.ts';
import type { ObjectKey } from '../objects/meta.ts';
import { parseQuantity } from '../objects/quantity.ts';
import type { Container, Pod } from '../objects/types/core.generated.ts';
import type { PodResponses } from './pod-server.ts';

/** What Pods and nodes are said to use: there is nothing to measure. */

/** The usage of a container, in billionths as in quantities. */
export interface Usage {
  readonly cpu: bigint;
  readonly memory: bigint;
}

/** Annotations of a Pod: what each of its containers uses, as quantities. */
const cpuUsageAnnotation = 'servicenet.dev/cpu-usage';
const memoryUsageAnnotation = 'servicenet.dev/memory-usage';

const mebibyte = 1_048_576n * 1_000_000_000n;
const millicore = 1_000_000n;
/** Of a container that requests nothing. */
const idle: Usage = { cpu: millicore, memory: 4n * mebibyte };
/** Of the parts of a node that are no Pods. */
export const systemUsage: Usage = { cpu: 50n * millicore, memory: 256n * mebibyte };
/** The parts of its requests that a container uses. */
const share = { cpu: 10n, memory: 2n } as const;

/** CPU that an answer takes: 20 thousandths of a CPU for one in each second. */
const cpuOfAnswer = 20n * millicore;

/**
 * The usage of a container: as its Pod's annotations say, else a tenth of the CPU and half of the memory that it requests,
 * and CPU for what it answers, up to its limit.
 *
 * @param answersPerSecond of a built-in server.
 */
export function usageOf({ metadata }: Pod, { resources }: Container, answersPerSecond = 0): Usage {
  const part = (resource: 'cpu' | 'memory', annotation: string, load: bigint): bigint => {
    const set = amountOf(metadata.annotations?.[annotation]);
    if (set !== undefined) return set;
    const requested = amountOf(scalarAt(resources, 'requests', resource));
    const used = (requested === undefined ? idle[resource] : requested / share[resource]) + load;
    const limit = amountOf(scalarAt(resources, 'limits', resource));
    return limit !== undefined && limit < used ? limit : used;
  };
  const load = BigInt(Math.round(answersPerSecond * Number(cpuOfAnswer)));
  return { cpu: part('cpu', cpuUsageAnnotation, load), memory: part('memory', memoryUsageAnnotation, 0n) };
}

/** How often containers answer, over the time that figures are about. */
export class AnswerRates {
  /** By container and second: answers. */
  readonly #counts = new Map<string, Map<number, number>>();
  readonly #now: () => number;
  readonly #windowSeconds: number;

  /** @param now milliseconds of a clock that never goes back. */
  constructor(windowSeconds: number, now: () => number) {
    this.#windowSeconds = windowSeconds;
    this.#now = now;
  }

  /** @param answers as {@link PodResponses}. */
  count(answers: PodResponses): void {
    const second = this.#second();
    for (const [pod, count, container] of answers) {
      const key = `${pod} ${container}`;
      const ofContainer = this.#counts.get(key) ?? new Map<number, number>();
      ofContainer.set(second, (ofContainer.get(second) ?? 0) + count);
      this.#counts.set(key, ofContainer);
    }
    this.#forget(second);
  }

  perSecond(pod: ObjectKey, container: string): number {
    const first = this.#second() - this.#windowSeconds;
    let answers = 0;
    for (const [second, count] of this.#counts.get(`${pod} ${container}`) ?? []) {
      if (second > first) answers += count;
    }
    return answers / this.#windowSeconds;
  }

  #second(): number {
    return Math.floor(this.#now() / 1000);
  }

  #forget(now: number): void {
    for (const [key, counts] of this.#counts) {
      for (const second of counts.keys()) if (second <= now - this.#windowSeconds) counts.delete(second);
      if (counts.size === 0) this.#counts.delete(key);
    }
  }
}

/** Undefined for an invalid or negative quantity. */
function amountOf(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  try {
    const { nanos } = parseQuantity(text);
    return nanos < 0n ? undefined : nanos;
  } catch {
    return undefined;
  }
}
