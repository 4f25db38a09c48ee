import { scalarAt } from '../objects/json.ts';
import { parseQuantity } from '../objects/quantity.ts';
import type { Container, Pod } from '../objects/types/core.generated.ts';

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

/** The usage of a container: as its Pod's annotations say, else a tenth of the CPU and half of the memory that it requests. */
export function usageOf({ metadata }: Pod, { resources }: Container): Usage {
  const part = (resource: 'cpu' | 'memory', annotation: string): bigint => {
    const set = amountOf(metadata.annotations?.[annotation]);
    if (set !== undefined) return set;
    const requested = amountOf(scalarAt(resources, 'requests', resource));
    return requested === undefined ? idle[resource] : requested / share[resource];
  };
  return { cpu: part('cpu', cpuUsageAnnotation), memory: part('memory', memoryUsageAnnotation) };
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
