import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import {
  leases as leasesResource,
  nodes as nodesResource,
  pods as podsResource,
} from '../../client/resources.ts';
import { keyOf, type ObjectKey, conditionOf } from '../../objects/meta.ts';
import type { Node, Pod, PodStatus, Service } from '../../objects/types/core.generated.ts';
import { formatMicroTime } from '../../objects/time.ts';
import { isDown, isSimulated } from '../nodes/plan.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller, type ReconcileResult, Reconciler } from '../../runtime/key-loop.ts';
import { RangeFullError } from '../../allocation/address-range.ts';
import { byNode, indexByNode } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { isRecord, jsonEqual } from '../../objects/json.ts';
import { Expectations, lookAgain } from '../../runtime/own-writes.ts';
import { isFinished } from '../../objects/pods.ts';
import { AwaitedNetworks, PodFiles, PodPreparation, sandboxRetry, type PodWork } from './pod-preparation.ts';
import { type ContainerRuntime, noRuntime } from './container-runtime.ts';
import { hostAddresses, type KubeletPlan, planPod } from './plan.ts';
import { behaviourOf } from './plan-behaviour.ts';
import { earliest } from './plan-course.ts';
import { PodAddresses } from './pod-addresses.ts';
import { PodContainers } from './pod-containers.ts';
import { PodEndings, PodState } from './pod-state.ts';

const leaseNamespace = 'kube-node-lease';
/** `nodeLeaseDurationSeconds`; renewed four times in that time. */
const leaseSeconds = 40;
const interval = 10_000;

/** Renews the Lease of each simulated node, as kubelet does to show that the node is alive. */
function heartbeats(context: ControllerContext): Controller {
  const nodes = context.informers.informer(nodesResource);
  const client = context.clients.for(leasesResource);
  const controller = new Controller({
    name: 'node_lease',
    context,
    reconcile: async (name, signal) => {
      const node = nodes.cache.get(name);
      if (node === undefined || !isSimulated(node) || isDown(node)) return undefined;
      const renewTime = formatMicroTime(context.clock.now());
      try {
        await client.mergePatch(leaseNamespace, name, { spec: { renewTime } }, { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
        try {
          await client.create(
            { metadata: leaseMetadata(node), spec: leaseSpec(name, renewTime) },
            { signal },
          );
        } catch (second) {
          if (!isAlreadyExists(second)) throw second;
        }
      }
      return { requeueAfter: interval };
    },
    waitFor: [nodes],
  });
  nodes.addHandler({
    added: (node) => controller.enqueue(keyOf(node)),
    updated: (node, old) => {
      if (isDown(node) !== isDown(old) || isSimulated(node) !== isSimulated(old))
        controller.enqueue(keyOf(node));
    },
  });
  return controller;
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
const fullNodeRetry = 5000;

/** How Pods are run. */
export interface KubeletSettings {
  /** The controller that attaches further networks may run: containers wait for it where it does. Default: true. */
  readonly awaitsNetworks?: boolean;
}

/** The settings of {@link kubelet}. */
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

class KubeletReconciler extends Reconciler {
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #client: ResourceClient<Pod>;
  readonly #addresses: PodAddresses;
  readonly #runtime: ContainerRuntime;
  readonly #files: PodFiles | undefined;
  readonly #containers: PodContainers;
  readonly #preparation: PodPreparation;
  readonly #endings: PodEndings;
  readonly #expectations: Expectations<Pod>;
  /** By uid. */
  readonly #states = new Map<string, PodState>();

  constructor(context: ControllerContext, options: KubeletOptions | KubeletSettings) {
    super(context, 'kubelet', { workers: 16 });
    this.#runtime = 'runtime' in options ? options.runtime : noRuntime;
    this.#files = 'services' in options ? new PodFiles(context, options.services) : undefined;
    const networks = options.awaitsNetworks === false ? undefined : new AwaitedNetworks(context);
    this.#preparation = new PodPreparation(context, this.#runtime, this.#files, networks);
    this.#endings = new PodEndings(context, this.#runtime);
    this.#containers = new PodContainers(context, this.#runtime, this.#files, (pod) => {
      this.queue.enqueue(keyOf(pod));
    });
    this.#nodes = this.informer(nodesResource);
    this.#pods = this.informer(podsResource);
    this.#client = context.clients.for(podsResource);
    this.#addresses = new PodAddresses(context.random);
    this.#expectations = new Expectations(this.#pods, context.clock);
    this.#pods.addIndex(byNode, indexByNode);
    this.waitFor({ synced: (signal) => this.#observeAll(signal) });
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
  async #observeAll(signal: AbortSignal): Promise<boolean> {
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

  async #run(work: PodWork): Promise<ReconcileResult | undefined> {
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
    const deadline = this.#endings.decide(pod, state);
    if (state.ending === undefined && !state.isPrepared) {
      const retry = await this.#preparation.prepare(work, addresses);
      if (retry === 'later') return { requeueAfter: sandboxRetry };
    }
    const checks =
      state.ending === undefined
        ? [deadline, await this.#preparation.attachNetworks(work), await this.#preparation.keepFiles(work)]
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
    this.#containers.report(pod, status, isNew);
    if (isOver) {
      if (pod.metadata.deletionTimestamp !== undefined) await this.#delete(pod, signal);
      return undefined;
    }
    const now = clock.now();
    const next = earliest([plan.next, ...checks, state.isPrepared ? undefined : state.mounts.until]);
    return next === undefined ? undefined : { requeueAfter: Math.max(1, next - now) };
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
      now: this.context.clock.now(),
    });
    const { containerStatuses = [] } = plan.status;
    // Healthy before it is probed: probes decide whether it is ready, and ask it.
    const isHealthy = !behaviourOf(pod, true).saysReadiness || containerStatuses.every(({ ready }) => ready);
    this.#runtime.setHealthy(pod, isHealthy);
    return plan;
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
