import { RangeFullError } from '../../allocation/errors.ts';
import { isNotFound } from '../../client/errors.ts';
import { byNode, indexByNode } from '../../client/indexes.ts';
import type { Informer } from '../../client/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { nodes as nodesResource, pods as podsResource } from '../../client/resources.ts';
import { isRecord, jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import { maxOf } from '../../objects/lists.ts';
import type { Node, Pod, PodStatus } from '../../objects/core.generated.ts';
import { isDown, isSimulated } from '../nodes/plan.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import type { ReconcileResult } from '../../runtime/controller.ts';
import { Reconciler } from '../../runtime/reconciler.ts';
import { Expectations } from '../../runtime/expectations.ts';
import { isFinished } from '../../objects/pods.ts';
import { lookAgain } from '../../runtime/status-writer.ts';
import { heartbeats } from './heartbeat.ts';
import {
  hostAddresses,
  type KubeletPlan,
  planPodStatus,
  planStoppedStatus,
  planTerminatingStatus,
  stopTime,
} from './plan.ts';
import { PodAddresses } from './pod-addresses.ts';
import { noSandboxes, type PodSandboxes, SandboxError } from './pod-sandboxes.ts';

/** Milliseconds after which a Pod without a free address is tried again (kubelet: CNI failures). */
const fullNodeRetry = 5000;
/** Milliseconds after which a sandbox that could not be made is tried again. */
const sandboxRetry = 1000;

/**
 * Simulates the kubelets of all simulated nodes: gives Pods addresses and sandboxes, sets them running and ready as
 * their annotations say ({@link behaviourOf}), and ends them with their grace period. No container is started.
 */
export function kubelet(sandboxes: PodSandboxes = noSandboxes): ControllerDefinition {
  return {
    name: 'kubelet',
    start(context: ControllerContext): readonly Runnable[] {
      return [new KubeletReconciler(context, sandboxes), heartbeats(context)];
    },
  };
}

class KubeletReconciler extends Reconciler {
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #client: ResourceClient<Pod>;
  readonly #addresses: PodAddresses;
  readonly #sandboxes: PodSandboxes;
  readonly #expectations: Expectations<Pod>;
  /** By uid, to the millisecond: when containers started, and when the deletion was first seen. */
  readonly #started = new Map<string, number>();
  readonly #deleted = new Map<string, number>();

  constructor(context: ControllerContext, sandboxes: PodSandboxes) {
    super(context, 'kubelet', { workers: 16 });
    this.#sandboxes = sandboxes;
    this.#nodes = this.informer(nodesResource);
    this.#pods = this.informer(podsResource);
    this.#client = context.clients.for(podsResource);
    this.#addresses = new PodAddresses(context.random);
    this.#expectations = new Expectations(this.#pods, context.clock);
    this.#pods.addIndex(byNode, indexByNode);
    this.waitFor({ synced: (signal) => this.#takeStock(signal) });
    this.#pods.addHandler({
      added: (pod) => this.#observe(pod),
      updated: (pod) => this.#observe(pod),
      deleted: (pod) => {
        const { uid = '' } = pod.metadata;
        this.#addresses.release(pod);
        this.#started.delete(uid);
        this.#deleted.delete(uid);
        this.#sandboxes.remove(pod).catch((error: unknown) => {
          context.log.warn({ err: error, pod: keyOf(pod) }, 'cannot remove the sandbox of a Pod');
        });
      },
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

  #observe(pod: Pod): void {
    const node = this.#nodes.cache.get(pod.spec.nodeName ?? '');
    if (isFinished(pod)) this.#addresses.release(pod);
    // An address that another client wrote into the status is in use, too.
    else if (node !== undefined) this.#addresses.observe(pod, node);
    if ((pod.spec.nodeName ?? '') !== '') this.queue.enqueue(keyOf(pod));
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
    // The node's controller has not given it addresses yet.
    if (hostAddresses(node).length === 0) return undefined;
    if (!this.#expectations.settled(key)) return { requeueAfter: lookAgain };
    if (pod.metadata.deletionTimestamp !== undefined) return this.#terminate(key, pod, signal);
    if (isFinished(pod)) return undefined;
    return this.#run(key, pod, node, signal);
  }

  async #run(
    key: ObjectKey,
    pod: Pod,
    node: Node,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const { clock, events } = this.context;
    const { uid = '' } = pod.metadata;
    let addresses: string[];
    try {
      addresses = this.#addresses.assign(pod, node);
    } catch (error) {
      if (!(error instanceof RangeFullError)) throw error;
      events.event(
        pod,
        'Warning',
        'FailedCreatePodSandBox',
        'no addresses are left in the pod CIDRs of the node',
      );
      return { requeueAfter: fullNodeRetry };
    }
    const now = clock.now();
    const exactStart = this.#started.get(uid);
    const plan = planPodStatus({ pod, node, addresses, exactStart, now });
    try {
      await this.#prepare(pod, node, addresses, plan);
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      events.event(pod, 'Warning', 'FailedCreatePodSandBox', error.message);
      return { requeueAfter: sandboxRetry };
    }
    if (plan.startedAt === undefined) this.#started.delete(uid);
    else this.#started.set(uid, plan.startedAt);
    const isNew = pod.status.containerStatuses === undefined;
    await this.#write(key, pod, plan.status, signal);
    if (isNew) {
      for (const { name } of pod.spec.containers ?? []) {
        events.event(pod, 'Normal', 'Started', `Started container ${name}`);
      }
    } else if (restartsOf(plan.status) > restartsOf(pod.status)) {
      events.event(pod, 'Warning', 'BackOff', 'Back-off restarting failed container');
    }
    return plan.next === undefined ? undefined : { requeueAfter: Math.max(1, plan.next - now) };
  }

  /** A Pod is said to run once its sandbox stands, and to have ended once nothing of it answers. */
  async #prepare(pod: Pod, node: Node, addresses: readonly string[], plan: KubeletPlan): Promise<void> {
    const { phase, containerStatuses = [] } = plan.status;
    if (phase !== 'Running') {
      await this.#sandboxes.remove(pod);
      return;
    }
    await this.#sandboxes.ensure({
      pod,
      node,
      addresses: pod.spec.hostNetwork === true ? hostAddresses(node) : addresses,
      running: plan.startedAt !== undefined,
      ready: containerStatuses.every(({ ready }) => ready),
    });
  }

  async #terminate(key: ObjectKey, pod: Pod, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { clock, events } = this.context;
    const { namespace = '', name = '', uid = '', deletionGracePeriodSeconds } = pod.metadata;
    // Only finalizers keep it now.
    if (isFinished(pod) && deletionGracePeriodSeconds === 0) return undefined;
    const now = clock.now();
    const since = this.#deleted.get(uid) ?? now;
    if (since === now && !this.#deleted.has(uid)) {
      this.#deleted.set(uid, now);
      if (!isFinished(pod)) {
        for (const container of pod.spec.containers ?? []) {
          events.event(pod, 'Normal', 'Killing', `Stopping container ${container.name}`);
        }
      }
    }
    if (!isFinished(pod)) {
      const { at, inTime } = stopTime(pod, since);
      if (at > now) {
        const plan = planTerminatingStatus(pod, this.#started.get(uid), now);
        if (plan !== undefined) await this.#write(key, pod, plan.status, signal);
        return { requeueAfter: Math.max(1, Math.min(at, plan?.next ?? at) - now) };
      }
      await this.#sandboxes.remove(pod);
      await this.#write(key, pod, planStoppedStatus(pod, inTime, now), signal);
    }
    try {
      await this.#client.delete(namespace, name, { gracePeriodSeconds: 0, preconditions: { uid }, signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return undefined;
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

/** True when the status already has all these members. */
function covers(present: PodStatus, wanted: PodStatus): boolean {
  return Object.entries(wanted).every(
    ([member, value]) => isRecord(present) && jsonEqual(present[member], value),
  );
}

function restartsOf({ containerStatuses }: PodStatus): number {
  return maxOf([0, ...(containerStatuses ?? []).map(({ restartCount }) => restartCount)]);
}
