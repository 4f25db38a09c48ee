import { RangeFullError } from '../../allocation/address-range.ts';
import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import { byNode, indexByNode } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import {
  leases as leasesResource,
  nodes as nodesResource,
  pods as podsResource,
} from '../../client/resources.ts';
import { isRecord, jsonEqual } from '../../objects/json.ts';
import { conditionOf, keyOf, type ObjectKey } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import { formatMicroTime, formatTime } from '../../objects/formats/time.ts';
import type { Node, Pod, PodStatus, Service } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import {
  type Change,
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type Reconcile,
  type ReconcileResult,
} from '../../runtime/key-loop.ts';
import { OwnWrites } from '../../runtime/own-writes.ts';
import { isDown, isSimulated } from '../nodes/plan.ts';
import { type ContainerRuntime, noRuntime } from './container-runtime.ts';
import { hostAddresses, type KubeletPlan, planPod } from './plan.ts';
import { refuseAdmission } from './plan-admission.ts';
import { behaviourOf } from './plan-behaviour.ts';
import { storedAllocation, withAllocation } from './plan-resize.ts';
import { earliest } from './plan-course.ts';
import { PodAddresses } from './pod-state.ts';
import { PodContainers } from './pod-containers.ts';
import { PodResizes } from './pod-resizes.ts';
import {
  AwaitedNetworks,
  PodFiles,
  PodPreparation,
  sandboxRetryMs,
  type PodWork,
} from './pod-preparation.ts';
import { PodEndings, PodState } from './pod-state.ts';
import { removeFolders } from './volumes/folders.ts';

const leaseNamespace = 'kube-node-lease';
/** `nodeLeaseDurationSeconds`. */
const leaseSeconds = 40;
/** The kubelet renews a Lease four times in its duration. */
const renewalMs = 10_000;
/** Leases that are due within such a time are renewed together: one after the other, each would wake the server by itself. */
const togetherMs = 1000;

/** Renews the Lease of each simulated node, as the kubelet does to show that the node is alive. */
function renewLeases(loop: KeyLoop): Reconcile {
  const { clients, clock } = loop.context;
  const client = clients.for(leasesResource);

  const nodes = loop.cache(nodesResource);

  loop.on(nodes, (change) => {
    if (change.kind === 'deleted') return [];
    const isSame =
      change.kind === 'updated' &&
      isDown(change.object) === isDown(change.old) &&
      isSimulated(change.object) === isSimulated(change.old);
    return isSame ? [] : ownKey(change);
  });

  return async (name, signal) => {
    const node = nodes.cache.get(name);
    if (node === undefined || !isSimulated(node) || isDown(node)) return undefined;
    const renewTime = formatMicroTime(clock.now());
    try {
      await client.mergePatch(leaseNamespace, name, { spec: { renewTime } }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      try {
        await client.create({ metadata: leaseMetadata(node), spec: leaseSpec(name, renewTime) }, { signal });
      } catch (second) {
        if (!isAlreadyExists(second)) throw second;
      }
    }
    const due = clock.monotonic() + renewalMs;
    return { requeueAfterMs: renewalMs - (due % togetherMs) };
  };
}

function leaseMetadata({ metadata }: Node): Node['metadata'] {
  const { name = '', uid = '' } = metadata;
  return {
    namespace: leaseNamespace,
    name,
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }],
  };
}

function leaseSpec(holderIdentity: string, renewTime: string): Record<string, string | number> {
  return { holderIdentity, leaseDurationSeconds: leaseSeconds, renewTime };
}

/** Milliseconds after which a Pod without a free address is tried again (kubelet: CNI failures). */
const fullNodeRetryMs = 5000;

/** How Pods are run. */
export interface KubeletSettings {
  /** The controller that attaches further networks may run: containers wait for it where it does. Default: true. */
  readonly awaitsNetworks?: boolean;
  /** Images that cannot be pulled, as containers name them. Default: none. */
  readonly missingImages?: readonly string[];
}

/** The settings of {@link kubeletController}. */
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
export function kubeletController(options: KubeletOptions | KubeletSettings = {}): ControllerSpec {
  return {
    name: 'kubelet',
    eventSource: 'kubelet',
    queue: 'kubelet',
    workers: 16,
    build(loop) {
      const reconciler = new KubeletReconciler(loop, options);
      loop.beside('node_lease', {}, renewLeases);
      if ('runtime' in options && options.runtime.isReal) {
        loop.beside('volume_folders', {}, removeFolders(options.runtime));
      }
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

class KubeletReconciler {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #writes: OwnWrites<Pod>;
  readonly #addresses: PodAddresses;
  readonly #runtime: ContainerRuntime;
  readonly #files: PodFiles | undefined;
  readonly #preparation: PodPreparation;
  readonly #containers: PodContainers;
  readonly #endings: PodEndings;
  readonly #resizes: PodResizes;
  /** By uid. */
  readonly #states = new Map<string, PodState>();

  constructor(loop: KeyLoop, options: KubeletOptions | KubeletSettings) {
    const { context } = loop;
    this.#context = context;
    this.#client = context.clients.for(podsResource);

    this.#nodes = loop.cache(nodesResource);
    this.#pods = loop.cache(podsResource, { indexes: { [byNode]: indexByNode } });

    this.#writes = new OwnWrites(loop, this.#pods);
    this.#addresses = new PodAddresses(context.random);
    this.#runtime = 'runtime' in options ? options.runtime : noRuntime;
    this.#files = 'services' in options ? new PodFiles(context, options.services) : undefined;
    const networks = options.awaitsNetworks === false ? undefined : new AwaitedNetworks(context);
    this.#preparation = new PodPreparation(context, this.#runtime, this.#files, networks);
    this.#containers = new PodContainers(loop, this.#runtime, this.#files, options.missingImages ?? []);
    this.#endings = new PodEndings(context, this.#runtime);
    this.#resizes = new PodResizes(context, this.#runtime, this.#containers);

    loop.on(this.#pods, (change) => {
      if (change.kind !== 'deleted') return this.#observe(change);
      this.#forget(change.object);
      return this.#resizes.deferred;
    });
    loop.on(this.#nodes, (change) => {
      const node = change.object;
      if (change.kind === 'deleted') return [];
      if (change.kind === 'updated' && !concernsPods(node, change.old)) return [];
      const podsOfNode = this.#pods.cache.byIndex(byNode, node.metadata.name ?? '');
      // Pods may come before their node, and all addresses in use must be known before the first one is given.
      if (change.kind === 'added') for (const pod of podsOfNode) this.#observeAddresses(pod);
      return podsOfNode.map(keyOf);
    });
  }

  /** Records addresses that a Pod has: those, too, that another client wrote into its status. */
  #observeAddresses(pod: Pod): void {
    const node = this.#nodes.cache.get(pod.spec.nodeName ?? '');
    if (isFinished(pod)) this.#addresses.release(pod);
    else if (node !== undefined) this.#addresses.observe(pod, node);
  }

  #observe(change: Change<Pod>): readonly ObjectKey[] {
    const pod = change.object;
    this.#observeAddresses(pod);
    if ((pod.spec.nodeName ?? '') === '') return [];
    const state = this.#states.get(pod.metadata.uid ?? '');
    const old = change.kind === 'updated' ? change.old : undefined;
    const isSame = jsonEqual(downwardFields(pod), downwardFields(old));
    if (state !== undefined && Number.isFinite(state.refreshAtMs) && !isSame) state.refreshAtMs = 0;
    if (state !== undefined && old !== undefined) this.#resizes.observe(pod, old, state);
    // What it needs no more may be enough for another.
    const leaves = isFinished(pod) || pod.metadata.generation !== old?.metadata.generation;
    return leaves ? [keyOf(pod), ...this.#resizes.deferred] : [keyOf(pod)];
  }

  #forget(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    this.#addresses.release(pod);
    this.#states.get(uid)?.close();
    this.#states.delete(uid);
    this.#resizes.forget(pod);
    this.#files?.forget(pod);
    this.#runtime.removePod(pod).catch((error: unknown) => {
      this.#context.log.warn({ err: error, pod: keyOf(pod) }, 'cannot remove the sandbox of a Pod');
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const pod = this.#pods.cache.get(key);
    const node = this.#nodes.cache.get(pod?.spec.nodeName ?? '');
    if (pod === undefined || node === undefined || !isSimulated(node) || isDown(node)) return undefined;
    // The node's controller has not given it addresses yet, or has none left.
    if (hostAddresses(node).length === 0) {
      const ready = conditionOf(node.status.conditions, 'Ready');
      if (ready?.status === 'False') {
        const why = `network is not ready: ${ready.message ?? ''}`;
        this.#context.events.event(pod, 'Warning', 'NetworkNotReady', why);
      }
      return undefined;
    }
    const waitMs = this.#writes.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const { uid = '', deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
    if (isFinished(pod)) {
      if (deletionTimestamp === undefined) return undefined;
      // Only finalizers keep it now.
      if (deletionGracePeriodSeconds === 0) return undefined;
      await this.#delete(pod, signal);
      return undefined;
    }
    const known = this.#states.get(uid);
    if (known === undefined && !isAdmitted(pod) && deletionTimestamp === undefined) {
      const refusal = refuseAdmission(pod, node, this.#others(pod, node));
      if (refusal !== undefined) {
        const { reason, message } = refusal;
        this.#context.events.event(pod, 'Warning', reason, message);
        const startTime = formatTime(this.#context.clock.now());
        const rejected = { phase: 'Failed', reason, message: `Pod was rejected: ${message}`, startTime };
        await this.#write(key, pod, rejected, signal);
        return undefined;
      }
    }
    const state = known ?? new PodState();
    this.#states.set(uid, state);
    try {
      return await this.#run({ key, pod, node, state, signal });
    } finally {
      // It was deleted meanwhile: what was made since then is removed here.
      if (this.#states.get(uid) !== state) await this.#runtime.removePod(pod);
    }
  }

  async #run(work: PodWork): Promise<ReconcileResult | undefined> {
    const { key, node, state, signal } = work;
    const { clock, events } = this.#context;
    let addresses: string[];
    try {
      addresses = this.#addresses.assign(work.pod, node);
    } catch (error) {
      if (!(error instanceof RangeFullError)) throw error;
      const why = 'no addresses are left in the pod CIDRs of the node: delete Pods of it, or add a Node';
      events.event(work.pod, 'Warning', 'FailedCreatePodSandBox', why);
      return { requeueAfterMs: fullNodeRetryMs };
    }
    const deadline = this.#endings.decide(work.pod, state);
    if (state.ending === undefined && !state.isPrepared) {
      const retry = await this.#preparation.prepare(work, addresses);
      if (retry === 'later') return { requeueAfterMs: sandboxRetryMs };
    }
    const checks =
      state.ending === undefined
        ? [deadline, await this.#preparation.attachNetworks(work), await this.#preparation.keepFiles(work)]
        : [];
    const pod = this.#resizes.allocate(work.pod, node, state, () => this.#others(work.pod, node));
    checks.push(await this.#resizes.apply(pod, state));
    let plan = this.#plan({ ...work, pod }, addresses);
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
      if (more) plan = this.#plan({ ...work, pod }, addresses);
    }
    const { status } = plan;
    const isOver = status.phase === 'Succeeded' || status.phase === 'Failed';
    if (isOver) {
      state.close();
      await this.#runtime.removeSandbox(pod);
    } else if (state.ending !== undefined) this.#containers.end(decided, state, state.ending.graceMs);
    const isNew = pod.status.containerStatuses === undefined;
    await this.#write(key, pod, status, signal);
    state.decidedStatus = undefined;
    this.#containers.report(pod, status, isNew);
    if (isOver) {
      if (pod.metadata.deletionTimestamp !== undefined) await this.#delete(pod, signal);
      return undefined;
    }
    const now = clock.now();
    const next = earliest([plan.next, ...checks, state.isPrepared ? undefined : state.mounts.untilMs]);
    return next === undefined ? undefined : { requeueAfterMs: Math.max(1, next - now) };
  }

  #plan({ pod, node, state }: PodWork, addresses: readonly string[]): KubeletPlan {
    const { ending, observed, isPrepared, hasNetworks } = state;
    const { decidedStatus } = state;
    const known = decidedStatus === undefined ? pod : { ...pod, status: { ...pod.status, ...decidedStatus } };
    const plan = planPod({
      ...{ pod: known, node, addresses, ending, observed },
      isPrepared: isPrepared || (ending !== undefined && pod.status.podIP !== undefined),
      hasNetworks: hasNetworks || (ending !== undefined && wasReadyToStart(pod)),
      isStandIn: (container) => this.#runtime.isStandIn(pod, container),
      ...(state.resize === undefined ? {} : { resizes: state.resize.states, actual: state.resize.actual }),
      now: this.#context.clock.now(),
    });
    const { containerStatuses = [] } = plan.status;
    // Healthy before it is probed: probes decide whether it is ready, and ask it.
    const isHealthy = !behaviourOf(pod, true).saysReadiness || containerStatuses.every(({ ready }) => ready);
    this.#runtime.setHealthy(pod, isHealthy);
    return plan;
  }

  /** The other Pods that the kubelet of a node has taken and that have not ended, with the resources that they are given. */
  #others({ metadata }: Pod, node: Node): readonly Pod[] {
    return this.#pods.cache.byIndex(byNode, node.metadata.name ?? '').flatMap((other) => {
      const { uid = '' } = other.metadata;
      const state = this.#states.get(uid);
      if (uid === metadata.uid || isFinished(other) || (state === undefined && !isAdmitted(other))) return [];
      const allocation = state?.resize?.allocation ?? storedAllocation(other);
      return [allocation === undefined ? other : withAllocation(other, allocation)];
    });
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
      this.#writes.written(key, written);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

/** True for a Pod that its kubelet has taken, also before a restart of it. */
function isAdmitted({ status }: Pod): boolean {
  return status.startTime !== undefined;
}

/** What volumes and environments may show of a Pod: the downward API. */
function downwardFields(pod: Pod | undefined): unknown {
  return [pod?.metadata.labels, pod?.metadata.annotations];
}

/** Whether a change of a node concerns its Pods. */
function concernsPods(node: Node, old: Node): boolean {
  return (
    isDown(node) !== isDown(old) ||
    isSimulated(node) !== isSimulated(old) ||
    !jsonEqual(hostAddresses(node), hostAddresses(old))
  );
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
