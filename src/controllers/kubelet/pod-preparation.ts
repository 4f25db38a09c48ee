import type { ObjectKey } from '../../objects/key.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { AwaitedNetworks } from './awaited-networks.ts';
import { type ContainerRuntime, SandboxError } from './container-runtime.ts';
import { hostAddresses } from './plan.ts';
import { evictionMessage, limitsStorage } from './plan-eviction.ts';
import { MountError, setUpError } from './plan-volumes.ts';
import type { PodFiles } from './pod-files.ts';
import type { PodState } from './pod-state.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** Milliseconds after which a sandbox that could not be made is tried again. */
export const sandboxRetry = 1000;
/** Milliseconds after which a failed mount is tried again: doubled up to the maximum (`goroutinemap/exponentialbackoff`). */
const mountRetry = { first: 500, max: 122_000 };
/** Milliseconds between two updates of volumes' files (`--sync-frequency`). */
const refreshPeriod = 60_000;
/** Milliseconds between two checks of volumes' sizes (`--housekeeping-interval`). */
const usagePeriod = 10_000;
/** Milliseconds that an evicted Pod has (`immediateEvictionGracePeriodSeconds`). */
const evictionGrace = 1000;

/** A Pod that is reconciled. */
export interface PodWork {
  readonly key: ObjectKey;
  readonly pod: Pod;
  readonly node: Node;
  readonly state: PodState;
  readonly signal: AbortSignal;
}

/**
 * Prepares a Pod besides its containers: volumes, the sandbox and further networks. The files of volumes follow
 * their objects, and a Pod that stores more than its limits is evicted.
 */
export class PodPreparation {
  readonly #context: ControllerContext;
  readonly #runtime: ContainerRuntime;
  readonly #files: PodFiles | undefined;
  readonly #networks: AwaitedNetworks | undefined;

  /**
   * @param files undefined: volumes are only objects.
   * @param networks undefined: no further networks are awaited.
   */
  constructor(
    context: ControllerContext,
    runtime: ContainerRuntime,
    files: PodFiles | undefined,
    networks: AwaitedNetworks | undefined,
  ) {
    this.#context = context;
    this.#runtime = runtime;
    this.#files = files;
    this.#networks = networks;
  }

  /** Volumes, then the sandbox. */
  async prepare(work: PodWork, addresses: readonly string[]): Promise<'done' | 'blocked' | 'later'> {
    const { pod, node, state } = work;
    const { clock, events } = this.#context;
    if (state.mounts.until > clock.now()) return 'blocked';
    try {
      await this.#mount(work, addresses);
      const ofHost = pod.spec.hostNetwork === true;
      await this.#runtime.ensureSandbox({ pod, node, addresses: ofHost ? hostAddresses(node) : addresses });
      state.isPrepared = true;
      return 'done';
    } catch (error) {
      if (error instanceof SandboxError) {
        events.event(pod, 'Warning', 'FailedCreatePodSandBox', error.message);
        return 'later';
      }
      if (!(error instanceof MountError)) throw error;
      events.event(pod, 'Warning', 'FailedMount', error.message);
      const wait = Math.min(mountRetry.first * 2 ** state.mounts.failures, mountRetry.max);
      state.mounts = { failures: state.mounts.failures + 1, until: clock.now() + wait };
      return 'blocked';
    }
  }

  /** Further networks, once the Pod's annotation has them. @returns when to try again. */
  async attachNetworks({ pod, state, signal }: PodWork): Promise<number | undefined> {
    const { clock, events } = this.#context;
    if (!state.isPrepared || state.hasNetworks) return undefined;
    // The annotation comes with an update of the Pod.
    if ((await this.#networks?.areAwaited(pod, signal)) === true) return undefined;
    try {
      const missing = await this.#runtime.attachNetworks(pod);
      for (const why of missing) events.event(pod, 'Warning', 'UnsupportedPlugin', why);
      state.hasNetworks = true;
      return undefined;
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      events.event(pod, 'Warning', 'FailedCreatePodSandBox', error.message);
      return clock.now() + sandboxRetry;
    }
  }

  /** @throws {MountError} */
  async #mount({ pod, node, state, signal }: PodWork, addresses: readonly string[]): Promise<void> {
    if (this.#files === undefined) return;
    const [podIP = ''] = addresses;
    const addressed = { ...pod, status: { ...pod.status, podIP, podIPs: addresses.map((ip) => ({ ip })) } };
    const { containers = [], initContainers = [] } = pod.spec;
    const hasPrograms = [...containers, ...initContainers].some(
      (each) => !this.#runtime.isStandIn(pod, each),
    );
    const volumes = await this.#files.volumes(addressed, node, hasPrograms, signal);
    for (const volume of volumes) {
      try {
        await this.#runtime.writeVolume(pod, volume);
      } catch (error) {
        // Such as a full disk.
        const why = errorMessage(error);
        throw setUpError(volume.name, why);
      }
    }
    const changes = (pod.spec.volumes ?? []).some(
      (volume) => volume.emptyDir === undefined && volume.hostPath === undefined,
    );
    state.refreshAt = hasPrograms && changes ? this.#context.clock.now() + refreshPeriod : Infinity;
  }

  /** Updates files by their objects, and evicts a Pod over its limits of storage. @returns when to check again. */
  async keepFiles(work: PodWork): Promise<number | undefined> {
    const { pod, state } = work;
    const { clock, events } = this.#context;
    if (!state.isPrepared || this.#files === undefined) return undefined;
    if (state.refreshAt <= clock.now()) {
      try {
        await this.#mount(
          work,
          (pod.status.podIPs ?? []).map(({ ip }) => ip),
        );
      } catch (error) {
        if (!(error instanceof MountError)) throw error;
        // Mounted files stay.
        state.refreshAt = clock.now() + refreshPeriod;
        events.event(pod, 'Warning', 'FailedMount', error.message);
      }
    }
    if (!limitsStorage(pod.spec)) return Number.isFinite(state.refreshAt) ? state.refreshAt : undefined;
    const message = evictionMessage(pod.spec, await this.#runtime.usageOf(pod));
    if (message !== undefined) {
      state.ending = { since: clock.now(), grace: evictionGrace, reason: 'Evicted', message };
      events.event(pod, 'Warning', 'Evicted', message);
      return undefined;
    }
    return Math.min(state.refreshAt, clock.now() + usagePeriod);
  }
}
