import { isConflict, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import {
  ipPools,
  networkAttachmentDefinitions,
  overlappingRangeIPReservations,
  pods as podsResource,
} from '../../client/resources.ts';
import {
  asksForNetworks,
  type Attachment,
  type AttachmentRules,
  resolveAttachments,
} from '../../network/attachments/attachments.ts';
import { AttachmentError } from '../../network/attachments/ipam.ts';
import {
  formatNetworkStatus,
  isAttached,
  networkStatusAnnotation,
} from '../../network/attachments/network-status.ts';
import { networksAnnotation } from '../../network/attachments/attachments.ts';
import { joinKey, keyOf, type ObjectKey, splitKey } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/openshift.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import type { ReconcileResult } from '../../runtime/key-loop.ts';
import { Reconciler } from '../../runtime/key-loop.ts';
import { whereServed } from '../../runtime/other-implementations.ts';
import { attachmentsName } from '../../controllers/names.ts';
import { AddressAssigner } from './addresses.ts';
import { AddressCollector } from './addresses.ts';
import { IPPools, type Released } from './ip-pools.ts';
import { addressText, holdingOf, reservationHolding } from './plan.ts';
import { type Addressed, planNetworkStatus, planOmissions, sandboxMessage } from './plan.ts';
import { isSandboxOf, newAttempt, type SandboxAttempt } from './ip-pools.ts';

/** Milliseconds after which a Pod whose networks cannot be attached is tried again. */
const sandboxRetry = 15_000;
/** How often a status is written anew onto a Pod that others write. */
const statusWrites = 10;

/**
 * Attaches the further networks of Pods, as multus and its IPAM plugins do: finds the NetworkAttachmentDefinitions that
 * they name, gives addresses, writes `network-status`, and gives the addresses back when Pods are gone.
 */
export function attachmentsController(rules: AttachmentRules = {}): ControllerDefinition {
  return {
    name: attachmentsName,
    start(context: ControllerContext): readonly Runnable[] {
      const reservations = context.informers.informer(overlappingRangeIPReservations);
      const pools = new IPPools(context, reservations);
      const attachments = new AttachmentsReconciler(context, rules, pools);
      const collector = new AddressCollector(context, pools, reservations);
      return [
        whereServed(context, {
          resource: networkAttachmentDefinitions,
          work: 'network attachments',
          runnables: [
            whereServed(context, {
              resource: ipPools,
              work: 'address ranges',
              runnables: [attachments, collector],
            }),
          ],
        }),
      ];
    },
  };
}

class AttachmentsReconciler extends Reconciler {
  readonly #rules: AttachmentRules;
  readonly #pods: Informer<Pod>;
  readonly #definitions: Informer<NetworkAttachmentDefinition>;
  readonly #client: ResourceClient<Pod>;
  readonly #pools: IPPools;
  readonly #assigner: AddressAssigner;
  /** Pods whose networks cannot be attached now. */
  readonly #waiting = new Set<ObjectKey>();
  /** Pods that were deleted, until their addresses are free. */
  readonly #gone = new Map<ObjectKey, Pod>();
  /** Pods of which not all is known to be as their status says, with the attempt that comes next. */
  readonly #attempts = new Map<ObjectKey, SandboxAttempt>();

  constructor(context: ControllerContext, rules: AttachmentRules, pools: IPPools) {
    super(context, 'network_attachment');
    this.#rules = rules;
    this.#pools = pools;
    this.#assigner = new AddressAssigner(pools);
    this.#client = context.clients.for(podsResource);
    this.#pods = this.informer(podsResource);
    this.#definitions = this.informer(networkAttachmentDefinitions);
    this.waitFor({ synced: (signal) => this.#observeAll(signal) });
    const changed = (pod: Pod): void => {
      if (asksForNetworks(pod)) this.queue.enqueue(keyOf(pod));
    };
    this.#pods.addHandler({
      added: changed,
      updated: changed,
      deleted: (pod) => {
        this.#assigner.releaseLocal(pod);
        if (asksForNetworks(pod)) this.#gone.set(keyOf(pod), pod);
        changed(pod);
      },
    });
    const retry = (): void => this.#retryWaiting();
    this.#definitions.addHandler({ added: retry, updated: retry });
  }

  /** Loads the addresses that the plugin `host-local` has given before it gives more. */
  async #observeAll(signal: AbortSignal): Promise<boolean> {
    if (!(await this.#pods.synced(signal)) || !(await this.#definitions.synced(signal))) return false;
    for (const pod of this.#pods.cache.values()) {
      if (isFinished(pod) || !isAttached(pod)) continue;
      this.#assigner.observe(pod, this.#attachments(pod) ?? []);
    }
    return true;
  }

  #attachments(pod: Pod): readonly Attachment[] | undefined {
    try {
      return this.#resolve(pod);
    } catch (error) {
      if (error instanceof AttachmentError) return undefined;
      throw error;
    }
  }

  #resolve(pod: Pod): readonly Attachment[] {
    const find = (namespace: string, name: string): NetworkAttachmentDefinition | undefined =>
      this.#definitions.cache.get(joinKey(namespace, name));
    return resolveAttachments(pod, find, this.#rules);
  }

  #retryWaiting(): void {
    for (const key of this.#waiting) this.queue.enqueue(key);
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const pod = this.#pods.cache.get(key);
    if (pod === undefined || isFinished(pod)) {
      this.#waiting.delete(key);
      if (pod !== undefined) this.#assigner.releaseLocal(pod);
      await this.#release(key, pod ?? this.#gone.get(key), signal);
      this.#gone.delete(key);
      this.#attempts.delete(key);
      return undefined;
    }
    this.#gone.delete(key);
    if (!isWaiting(pod)) {
      this.#waiting.delete(key);
      if (this.#attempts.has(key) && isAttached(pod)) await this.#tidy(key, signal);
      return undefined;
    }
    const attempt = this.#attempt(pod);
    try {
      await this.#attach(pod, attempt, signal);
      this.#waiting.delete(key);
      return undefined;
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
      const { events } = this.context;
      if (error.reason !== undefined) events.event(pod, 'Warning', error.reason, error.message);
      const message = sandboxMessage(pod, attempt.sandbox, error.message);
      events.event(pod, 'Warning', 'FailedCreatePodSandBox', message);
      this.#waiting.add(key);
      return { requeueAfter: sandboxRetry };
    }
  }

  /** The attempt that goes on after a request that failed, whose writes may come late, or a new one. */
  #attempt(pod: Pod): SandboxAttempt {
    const key = keyOf(pod);
    const last = this.#attempts.get(key);
    if (last !== undefined && isSandboxOf(pod, last.sandbox)) {
      last.hasLeftovers = true;
      return last;
    }
    const attempt = newAttempt(pod, last !== undefined);
    this.#attempts.set(key, attempt);
    return attempt;
  }

  /** @throws {AttachmentError}, and what a request throws. */
  async #attach(pod: Pod, attempt: SandboxAttempt, signal: AbortSignal): Promise<void> {
    const key = keyOf(pod);
    let attachments: readonly Attachment[];
    let addressed: readonly Addressed[];
    try {
      attachments = this.#resolve(pod);
      addressed = await this.#assigner.assign(pod, attachments, attempt, signal);
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
      // Meanwhile nothing is held, as with a sandbox that is removed.
      this.#assigner.releaseLocal(pod);
      this.#attempts.set(key, newAttempt(pod, true));
      await this.#pools.release(attempt, signal);
      if (!attempt.hasLeftovers) this.#attempts.delete(key);
      throw error;
    }
    if (!(await this.#writeStatus(pod, addressed, signal))) return;
    if (!attempt.hasLeftovers) this.#attempts.delete(key);
    for (const message of planOmissions(pod, attachments)) {
      this.context.events.event(pod, 'Warning', 'AttachmentIncomplete', message);
    }
  }

  /**
   * Writes onto the version of the Pod that was read: of several writers the first one says what the Pod has.
   *
   * @returns false where the Pod has changed so that the addresses are not for it: its change comes here.
   */
  async #writeStatus(read: Pod, addressed: readonly Addressed[], signal: AbortSignal): Promise<boolean> {
    const { namespace = '', name = '', uid } = read.metadata;
    let pod = read;
    for (let write = 1; ; write++) {
      const annotations = {
        [networkStatusAnnotation]: formatNetworkStatus(planNetworkStatus(pod, addressed)),
      };
      const patch = { metadata: { uid, resourceVersion: pod.metadata.resourceVersion, annotations } };
      try {
        await this.#client.mergePatch(namespace, name, patch, { subresource: 'status', signal });
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        if (!isConflict(error) || write === statusWrites) throw error;
      }
      const found = await this.#read(namespace, name, signal);
      if (found === undefined || found.metadata.uid !== uid || !isWaiting(found)) return false;
      if (asked(found) !== asked(read)) return false;
      pod = found;
    }
  }

  /** Gives back what an attached Pod holds and its status does not have: remains of other attempts. */
  async #tidy(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    // Before the Pod is read, as where it is gone.
    const held = await this.#pools.held(key, signal);
    const pod = await this.#read(namespace, name, signal);
    if (pod === undefined || !isAttached(pod)) return;
    await this.#pools.release(
      {
        entries: held.entries.filter(
          ({ pool, entry }) => holdingOf(pod, entry.ifname, addressText(pool, entry)) !== 'held',
        ),
        reservations: held.reservations.filter((each) => reservationHolding(pod, each) !== 'held'),
      },
      signal,
    );
    this.#attempts.delete(key);
    this.#retryWaiting();
  }

  /**
   * A Pod or its sandbox was deleted: its addresses are free, unless another Pod of its name (a StatefulSet's)
   * exists.
   */
  async #release(key: ObjectKey, pod: Pod | undefined, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const { events } = this.context;
    let released: readonly Released[];
    try {
      // Before the Pod is read: what is given behind that belongs to a later Pod of the name.
      const held = await this.#pools.held(key, signal);
      if (await this.#isThere(namespace, name, signal)) return;
      released = await this.#pools.release(held, signal);
    } catch (error) {
      const message = `failed to garbage collect addresses for pod ${key}`;
      if (pod !== undefined) events.event(pod, 'Warning', 'IPAddressGarbageCollectionFailed', message);
      throw error;
    }
    for (const { pool, address, id } of released) {
      // Addresses of its own sandbox are given back without an Event.
      if (pod === undefined || isSandboxOf(pod, id)) continue;
      const message = `successful cleanup of IP address [${address}] from network ${pool.metadata.name ?? ''}`;
      events.event(pod, 'Normal', 'IPAddressGarbageCollected', message);
    }
    if (released.length > 0) this.#retryWaiting();
  }

  async #isThere(namespace: string, name: string, signal: AbortSignal): Promise<boolean> {
    const pod = await this.#read(namespace, name, signal);
    return pod !== undefined && !isFinished(pod);
  }

  async #read(namespace: string, name: string, signal: AbortSignal): Promise<Pod | undefined> {
    try {
      return await this.#client.get(namespace, name, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** Whether a Pod has addresses of the cluster's network, and not those of its further networks. */
function isWaiting(pod: Pod): boolean {
  const { metadata, spec, status } = pod;
  const isBound = (spec.nodeName ?? '') !== '' && (status.podIPs ?? []).length > 0;
  const isEnding = metadata.deletionTimestamp !== undefined || isFinished(pod);
  return isBound && !isEnding && asksForNetworks(pod) && !isAttached(pod);
}

/** The networks that a Pod asks for, as they are written. */
function asked({ metadata }: Pod): string | undefined {
  return metadata.annotations?.[networksAnnotation];
}
