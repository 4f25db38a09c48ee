import { Writable } from 'node:stream';
import type { Clock } from '../../client/clock.ts';
import { keyOf } from '../../objects/meta.ts';
import { containerFieldPath, isSidecar } from '../../objects/pods.ts';
import { errorMessage } from '../../objects/status.ts';
import type {
  Container,
  LifecycleHandler,
  Node,
  Pod,
  PodStatus,
} from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { KeyLoop } from '../../runtime/key-loop.ts';
import { ContainerError, type ContainerExit, type ContainerRuntime } from './container-runtime.ts';
import type { Attempt } from './plan.ts';
import { imageProblem } from './plan-containers.ts';
import { behaviourOf, type ProbeKind, probeKinds } from './plan-behaviour.ts';
import { ContainerConfigError, withSubPaths } from './plan-environment.ts';
import type { PodFiles } from './pod-preparation.ts';
import type { PodState } from './pod-state.ts';
import { askHttp, askProbe, ProbeWorker } from './probes/probes.ts';

const startedText = 'Container started';

/**
 * Runs a postStart or preStop handler to its end (pkg/kubelet/lifecycle/handlers.go).
 *
 * @returns why it failed, in the kubelet's words; undefined: it did not.
 */
async function runHook(
  runtime: ContainerRuntime,
  clock: Clock,
  pod: Pod,
  container: Container,
  { exec, httpGet, sleep }: LifecycleHandler,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    if (sleep !== undefined) {
      await clock.sleep(sleep.seconds * 1000, signal);
      return undefined;
    }
    if (exec !== undefined) {
      const { command = [] } = exec;
      const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
      const code = await runtime.exec(pod, container.name, command, {
        stdout: nothing,
        stderr: nothing,
        signal,
      });
      return code === 0 ? undefined : `command '${command.join(' ')}' exited with ${code}`;
    }
    if (httpGet !== undefined) {
      const { success, output } = await askHttp(runtime, pod, container, httpGet, signal);
      return success ? undefined : output;
    }
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

/** Milliseconds until a container that cannot be configured is tried again. */
const problemRetryMs = 5000;
/** Milliseconds between a pull that failed and the next one, which double (`imageBackOff` of the kubelet). */
const firstPullDelayMs = 10_000;
const maxPullDelayMs = 300_000;
/** Milliseconds that a postStart handler has where a server of ours stands in: it may wait for the image's own program. */
const standInHookMs = 5000;
/** Milliseconds that a container always has after its preStop handler (`minimumGracePeriodInSeconds`). */
const minGraceMs = 2000;

/** Starts and stops the containers of Pods by a plan, and runs their probes. */
export class PodContainers {
  readonly #loop: KeyLoop;
  readonly #context: ControllerContext;
  readonly #runtime: ContainerRuntime;
  readonly #files: PodFiles | undefined;
  readonly #missingImages: ReadonlySet<string>;

  /**
   * @param loop gets the key of a Pod whose state has changed.
   * @param missingImages images that cannot be pulled.
   */
  constructor(
    loop: KeyLoop,
    runtime: ContainerRuntime,
    files: PodFiles | undefined,
    missingImages: readonly string[],
  ) {
    this.#missingImages = new Set(missingImages);
    this.#loop = loop;
    this.#context = loop.context;
    this.#runtime = runtime;
    this.#files = files;
  }

  /**
   * Starts containers that should run, and stops those that should not.
   *
   * @returns true when the plan must be made again.
   */
  async follow(
    { pod, node, state }: { pod: Pod; node: Node; state: PodState },
    wanted: readonly Attempt[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const attempts = new Map(wanted.map(({ container, attempt }) => [container.name, attempt]));
    for (const [name, attempt] of state.running) {
      if (attempts.get(name) !== attempt) this.#stop(pod, state, name);
    }
    if (state.ending !== undefined) return false;
    for (const each of wanted) {
      const { container, attempt, startedAt } = each;
      if (state.running.get(container.name) === attempt) continue;
      const isWatched = this.#hasProbes(pod, container) || container.lifecycle?.postStart !== undefined;
      if (this.#runtime.isStandIn(pod, container) && !isWatched) {
        try {
          this.#pull(pod, state, container);
          const configured = await this.#configured(pod, container, node, signal);
          state.started(container, attempt, startedAt, { startup: false, readiness: false });
          await this.#runtime.start({ pod, ...configured, attempt }, (exit) =>
            this.#ended(pod, state, each, exit),
          );
          continue;
        } catch (error) {
          state.running.delete(container.name);
          this.#fail(pod, state, each, error);
          return true;
        }
      }
      await this.#start(pod, node, state, each, signal);
      return true;
    }
    return false;
  }

  /** Stops the programs of a Pod: handlers first, then sidecars in reverse order. */
  end(pod: Pod, state: PodState, graceMs: number): void {
    if (state.askedGraceMs !== undefined && state.askedGraceMs <= graceMs) return;
    const isFirst = state.askedGraceMs === undefined;
    state.askedGraceMs = graceMs;
    this.#end(pod, state, graceMs, isFirst).catch((error: unknown) => {
      this.#context.log.warn({ err: error, pod: keyOf(pod) }, 'cannot stop the containers of a Pod');
    });
  }

  /**
   * The events of a status that was written: stand-ins that have started, and containers whose restart waits.
   *
   * @param isNew the Pod had no containers before.
   */
  report(pod: Pod, status: PodStatus, isNew: boolean): void {
    const { events } = this.#context;
    if (isNew && (status.phase === 'Running' || status.phase === 'Succeeded')) {
      for (const container of pod.spec.containers ?? []) {
        if (!this.#runtime.isStandIn(pod, container)) continue;
        this.#haveCreated(pod, container);
        events.event(pod, 'Normal', 'Started', startedText, containerFieldPath(pod, container.name));
      }
    }
    const backsOff = (of: PodStatus): string[] =>
      [...(of.initContainerStatuses ?? []), ...(of.containerStatuses ?? [])].flatMap(({ name, state }) =>
        state?.waiting?.reason === 'CrashLoopBackOff' ? [name] : [],
      );
    const before = backsOff(pod.status);
    const { name: podName = '', namespace = '', uid = '' } = pod.metadata;
    for (const name of backsOff(status).filter((each) => !before.includes(each))) {
      const where = `${name} in pod ${podName}_${namespace}(${uid})`;
      const text = `Back-off restarting failed container ${where}`;
      events.event(pod, 'Warning', 'BackOff', text, containerFieldPath(pod, name));
    }
  }

  /** The Events of an image that is there and a container made of it, in the words of 1.35 and later. */
  #haveCreated(pod: Pod, { name, image = '' }: Container): void {
    const { events } = this.#context;
    const at = containerFieldPath(pod, name);
    const present = `Container image "${image}" already present on machine and can be accessed by the pod`;
    events.event(pod, 'Normal', 'Pulled', present, at);
    events.event(pod, 'Normal', 'Created', 'Container created', at);
  }

  async #end(pod: Pod, state: PodState, graceMs: number, isFirst: boolean): Promise<void> {
    const { clock } = this.#context;
    const started = clock.monotonic();
    const leftMs = (): number => Math.max(0, graceMs - (clock.monotonic() - started));
    const { initContainers = [], containers = [], ephemeralContainers = [] } = pod.spec;
    const main = [
      ...containers,
      ...ephemeralContainers,
      ...initContainers.filter((each) => !isSidecar(each)),
    ];
    const stop = async (container: Container): Promise<void> => {
      const attempt = state.running.get(container.name);
      if (attempt === undefined) return;
      // The annotation sets when it stops.
      if (behaviourOf(pod, false).stopAfterMs !== undefined) return;
      const { preStop } = container.lifecycle ?? {};
      if (this.#runtime.isStandIn(pod, container)) {
        // Without one, it takes a set time.
        if (!isFirst || preStop === undefined || graceMs === 0) return;
        await this.#handle(pod, container, 'PreStop', preStop, leftMs());
        this.#ended(pod, state, { container, attempt }, { exitCode: 0 });
      } else if (isFirst && preStop !== undefined && graceMs > 0) {
        await this.#handle(pod, container, 'PreStop', preStop, leftMs());
        await this.#runtime.stop(pod, container.name, Math.max(minGraceMs, leftMs()));
      } else await this.#runtime.stop(pod, container.name, leftMs());
    };
    await Promise.all(main.map(stop));
    for (const sidecar of initContainers.filter(isSidecar).reverse()) await stop(sidecar);
  }

  /** Does nothing where the image can be had. @throws {ContainerError} as the kubelet does. */
  #pull(pod: Pod, state: PodState, container: Container): void {
    const problem = imageProblem(pod, container, this.#missingImages);
    if (problem === undefined) return;
    const { name, image = '' } = container;
    const { reason, message: why } = problem;
    const { clock, events } = this.#context;
    const at = containerFieldPath(pod, name);
    if (reason === 'InvalidImageName') events.event(pod, 'Warning', 'InspectFailed', why, at);
    if (reason !== 'ErrImagePull') throw new ContainerError(reason, why);
    const { failures, againAtMs } = state.pulls.get(name) ?? { failures: 0, againAtMs: 0 };
    if (clock.now() < againAtMs) {
      events.event(pod, 'Normal', 'BackOff', `Back-off pulling image "${image}"`, at);
      throw new ContainerError('ImagePullBackOff', `Back-off pulling image "${image}": ErrImagePull: ${why}`);
    }
    const delayMs = Math.min(firstPullDelayMs * 2 ** failures, maxPullDelayMs);
    state.pulls.set(name, { failures: failures + 1, againAtMs: clock.now() + delayMs });
    events.event(pod, 'Normal', 'Pulling', `Pulling image "${image}"`, at);
    events.event(pod, 'Warning', 'Failed', `Failed to pull image "${image}": ${why}`, at);
    throw new ContainerError('ErrImagePull', why);
  }

  /** A container as it is to be started, with its environment. @throws {ContainerConfigError} */
  async #configured(
    pod: Pod,
    container: Container,
    node: Node,
    signal: AbortSignal,
  ): Promise<{ readonly container: Container; readonly environment: ReadonlyMap<string, string> }> {
    const environment = await this.#files?.environment(pod, container, node, signal);
    return environment === undefined
      ? { container, environment: new Map() }
      : { container: withSubPaths(container, environment), environment };
  }

  async #start(pod: Pod, node: Node, state: PodState, each: Attempt, signal: AbortSignal): Promise<void> {
    const { container, attempt, startedAt } = each;
    const { events, clock } = this.#context;
    const isStandIn = this.#runtime.isStandIn(pod, container);
    const { name } = container;
    const at = containerFieldPath(pod, name);
    try {
      this.#pull(pod, state, container);
      const configured = await this.#configured(pod, container, node, signal);
      const isProbed = (probe: Container['startupProbe']): boolean => this.#isAsked(pod, container, probe);
      state.started(container, attempt, startedAt, {
        startup: isProbed(container.startupProbe),
        readiness: isProbed(container.readinessProbe),
      });
      const failed = await this.#runtime.start({ pod, ...configured, attempt }, (exit) =>
        this.#ended(pod, state, each, exit),
      );
      if (!isStandIn) this.#haveCreated(pod, container);
      if (failed !== undefined) {
        state.ended(name, attempt, failed, clock.now());
        events.event(pod, 'Warning', 'Failed', `Error: ${failed.message ?? ''}`, at);
        return;
      }
    } catch (error) {
      state.running.delete(name);
      this.#fail(pod, state, each, error);
      return;
    }
    if (!isStandIn) events.event(pod, 'Normal', 'Started', startedText, at);
    const { postStart } = container.lifecycle ?? {};
    if (postStart !== undefined) {
      const limitMs = isStandIn ? standInHookMs : undefined;
      const done = await this.#handle(pod, container, 'PostStart', postStart, limitMs);
      if (!done) {
        events.event(pod, 'Normal', 'Killing', 'FailedPostStartHook', at);
        await this.#runtime.stop(pod, name, graceMsOf(pod));
        return;
      }
    }
    this.#probe(pod, state, container, attempt);
  }

  #ended(
    pod: Pod,
    state: PodState,
    { container, attempt }: Pick<Attempt, 'container' | 'attempt'>,
    exit: ContainerExit,
  ): void {
    const isNews = state.ended(container.name, attempt, exit, this.#context.clock.now());
    if (isNews) this.#loop.enqueue(keyOf(pod));
  }

  /** @throws errors that are not the container's. */
  #fail(pod: Pod, state: PodState, { container, attempt }: Attempt, error: unknown): void {
    const known =
      error instanceof ContainerConfigError
        ? new ContainerError('CreateContainerConfigError', error.message)
        : error;
    if (!(known instanceof ContainerError)) throw error;
    const { clock, events } = this.#context;
    const { reason, message } = known;
    state.failed(container.name, attempt, { reason, message, until: clock.now() + problemRetryMs });
    const said = /^(?:ErrImage|ImagePull|InvalidImage)/.test(reason) ? reason : message;
    events.event(pod, 'Warning', 'Failed', `Error: ${said}`, containerFieldPath(pod, container.name));
  }

  #stop(pod: Pod, state: PodState, name: string): void {
    const { spec } = pod;
    const container = [...(spec.initContainers ?? []), ...(spec.containers ?? [])].find(
      (each) => each.name === name,
    );
    const isStandIn = container === undefined || this.#runtime.isStandIn(pod, container);
    // A container that an annotation ends is reported as ended.
    const graceMs = !isStandIn && isSidecar(container) ? graceMsOf(pod) : 0;
    if (graceMs === 0) state.running.delete(name);
    state.stopProbes(name);
    this.#runtime.stop(pod, name, graceMs).catch((error: unknown) => {
      this.#context.log.warn({ err: error, pod: keyOf(pod), container: name }, 'cannot stop a container');
    });
  }

  /** @returns false where it failed, after its Event. */
  async #handle(
    pod: Pod,
    container: Container,
    kind: 'PostStart' | 'PreStop',
    handler: NonNullable<NonNullable<Container['lifecycle']>['preStop']>,
    limitMs: number | undefined,
  ): Promise<boolean> {
    const { clock, events } = this.#context;
    const stop = new AbortController();
    const timer = limitMs === undefined ? undefined : clock.after(limitMs, () => stop.abort());
    const why = await runHook(this.#runtime, clock, pod, container, handler, stop.signal);
    timer?.cancel();
    // The program that it needs may be one of the image.
    if (why === undefined || this.#runtime.isStandIn(pod, container)) return true;
    const at = containerFieldPath(pod, container.name);
    events.event(pod, 'Warning', `Failed${kind}Hook`, `${kind}Hook failed: ${why}`, at);
    return false;
  }

  #hasProbes(pod: Pod, { startupProbe, livenessProbe, readinessProbe, ...container }: Container): boolean {
    return [startupProbe, livenessProbe, readinessProbe].some((probe) =>
      this.#isAsked(pod, container, probe),
    );
  }

  #isAsked(pod: Pod, container: Container, probe: Container['startupProbe']): boolean {
    return probe !== undefined && this.#runtime.isAsked(pod, container, probe);
  }

  #probe(pod: Pod, state: PodState, container: Container, attempt: number): void {
    const { clock, events } = this.#context;
    const { name } = container;
    const at = containerFieldPath(pod, name);
    if (state.running.get(name) !== attempt) return;
    const startedAtMs = clock.monotonic();
    const probes = new Map<ProbeKind, ProbeWorker>();
    let hasStarted = !this.#isAsked(pod, container, container.startupProbe);
    for (const kind of probeKinds) {
      const probe = container[`${kind}Probe`];
      if (probe === undefined || !this.#isAsked(pod, container, probe)) continue;
      const word = `${kind[0]?.toUpperCase() ?? ''}${kind.slice(1)}`;
      const decided = (verdict: boolean): void => {
        if (kind === 'readiness') state.decided(name, attempt, { ready: verdict });
        if (kind === 'startup' && verdict) {
          hasStarted = true;
          state.decided(name, attempt, { started: true });
          probes.get('readiness')?.trigger();
        }
        if (kind !== 'readiness' && !verdict && state.ending === undefined) {
          const text = `Container ${name} failed ${kind} probe, will be restarted`;
          events.event(pod, 'Normal', 'Killing', text, at);
          const { terminationGracePeriodSeconds: own } = probe;
          this.kill(pod, state, container, own === undefined ? undefined : own * 1000);
        }
        this.#loop.enqueue(keyOf(pod));
      };
      const worker = new ProbeWorker({
        ...{ clock, kind, probe, startedAtMs, decided },
        hasStarted: () => hasStarted,
        ask: (signal) => askProbe(this.#runtime, pod, container, probe, signal),
        refused: (output) => {
          events.event(pod, 'Warning', 'Unhealthy', `${word} probe failed: ${output}`, at);
        },
      });
      probes.set(kind, worker);
    }
    state.probes.set(name, [...probes.values()]);
  }

  /** Ends a container that runs. A stand-in has no exit code: the kubelet would see the signal. */
  kill(pod: Pod, state: PodState, container: Container, graceMs = graceMsOf(pod)): void {
    const [{ name }, { clock, log }] = [container, this.#context];
    const attempt = state.running.get(name);
    if (attempt === undefined) return;
    state.stopProbes(name);
    this.#runtime.stop(pod, name, graceMs).then(
      () => {
        if (!this.#runtime.isStandIn(pod, container)) return;
        if (state.ended(name, attempt, { exitCode: 137 }, clock.now())) this.#loop.enqueue(keyOf(pod));
      },
      (error: unknown) =>
        log.warn({ err: error, pod: keyOf(pod), container: name }, 'cannot stop a container'),
    );
  }
}

function graceMsOf({ spec }: Pod): number {
  return (spec.terminationGracePeriodSeconds ?? 30) * 1000;
}
