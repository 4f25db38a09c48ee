import { parseTime } from '../../objects/time.ts';
import type { Pod, Service } from '../../objects/types/core.generated.ts';
import { conditionOf } from '../../objects/conditions.ts';

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
