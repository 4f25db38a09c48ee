import { containerFieldPath } from '../../objects/pods.ts';
import type {
  Container,
  Node,
  Pod,
  PodStatus,
  ResourceRequirements,
} from '../../objects/types/core.generated.ts';
import type { ContainerExit, ContainerRuntime } from './container-runtime.ts';
import type { PodEnding } from './plan-course.ts';
import type { Observed, StartFailure } from './plan-containers.ts';
import type { Allocation, ResizeState } from './plan-resize.ts';
import type { ProbeWorker } from './probes/probes.ts';
import { parseTime } from '../../objects/formats/time.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { AddressAllocator } from '../../allocation/address-allocator.ts';
import { parseServiceCidr } from '../../allocation/address-range.ts';
import type { Random } from '../../client/clock.ts';

/** The lists of a status that only the kubelet writes. */
export type ContainerStatuses = Pick<
  PodStatus,
  'initContainerStatuses' | 'containerStatuses' | 'ephemeralContainerStatuses'
>;

/** A Pod whose spec has got other resources. */
export interface PodResize {
  /** What the node gives to it. */
  allocation: Allocation;
  /** What containers that run were started with, or have got since. */
  readonly actual: Map<string, ResourceRequirements>;
  /** What the Pod as a whole was begun with, or has got since. */
  whole: ResourceRequirements | undefined;
  /** Containers that end, to be started with other resources. */
  readonly restarting: Set<string>;
  /** One that waits, and one that is not done. */
  states: readonly ResizeState[];
}

/** The state of a Pod in this process besides its status: started attempts, and their ends. */
export class PodState {
  /** By the name of the container. */
  readonly observed = new Map<string, Observed>();
  /** The attempts that were started and have not ended, by the name of the container. */
  readonly running = new Map<string, number>();
  readonly probes = new Map<string, readonly ProbeWorker[]>();
  /** Sandbox and volumes are there. */
  isPrepared = false;
  /** Further networks are attached, or none are awaited. */
  hasNetworks = false;
  /** Milliseconds since 1970 when the files of volumes are read again. */
  refreshAtMs = Infinity;
  /** Pulls of images that have failed, by the name of the container, and when the next one is due. */
  readonly pulls = new Map<string, { readonly failures: number; readonly againAtMs: number }>();
  /** How often, and until when, mounting has failed. */
  mounts = { failures: 0, untilMs: 0 };
  /** Statuses of containers that were decided and may not be in the API yet. */
  decidedStatus: ContainerStatuses | undefined;
  ending: PodEnding | undefined;
  /** Its spec has got other resources, which are not all given yet. */
  resize: PodResize | undefined;
  /** Of a deletion: the grace period with which containers were asked to end. */
  askedGraceMs: number | undefined;

  /** A container was started. */
  started(
    { name, resources = {} }: Pick<Container, 'name' | 'resources'>,
    attempt: number,
    startedAt: number,
    probed: { startup: boolean; readiness: boolean },
  ): void {
    this.running.set(name, attempt);
    this.resize?.actual.set(name, resources);
    this.resize?.restarting.delete(name);
    this.observed.set(name, {
      ...{ attempt, startedAt, ending: undefined, problem: undefined },
      started: probed.startup ? false : undefined,
      ready: probed.readiness ? false : undefined,
    });
  }

  /** An attempt could not be started. */
  failed(name: string, attempt: number, problem: StartFailure): void {
    this.observed.set(name, {
      ...{ attempt, startedAt: undefined, ending: undefined, problem },
      ...{ started: undefined, ready: undefined },
    });
  }

  /** An attempt has ended. @returns false where it is not the present one. */
  ended(name: string, attempt: number, exit: ContainerExit, now: number): boolean {
    const seen = this.observed.get(name);
    if (seen?.attempt !== attempt) return false;
    const isResize = this.resize?.restarting.has(name) === true;
    const ended = { ...exit, startedAt: seen.startedAt ?? now, finishedAt: now };
    const ending = isResize ? { ...ended, isResize } : ended;
    this.observed.set(name, { ...seen, ending });
    if (this.running.get(name) === attempt) this.running.delete(name);
    this.stopProbes(name);
    return true;
  }

  /** A verdict of a probe. */
  decided(name: string, attempt: number, verdict: { started?: boolean; ready?: boolean }): void {
    const seen = this.observed.get(name);
    if (seen?.attempt === attempt) this.observed.set(name, { ...seen, ...verdict });
  }

  stopProbes(name: string): void {
    for (const probe of this.probes.get(name) ?? []) probe.stop();
    this.probes.delete(name);
  }

  /** Stops probes and forgets the containers. */
  close(): void {
    for (const name of this.probes.keys()) this.stopProbes(name);
    this.observed.clear();
    this.running.clear();
  }
}

/** Decides when Pods end: by their deletion, or at the deadline of their spec (`activeDeadlineSeconds`). */
export class PodEndings {
  readonly #context: ControllerContext;
  readonly #runtime: ContainerRuntime;

  constructor(context: ControllerContext, runtime: ContainerRuntime) {
    this.#context = context;
    this.#runtime = runtime;
  }

  /** Whether the Pod has to end. @returns when to check again. */
  decide(pod: Pod, state: PodState): number | undefined {
    const { clock, events } = this.#context;
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
    const { activeDeadlineSeconds, containers = [], terminationGracePeriodSeconds = 30 } = pod.spec;
    const now = clock.now();
    if (deletionTimestamp !== undefined) {
      const graceMs = deletionGracePeriodSeconds * 1000;
      if (state.ending === undefined) {
        for (const { name } of containers) {
          events.event(pod, 'Normal', 'Killing', `Stopping container ${name}`, containerFieldPath(pod, name));
        }
        this.#loseContainers(pod, state);
      }
      state.ending = {
        sinceMs: state.ending?.sinceMs ?? now,
        graceMs: Math.min(graceMs, state.ending?.graceMs ?? graceMs),
      };
      return undefined;
    }
    if (activeDeadlineSeconds === undefined || state.ending !== undefined) return undefined;
    const at = (parseTime(pod.status.startTime ?? '') ?? now) + activeDeadlineSeconds * 1000;
    if (at > now) return at;
    const message = 'Pod was active on the node longer than the specified deadline';
    this.#loseContainers(pod, state);
    state.ending = {
      sinceMs: now,
      graceMs: terminationGracePeriodSeconds * 1000,
      reason: 'DeadlineExceeded',
      message,
    };
    events.event(pod, 'Normal', 'DeadlineExceeded', message);
    return undefined;
  }

  /** Programs of a former process are gone: nothing is waited for. */
  #loseContainers(pod: Pod, state: PodState): void {
    const {
      containerStatuses = [],
      initContainerStatuses = [],
      ephemeralContainerStatuses = [],
    } = pod.status;
    for (const { name, restartCount, state: current } of [
      ...[...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses],
    ]) {
      if (current?.running === undefined || state.observed.has(name)) continue;
      const startedAt = parseTime(current.running.startedAt ?? '') ?? this.#context.clock.now();
      state.started({ name }, restartCount, startedAt, { startup: false, readiness: false });
      const message = 'The container could not be located when the pod was terminated';
      const exit = { exitCode: 137, reason: 'ContainerStatusUnknown', message };
      const spec = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])].find(
        (container) => container.name === name,
      );
      const isStandIn = spec === undefined || this.#runtime.isStandIn(pod, spec);
      if (!isStandIn) state.ended(name, restartCount, exit, this.#context.clock.now());
    }
  }
}

/**
 * Allocates the addresses of Pods from the pod CIDRs of their nodes. Addresses in use are read from the Pods and stored
 * nowhere else. The sixteen lowest addresses of a node are used last, as gateways often have them.
 */
export class PodAddresses {
  readonly #random: Random;
  readonly #allocators = new Map<string, AddressAllocator>();
  /** By uid of the Pod: the addresses that it has or is about to get. */
  readonly #held = new Map<string, readonly Holding[]>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Records the addresses that a Pod reports. */
  observe(pod: Pod, node: Node): void {
    const { uid = '' } = pod.metadata;
    if (this.#held.has(uid) || pod.spec.hostNetwork === true) return;
    const held: Holding[] = [];
    for (const { ip } of pod.status.podIPs ?? []) {
      for (const allocator of this.#allocatorsOf(node)) {
        if (!allocator.contains(ip) || allocator.has(ip)) continue;
        allocator.allocate(ip);
        held.push({ allocator, ip });
      }
    }
    if (held.length > 0) this.#held.set(uid, held);
  }

  /**
   * The addresses of a Pod: those it has, or new ones, one of each pod CIDR.
   *
   * @throws {RangeFullError} when the node has none left.
   */
  assign(pod: Pod, node: Node): string[] {
    const { uid = '' } = pod.metadata;
    const present = (pod.status.podIPs ?? []).map(({ ip }) => ip);
    if (present.length > 0 || pod.spec.hostNetwork === true) return present;
    const held = this.#held.get(uid);
    if (held !== undefined) return held.map(({ ip }) => ip);
    const taken: Holding[] = [];
    try {
      for (const allocator of this.#allocatorsOf(node)) {
        taken.push({ allocator, ip: allocator.allocateNext(this.#random) });
      }
    } catch (error) {
      release(taken);
      throw error;
    }
    this.#held.set(uid, taken);
    return taken.map(({ ip }) => ip);
  }

  /** Releases the addresses of a Pod that is gone or has finished. */
  release(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    release(this.#held.get(uid) ?? []);
    this.#held.delete(uid);
  }

  #allocatorsOf({ spec }: Node): AddressAllocator[] {
    return (spec.podCIDRs ?? []).flatMap((text) => {
      const known = this.#allocators.get(text);
      if (known !== undefined) return [known];
      const cidr = parseServiceCidr(text);
      if (cidr === undefined) return [];
      const made = new AddressAllocator(cidr);
      this.#allocators.set(text, made);
      return [made];
    });
  }
}

interface Holding {
  readonly allocator: AddressAllocator;
  readonly ip: string;
}

function release(holdings: readonly Holding[]): void {
  for (const { allocator, ip } of holdings) allocator.release(ip);
}
