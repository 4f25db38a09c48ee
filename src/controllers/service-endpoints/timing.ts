import { type ObjectKey, conditionOf } from '../../objects/meta.ts';
import type { Service, Pod } from '../../objects/types/core.generated.ts';
import { clusterIPOf, isHeadless, namedFamilies } from './service.ts';
import { parseTime } from '../../objects/formats/time.ts';

/** The time to wait for the addresses of a Service. */
const graceMs = 5000;

/**
 * Delays the endpoints of Services until they have addresses. On an API server that does not allocate, a new Service
 * has neither addresses nor families for a moment: endpoints for all families would be written and removed again. Where
 * no addresses are allocated at all, endpoints are written after the delay.
 */
export class AllocationGrace {
  readonly #monotonic: () => number;
  /** When each Service without addresses was first seen. */
  readonly #since = new Map<ObjectKey, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /**
   * Milliseconds until the endpoints of a Service may be written; 0: now. A change of the Service may end the wait
   * early.
   */
  left(key: ObjectKey, service: Service): number {
    const isAllocated =
      isHeadless(service) || clusterIPOf(service) !== undefined || namedFamilies(service).length > 0;
    if (isAllocated) {
      this.#since.delete(key);
      return 0;
    }
    const now = this.#monotonic();
    const since = this.#since.get(key) ?? now;
    this.#since.set(key, since);
    return Math.max(0, since + graceMs - now);
  }

  forget(key: ObjectKey): void {
    this.#since.delete(key);
  }
}

/** The annotation with the time of the change that a write of endpoints answers. */
export const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time';

interface Seen {
  /** The Service's creation, in milliseconds. */
  service: number;
  /** Pod name → the last known transition of its Ready condition, in milliseconds. */
  pods: Map<string, number>;
}

/**
 * Computes the trigger time of each sync (k8s.io/endpointslice/util, `trigger_time_tracker.go`): the creation of the
 * Service at its first sync, later the earliest transition of readiness since the sync before.
 */
export class TriggerTimes {
  readonly #seen = new Map<string, Seen>();

  /**
   * Records a sync of `key` and returns the trigger time (RFC 3339, UTC) to write if anything is written; undefined
   * when no new change has a time.
   */
  observe(key: string, service: Service, pods: readonly Pod[]): string | undefined {
    const before = this.#seen.get(key);
    const created = milliseconds(service.metadata.creationTimestamp);
    const times = new Map<string, number>();
    let earliest = Number.POSITIVE_INFINITY;
    for (const pod of pods) {
      const time = milliseconds(conditionOf(pod.status.conditions, 'Ready')?.lastTransitionTime ?? undefined);
      if (time === undefined) continue;
      const name = pod.metadata.name ?? '';
      times.set(name, time);
      if (time > (before?.pods.get(name) ?? Number.NEGATIVE_INFINITY)) earliest = Math.min(earliest, time);
    }
    this.#seen.set(key, { service: created ?? Number.NEGATIVE_INFINITY, pods: times });
    if (before === undefined) return format(created);
    if (created !== undefined && created > before.service) earliest = Math.min(earliest, created);
    return Number.isFinite(earliest) ? format(earliest) : undefined;
  }

  /** Removes a deleted Service. */
  forget(key: string): void {
    this.#seen.delete(key);
  }
}

function milliseconds(time: string | undefined): number | undefined {
  return time === undefined ? undefined : parseTime(time);
}

/** RFC 3339 as Go's RFC3339Nano writes it: no trailing zeros in the fraction. */
function format(time: number | undefined): string | undefined {
  if (time === undefined) return undefined;
  return new Date(time).toISOString().replace(/\.?0{0,3}Z$/, 'Z');
}

/** `annotations` with the trigger time set, or removed where there is none; undefined for an empty map. */
export function withTriggerTime(
  annotations: Readonly<Record<string, string>> | undefined,
  time: string | undefined,
): Record<string, string> | undefined {
  const { [triggerTimeAnnotation]: _old, ...rest } = annotations ?? {};
  const result = time === undefined ? rest : { ...rest, [triggerTimeAnnotation]: time };
  return Object.keys(result).length === 0 ? undefined : result;
}
