/** The resource requests and limits of a Pod (`component-helpers/resource/helpers.go` PodRequests, PodLimits). */
import type { KubeObject } from './meta.ts';
import { parseQuantity } from './quantity.ts';
import { listAt, recordAt, scalarAt, textAt } from './read.ts';

/** Amounts by the name of a resource, in billionths as in quantities. */
export type ResourceAmounts = ReadonlyMap<string, bigint>;

/** Shared by all Pods without requests. */
const nothing: ResourceAmounts = new Map();
/** Resources that a Pod may set as a whole (KEP-2837). */
const podLevel = /^(?:cpu|memory|hugepages-.+)$/;

/**
 * The requests or limits of a Pod: of all its containers, or of the init container that needs most beside the sidecars
 * before it; what the Pod sets as a whole counts instead. Its overhead comes on top.
 *
 * @throws {Error} when a quantity cannot be read; stored Pods have none.
 */
export function podResources(pod: KubeObject, kind: 'requests' | 'limits'): ResourceAmounts {
  const sum = new Map<string, bigint>();
  for (const container of listAt(pod, 'spec', 'containers')) add(sum, amountsOf(container, kind));
  const sidecars = new Map<string, bigint>();
  const most = new Map<string, bigint>();
  for (const container of listAt(pod, 'spec', 'initContainers')) {
    const amounts = amountsOf(container, kind);
    if (textAt(container, 'restartPolicy') === 'Always') {
      add(sum, amounts);
      add(sidecars, amounts);
      raise(most, sidecars);
    } else {
      const together = new Map(sidecars);
      add(together, amounts);
      raise(most, together);
    }
  }
  raise(sum, most);
  for (const [name, amount] of amountsOf(recordAt(pod, 'spec'), kind)) {
    if (podLevel.test(name)) sum.set(name, amount);
  }
  const overhead = quantities(recordAt(pod, 'spec', 'overhead'));
  for (const [name, amount] of overhead) {
    // A resource without a limit gets no overhead.
    if (kind === 'requests' || sum.has(name)) sum.set(name, (sum.get(name) ?? 0n) + amount);
  }
  return sum.size === 0 ? nothing : sum;
}

function add(sum: Map<string, bigint>, amounts: ResourceAmounts): void {
  for (const [name, amount] of amounts) sum.set(name, (sum.get(name) ?? 0n) + amount);
}

function raise(sum: Map<string, bigint>, amounts: ResourceAmounts): void {
  for (const [name, amount] of amounts) if (amount > (sum.get(name) ?? 0n)) sum.set(name, amount);
}

function amountsOf(container: unknown, kind: 'requests' | 'limits'): ResourceAmounts {
  return quantities(recordAt(container, 'resources', kind));
}

function quantities(record: Readonly<Record<string, unknown>>): ResourceAmounts {
  return new Map(
    Object.keys(record).map((name) => [name, parseQuantity(scalarAt(record, name) ?? '0').nanos]),
  );
}
