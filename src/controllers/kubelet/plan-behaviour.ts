import type { Pod, Probe } from '../../objects/types/core.generated.ts';
import { parseDuration } from '../../objects/formats/time.ts';
import { controllerOf } from '../../objects/pods.ts';

const readyAfterAnnotation = 'servicenet.dev/ready-after';
const failAfterAnnotation = 'servicenet.dev/fail-after';
const completeAfterAnnotation = 'servicenet.dev/complete-after';
const stopAfterAnnotation = 'servicenet.dev/stop-after';
const readinessAnnotation = 'servicenet.dev/readiness';

/** The time until a stand-in of a Job ends, by default. */
const standInMs = 1000;

/** All times are milliseconds since the containers started; `stopAfterMs` since the Pod was deleted. */
export interface Behaviour {
  readonly readyAfterMs: number;
  /** The containers exit with 1; undefined: never. */
  readonly failAfterMs: number | undefined;
  /** The containers exit with 0; undefined: never. */
  readonly completeAfterMs: number | undefined;
  /** Undefined: as long as the program or its handler takes. */
  readonly stopAfterMs: number | undefined;
  /** False: never ready. A number: ready and not ready in turn, for that many milliseconds each. */
  readonly readiness: boolean | number;
  /** Annotations decide alone whether the containers are ready: probes do not. */
  readonly saysReadiness: boolean;
}

/**
 * Reads the behaviour of a simulated Pod's containers from its annotations. Durations are `5s`, `1m30s`, `500ms` or
 * seconds; invalid annotations count as absent. The defaults apply to stand-ins only.
 */
export function behaviourOf(pod: Pod, isStandIn: boolean): Behaviour {
  const annotations = pod.metadata.annotations ?? {};
  const duration = (name: string): number | undefined => readDuration(annotations[name]);
  const isJob = isStandIn && controllerOf(pod)?.kind === 'Job';
  return {
    readyAfterMs: duration(readyAfterAnnotation) ?? 0,
    failAfterMs: duration(failAfterAnnotation),
    completeAfterMs: duration(completeAfterAnnotation) ?? (isJob ? standInMs : undefined),
    stopAfterMs: duration(stopAfterAnnotation),
    readiness: readReadiness(annotations[readinessAnnotation] ?? ''),
    saysReadiness: readinessAnnotation in annotations || readyAfterAnnotation in annotations,
  };
}

function readDuration(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}(?:\.\d{1,3})?$/.test(text)) return Number(text) * 1000;
  return parseDuration(text);
}

/** `true`, `false`, or `flapping:<seconds>`. */
function readReadiness(text: string): boolean | number {
  if (text === 'false') return false;
  const period = text.startsWith('flapping:') ? readDuration(text.slice('flapping:'.length)) : undefined;
  return period === undefined || period < 100 ? true : period;
}

/** The kinds of probes (pkg/kubelet/prober/worker.go). */
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
export function periodMsOf({ periodSeconds = 10 }: Probe): number {
  return periodSeconds * 1000;
}

/** Timeout in milliseconds. */
export function timeoutMsOf({ timeoutSeconds = 1 }: Probe): number {
  return timeoutSeconds * 1000;
}

/**
 * Whether a container is probed at a tick.
 *
 * @param ageMs milliseconds since it started.
 * @param hasStarted it has no startup probe, or its startup probe has succeeded: until then only that one runs.
 */
export function isDue(
  kind: ProbeKind,
  { initialDelaySeconds = 0 }: Probe,
  ageMs: number,
  hasStarted: boolean,
): boolean {
  return ageMs >= initialDelaySeconds * 1000 && (kind === 'startup') !== hasStarted;
}
