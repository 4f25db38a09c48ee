/** When a container is probed, and the verdict from the results (pkg/kubelet/prober/worker.go). */
import type { Probe } from '../../objects/types/core.generated.ts';

/** The kinds of probes. */
export const probeKinds = ['startup', 'liveness', 'readiness'] as const;
export type ProbeKind = (typeof probeKinds)[number];

/** The results so far: the last one, and how often in a row. */
export interface ProbeCount {
  readonly last: boolean | undefined;
  readonly inARow: number;
  /** The verdict; undefined before enough results. */
  readonly verdict: boolean | undefined;
}

/** Before the first result. */
export const unasked: ProbeCount = { last: undefined, inARow: 0, verdict: undefined };

/** Adds a result: it becomes the verdict after `successThreshold` or `failureThreshold` in a row. */
export function countAnswer(
  before: ProbeCount,
  { successThreshold = 1, failureThreshold = 3 }: Probe,
  success: boolean,
): ProbeCount {
  const inARow = before.last === success ? before.inARow + 1 : 1;
  const enough = inARow >= (success ? successThreshold : failureThreshold);
  return { last: success, inARow, verdict: enough ? success : before.verdict };
}

/** Milliseconds between two probes. */
export function periodOf({ periodSeconds = 10 }: Probe): number {
  return periodSeconds * 1000;
}

/** Timeout in milliseconds. */
export function timeoutOf({ timeoutSeconds = 1 }: Probe): number {
  return timeoutSeconds * 1000;
}

/**
 * Whether a container is probed at a tick.
 *
 * @param age milliseconds since it started.
 * @param hasStarted it has no startup probe, or its startup probe has succeeded: until then only that one runs.
 */
export function isDue(
  kind: ProbeKind,
  { initialDelaySeconds = 0 }: Probe,
  age: number,
  hasStarted: boolean,
): boolean {
  return age >= initialDelaySeconds * 1000 && (kind === 'startup') !== hasStarted;
}
