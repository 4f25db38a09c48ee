import { RangeFullError } from '../../allocation/errors.ts';
import { isNotFound } from '../../client/errors.ts';
import { byNode, indexByNode } from '../../client/informers/indexes.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { nodes as nodesResource, pods as podsResource } from '../../client/resources.ts';
import { isRecord, jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { Node, Pod, PodStatus, Service } from '../../objects/types/core.generated.ts';
import { parseTime } from '../../objects/time.ts';
import { isDown, isSimulated } from '../nodes/plan.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import type { ReconcileResult } from '../../runtime/controller.ts';
import { Reconciler } from '../../runtime/reconciler.ts';
import { Expectations } from '../../runtime/expectations.ts';
import { conditionOf, isFinished } from '../../objects/pods.ts';
import { lookAgain } from '../../runtime/status-writer.ts';
import { AwaitedNetworks } from './awaited-networks.ts';
import { type ContainerRuntime, noRuntime, SandboxError } from './container-runtime.ts';
import { heartbeats } from './heartbeat.ts';
import { earliest, hostAddresses, type KubeletPlan, planPod } from './plan.ts';
import { behaviourOf } from './plan-behaviour.ts';
import { evictionMessage, limitsStorage } from './plan-eviction.ts';
import { MountError, setUpError } from './plan-volumes.ts';
import { PodAddresses } from './pod-addresses.ts';
import { PodContainers } from './pod-containers.ts';
import { PodFiles } from './pod-files.ts';
import { PodState } from './pod-state.ts';

/** Milliseconds after which a Pod without a free address is tried again (kubelet: CNI failures). */
const fullNodeRetry = 5000;
/** Milliseconds after which a sandbox that could not be made is tried again. */
const sandboxRetry = 1000;
/** Milliseconds after which a failed mount is tried again: doubled up to the longest (`goroutinemap/exponentialbackoff`). */
const mountRetry = { first: 500, longest: 122_000 };
/** Milliseconds between two readings of what volumes show (`--sync-frequency`). */
const refreshPeriod = 60_000;
/** Milliseconds between two looks at what volumes hold (`--housekeeping-interval`). */
const usagePeriod = 10_000;
/** Milliseconds that an evicted Pod has (`immediateEvictionGracePeriodSeconds`). */
const evictionGrace = 1000;

/** How Pods are run. */
export interface KubeletSettings {
  /** The controller that attaches further networks may run: containers wait for it where it does. Default: true. */
  readonly awaitsNetworks?: boolean;
}

/** What the kubelet of {@link kubelet} works with. */
export interface KubeletOptions extends KubeletSettings {
  readonly runtime: ContainerRuntime;
  /** The Services whose addresses the environment of Pods has. */
  readonly services: () => Iterable<Service>;
}

/**
 * The kubelets of all simulated nodes: gives Pods addresses and sandboxes, runs their containers one after another as
 * their specs say, or as annotations do ({@link behaviourOf}), and ends them with their grace period.
 *
 * @param options without a runtime, Pods are only objects.
 */
export function kubelet(options: KubeletOptions | KubeletSettings = {}): ControllerDefinition {
  return {
    name: 'kubelet',
    start(context: ControllerContext): readonly Runnable[] {
      return [new KubeletReconciler(context, options), heartbeats(context)];
    },
  };
}

interface Work {
  readonly key: ObjectKey;
  readonly pod: Pod;
  readonly node: Node;
  readonly state: PodState;
  readonly signal: AbortSignal;
}

class KubeletReconciler extends Reconciler {
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #client: ResourceClient<Pod>;
  readonly #addresses: PodAddresses;
  readonly #runtime: ContainerRuntime;
  readonly #files: PodFiles | undefined;
  readonly #containers: PodContainers;
  readonly #networks: AwaitedNetworks | undefined;
  readonly #expectations: Expectations<Pod>;
  /** By uid. */
  readonly #states = new Map<string, PodState>();

  constructor(context: ControllerContext, options: KubeletOptions | KubeletSettings) {
    super(context, 'kubelet', { workers: 16 });
    this.#runtime = 'runtime' in options ? options.runtime : noRuntime;
    this.#files = 'services' in options ? new PodFiles(context, options.services) : undefined;
    this.#networks = options.awaitsNetworks === false ? undefined : new AwaitedNetworks(context);
    this.#containers = new PodContainers(context, this.#runtime, this.#files, (pod) => {
      this.queue.enqueue(keyOf(pod));
    });
    this.#nodes = this.informer(nodesResource);
    this.#pods = this.informer(podsResource);
    this.#client = context.clients.for(podsResource);
    this.#addresses = new PodAddresses(context.random);
    this.#expectations = new Expectations(this.#pods, context.clock);
    this.#pods.addIndex(byNode, indexByNode);
    this.waitFor({ synced: (signal) => this.#takeStock(signal) });
    this.#pods.addHandler({
      added: (pod) => this.#observe(pod),
      updated: (pod, old) => this.#observe(pod, old),
      deleted: (pod) => this.#forget(pod),
    });
    this.#nodes.addHandler({
      added: (node) => this.#enqueuePodsOf(node),
      updated: (node, old) => {
        const same =
          isDown(node) === isDown(old) &&
          isSimulated(node) === isSimulated(old) &&
          jsonEqual(hostAddresses(node), hostAddresses(old));
        if (!same) this.#enqueuePodsOf(node);
      },
    });
  }

  /** Before the first address is given, all addresses in use must be known. */
  async #takeStock(signal: AbortSignal): Promise<boolean> {
    if (!(await this.#nodes.synced(signal)) || !(await this.#pods.synced(signal))) return false;
    for (const pod of this.#pods.cache.values()) {
      const node = this.#nodes.cache.get(pod.spec.nodeName ?? '');
      if (node !== undefined && !isFinished(pod)) this.#addresses.observe(pod, node);
    }
    return true;
  }

  #observe(pod: Pod, old?: Pod): void {
    const node = this.#nodes.cache.get(pod.spec.nodeName ?? '');
    if (isFinished(pod)) this.#addresses.release(pod);
    // An address that another client wrote into the status is in use, too.
    else if (node !== undefined) this.#addresses.observe(pod, node);
    if ((pod.spec.nodeName ?? '') === '') return;
    const downward = (each: Pod | undefined): unknown => [each?.metadata.labels, each?.metadata.annotations];
    const state = this.#states.get(pod.metadata.uid ?? '');
    if (state !== undefined && Number.isFinite(state.refreshAt) && !jsonEqual(downward(pod), downward(old)))
      state.refreshAt = 0;
    this.queue.enqueue(keyOf(pod));
  }

  #forget(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    this.#addresses.release(pod);
    this.#states.get(uid)?.close();
    this.#states.delete(uid);
    this.#files?.forget(pod);
    this.#runtime.removePod(pod).catch((error: unknown) => {
      this.context.log.warn({ err: error, pod: keyOf(pod) }, 'cannot remove the sandbox of a Pod');
    });
  }

  #enqueuePodsOf(node: Node): void {
    for (const pod of this.#pods.cache.byIndex(byNode, node.metadata.name ?? '')) {
      this.queue.enqueue(keyOf(pod));
    }
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const pod = this.#pods.cache.get(key);
    const node = this.#nodes.cache.get(pod?.spec.nodeName ?? '');
    if (pod === undefined || node === undefined || !isSimulated(node) || isDown(node)) return undefined;
    // The node's controller has not given it addresses yet, or has none left.
    if (hostAddresses(node).length === 0) {
      const ready = conditionOf(node.status.conditions, 'Ready');
      if (ready?.status === 'False') {
        const why = `network is not ready: ${ready.message ?? ''}`;
        this.context.events.event(pod, 'Warning', 'NetworkNotReady', why);
      }
      return undefined;
    }
    if (!this.#expectations.settled(key)) return { requeueAfter: lookAgain };
    const { uid = '', deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
    if (isFinished(pod)) {
      if (deletionTimestamp === undefined) return undefined;
      // Only finalizers keep it now.
      if (deletionGracePeriodSeconds === 0) return undefined;
      await this.#delete(pod, signal);
      return undefined;
    }
    const state = this.#states.get(uid) ?? new PodState();
    this.#states.set(uid, state);
    try {
      return await this.#run({ key, pod, node, state, signal });
    } finally {
      // It was deleted meanwhile: what was made since then is removed here.
      if (this.#states.get(uid) !== state) await this.#runtime.removePod(pod);
    }
  }

  async #run(work: Work): Promise<ReconcileResult | undefined> {
    const { key, pod, node, state, signal } = work;
    const { clock, events } = this.context;
    let addresses: string[];
    try {
      addresses = this.#addresses.assign(pod, node);
    } catch (error) {
      if (!(error instanceof RangeFullError)) throw error;
      const why = 'no addresses are left in the pod CIDRs of the node: delete Pods of it, or add a Node';
      events.event(pod, 'Warning', 'FailedCreatePodSandBox', why);
      return { requeueAfter: fullNodeRetry };
    }
    const deadline = this.#decideEnding(pod, state);
    if (state.ending === undefined && !state.isPrepared) {
      const retry = await this.#prepare(work, addresses);
      if (retry === 'later') return { requeueAfter: sandboxRetry };
    }
    const checks =
      state.ending === undefined
        ? [deadline, await this.#attachNetworks(work), await this.#keepFiles(work)]
        : [];
    let plan = this.#plan(work, addresses);
    let decided = pod;
    for (let more = true; more;) {
      // A conflict of the write must not undo what has happened.
      const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses } = plan.status;
      state.decidedStatus = {
        ...(initContainerStatuses === undefined ? {} : { initContainerStatuses }),
        ...(containerStatuses === undefined ? {} : { containerStatuses }),
        ...(ephemeralContainerStatuses === undefined ? {} : { ephemeralContainerStatuses }),
      };
      decided = { ...pod, status: { ...pod.status, ...plan.status } };
      more = await this.#containers.follow({ pod: decided, node, state }, plan.running, signal);
      if (more) plan = this.#plan(work, addresses);
    }
    const { status } = plan;
    const isOver = status.phase === 'Succeeded' || status.phase === 'Failed';
    if (isOver) {
      state.close();
      await this.#runtime.removeSandbox(pod);
    } else if (state.ending !== undefined) this.#containers.end(decided, state, state.ending.grace);
    const isNew = pod.status.containerStatuses === undefined;
    await this.#write(key, pod, status, signal);
    state.decidedStatus = undefined;
    this.#report(pod, status, isNew);
    if (isOver) {
      if (pod.metadata.deletionTimestamp !== undefined) await this.#delete(pod, signal);
      return undefined;
    }
    const now = clock.now();
    const next = earliest([plan.next, ...checks, state.isPrepared ? undefined : state.mounts.until]);
    return next === undefined ? undefined : { requeueAfter: Math.max(1, next - now) };
  }

  #plan({ pod, node, state }: Work, addresses: readonly string[]): KubeletPlan {
    const { ending, observed, isPrepared, hasNetworks } = state;
    const { decidedStatus } = state;
    const known = decidedStatus === undefined ? pod : { ...pod, status: { ...pod.status, ...decidedStatus } };
    const plan = planPod({
      ...{ pod: known, node, addresses, ending, observed },
      isPrepared: isPrepared || (ending !== undefined && pod.status.podIP !== undefined),
      hasNetworks: hasNetworks || (ending !== undefined && wasReadyToStart(pod)),
      isStandIn: (container) => this.#runtime.isStandIn(pod, container),
      now: this.context.clock.now(),
    });
    const { containerStatuses = [] } = plan.status;
    // Healthy before it is probed: probes decide whether it is ready, and ask it.
    const isHealthy = !behaviourOf(pod, true).saysReadiness || containerStatuses.every(({ ready }) => ready);
    this.#runtime.setHealthy(pod, isHealthy);
    return plan;
  }

  /** Whether the Pod has to end. @returns when that is to be asked again. */
  #decideEnding(pod: Pod, state: PodState): number | undefined {
    const { clock, events } = this.context;
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
    const { activeDeadlineSeconds, containers = [], terminationGracePeriodSeconds = 30 } = pod.spec;
    const now = clock.now();
    if (deletionTimestamp !== undefined) {
      const grace = deletionGracePeriodSeconds * 1000;
      if (state.ending === undefined) {
        for (const { name } of containers) {
          events.event(pod, 'Normal', 'Killing', `Stopping container ${name}`);
        }
        this.#loseContainers(pod, state);
      }
      state.ending = {
        since: state.ending?.since ?? now,
        grace: Math.min(grace, state.ending?.grace ?? grace),
      };
      return undefined;
    }
    if (activeDeadlineSeconds === undefined || state.ending !== undefined) return undefined;
    const at = (parseTime(pod.status.startTime ?? '') ?? now) + activeDeadlineSeconds * 1000;
    if (at > now) return at;
    const message = 'Pod was active on the node longer than the specified deadline';
    this.#loseContainers(pod, state);
    state.ending = {
      since: now,
      grace: terminationGracePeriodSeconds * 1000,
      reason: 'DeadlineExceeded',
      message,
    };
    events.event(pod, 'Normal', 'DeadlineExceeded', message);
    return undefined;
  }

  /** Programs that another process started are gone: nothing is waited for. */
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
      const startedAt = parseTime(current.running.startedAt ?? '') ?? this.context.clock.now();
      state.started(name, restartCount, startedAt, { startup: false, readiness: false });
      const message = 'The container could not be located when the pod was terminated';
      const exit = { exitCode: 137, reason: 'ContainerStatusUnknown', message };
      const spec = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])].find(
        (container) => container.name === name,
      );
      const isStandIn = spec === undefined || this.#runtime.isStandIn(pod, spec);
      if (!isStandIn) state.ended(name, restartCount, exit, this.context.clock.now());
    }
  }

  /** Volumes, then the sandbox. */
  async #prepare(work: Work, addresses: readonly string[]): Promise<'done' | 'blocked' | 'later'> {
    const { pod, node, state } = work;
    const { clock, events } = this.context;
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
      const wait = Math.min(mountRetry.first * 2 ** state.mounts.failures, mountRetry.longest);
      state.mounts = { failures: state.mounts.failures + 1, until: clock.now() + wait };
      return 'blocked';
    }
  }

  /** Further networks, once the annotation of the Pod says what they are. @returns when to try again. */
  async #attachNetworks({ pod, state, signal }: Work): Promise<number | undefined> {
    const { clock, events } = this.context;
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
  async #mount({ pod, node, state, signal }: Work, addresses: readonly string[]): Promise<void> {
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
        const why = error instanceof Error ? error.message : String(error);
        throw setUpError(volume.name, why);
      }
    }
    const changes = (pod.spec.volumes ?? []).some(
      (volume) => volume.emptyDir === undefined && volume.hostPath === undefined,
    );
    state.refreshAt = hasPrograms && changes ? this.context.clock.now() + refreshPeriod : Infinity;
  }

  /** Files follow their objects; a Pod over its limits of storage is evicted. @returns when to look again. */
  async #keepFiles(work: Work): Promise<number | undefined> {
    const { pod, state } = work;
    const { clock, events } = this.context;
    if (!state.isPrepared || this.#files === undefined) return undefined;
    if (state.refreshAt <= clock.now()) {
      try {
        await this.#mount(
          work,
          (pod.status.podIPs ?? []).map(({ ip }) => ip),
        );
      } catch (error) {
        if (!(error instanceof MountError)) throw error;
        // What is mounted stays as it is.
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

  #report(pod: Pod, status: PodStatus, isNew: boolean): void {
    const { events } = this.context;
    if (isNew && (status.phase === 'Running' || status.phase === 'Succeeded')) {
      for (const container of pod.spec.containers ?? []) {
        if (!this.#runtime.isStandIn(pod, container)) continue;
        events.event(pod, 'Normal', 'Started', `Started container ${container.name}`);
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
      events.event(pod, 'Warning', 'BackOff', `Back-off restarting failed container ${where}`);
    }
  }

  async #delete(pod: Pod, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    try {
      await this.#client.delete(namespace, name, { gracePeriodSeconds: 0, preconditions: { uid }, signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #write(key: ObjectKey, pod: Pod, status: PodStatus, signal: AbortSignal): Promise<void> {
    if (covers(pod.status, status)) return;
    const { namespace = '', name = '', uid, resourceVersion } = pod.metadata;
    try {
      // Conditional: a readiness gate that another client set meanwhile must not be lost.
      const patch = { metadata: { uid, resourceVersion }, status };
      const written = await this.#client.mergePatch(namespace, name, patch, {
        subresource: 'status',
        signal,
      });
      this.#expectations.written(key, written);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

function wasReadyToStart({ status }: Pod): boolean {
  return conditionOf(status.conditions, 'PodReadyToStartContainers')?.status === 'True';
}

/** True when the status already has all these members. */
function covers(present: PodStatus, wanted: PodStatus): boolean {
  return Object.entries(wanted).every(
    ([member, value]) => isRecord(present) && jsonEqual(present[member], value),
  );
}
