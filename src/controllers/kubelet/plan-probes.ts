/** When a container is asked, and what follows from the answers (pkg/kubelet/prober/worker.go). */
import type { Probe } from '../../objects/types/core.generated.ts';

/** The kinds of probes. */
export const probeKinds = ['startup', 'liveness', 'readiness'] as const;
export type ProbeKind = (typeof probeKinds)[number];

/** The answers so far: the last one, and how often it came in a row. */
export interface ProbeCount {
  readonly last: boolean | undefined;
  readonly inARow: number;
  /** What holds now; undefined before enough answers came. */
  readonly verdict: boolean | undefined;
}

/** Before the first answer. */
export const unasked: ProbeCount = { last: undefined, inARow: 0, verdict: undefined };

/** One more answer: it counts when it came `successThreshold` or `failureThreshold` times in a row. */
export function countAnswer(
  before: ProbeCount,
  { successThreshold = 1, failureThreshold = 3 }: Probe,
  success: boolean,
): ProbeCount {
  const inARow = before.last === success ? before.inARow + 1 : 1;
  const enough = inARow >= (success ? successThreshold : failureThreshold);
  return { last: success, inARow, verdict: enough ? success : before.verdict };
}

/** Milliseconds between two answers. */
export function periodOf({ periodSeconds = 10 }: Probe): number {
  return periodSeconds * 1000;
}

/** Milliseconds that an answer may take. */
export function timeoutOf({ timeoutSeconds = 1 }: Probe): number {
  return timeoutSeconds * 1000;
}

/**
 * Whether a container is asked at a tick.
 *
 * @param age milliseconds since it started.
 * @param hasStarted it has no startup probe, or its startup probe has succeeded: until then only that one is asked.
 */
export function isDue(
  kind: ProbeKind,
  { initialDelaySeconds = 0 }: Probe,
  age: number,
  hasStarted: boolean,
): boolean {
  return age >= initialDelaySeconds * 1000 && (kind === 'startup') !== hasStarted;
}
