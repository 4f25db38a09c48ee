/** One container of a Pod over time: running, failing, restarting with back-off, done. */
import type {
  Container,
  ContainerState,
  ContainerStatus,
  Pod,
  ResourceRequirements,
} from '../../objects/types/core.generated.ts';
import { formatTime, parseTime } from '../../objects/formats/time.ts';
import type { Behaviour } from './plan-behaviour.ts';
import { type ImageReference, parseImage } from '../../objects/formats/image-reference.ts';

/** The state of a container. */
export type Run =
  /** Never started. With a problem, it could not be. */
  | { readonly phase: 'new'; readonly restarts: 0 }
  | {
      readonly phase: 'running';
      readonly startedAt: number;
      readonly restarts: number;
      readonly failure?: Ending;
    }
  | {
      readonly phase: 'waiting';
      readonly restarts: number;
      readonly until: number;
      readonly failure: Ending;
    }
  | { readonly phase: 'ended'; readonly restarts: number; readonly failure: Ending };

/** How a container ended. Times are milliseconds since 1970. */
export interface Ending {
  readonly exitCode: number;
  readonly reason?: string;
  readonly message?: string;
  readonly startedAt: number;
  readonly finishedAt: number;
  /** It was ended to be started again at once, whatever its policy: with other resources. */
  readonly isResize?: boolean;
}

/** Why a container cannot be started, and until when it is not tried again. */
export interface StartFailure {
  readonly reason: string;
  readonly message: string;
  readonly until: number;
}

/** The observations of this process about an attempt to run a container; the rest is in the Pod's status. */
export interface Observed {
  readonly attempt: number;
  /** To the millisecond. */
  readonly startedAt: number | undefined;
  readonly ending: Ending | undefined;
  readonly problem: StartFailure | undefined;
  /** The verdicts of probes; undefined: there is no such probe, or no verdict yet (then `isProbed`). */
  readonly started: boolean | undefined;
  readonly ready: boolean | undefined;
}

/** After running for this long, a container that fails starts again at once (twice the longest back-off). */
const backoffResetMs = 600_000;
const maxBackoffMs = 300_000;

/** kubelet's back-off between restarts: 10 s, doubling up to 5 minutes; the first restart is at once. */
function restartDelayMs(restarts: number, { startedAt, finishedAt }: Ending): number {
  if (restarts === 0 || finishedAt - startedAt > backoffResetMs) return 0;
  return Math.min(10_000 * 2 ** (restarts - 1), maxBackoffMs);
}

/** The state of a container by its status and what was seen since. */
export function readRun(status: ContainerStatus | undefined, observed: Observed | undefined): Run {
  if (status === undefined) return { phase: 'new', restarts: 0 };
  const restarts = status.restartCount;
  const failure = readEnding(status.lastState);
  const ended = readEnding(status.state);
  if (ended !== undefined) return { phase: 'ended', restarts, failure: ended };
  const startedAt = status.state?.running?.startedAt ?? undefined;
  const hasFailed = observed?.attempt === restarts && observed.problem !== undefined;
  if (startedAt !== undefined && hasFailed) {
    // It should run, and could not be started.
    if (failure === undefined) return { phase: 'new', restarts: 0 };
    const until = failure.finishedAt + restartDelayMs(restarts - 1, failure);
    return { phase: 'waiting', restarts: restarts - 1, failure, until };
  }
  if (startedAt !== undefined) {
    const exact = observed?.attempt === restarts ? observed.startedAt : undefined;
    const since =
      exact !== undefined && formatTime(exact) === startedAt ? exact : (parseTime(startedAt) ?? 0);
    return { phase: 'running', startedAt: since, restarts, ...(failure === undefined ? {} : { failure }) };
  }
  if (failure === undefined) return { phase: 'new', restarts: 0 };
  return {
    ...{ phase: 'waiting', restarts, failure },
    until: failure.finishedAt + restartDelayMs(restarts, failure),
  };
}

function readEnding(state: ContainerState | undefined): Ending | undefined {
  const terminated = state?.terminated;
  if (terminated === undefined) return undefined;
  const { exitCode, reason, message, startedAt, finishedAt } = terminated;
  return {
    exitCode,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    startedAt: parseTime(startedAt ?? '') ?? 0,
    finishedAt: parseTime(finishedAt ?? '') ?? 0,
  };
}

/** Whether a container that ended so is started again. */
export type Restarts = (exitCode: number) => boolean;

/**
 * The state of a container at `now`, and the time of its next change.
 *
 * @param restarts by the policy of the Pod or the container.
 */
export function advanceRun(
  before: Run,
  { failAfterMs, completeAfterMs }: Pick<Behaviour, 'failAfterMs' | 'completeAfterMs'>,
  observed: Observed | undefined,
  restarts: Restarts,
  now: number,
): { run: Run; next: number | undefined } {
  let run = before;
  if (run.phase === 'new' || (run.phase === 'waiting' && run.until <= now)) {
    const attempt = run.phase === 'new' ? 0 : run.restarts + 1;
    const problem = observed?.attempt === attempt ? observed.problem : undefined;
    if (problem !== undefined && problem.until > now) return { run, next: problem.until };
    const failure = run.phase === 'waiting' ? { failure: run.failure } : {};
    run = { phase: 'running', startedAt: now, restarts: attempt, ...failure };
  }
  if (run.phase === 'waiting') return { run, next: run.until };
  if (run.phase === 'ended') return { run, next: undefined };
  const { startedAt } = run;
  const seen = observed?.attempt === run.restarts ? observed.ending : undefined;
  const due = firstEnd(failAfterMs, completeAfterMs);
  const isDue = due !== undefined && startedAt + due.after <= now;
  if (seen === undefined && !isDue) {
    return { run, next: due === undefined ? undefined : startedAt + due.after };
  }
  const failure: Ending = seen ?? { exitCode: due?.exitCode ?? 0, startedAt, finishedAt: now };
  if (failure.isResize !== true && !restarts(failure.exitCode)) {
    return { run: { phase: 'ended', restarts: run.restarts, failure }, next: undefined };
  }
  const delayMs = failure.isResize === true ? 0 : restartDelayMs(run.restarts, failure);
  const until = failure.finishedAt + delayMs;
  if (until > now) {
    return { run: { phase: 'waiting', restarts: run.restarts, until, failure }, next: until };
  }
  const again: Run = { phase: 'running', startedAt: now, restarts: run.restarts + 1, failure };
  return { run: again, next: due === undefined ? undefined : now + due.after };
}

function firstEnd(
  failAfterMs: number | undefined,
  completeAfterMs: number | undefined,
): { after: number; exitCode: number } | undefined {
  if (failAfterMs !== undefined && (completeAfterMs === undefined || failAfterMs < completeAfterMs)) {
    return { after: failAfterMs, exitCode: 1 };
  }
  return completeAfterMs === undefined ? undefined : { after: completeAfterMs, exitCode: 0 };
}

/** A container with its planned status. */
export interface PlannedContainer {
  readonly container: Container;
  readonly run: Run;
  readonly ready: boolean;
  readonly started: boolean;
  /** Why it waits, where it was never started. */
  readonly waiting: { readonly reason: string; readonly message?: string };
}

/**
 * An item of `status.containerStatuses` and its like.
 *
 * @param actual the resources of containers that run, by their names; without, those that the Pod was given.
 */
export function containerStatus(
  pod: Pod,
  planned: PlannedContainer,
  actual: ReadonlyMap<string, ResourceRequirements>,
): ContainerStatus {
  const { container, run, ready, started } = planned;
  const hasRun = run.phase !== 'new';
  const { resources = {} } = container;
  const { requests = {} } = resources;
  const id = `simulated://${pod.metadata.uid ?? ''}/${container.name}/${run.restarts}`;
  return {
    name: container.name,
    state: stateOf(pod, planned, id),
    lastState:
      run.phase === 'new' || run.phase === 'ended' || run.failure === undefined
        ? {}
        : { terminated: terminated(run.failure) },
    ready,
    restartCount: run.restarts,
    image: container.image ?? '',
    imageID: hasRun ? `simulated://${container.image ?? ''}` : '',
    ...(hasRun ? { containerID: id } : {}),
    started,
    ...(hasRun && Object.keys(requests).length > 0 ? { allocatedResources: requests } : {}),
    ...(hasRun
      ? { resources: (run.phase === 'running' ? actual.get(container.name) : undefined) ?? resources }
      : {}),
  };
}

function stateOf(pod: Pod, { container, run, waiting }: PlannedContainer, id: string): ContainerState {
  switch (run.phase) {
    case 'new':
      return { waiting };
    case 'running':
      return { running: { startedAt: formatTime(run.startedAt) } };
    case 'waiting':
      return { waiting: backOff(pod, container.name, run) };
    case 'ended':
      return { terminated: { ...terminated(run.failure), containerID: id } };
  }
}

function backOff(
  { metadata: { name = '', namespace = '', uid = '' } }: Pod,
  container: string,
  { until, failure }: { readonly until: number; readonly failure: Ending },
): NonNullable<ContainerState['waiting']> {
  const delay = goSeconds((until - failure.finishedAt) / 1000);
  const message = `back-off ${delay} restarting failed container=${container} pod=${name}_${namespace}(${uid})`;
  return { reason: 'CrashLoopBackOff', message };
}

/** `10s`, `2m40s`, as Go prints a duration of whole seconds. */
function goSeconds(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole}s` : `${Math.floor(whole / 60)}m${whole % 60}s`;
}

function terminated(ending: Ending): NonNullable<ContainerState['terminated']> {
  const { exitCode, reason, message, startedAt, finishedAt } = ending;
  return {
    exitCode,
    reason: reason ?? (exitCode === 0 ? 'Completed' : 'Error'),
    ...(message === undefined ? {} : { message }),
    startedAt: formatTime(startedAt),
    finishedAt: formatTime(finishedAt),
  };
}

/** Why an image cannot be had; of one that its registry does not have, what the runtime says. */
export interface ImageProblem {
  readonly reason: 'InvalidImageName' | 'ErrImageNeverPull' | 'ErrImagePull';
  readonly message: string;
}

/**
 * Looks for the image of a container (pkg/kubelet/images/image_manager.go): all can be had but those that are no images, and
 * those that are said to be missing.
 *
 * @param missing images that no registry has.
 */
export function imageProblem(
  pod: Pod,
  { image = '', imagePullPolicy }: Pick<Container, 'image' | 'imagePullPolicy'>,
  missing: ReadonlySet<string>,
): ImageProblem | undefined {
  if (image === '') return undefined;
  const parsed = parseImage(image);
  if (typeof parsed === 'string') {
    const message = `Failed to apply default image tag "${image}": couldn't parse image name "${image}": ${parsed}`;
    return { reason: 'InvalidImageName', message };
  }
  if (!missing.has(image) && !isMissing(pod, image)) return undefined;
  if (imagePullPolicy === 'Never') {
    const message = `Container image "${image}" is not present with pull policy of Never`;
    return { reason: 'ErrImageNeverPull', message };
  }
  return { reason: 'ErrImagePull', message: pullFailure(parsed) };
}

const missingImagesAnnotation = 'servicenet.dev/missing-images';

/** Whether no registry has an image: its tag begins with `nosuch`, or an annotation of the Pod names it. */
function isMissing({ metadata }: Pod, image: string): boolean {
  const named = metadata.annotations?.[missingImagesAnnotation]?.split(',') ?? [];
  return /:nosuch[\w.-]*$/.test(image) || named.some((each) => each.trim() === image);
}

/** What containerd says of an image that its registry does not have. */
function pullFailure({ repository, tag, digest }: ImageReference): string {
  const version = digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;
  const full = `${repository}${version}`;
  const resolving = `failed to resolve reference "${full}": ${full}: not found`;
  return `rpc error: code = NotFound desc = failed to pull and unpack image "${full}": ${resolving}`;
}
